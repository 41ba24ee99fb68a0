"""Arrow to Python rows that lose nothing: what the exact path sees of an Arrow page.

pyarrow's own ``to_pylist`` cuts nanoseconds off (or asks for pandas), raises on dates beyond Python's calendar
and gives maps as lists of pairs. Here a value that Python has no type for comes as its text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from burler.pages import BROKEN, decoded
from burler.records.arrow.json_text import PER_SECOND, bytes_of, join

_OWN_VALUES = ("arrow.uuid", "arrow.bool8")  # extension types whose values pyarrow gives as Python's own


class _JsonText(pa.ExtensionType):  # type: ignore[misc]
    """Strings, each a JSON text without white space around it."""

    def __init__(self) -> None:
        super().__init__(pa.string(), "burler.json")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> _JsonText:
        return cls()

    def __arrow_ext_scalar_class__(self) -> type[pa.ExtensionScalar]:
        return _JsonValue


class _JsonValue(pa.ExtensionScalar):  # type: ignore[misc]
    def as_py(self, **_options: Any) -> Any:
        """The value, not its text: of ``to_pylist`` a tap's author yields rows."""
        return None if self.value is None else decoded(self.value.as_py().encode())


JSON_TEXT = _JsonText()


def _json_values(array: Any) -> list[Any]:
    """The values of JSON in a column, numbers with a fraction as Decimals.

    Raises:
        ValueError: Python has no form for one.
    """
    texts = bytes_of(join([array.storage, ","], len(array)))
    try:
        values: list[Any] = decoded(b"[" + bytes(texts[:-1]) + b"]")
    except BROKEN as error:
        raise ValueError(f"JSON in a column can't be read: {error}") from None
    return values


def batch_to_rows(batch: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """The rows as dicts: Decimals digit for digit, maps as dicts, UUIDs, aware datetimes in their zone.

    What Python has no type for comes as text: times and timestamps with digits beyond the sixth (nine digits),
    dates and timestamps outside the years 1 to 9999, durations as ISO 8601 where a timedelta has no room for
    them. A map that names a key twice stays a list of pairs; text that is no UTF-8 has lone surrogates, for the
    shaper to refuse; other extension types come as they are stored.

    Raises:
        ValueError: two columns (or two fields of a struct) have the same name, of which a dict keeps one.
    """
    names = batch.schema.names
    refuse_repeated(names, "columns of an Arrow page")
    if not names:
        return [{} for _ in range(batch.num_rows)]
    columns = [column_values(batch.column(i)) for i in range(len(names))]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def refuse_repeated(names: list[str], what: str) -> None:
    """Raise ``ValueError`` if a name stands twice in the list."""
    if len(set(names)) < len(names):
        name = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"two {what} are named {name!r}, and a record has one field of a name: rename one")


def column_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column, nulls as None, as ``batch_to_rows`` gives them."""
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in column_values(chunk)]
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        if getattr(kind, "extension_name", "") in _OWN_VALUES:
            return list(column.to_pylist())
        return _json_values(column) if kind == JSON_TEXT else column_values(column.storage)
    if pa.types.is_dictionary(kind):
        if len(column.dictionary) > len(column):  # of a slice, say: most of it is of no use here
            return column_values(column.dictionary.take(column.indices))
        return _picked(column_values(column.dictionary), column.indices.to_pylist())
    if pa.types.is_run_end_encoded(kind):
        return _runs(column)
    if pa.types.is_union(kind):
        return [None if one.value is None else column_values(_single(one.value))[0] for one in column]
    for test, values in _NESTED.items():
        if getattr(pa.types, test, _no)(kind):
            return values(column)
    return _scalars(column)


def _no(_kind: Any) -> bool:
    return False


def _single(scalar: Any) -> Any:
    return pa.array([scalar], scalar.type) if scalar.is_valid else pa.nulls(1)


def _picked(values: list[Any], indices: list[int | None]) -> list[Any]:
    return [None if i is None else values[i] for i in indices]


def _runs(column: Any) -> list[Any]:
    """A run-end encoded array; a slice of one still has the runs of the whole."""
    values = column_values(column.values)
    out: list[Any] = []
    start, stop, at = column.offset, column.offset + len(column), 0
    for value, end in zip(values, column.run_ends.to_pylist(), strict=True):
        out.extend([value] * (min(end, stop) - max(at, start)))
        at = end
    return out


def _structs(column: Any) -> list[Any]:
    names = [field.name for field in column.type]
    refuse_repeated(names, "fields of an Arrow struct")
    present = column.is_valid().to_pylist()
    if not names:
        return [{} if here else None for here in present]
    parts = zip(*map(column_values, column.flatten()), strict=True)  # flattened: what lies below a null is anything
    return [dict(zip(names, part, strict=True)) if here else None for here, part in zip(present, parts, strict=True)]


def _lists(column: Any) -> list[Any]:
    return _cut(column_values(pc.list_flatten(column)), pc.list_value_length(column).to_pylist(), column)


def _maps(column: Any) -> list[Any]:
    """A map as a dict; as a list of pairs, as pyarrow has it, if a key comes twice."""
    offsets, present = column.offsets.to_pylist(), column.is_valid().to_pylist()
    spans = list(zip(offsets, offsets[1:], present, strict=False))
    if any(stop > start and not here for start, stop, here in spans):  # what lies below a null is anything
        return [_mapping(_pairs(column, start, stop)) if here else None for start, stop, here in spans]
    first = offsets[0]
    pairs = _pairs(column, first, offsets[-1])
    return [_mapping(pairs[start - first : stop - first]) if here else None for start, stop, here in spans]


def _pairs(column: Any, start: int, stop: int) -> list[tuple[Any, Any]]:
    keys, items = (column_values(part.slice(start, stop - start)) for part in (column.keys, column.items))
    return list(zip(keys, items, strict=True))


def _mapping(pairs: list[tuple[Any, Any]]) -> Any:
    try:
        made = dict(pairs)
    except TypeError:  # a key that is a list or an object
        return pairs
    return made if len(made) == len(pairs) else pairs


def _cut(values: list[Any], lengths: list[int | None], column: Any) -> list[Any]:
    out: list[Any] = []
    at = 0
    for length, here in zip(lengths, column.is_valid().to_pylist(), strict=True):
        out.append(values[at : at + (length or 0)] if here else None)
        at += (length or 0) if here else 0
    return out


def _scalars(column: Any) -> list[Any]:
    kind = column.type
    if pa.types.is_time(kind) and not _within_a_day(column):
        return [None if one.value is None else _time_text(one.value * 10**9 // PER_SECOND[kind.unit]) for one in column]
    if getattr(kind, "unit", None) == "ns":
        return _nanoseconds(column)
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError, KeyError):  # beyond the calendar, no UTF-8, a zone this machine does not know
        return [_odd(column, i) for i in range(len(column))]
    if pa.types.is_float16(kind):
        return [None if value is None else float(value) for value in values]
    return values


def _nanoseconds(column: Any) -> list[Any]:
    """Values as from a column of microseconds where that is exact, else their text."""
    kind = column.type
    counts = column.view(pa.int64()).to_pylist()
    fine = [count is not None and count % 1000 != 0 for count in counts]
    whole = pa.array([None if count is None else count // 1000 for count in counts], pa.int64())
    if pa.types.is_timestamp(kind):
        coarse, text = whole.cast(pa.timestamp("us", kind.tz)), _timestamp_text(kind)
    elif pa.types.is_duration(kind):
        coarse, text = whole.cast(pa.duration("us")), _duration_text("ns")
    else:
        coarse, text = whole.cast(pa.time64("us")), _time_text
    values = _scalars(coarse)
    return [text(counts[i]) if fine[i] else value for i, value in enumerate(values)]


def _odd(column: Any, i: int) -> Any:
    """One value of a column that pyarrow could not give as a whole."""
    one, kind = column[i : i + 1], column.type
    try:
        return one.to_pylist()[0]
    except (OverflowError, ValueError, KeyError):
        if pa.types.is_duration(kind):
            return _duration_text(kind.unit)(one.view(pa.int64())[0].as_py())
        if pa.types.is_timestamp(kind):
            return _timestamp_text(kind)(one.view(pa.int64())[0].as_py())
        if pa.types.is_date(kind):
            text = one.cast(pa.string())[0].as_py()
            return text if text[0] != "<" else _far(one.cast(pa.int32() if kind == pa.date32() else pa.int64()), kind)
        if isinstance(one[0], pa.StringScalar | pa.LargeStringScalar) or "view" in str(kind):
            return one[0].as_buffer().to_pybytes().decode("utf-8", "surrogateescape")
        raise


def _timestamp_text(kind: Any) -> Callable[[int], str]:
    """Texts of a timestamp's counts: RFC 3339 in UTC, without ``Z`` if the type has no zone."""
    per, zone = PER_SECOND[kind.unit], "Z" if kind.tz else ""

    def text(count: int) -> str:
        seconds, fraction = divmod(count, per)
        moment = pa.array([seconds], pa.timestamp("s"))
        shown = moment.cast(pa.string())[0].as_py().replace(" ", "T")
        if shown[0] == "<":
            return _far(pa.array([count]), kind)
        return f"{shown}{'.' + _digits(fraction, kind.unit) if fraction else ''}{zone}"

    return text


def _far(count: Any, kind: Any) -> str:
    """A date so far away that Arrow itself has no text for it."""
    unit = {"date32[day]": "days", "date64[ms]": "ms"}.get(str(kind)) or kind.unit
    return f"{count[0].as_py()} {unit} from 1970-01-01"


def _within_a_day(column: Any) -> bool:
    """Whether no time is 24:00:00 or later (databases have such), which pyarrow would take for the next day's."""
    bounds = pc.min_max(column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())).as_py()
    return bounds["min"] is None or (bounds["min"] >= 0 and bounds["max"] < 86_400 * PER_SECOND[column.type.unit])


def _time_text(count: int) -> str:
    """A time of day, in nanoseconds: ``HH:MM:SS`` with six digits, nine or none."""
    sign, count = ("-", -count) if count < 0 else ("", count)
    seconds, fraction = divmod(count, 1_000_000_000)
    clock = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{clock}.{_digits(fraction, 'ns')}" if fraction else clock


def _duration_text(unit: str) -> Callable[[int], str]:
    """Texts of a duration's counts, as ``times.duration`` writes them."""

    def text(count: int) -> str:
        sign, count = ("-", -count) if count < 0 else ("", count)
        seconds, fraction = divmod(count, PER_SECOND[unit])
        days, seconds = divmod(seconds, 86_400)
        shown = f"{seconds}.{_digits(fraction, unit)}".rstrip("0").rstrip(".") if fraction else f"{seconds}"
        time = f"T{shown}S" if shown != "0" or not days else ""
        return f"{sign}P{f'{days}D' if days else ''}{time}"

    return text


def _digits(fraction: int, unit: str) -> str:
    """A fraction of a second with six digits, or nine if six do not hold it."""
    nano = fraction * (1_000_000_000 // PER_SECOND[unit])
    return f"{nano:09d}" if nano % 1000 else f"{nano // 1000:06d}"


_NESTED: dict[str, Callable[[Any], list[Any]]] = {
    "is_struct": _structs,
    "is_map": _maps,
    "is_list": _lists,
    "is_large_list": _lists,
    "is_fixed_size_list": _lists,
    "is_list_view": _lists,
    "is_large_list_view": _lists,
}
