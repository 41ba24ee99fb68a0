"""Merging rows by key: as SQL conditions, and in memory for small tables.

Source: ``base.Change``: the columns that say which row is newer are compared one after the other, null is oldest, and
where all are equal the given row wins.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from burler.extras import require

if TYPE_CHECKING:
    import pyarrow

MERGE_BYTES = 32 << 20
"""Up to this size of a table small increments are merged in this process, without Spark."""
_PLACE = "__burler_place"


def wins(newer: Sequence[str], there: Collection[str], given: Callable[[str], str], old: Callable[[str], str]) -> str:
    """The SQL condition under which the given row replaces the one that is there.

    Args:
        there: the table's columns as they are; one of ``newer`` that is not among them is null in every row.
        given, old: a column's name in the SQL, of the given row and of the row that is there.
    """
    condition = ""
    for name in reversed(newer):
        new = given(name)
        if name in there:
            was = old(name)
            above = f"({new} IS NOT NULL AND ({was} IS NULL OR {new} > {was}))"
            same = f"({new} = {was} OR ({new} IS NULL AND {was} IS NULL))"
        else:
            above, same = f"({new} IS NOT NULL)", f"({new} IS NULL)"
        condition = f"({above} OR ({same} AND {condition}))" if condition else f"({above} OR {same})"
    return condition or "(1 = 1)"


def merged(old: pyarrow.Table, new: pyarrow.Table, keys: Sequence[str], newer: Sequence[str]) -> pyarrow.Table:
    """Both tables' rows, one a key: the newer, in ``new``'s columns. All of it is in memory."""
    arrow = require("pyarrow", extra="spark", needed_for="burler export")
    compute = require("pyarrow.compute", extra="spark", needed_for="burler export")
    have = set(old.column_names)
    was = arrow.table(
        [
            old.column(field.name).cast(field.type) if field.name in have else arrow.nulls(old.num_rows, field.type)
            for field in new.schema
        ],
        schema=new.schema,
    )
    rows = arrow.concat_tables([was, new])
    place = arrow.array(range(rows.num_rows), arrow.int64())
    # Whether there is a value comes before the value: null is oldest.
    compared = {f"is{at}": rows.column(name).is_valid().cast("int8") for at, name in enumerate(newer)}
    compared |= {f"is{at}_": rows.column(name) for at, name in enumerate(newer)} | {_PLACE: place}
    sorting = [(name, "ascending") for at in range(len(newer)) for name in (f"is{at}", f"is{at}_")]
    order = compute.sort_indices(arrow.table(compared), sort_keys=[*sorting, (_PLACE, "ascending")])
    # The last row of each key in that order is the newest: sorted, its place is the greatest.
    plain = [f"key{at}" for at in range(len(keys))]
    columns = [comparable(rows.column(name)).take(order) for name in keys]
    ranked = arrow.table([*columns, place], names=[*plain, _PLACE])
    last = ranked.group_by(plain).aggregate([(_PLACE, "max")]).column(f"{_PLACE}_max")
    return rows.take(order.take(last))


def comparable(column: Any) -> Any:
    """A key column in which equal values are equal bytes: 0.0 for -0.0, as Spark compares them."""
    arrow = require("pyarrow", extra="spark", needed_for="burler export")
    compute = require("pyarrow.compute", extra="spark", needed_for="burler export")
    return compute.add(column, 0.0) if arrow.types.is_floating(column.type) else column
