"""Arrow pages of one stream: to RECORD lines, or to the columns of a file, no Python per row where their types fit the
schema.

A column goes by its type's kernels where the type surely fits its node. Else, and where the kernels find values they
are not sure of, that column alone goes through the exact path value by value, and joins the others as text. Into a
column of a file a value goes as it is only where the RECORD line that would be written of it surely reads back as the
same value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from burler.records.arrow.json_text import Parts, bytes_of, join
from burler.records.arrow.to_rows import column_values
from burler.records.arrow.walk import (
    PLAIN,
    UNCERTAIN,
    Field,
    Lists,
    Maps,
    NeedsRows,
    Objects,
    Plan,
    Scalars,
    ScalarWriter,
    free_writer,
    is_list,
    is_text,
    own_types,
    settled_type,
    writer_for,
)
from burler.records.shape import constraints
from burler.records.shape.bad_rows import DEFAULT_RULES, Rules
from burler.records.shape.exact import Exact
from burler.records.shape.unknown import Unknown
from burler.records.shape.values import ANYTHING, DROPPED, Misfit, Path, template, types_of
from burler.records.tries import Tries

Node = Mapping[str, Any]
T = TypeVar("T")

_OPEN = frozenset(
    {
        ANYTHING, "anyOf", "oneOf", "allOf", "not", "if", "$ref", "patternProperties", "prefixItems", "additionalItems",
        "contains", "propertyNames", "dependencies", "dependentRequired", "dependentSchemas",
    }
)  # fmt: skip
_DEEP = frozenset({"properties", "required", "items", "additionalProperties"})
_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})

_encoder = msgspec.json.Encoder(decimal_format="number")
_decode = msgspec.json.Decoder(float_hook=Decimal).decode
_decode_floats = msgspec.json.Decoder().decode


class ArrowPages:
    """By the rules of the way of dicts.

    A property keeps its place in the schema; what a schema with ``additionalProperties`` lets in comes behind. Columns
    that the schema does not know are dropped and noted with the rows in which they are not null: an Arrow page has
    every column in every row, so a null says nothing (where a page or a column goes value by value, the nulls count as
    well, since a dict has the name).

    Args:
        form: the stream's schema as ``shape.form`` makes it.
        key: the replication key.
    """

    def __init__(self, form: Node, *, key: str | None = None, rules: Rules = DEFAULT_RULES) -> None:
        self._form = form
        self._key = key
        self._checks = rules.check_constraints
        self._exact = Exact(rules.strictly)
        self._tries = Tries()  # of columns
        self._schema: pa.Schema | None = None
        self._rows: Objects | None = None

    def lines(
        self, batch: pa.RecordBatch, prefix: bytes, suffix: bytes, unknown: Unknown
    ) -> tuple[memoryview, list[Any]] | None:
        """One line for each row, between ``prefix`` and ``suffix``, in the memory that Arrow built them in; and the
        replication key's values in the order of the rows (date-times as text).

        None where the rows must go as dicts: one of them does not fit, or the schema can't be followed a column at a
        time. Then nothing is noted in ``unknown`` either.
        """

        def made(rows: Objects) -> tuple[memoryview, list[Any]]:
            texts: dict[str, Parts] = {}
            record = rows.text_of(batch.column, texts)
            lines = bytes_of(join([prefix.decode(), *record, suffix.decode()], batch.num_rows))
            return lines, self._keys(batch, texts.get(self._key or ""))

        return self._tried(made, batch.schema, unknown) if batch.num_rows else (memoryview(b""), [])

    def columns(
        self, batch: pa.RecordBatch, wanted: pa.Schema, unknown: Unknown
    ) -> tuple[pa.RecordBatch, list[Any]] | None:
        """The page with exactly the columns wanted, null where it has no value for them, and the replication key's
        values as its lines would give them.

        None where the page must go through lines: some value does not fit, or is not surely the same on both ways.
        Then nothing is noted in ``unknown`` either.
        """
        if not batch.num_rows:
            return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in wanted], schema=wanted), []
        if not self._tries:
            return None

        def made(rows: Objects) -> tuple[pa.RecordBatch, list[Any]]:
            arrays = rows.columns_of(batch.column, wanted, batch.num_rows)
            key = next((field for field in rows.fields if field.name == self._key), None)
            keys = self._keys(batch, key.plan.text(batch.column(key.place)) if key and key.plan else None)
            return pa.RecordBatch.from_arrays(arrays, schema=wanted), keys

        found = self._tried(made, batch.schema, unknown)
        self._tries.ended(well=found is not None)
        return found

    def _tried(self, make: Callable[[Objects], T], schema: pa.Schema, unknown: Unknown) -> T | None:
        self._exact.unknown = noted = Unknown(onto=unknown)
        try:
            rows = self._rows_of(schema)
            made = make(rows) if rows is not None else None
        except (NeedsRows, RecursionError, *UNCERTAIN):  # nested too deep: the way of dicts says so
            return None
        if made is not None and noted:
            unknown.merge(noted)
        return made

    def _keys(self, batch: pa.RecordBatch, text: Parts | None) -> list[Any]:
        """The replication key's values, read back from their text."""
        if self._key is None or text is None:
            return [] if self._key is None else [None] * batch.num_rows
        floats = pa.types.is_floating(batch.schema.field(self._key).type)
        lines = bytes_of(join([*text, ","], batch.num_rows))
        values: list[Any] = (_decode_floats if floats else _decode)(b"[" + bytes(lines[:-1]) + b"]")
        return values

    # ---- plans: made once for pages of a schema --------------------------------------------------------------------

    def _rows_of(self, schema: pa.Schema) -> Objects | None:
        """How the columns of a page stand in the rows; None if these must go as dicts."""
        if self._schema is None or not self._schema.equals(schema):
            form = self._form
            odd = "anyOf" in form or "oneOf" in form or (self._checks and constraints.constrained(form))
            self._rows = None if odd else self._objects(list(schema), form, (), self._checks)
            self._schema = schema
        return self._rows

    def _plan(self, kind: pa.DataType, node: Any, path: Path, checks: bool) -> Plan:
        """The plan for arrays of an Arrow type under a node.

        Args:
            path: where the node stands, for what is noted of unknown fields; the items of a list have place 0.
            checks: hold values against ``enum``, ``maximum`` and the like.
        """
        kind = settled_type(kind)
        if node is not True and not isinstance(node, Mapping):
            return self._values(node, path)
        schema: Node = node if isinstance(node, Mapping) else {}
        types = types_of(schema)
        if "anyOf" in schema or "oneOf" in schema:
            return self._union(kind, schema, path) or self._values(node, path)
        if not _OPEN.isdisjoint(schema) or isinstance(schema.get("items"), list | tuple):
            return self._values(node, path)
        if not types and (not _DEEP.isdisjoint(schema) or "format" in schema or "contentEncoding" in schema):
            return self._values(node, path)
        if not pa.types.is_nested(kind):
            return self._scalars(kind, schema, path, checks) or self._values(node, path)
        held = checks and constraints.constrained(schema)
        return (None if held else self._nested(kind, schema, path, checks)) or self._values(node, path)

    def _values(self, node: Any, path: Path) -> Plan:
        """Each value takes the exact path."""
        return Plan(by_value=partial(self._by_value, node, path))

    def _by_value(self, node: Any, path: Path, array: Any) -> Parts:
        try:
            fitted = [self._exact.value(value, node, path) for value in column_values(array)]
        except (Misfit, ValueError):
            raise NeedsRows from None
        texts = _encoder.encode_lines(fitted).split(b"\n")[:-1]
        if sum(map(len, texts)) > 1 << 30:
            return [pa.array(texts, pa.large_binary()).view(pa.large_string())]
        return [pa.array(texts, pa.binary()).view(pa.string())]

    def _scalars(self, kind: pa.DataType, schema: Node, path: Path, checks: bool) -> Scalars | None:
        types = types_of(schema)
        if pa.types.is_null(kind):
            writer: ScalarWriter | None = PLAIN
        elif types:
            writer = writer_for(kind, tuple(name for name in types if name != "null"), schema)
        else:
            writer = free_writer(kind)
        holds = None
        if writer is not None and checks and constraints.constrained(schema):
            holds = _keeper(kind, writer, schema)
            writer = None if holds is None else writer
        if writer is None:
            return None
        return Scalars(
            by_value=partial(self._by_value, schema, path),
            nullable=not types or "null" in types,
            holds=holds,
            writer=writer,
            is_open=not types or not _SCALARS.issuperset(types),
        )

    def _nested(self, kind: pa.DataType, schema: Node, path: Path, checks: bool) -> Plan | None:
        types = types_of(schema)
        by_value = partial(self._by_value, schema, path)
        nullable = not types or "null" in types
        if pa.types.is_struct(kind) and (not types or "object" in types):
            made = self._objects(list(kind), schema, path, checks)
            return made and dataclasses.replace(made, nullable=nullable)
        if pa.types.is_map(kind) and (not types or "object" in types):
            extra = schema.get("additionalProperties", True)
            # Of others, and of what is nested in them, the paths of unknown fields have the keys in them.
            plain = is_text(settled_type(kind.key_type)) and not pa.types.is_nested(settled_type(kind.item_type))
            if not plain or extra is False or not {"properties", "required"}.isdisjoint(schema):
                return None
            values = self._plan(kind.item_type, extra, path, checks)
            return Maps(by_value=by_value, nullable=nullable, values=values)
        if is_list(kind) and (not types or "array" in types):
            items = self._plan(kind.value_type, schema.get("items", True), (*path, 0), checks)
            return Lists(by_value=by_value, nullable=nullable, items=items)
        return None

    def _union(self, kind: pa.DataType, schema: Node, path: Path) -> Plan | None:
        """The plan for scalars under ``anyOf`` or ``oneOf``: the first branch that takes every such value as it stands.

        None where an earlier branch might take one, or none does. (The exact path prefers the first branch without a
        cast.)
        """
        branches = schema["anyOf"] if "anyOf" in schema else schema["oneOf"]
        if not all(
            isinstance(branch, Mapping) and types_of(branch) and _OPEN.isdisjoint(branch) for branch in branches
        ):
            return None
        nullable = any("null" in types_of(branch) and not constraints.constrained(branch) for branch in branches)
        own = own_types(kind)
        for branch in branches:
            wanted = tuple(name for name in types_of(branch) if name != "null")
            writer = writer_for(kind, wanted, branch)
            if writer is not None and not writer.casts:
                plan = self._scalars(kind, branch, path, True)  # constraints decide between branches in any case
                is_open = any(not _SCALARS.issuperset(types_of(branch)) for branch in branches)
                by_value = partial(self._by_value, schema, path)
                return plan and dataclasses.replace(plan, by_value=by_value, nullable=nullable, is_open=is_open)
            if not own or not own.isdisjoint(wanted):
                return None
        return None

    def _objects(self, given: Sequence[pa.Field], schema: Node, path: Path, checks: bool) -> Objects | None:
        """How the fields of a struct (or the columns of a page) stand in an object of the schema.

        None if the exact path must say: a field is missing that is required, a name stands twice, or patterns decide.
        """
        places = {field.name: i for i, field in enumerate(given)}
        properties: Node = schema.get("properties") or {}
        extra = schema.get("additionalProperties", "properties" not in schema)
        if len(places) < len(given) or not set(schema.get("required") or ()) <= set(places):
            return None
        further = [name for name in places if name not in properties]
        if further and "patternProperties" in schema:
            return None
        wanted = [(name, node) for name, node in properties.items() if name in places and node is not DROPPED]
        wanted += [(name, extra) for name in further if extra is not False]
        fields = [
            Field(name, places[name], self._plan(given[places[name]].type, node, (*path, name), checks))
            for name, node in wanted
        ]
        unknown = [(places[name], partial(self._note, template((*path, name)))) for name in further if extra is False]
        by_value = partial(self._by_value, schema, path)
        return Objects(by_value=by_value, fields=tuple(fields), unknown=tuple(unknown))

    def _note(self, path: tuple[str | None, ...], count: int, values: Iterator[Any]) -> None:
        self._exact.unknown.note(path, count, values)


# ---- constraints -----------------------------------------------------------------------------------------------------


def _keeper(kind: pa.DataType, writer: ScalarWriter, schema: Node) -> Callable[[Any], bool] | None:
    """What holds arrays against the constraints of a node; None where values go out otherwise than they are."""
    if not own_types(kind) or (writer.quoted and not is_text(kind)):
        return None
    less = {"multipleOf"} if _is_multiple(kind, schema.get("multipleOf")) else ()
    some = _ends if constraints.told_by_ends(schema, less) else _different
    return lambda array: all(constraints.broken(value, schema) is None for value in some(array))


def _different(array: Any) -> list[Any]:
    return column_values(pc.unique(array))


def _ends(array: Any) -> list[Any]:
    """See ``constraints.ends``."""
    if not is_text(array.type):
        return list(pc.min_max(array).as_py().values())
    lengths = pc.utf8_length(array)
    ends = pc.min_max(lengths).values()
    return [array[pc.index(lengths, end).as_py()].as_py() for end in ends if end.is_valid]


def _is_multiple(kind: pa.DataType, step: Any) -> bool:
    """Whether all values of a type are multiples of a step of 0.01 (or the like): they have no more digits."""
    digits = constraints.digits_of_step(step)
    scale = 0 if pa.types.is_integer(kind) else kind.scale if pa.types.is_decimal(kind) else None
    return digits is not None and scale is not None and scale <= digits
