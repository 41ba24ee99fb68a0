"""Columns of text as numbers, truth values and date-times, as far as the schema asks for them and nothing is lost.

What can't be had without a guess stays text: the shaper then says which row and field does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from burler.files.csv_options import Csv
from burler.records.columns.nodes import SchemaNode, fields_of

if TYPE_CHECKING:
    import pyarrow as pa

Narrow = Callable[[Any], Any]
"""Takes a column of text, gives one of the same length."""

_WHOLE = r"^-?(?:0|[1-9][0-9]{0,17})$"
_DECIMAL = r"^-?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,18}$"
_NAIVE = r"^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?)$"
_NAIVE_MINUTES = r"^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})$"


def narrowing(schema: Mapping[str, Any], csv: Csv) -> Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]]:
    """A function that narrows the columns of a batch of text as a stream's schema asks for. It gives the rows in
    order, in several batches where a truth value is none: such a row stands alone, as text."""
    import pyarrow as pa

    fields = fields_of(schema)
    found = {name: narrow for name, node in fields.items() if (narrow := _narrow(node, csv)) is not None}
    truths = [name for name, node in fields.items() if node.names - {"null"} == {"boolean"}]

    def narrow_batch(batch: pa.RecordBatch, left: Collection[str] = ()) -> pa.RecordBatch:
        names = batch.schema.names
        columns = [
            found[name](column) if name in found and name not in left else column
            for name, column in zip(names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=names)

    def narrow_parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        at = 0
        for bad in _without_truth([batch.column(name) for name in truths if name in batch.schema.names], csv):
            if bad > at:
                yield narrow_batch(batch.slice(at, bad - at))
            yield narrow_batch(batch.slice(bad, 1), left=truths)
            at = bad + 1
        if at < batch.num_rows:
            yield narrow_batch(batch.slice(at))

    return narrow_parts


def _without_truth(columns: list[Any], csv: Csv) -> list[int]:
    """The rows in which one of these columns of text is neither true nor false nor null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pa.array((*csv.true_values, *csv.false_values, *csv.null_values), pa.string())
    bad: set[int] = set()
    for column in columns:
        strange = pc.invert(pc.or_(pc.is_in(column, value_set=known), pc.is_null(column)))
        if pc.any(strange).as_py():
            bad.update(pc.indices_nonzero(strange).to_pylist())
    return sorted(bad)


def _narrow(node: SchemaNode, csv: Csv) -> Narrow | None:
    """What to do with a field's column; None: it stays as it is."""
    wanted = node.names - {"null"}
    if "string" in wanted:
        is_zoned = node.says("format", "date-time")
        if wanted == {"string"} and (is_zoned or node.says("format", "date")):
            return _moments(csv, zoned=is_zoned)
        if "null" not in node.names and csv.null_values == ("",):
            return _empty_text
        return None
    if wanted == {"boolean"}:
        return _booleans(csv)
    if wanted and wanted <= {"integer", "number"}:
        return _numbers(csv)
    return _nulls(csv)


def _empty_text(column: Any) -> Any:
    """A field that may not be null holds the empty text where its cell is empty."""
    import pyarrow.compute as pc

    return pc.fill_null(column, "")


def _nulls(csv: Csv) -> Narrow:
    """Quoted texts that mean null, too, are null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    meaning_null = pa.array(csv.null_values, pa.string())

    def narrow(column: Any) -> Any:
        is_null = pc.is_in(column, value_set=meaning_null)
        return pc.if_else(is_null, pa.scalar(None, pa.string()), column) if pc.any(is_null).as_py() else column

    return narrow


def _numbers(csv: Csv) -> Narrow:
    """Whole numbers as int64; numbers that all have as many digits behind the point as decimals with so many. Others
    stay text, which the shaper reads digit for digit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    nulls = _nulls(csv)

    def narrow(column: Any) -> Any:
        column = nulls(column)
        if column.null_count == len(column) or _all(pc.match_substring_regex(column, _WHOLE)):
            return column.cast(pa.int64())
        if not _all(pc.match_substring_regex(column, _DECIMAL)):
            return column
        behind = pc.subtract(pc.subtract(pc.utf8_length(column), pc.find_substring(column, ".")), 1)
        least, most = pc.min_max(behind).values()
        scale = most.as_py()
        return column.cast(pa.decimal128(19 + scale, scale)) if least.as_py() == scale else column

    return narrow


def _booleans(csv: Csv) -> Narrow:
    import pyarrow as pa
    import pyarrow.compute as pc

    nulls, true = _nulls(csv), pa.array(csv.true_values, pa.string())

    def narrow(column: Any) -> Any:
        column = nulls(column)
        return pc.if_else(pc.is_null(column), pa.scalar(None, pa.bool_()), pc.is_in(column, value_set=true))

    return narrow


def _all(found: Any) -> bool:
    """Whether all of a column of truth values are true; nulls do not count."""
    import pyarrow.compute as pc

    answer = pc.all(found).as_py()
    return answer is not False


def _moments(csv: Csv, *, zoned: bool) -> Narrow:
    """Date-times without a zone get the one that the author named."""
    import pyarrow.compute as pc

    nulls = _nulls(csv)
    if not zoned or csv.zone is None:
        return nulls
    if csv.zone != "UTC":
        return _in_zone(csv.zone, nulls)

    def narrow(column: Any) -> Any:
        column = pc.replace_substring_regex(nulls(column), _NAIVE, r"\1T\2Z")
        return pc.replace_substring_regex(column, _NAIVE_MINUTES, r"\1T\2:00Z")

    return narrow


def _in_zone(zone: str, nulls: Narrow) -> Narrow:
    import datetime as dt
    import re
    from zoneinfo import ZoneInfo

    import pyarrow as pa

    where = ZoneInfo(zone)
    naive = re.compile(f"{_NAIVE}|{_NAIVE_MINUTES}", re.ASCII)

    def one(text: str | None) -> str | None:
        if text is None or not naive.match(text) or len(text.partition(".")[2]) > 6:
            return text
        try:
            moment = dt.datetime.fromisoformat(text)
            early, late = (moment.replace(tzinfo=where, fold=fold) for fold in (0, 1))
            if early.utcoffset() != late.utcoffset():  # an hour that comes twice, or never: whoever made it must say
                return text
            return early.astimezone(dt.UTC).isoformat()
        except (ValueError, OverflowError):  # no moment, or one before the year 1 or behind 9999 in UTC
            return text

    return lambda column: pa.array([one(text) for text in nulls(column).to_pylist()], pa.string())
