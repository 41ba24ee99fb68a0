"""What the cells of an author's CSV files mean: columns of text as numbers, truth values and date-times, as far as the
stream's schema asks for them. What can't be had without a guess stays text, for the shaper to say which row does not
fit."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from burler.files.options import Csv
from burler.records.columns.csv import all_match
from burler.records.columns.types import SchemaNode, fields_of

_INT64 = r"^-?(?:0|[1-9][0-9]{0,17})$"
_DECIMAL = r"^-?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,18}$"
_NAIVE = r"^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?)$"
_NAIVE_MINUTES = r"^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})$"


def narrowing(schema: Mapping[str, Any], csv: Csv) -> Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]]:
    """A function that makes numbers, truth values and date-times of a batch of text, as far as a stream's schema asks
    for them and nothing is lost. It gives the rows in order, in several batches where a truth value is none: such a row
    stands alone, as text."""
    fields = fields_of(schema)
    narrows = {name: narrow for name, node in fields.items() if (narrow := _narrow(node, csv)) is not None}
    truths = [name for name, node in fields.items() if node.names - {"null"} == {"boolean"}]
    known = pa.array([*csv.true_values, *csv.false_values, *csv.null_values, None], pa.string())

    def narrowed(batch: pa.RecordBatch, left: Collection[str] = ()) -> pa.RecordBatch:
        names = batch.schema.names
        columns = [
            narrows[name](column) if name in narrows and name not in left else column
            for name, column in zip(names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=names)

    def parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        odd: set[int] = set()
        for name in truths:
            if name in batch.schema.names:
                is_odd = pc.invert(pc.is_in(batch.column(name), value_set=known))
                odd.update(pc.indices_nonzero(is_odd).to_pylist())
        at = 0
        for row in sorted(odd):
            if row > at:
                yield narrowed(batch.slice(at, row - at))
            yield narrowed(batch.slice(row, 1), left=truths)
            at = row + 1
        if at < batch.num_rows:
            yield narrowed(batch.slice(at))

    return parts


def _narrow(node: SchemaNode, csv: Csv) -> Callable[[Any], Any] | None:
    """What makes of a field's column of text one of the same length; None: it stays as it is."""
    wanted = node.names - {"null"}
    read: Callable[[Any], Any] | None = None
    if "string" in wanted:
        has_zone = node.says("format", "date-time")
        if wanted != {"string"} or not (has_zone or node.says("format", "date")):
            may_be_empty = "null" not in node.names and csv.null_values == ("",)
            return (lambda column: pc.fill_null(column, "")) if may_be_empty else None
        if has_zone and csv.zone is not None:
            read = _in_utc if csv.zone == "UTC" else _in_zone(csv.zone)
    elif wanted == {"boolean"}:
        read = partial(_truths, true=pa.array(csv.true_values, pa.string()))
    elif wanted and wanted <= {"integer", "number"}:
        read = _exact_numbers
    null = pa.array(csv.null_values, pa.string())

    def narrow(column: Any) -> Any:
        is_null = pc.is_in(column, value_set=null)  # quoted words, too
        if pc.any(is_null).as_py():
            column = pc.if_else(is_null, pa.scalar(None, pa.string()), column)
        return column if read is None else read(column)

    return narrow


def _truths(column: Any, *, true: Any) -> Any:
    return pc.if_else(pc.is_null(column), pa.scalar(None, pa.bool_()), pc.is_in(column, value_set=true))


def _exact_numbers(column: Any) -> Any:
    """Whole numbers as int64; numbers that all have as many digits behind the point as decimals with so many. Others
    stay text, which the shaper reads digit for digit."""
    if all_match(column, _INT64):
        return column.cast(pa.int64())
    if not all_match(column, _DECIMAL):
        return column
    behind = pc.subtract(pc.subtract(pc.utf8_length(column), pc.find_substring(column, ".")), 1)
    least, most = (digits.as_py() for digits in pc.min_max(behind).values())
    return column.cast(pa.decimal128(19 + most, most)) if least == most else column


def _in_utc(column: Any) -> Any:
    column = pc.replace_substring_regex(column, _NAIVE, r"\1T\2Z")
    return pc.replace_substring_regex(column, _NAIVE_MINUTES, r"\1T\2:00Z")


def _in_zone(zone: str) -> Callable[[Any], Any]:
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

    return lambda column: pa.array([one(text) for text in column.to_pylist()], pa.string())
