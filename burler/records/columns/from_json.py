"""JSON lines to record batches: each row is cut into its fields, then it goes column by column. Exact, or an error.

Two cuts. The quick one lets the decoder read the values of the plain types; it is taken as long as every value of a
block has the type that its column says. Else the fields are cut out as source texts, and each column decides for itself
what it makes of them: a column at a time where that is surely exact, else value by value.

``burler.records.columns.exact.converter`` says what each value becomes. The quick ways here answer only where
they give the same; whatever they are not sure of goes through the converter, that column alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from burler.errors import BatchError
from burler.formats.jsonl import line_cuts
from burler.log_settings import log_settings, near, value
from burler.records.arrow.kernels import Tries, Unsure, offsets, read_days, read_moments
from burler.records.columns.arrow import arrow_schema, arrow_type
from burler.records.columns.exact import Misfit, Path, Report, converter, half_pair
from burler.records.columns.nodes import record_type
from burler.records.columns.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DIGITS,
    DOUBLE,
    JSON,
    STRING,
    TIMESTAMP,
    DecimalOf,
    FieldType,
    ListOf,
    MapOf,
    Scalar,
    StructOf,
)

Raws = Sequence[Any]
"""The source texts of a column's values (``msgspec.Raw``), one a row; ``null`` where there is none."""
Column = Callable[[Raws, Report], Any]
"""Makes a column's array. Raises ``Misfit`` for a value that it can't hold."""
TypedColumn = Callable[[Sequence[Any], Report], Any]
"""The same of values that the decoder has read. Raises one of ``UNCERTAIN`` where only the source texts can tell."""
Rows = Sequence[Any]

UNCERTAIN = (Unsure, msgspec.DecodeError, UnicodeDecodeError, OverflowError, RecursionError, pa.ArrowException)
"""What a quick way raises where it can't tell."""

_BLOCK_BYTES = 256 * 1024  # of lines that are taken at once: their parts stay in the processor's cache
_SHOWN = 80  # characters of a value in an error
_NULL = msgspec.Raw(b"null")
_PLAIN: dict[FieldType, Any] = {  # what the decoder reads
    BIGINT: int | None,
    DOUBLE: float | None,
    BOOLEAN: bool | None,
    STRING: str | None,
}
_ARRAY: Any = list  # types of it are made at run time
_texts = msgspec.json.Decoder(list[str | None])
_lists = msgspec.json.Decoder(list[list[msgspec.Raw] | None])
_maps = msgspec.json.Decoder(list[dict[str, msgspec.Raw] | None])
_encode = msgspec.json.encode


class ColumnarLayout:
    """What makes a stream's columns of lines of JSON.

    Args:
        record: the columns' types.
        cure: what else to do about a value that its column can't hold; ends the error's sentence.
        within: the key of a line's object that holds the row; None: the line is the row.
        skips: fields without a column are passed over, and not counted.

    Attributes:
        arrow_schema: of every batch.
        report: fields without a column, and times that were cut, since ``remarks`` was asked last.
    """

    def __init__(
        self, record: StructOf, stream: str, cure: str = "", *, within: str | None = None, skips: bool = False
    ) -> None:
        self.record, self.stream = record, stream
        self.arrow_schema = arrow_schema(record)
        self.report = Report(Counter(), Counter())
        self._cure = cure
        self._split = Splitter(record, (), within=within, skips=skips)
        self._row_of = _rows_within(msgspec.Raw, within)

    def batches(self, lines: bytes | bytearray | memoryview, count: int) -> list[pa.RecordBatch]:
        """``count`` rows, one a line, as columns: all of them, or an error.

        Raises:
            BatchError: a value that its column can't hold, a line that is no object, not so many rows.
        """
        found = Report(Counter(), Counter())
        made = [self._batch(block, found) for block in line_cuts(lines, _BLOCK_BYTES)]
        rows = sum(batch.num_rows for batch in made)
        if rows != count:
            raise BatchError(f"stream '{self.stream}': {rows} row(s) came where {count} were announced")
        self.report.add(found)
        return made

    def batch(self, lines: bytes | bytearray | memoryview, count: int) -> pa.RecordBatch:
        """The same as one batch.

        Raises:
            BatchError: see ``batches``.
        """
        table = pa.Table.from_batches(self.batches(lines, count), self.arrow_schema).combine_chunks()
        return table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], schema=self.arrow_schema)

    def _batch(self, lines: bytes, report: Report) -> pa.RecordBatch:
        try:
            arrays, _ = self._split.arrays(lines, report, lines=True)
            return pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)
        except (Misfit, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self._first_misfit(lines) from None

    def remarks(self) -> list[str]:
        """One sentence for each thing that was left out or cut, since it was asked last."""
        report, self.report = self.report, Report(Counter(), Counter())
        lost = [
            f"field '{path}' is not in the schema and has no column: left out of {count} row(s). "
            f"Declare it in the tap{self._cure}"
            for path, count in report.dropped.items()
        ]
        return lost + [
            f"field '{path}': {count} time(s) cut to microseconds, all that the column holds"
            for path, count in report.truncated.items()
        ]

    def _first_misfit(self, lines: bytes) -> BatchError:
        """What is wrong, in the order of rows: they are looked at one by one."""
        convert, unused = converter(self.record, ()), Report(Counter(), Counter())
        for line in filter(None, lines.split(b"\n")):
            try:
                rows = self._row_of(line)
                convert(bytes(rows[0]) if rows else line, unused)
            except Misfit as misfit:
                if not misfit.path:
                    return self._no_row(line)
                start = f"stream '{self.stream}': field '{'.'.join(misfit.path)}': "
                return BatchError(
                    f"{start}{value(misfit.text[:_SHOWN])} can't be held exactly; the schema wants {misfit.wanted}.\n"
                    f"Correct the schema or the value in the tap{self._cure}"
                )
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return self._no_row(line)
        return self._no_row(lines)

    def _no_row(self, line: bytes) -> BatchError:
        path = half_pair(line)
        start = f"stream '{self.stream}': "
        if path is None:
            return BatchError(f"{start}a row that is no object of valid JSON{near(line, _SHOWN)}")
        # Names that the schema does not have are the row's own.
        shown = path if log_settings.values else path[:1] if self.record.get(path[0]) is not None else ()
        field = f"field '{'.'.join(shown)}': " if shown else ""
        return BatchError(
            f"{start}{field}half of a surrogate pair, which is no text that a column can hold{near(line, _SHOWN)}.\n"
            f"Correct the value in the tap{self._cure}"
        )


def layout_of(schema: Mapping[str, Any], stream: str, cure: str = "") -> ColumnarLayout:
    """What makes the columns that a stream's batch files have.

    Raises:
        DataError: the schema has no form in columns.
    """
    return ColumnarLayout(record_type(schema, stream=stream, open_as=JSON), stream, cure)


_READ_TIMES: dict[FieldType, Callable[[Any], Any]] = {TIMESTAMP: read_moments, DATE: read_days}


# ---- rows ------------------------------------------------------------------------------------------------------------


class Splitter:
    """Objects of known fields, made into columns. What comes twice counts as it came last, as everywhere in burler;
    fields that nobody declares are dropped and counted.

    Args:
        kind: the fields.
        path: where the objects stand.
        within, skips: see ``ColumnarLayout``.
    """

    def __init__(self, kind: StructOf, path: Path, *, within: str | None = None, skips: bool = False) -> None:
        self._path, self._skips = path, skips
        self._known = {name: f"f{i}" for i, (name, _) in enumerate(kind.fields)}
        self._takes = [attrgetter(attribute) for attribute in self._known.values()]
        self._columns = [column(inner, (*path, name)) for name, inner in kind.fields]
        self._typed_columns = [
            _typed_column(inner, (*path, name), make)
            for (name, inner), make in zip(kind.fields, self._columns, strict=True)
        ]
        self._typed = _row(self._known, [_typed_form(inner) for _, inner in kind.fields], closed=not skips)
        self._texts = _row(self._known, [msgspec.Raw] * len(self._known), closed=not skips)
        self._open: Any = _row(
            dict(zip(self._known.values(), self._known.values(), strict=True)), [msgspec.Raw] * len(self._known)
        )
        self._decoders: dict[Any, tuple[Any, Any]] = {
            form: (_rows_within(form, within), _list_decoder(form).decode)
            for form in (self._typed, self._texts, dict[str, msgspec.Raw])
            if form is not None
        }
        self._tries = Tries()

    def arrays(self, data: bytes, report: Report, *, lines: bool) -> tuple[list[Any], list[bool] | None]:
        """The columns of the objects in ``data``, and which of the objects are null (None: none is).

        Args:
            lines: one object a line; else they are the items of a JSON array.

        Raises:
            Misfit: a value that its column can't hold. msgspec.DecodeError: a line that is no object.
        """
        if self._typed is not None and self._tries:
            found = Report(Counter(), Counter())
            try:
                rows, absent = self._decoded(self._typed, data, lines, self._typed)
                made = [
                    make(list(map(take, rows)), found)
                    for take, make in zip(self._takes, self._typed_columns, strict=True)
                ]
            except UNCERTAIN:
                self._tries.ended(well=False)
            else:
                self._tries.ended(well=True)
                report.add(found)
                return made, absent
        rows, absent = self._cut(data, lines, report)
        return [
            make(list(map(take, rows)), report) for take, make in zip(self._takes, self._columns, strict=True)
        ], absent

    def _cut(self, data: bytes, lines: bool, report: Report) -> tuple[Rows, list[bool] | None]:
        """The objects with their fields as source texts."""
        if self._texts is not None:
            try:
                return self._decoded(self._texts, data, lines, self._texts)
            except msgspec.ValidationError:  # a field that is not known, or no object at all
                pass
        return self._decoded(dict[str, msgspec.Raw], data, lines, self._open, lambda row: self._known_of(row, report))

    def _decoded(
        self, form: Any, data: bytes, lines: bool, empty: Any, made: Callable[[Any], Any] | None = None
    ) -> tuple[Rows, list[bool] | None]:
        of_lines, of_values = self._decoders[form]
        rows: Rows = of_lines(data) if lines else of_values(data)
        absent = None
        if not lines and None in rows:
            absent = [row is None for row in rows]
            nothing = empty()
            return [nothing if row is None else made(row) if made else row for row in rows], absent
        return (list(map(made, rows)) if made else rows), absent

    def _known_of(self, row: dict[str, Any], report: Report) -> Any:
        known, made = self._known, self._open()
        for name, raw in row.items():
            attribute = known.get(name)
            if attribute is None and not self._skips:
                report.dropped[".".join((*self._path, name))] += 1
            elif attribute is not None:
                setattr(made, attribute, raw)
        return made


def _rows_within(form: Any, key: str | None) -> Callable[[bytes], Rows]:
    """What reads lines of rows: objects that hold them under a key, or the rows themselves."""
    if key is None:
        return msgspec.json.Decoder(form).decode_lines
    line: Any = msgspec.defstruct("Line", [("row", form)], rename={"row": key}, gc=False)
    decode = msgspec.json.Decoder(line).decode_lines
    return lambda data: [one.row for one in decode(data)]


def _list_decoder(form: Any) -> Any:
    return msgspec.json.Decoder(_ARRAY[form | None])


def _row(known: dict[str, str], forms: Sequence[Any], *, closed: bool = False) -> Any:
    """A struct of these fields, by name; None where a name can't be one's (control characters, ...)."""
    try:
        return msgspec.defstruct(
            "Row",
            [
                (attribute, form, _NULL if form is msgspec.Raw else None)
                for attribute, form in zip(known.values(), forms, strict=True)
            ],
            rename={attribute: name for name, attribute in known.items()},
            forbid_unknown_fields=closed,
            gc=False,
        )
    except ValueError:
        return None


# ---- columns of values that the decoder has read: no text of theirs is looked at again -------------------------------


def _typed_form(kind: FieldType) -> Any:
    """What the decoder is to read; ``msgspec.Raw``: the source text."""
    if isinstance(kind, ListOf) and kind.item in _PLAIN:
        return _ARRAY[_PLAIN[kind.item]] | None
    return str | None if kind in _READ_TIMES else _PLAIN.get(kind, msgspec.Raw)


def _typed_column(kind: FieldType, path: Path, of_texts: Column) -> TypedColumn:
    """What makes the arrays of a column whose values are of ``_typed_form``."""
    made = arrow_type(kind)
    if kind in _READ_TIMES:
        return _typed_times(_READ_TIMES[kind], converter(kind, path), made)
    return of_texts if _typed_form(kind) is msgspec.Raw else lambda values, report: pa.array(values, made)


def _typed_times(read: Callable[[Any], Any], exact: Callable[[bytes, Report], Any], made: Any) -> TypedColumn:
    def make(values: Sequence[Any], report: Report) -> Any:
        try:
            return read(pa.array(values, pa.string()))
        except (Unsure, pa.ArrowInvalid):
            return pa.array([None if text is None else exact(_encode(text), report) for text in values], made)

    return make


# ---- columns of source texts -----------------------------------------------------------------------------------------


def column(kind: FieldType, path: Path) -> Column:
    """What makes the arrays of a column of this type. ``path``: where it stands, for errors and counts."""
    quick = _quick(kind, path)
    exact = converter(kind, path)
    made = arrow_type(kind)

    def make(raws: Raws, report: Report) -> Any:
        if quick is not None:
            found = Report(Counter(), Counter())
            try:
                array = quick(raws, found)
            except UNCERTAIN:
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
            return _typed(kind, msgspec.json.Decoder(_ARRAY[_ARRAY[_PLAIN[item]] | None]))
        case ListOf(item):
            return _list(kind, column(item, (*path, "[]")))
        case MapOf(value):
            return _map(kind, column(value, (*path, "{}")))
        case DecimalOf():
            return _decimal(kind)
        case Scalar() if kind in _READ_TIMES:
            read = _READ_TIMES[kind]
            return lambda raws, report: read(pa.array(_texts.decode(_joined(raws)), pa.string()))
        case Scalar() if kind in _PLAIN:
            return _typed(kind, msgspec.json.Decoder(_ARRAY[_PLAIN[kind]]))
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
    return lambda raws, report: pa.array(decode(_joined(raws)), made)


def _json(raws: Raws, report: Report) -> Any:
    """Source texts as they stand; the cast sees to it that they are UTF-8."""
    texts = map(bytes, raws)
    return pa.array([None if text == b"null" else text for text in texts], pa.binary()).cast(pa.string())


def _decimal(kind: DecimalOf) -> Column:
    made = arrow_type(kind)

    def make(raws: Raws, report: Report) -> Any:
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
    return pc.max(counts).as_py() or 0


def _struct(kind: StructOf, path: Path) -> Column:
    split = Splitter(kind, path)
    types = arrow_type(kind)
    fields = [types.field(i) for i in range(types.num_fields)]

    def make(raws: Raws, report: Report) -> Any:
        columns, absent = split.arrays(_joined(raws), report, lines=False)
        mask = pa.array(absent, pa.bool_()) if absent else None
        return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)

    return make


def _list(kind: ListOf, items: Column) -> Column:
    made = arrow_type(kind)

    def make(raws: Raws, report: Report) -> Any:
        lists = _lists.decode(_joined(raws))
        inner = list(chain.from_iterable(one for one in lists if one))
        return pa.ListArray.from_arrays(offsets(lists), items(inner, report), type=made)

    return make


def _map(kind: MapOf, values: Column) -> Column:
    made = arrow_type(kind)

    def make(raws: Raws, report: Report) -> Any:
        maps = _maps.decode(_joined(raws))
        keys = pa.array(list(chain.from_iterable(one for one in maps if one)), pa.string())
        inner = list(chain.from_iterable(one.values() for one in maps if one))
        return pa.MapArray.from_arrays(offsets(maps), keys, values(inner, report), type=made)

    return make
