"""JSON values of one column to an Arrow array: a column at a time where that is surely exact, else value by value.

``burler.columns.values.converter`` says what each value becomes. The quick ways here answer only where
they give the same; whatever they are not sure of goes through the converter, that column alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import msgspec

from burler.batch.columnar_times import days, moments
from burler.columns.kinds import (
    BIGINT,
    BOOLEAN,
    DIGITS,
    DOUBLE,
    STRING,
    DecimalOf,
    FieldType,
    ListOf,
    MapOf,
    Scalar,
    StructOf,
)
from burler.columns.types import arrow_type
from burler.columns.values import Path, Report, converter

Raws = Sequence[Any]
"""The source texts of a column's values (``msgspec.Raw``), one a row; ``null`` where there is none."""
Column = Callable[[Raws, Report], Any]
"""Makes a column's array. Raises ``Misfit`` for a value that it can't hold."""

NULL = msgspec.Raw(b"null")

_PLAIN: dict[FieldType, tuple[Any, Any]] = {  # what the decoder reads: columns of values, columns of lists of them
    BIGINT: (list[int | None], list[list[int | None] | None]),
    DOUBLE: (list[float | None], list[list[float | None] | None]),
    BOOLEAN: (list[bool | None], list[list[bool | None] | None]),
    STRING: (list[str | None], list[list[str | None] | None]),
}
_texts = msgspec.json.Decoder(list[str | None])
_lists = msgspec.json.Decoder(list[list[msgspec.Raw] | None])
_maps = msgspec.json.Decoder(list[dict[str, msgspec.Raw] | None])


class Unsure(Exception):
    """Not certain here: look at each value."""


def uncertain() -> tuple[type[Exception], ...]:
    """What a quick way raises where it can't tell."""
    import pyarrow as pa

    return (Unsure, msgspec.DecodeError, UnicodeDecodeError, OverflowError, RecursionError, pa.ArrowException)


def column(kind: FieldType, path: Path) -> Column:
    """What makes the arrays of a column of this type. ``path``: where it stands, for errors and counts."""
    quick = _quick(kind, path)
    exact = converter(kind, path)
    made = arrow_type(kind)

    def make(raws: Raws, report: Report) -> Any:
        import pyarrow as pa

        if quick is not None:
            found = Report(Counter(), Counter())
            try:
                array = quick(raws, found)
            except uncertain():
                pass  # each value by itself, and what was counted is counted again
            else:
                report.add(found)
                return array
        texts = map(bytes, raws)
        return pa.array([None if text == b"null" else exact(text, report) for text in texts], made)

    return make


def _quick(kind: FieldType, path: Path) -> Column | None:
    match kind:
        case StructOf():
            return _struct(kind, path)
        case ListOf(item) if item in _PLAIN:
            return _typed(kind, msgspec.json.Decoder(_PLAIN[item][1]))
        case ListOf(item):
            return _list(kind, column(item, (*path, "[]")))
        case MapOf(value):
            return _map(kind, column(value, (*path, "{}")))
        case DecimalOf():
            return _decimal(kind)
        case Scalar(name) if name in ("timestamp", "date"):
            return _times(moments if name == "timestamp" else days)
        case Scalar() if kind in _PLAIN:
            return _typed(kind, msgspec.json.Decoder(_PLAIN[kind][0]))
        case Scalar("json"):
            return _json
        case Scalar():
            return None


def _joined(raws: Raws) -> bytes:
    """The values as one JSON array."""
    return b"[" + b",".join(raws) + b"]"


def _typed(kind: FieldType, decoder: Any) -> Column:
    """Values that the decoder reads as they are, and lists of them."""
    decode, made = decoder.decode, arrow_type(kind)

    def make(raws: Raws, report: Report) -> Any:
        import pyarrow as pa

        return pa.array(decode(_joined(raws)), made)

    return make


def _json(raws: Raws, report: Report) -> Any:
    """Source texts as they stand; the cast sees to it that they are UTF-8."""
    import pyarrow as pa

    texts = map(bytes, raws)
    return pa.array([None if text == b"null" else text for text in texts], pa.binary()).cast(pa.string())


def _times(read: Callable[[Any], Any]) -> Column:
    def make(raws: Raws, report: Report) -> Any:
        import pyarrow as pa

        array = read(pa.array(_texts.decode(_joined(raws)), pa.string()))
        if array is None:
            raise Unsure
        return array

    return make


def _decimal(kind: DecimalOf) -> Column:
    made = arrow_type(kind)

    def make(raws: Raws, report: Report) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        text = _joined(raws)
        given: Sequence[Any]
        if b'"' in text:
            given = _texts.decode(text)
        else:
            given = text[1:-1].decode("ascii").split(",")
            if len(given) != len(raws):
                raise Unsure
            if "null" in given:
                given = [None if value == "null" else value for value in given]
        array = pa.array(given, pa.string())
        # Arrow's cast wraps around in silence where a value has too many digits, of its own or before the point once
        # it has the column's scale; an exponent hides how many there are.
        lengths = pc.binary_length(array)
        points = pc.find_substring(array, ".")
        before = pc.if_else(pc.less(points, 0), lengths, points)
        if _most(lengths) > DIGITS or _most(before) + kind.scale > DIGITS or b"e" in text or b"E" in text:
            raise Unsure
        return array.cast(made)

    return make


def _most(counts: Any) -> int:
    import pyarrow.compute as pc

    return pc.max(counts).as_py() or 0


def _struct(kind: StructOf, path: Path) -> Column:
    from burler.batch.columnar_rows import Splitter

    split = Splitter(kind, path)
    types = arrow_type(kind)
    fields = [types.field(i) for i in range(types.num_fields)]

    def make(raws: Raws, report: Report) -> Any:
        import pyarrow as pa

        columns, absent = split.arrays(_joined(raws), report, lines=False)
        mask = pa.array(absent, pa.bool_()) if absent else None
        return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)

    return make


def _list(kind: ListOf, items: Column) -> Column:
    made = arrow_type(kind)

    def make(raws: Raws, report: Report) -> Any:
        import pyarrow as pa

        lists = _lists.decode(_joined(raws))
        inner = list(chain.from_iterable(one for one in lists if one))
        return pa.ListArray.from_arrays(_offsets(lists), items(inner, report), type=made)

    return make


def _map(kind: MapOf, values: Column) -> Column:
    made = arrow_type(kind)

    def make(raws: Raws, report: Report) -> Any:
        import pyarrow as pa

        maps = _maps.decode(_joined(raws))
        keys = pa.array(list(chain.from_iterable(one for one in maps if one)), pa.string())
        inner = list(chain.from_iterable(one.values() for one in maps if one))
        return pa.MapArray.from_arrays(_offsets(maps), keys, values(inner, report), type=made)

    return make


def _offsets(parts: Sequence[Any]) -> Any:
    """Where each list begins in the items of all; a null stands for a list that is none."""
    import pyarrow as pa

    at = 0
    offsets: list[int | None] = []
    for part in parts:
        offsets.append(None if part is None else at)
        at += len(part or ())
    return pa.array([*offsets, at], pa.int32())
