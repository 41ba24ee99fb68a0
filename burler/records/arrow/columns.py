"""Arrow pages as the columns of a file, without a text in between: for BATCH files in Parquet and Arrow.

A value goes over as it is only where the RECORD line that ``lines`` writes of it surely reads back as the same
value. The plan is the one that the lines are made by, so selection, constraints and unknown fields are the
same on both ways; what it leaves to the exact path, a value at a time, is left to it here as well: the page as a whole
then goes through lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from burler.records.arrow.kernels import Unsure, check_distinct, entries, flattened, join
from burler.records.arrow.lines import key_values, page_fields, with_needed
from burler.records.arrow.plan import Fields, NeedsRows, Plan, render
from burler.records.arrow.scalars import scalars, texts, where_valid
from burler.records.arrow.types import is_list, settled
from burler.records.shape.exact import Exact
from burler.records.shape.rules import DEFAULT_RULES, Rules
from burler.records.shape.unknown import Unknown


@dataclass(frozen=True, slots=True)
class DirectBatch:
    """A page as columns. ``keys`` are the replication key's values in the order of the rows, as the lines of the page
    would give them, if one was asked for."""

    table: pa.RecordBatch
    keys: list[Any]

    @property
    def count(self) -> int:
        """How many rows."""
        return int(self.table.num_rows)


class ArrowDirect:
    """Makes columns of one stream's Arrow pages, by the rules of the RECORD path.

    Args:
        form: the stream's schema as ``shape.form`` makes it.
        arrow_schema: the columns wanted: those of the stream's schema (``burler.records.columns.types.arrow_schema``).
        exact: notes unknown fields in its ``unknown``, as it does for ``ArrowShaper``.
        key: the replication key.
        required: columns that must be there beside those the form requires.
        rules: those of ``exact``.
    """

    def __init__(
        self,
        form: Mapping[str, Any],
        arrow_schema: pa.Schema,
        exact: Exact,
        *,
        key: str | None = None,
        required: Iterable[str] = (),
        rules: Rules = DEFAULT_RULES,
    ) -> None:
        self._form = with_needed(form, required)
        self._wanted = arrow_schema
        self._exact = exact
        self._key = key
        self._checks = rules.check_constraints
        self._schema: pa.Schema | None = None
        self._fields: Fields | None = None

    def batch(self, batch: pa.RecordBatch | pa.Table) -> DirectBatch | None:
        """The page with exactly the columns wanted; what it has no value for is null.

        None where the page must go through lines: some value does not fit, or is not surely the same on both ways.
        Then nothing is noted of unknown fields either.
        """
        if not batch.num_rows:
            return DirectBatch(self._empty(), [])
        whole = _whole(batch)
        fields = None if whole is None else self._fields_for(whole.schema)
        if whole is None or fields is None:
            return None
        held = self._exact.unknown
        self._exact.unknown = noted = Unknown(held)
        try:
            arrays = _columns(fields, list(whole.schema), whole.column, self._wanted, whole.num_rows, self._exact)
            self._exact.unknown = Unknown()  # the key's column has been looked at
            keys = self._keys(whole, fields)
        except (NeedsRows, Unsure, pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            return None
        except pa.lib.ArrowCapacityError:  # more text than 32 bits count
            return None
        finally:
            self._exact.unknown = held
        held.merge(noted)
        return DirectBatch(pa.RecordBatch.from_arrays(arrays, schema=self._wanted), keys)

    def _keys(self, batch: pa.RecordBatch, fields: Fields) -> list[Any]:
        """The replication key's values, read back from the text that they have in lines."""
        if self._key is None:
            return []
        place = batch.schema.get_field_index(self._key)
        plan = next((plan for _name, at, plan in fields.emitted if at == place), None)
        if plan is None:
            return [None] * batch.num_rows
        text = render(plan, batch.column(place), self._exact)
        return key_values(text, batch.schema.field(place).type, batch.num_rows)

    def _empty(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in self._wanted], schema=self._wanted)

    def _fields_for(self, schema: pa.Schema) -> Fields | None:
        """The plan for pages of a schema, made anew when it changes."""
        if self._schema is None or not self._schema.equals(schema):
            self._fields = page_fields(schema, self._form, checks=self._checks)
            self._schema = schema
        return self._fields


def _whole(page: pa.RecordBatch | pa.Table) -> pa.RecordBatch | None:
    """A page as one batch; None if it has too much text for that."""
    if not hasattr(page, "to_batches"):
        return page
    batches = page.combine_chunks().to_batches()
    return batches[0] if len(batches) == 1 else None


def _columns(
    fields: Fields,
    given: Sequence[pa.Field],
    column: Callable[[int], Any],
    wanted: Iterable[pa.Field],
    count: int,
    exact: Exact,
) -> list[Any]:
    """The arrays of the columns (or fields of a struct) that are wanted.

    Raises:
        Unsure: a value may go over otherwise than by way of lines, or has no column (who writes the file tells that).
    """
    plans = {given[place].name: (place, plan) for _name, place, plan in fields.emitted}
    made = []
    for field in wanted:
        place, plan = plans.pop(field.name, (-1, None))
        if plan is None:
            made.append(pa.nulls(count, field.type))
        else:
            made.append(_column(plan, column(place), field.type, exact))
    if plans:
        raise Unsure
    fields.note_unknown(column, exact)
    return made


def _column(plan: Plan, array: Any, wanted: pa.DataType, exact: Exact) -> Any:
    """An array as one of the type wanted."""
    plain = settled(array)
    if plan.kernel is None or (plain.null_count and not plan.nullable):
        raise Unsure
    if not all(limit(plain) for limit in plan.limits):
        raise Unsure
    if plain.null_count == len(plain):
        return pa.nulls(len(plain), wanted)
    if plan.leaf is not None:
        return scalars(plan.leaf, plan.node, plain, wanted)
    if pa.types.is_string(wanted):  # an open type: the JSON that stands in the line
        return where_valid(plain, join(plan.kernel(plain, exact), len(plain)))
    if isinstance(plan.below, Fields):
        fields = plan.below
        return _around_nulls(plain, lambda there: _structs(fields, there, wanted, exact))
    if isinstance(plan.below, Plan) and pa.types.is_map(plain.type):
        values = plan.below
        return _around_nulls(plain, lambda there: _maps(values, there, wanted, exact))
    if isinstance(plan.below, Plan):
        items = plan.below
        return _around_nulls(plain, lambda there: _lists(items, there, wanted, exact))
    raise Unsure


# ---- nested --------------------------------------------------------------------------------------


def _around_nulls(array: Any, present: Callable[[Any], Any]) -> Any:
    """What is made of those that are there, and null where none is: what lies below a null must not be looked at."""
    if not array.null_count:
        return present(array)
    valid = array.is_valid()
    places = pc.if_else(valid, pc.subtract(pc.cumulative_sum(valid.cast(pa.int32())), 1), pa.nulls(1, pa.int32())[0])
    return present(array.drop_null()).take(places)


def _structs(fields: Fields, array: Any, wanted: pa.DataType, exact: Exact) -> Any:
    if not pa.types.is_struct(wanted):
        raise Unsure
    made = _columns(fields, list(array.type), array.field, wanted, len(array), exact)
    return pa.StructArray.from_arrays(made, fields=list(wanted))


def _lists(items: Plan, array: Any, wanted: pa.DataType, exact: Exact) -> Any:
    if not is_list(wanted):
        raise Unsure
    flat, offsets = flattened(array)
    return pa.ListArray.from_arrays(offsets.cast(pa.int32()), _column(items, flat, wanted.value_type, exact), wanted)


def _maps(values: Plan, array: Any, wanted: pa.DataType, exact: Exact) -> Any:
    if not pa.types.is_map(wanted):
        raise Unsure
    keys, items, offsets = entries(array)
    names = settled(keys)
    check_distinct(names, offsets)
    made = _column(values, items, wanted.item_type, exact)
    return pa.MapArray.from_arrays(offsets.cast(pa.int32()), texts(names), made, wanted)
