"""How a column of an Arrow type becomes JSON text under a JSON Schema node: decided once for each pair.

Where the type surely fits the node, kernels make the text (``kernels``). Else, and where the kernels find values
they are not sure of, that column alone goes through the exact path value by value, and joins the others as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from burler.records.arrow.kernels import (
    Parts,
    Unsure,
    around_nulls,
    check_distinct,
    entries,
    flattened,
    join,
    joined_lists,
    string_parts,
)
from burler.records.arrow.limits import Limit, limits_of
from burler.records.arrow.types import (
    CASTS,
    Leaf,
    free_leaf,
    is_list,
    is_text,
    leaf_for,
    own_types,
    settled,
    settled_type,
)
from burler.records.arrow.values import column_values
from burler.records.shape import constraints
from burler.records.shape.exact import Exact, template
from burler.records.shape.values import ANYTHING, DROPPED, Misfit, Path, types_of

Kernel = Callable[[Any, Exact], Parts]

_OPEN = frozenset(
    {
        ANYTHING, "anyOf", "oneOf", "allOf", "not", "if", "$ref", "patternProperties", "prefixItems", "additionalItems",
        "contains", "propertyNames", "dependencies", "dependentRequired", "dependentSchemas",
    }
)  # fmt: skip
_DEEP = frozenset({"properties", "required", "items", "additionalProperties"})
_LOOKED_AT = 20  # values of an unknown field

_encoder = msgspec.json.Encoder(decimal_format="number")


class NeedsRows(Exception):
    """Some value does not fit: the page's rows must be looked at one by one."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the arrays of one place in the schema become text; ``kernel`` None: value by value.

    What the kernel goes by, for who makes columns of the same arrays: ``leaf`` writes scalars; ``below`` are the fields
    of structs, the items of lists or the values of maps.
    """

    node: Any
    path: Path
    nullable: bool = True
    kernel: Kernel | None = None
    limits: tuple[Limit, ...] = ()
    leaf: Leaf | None = None
    below: Plan | Fields | None = None


# ---- deciding ------------------------------------------------------------------------------------


def plan_for(kind: pa.DataType, node: Any, path: Path, *, checks: bool = True) -> Plan:
    """The plan for arrays of an Arrow type under a node of a shaping form.

    Args:
        path: where the node stands, for what is noted of unknown fields; the items of a list have place 0.
        checks: hold values against ``enum``, ``maximum`` and the like.
    """
    by_value = Plan(node, path)
    kind = settled_type(kind)
    if node is not True and not isinstance(node, Mapping):
        return by_value
    schema: Mapping[str, Any] = node if isinstance(node, Mapping) else {}
    if "anyOf" in schema or "oneOf" in schema:
        return _union(kind, schema, path) or by_value
    if not _OPEN.isdisjoint(schema) or isinstance(schema.get("items"), list | tuple):
        return by_value
    wanted = tuple(name for name in types_of(schema) if name != "null")
    free = not types_of(schema)
    if free and (not _DEEP.isdisjoint(schema) or "format" in schema or "contentEncoding" in schema):
        return by_value
    limits: tuple[Limit, ...] | None = ()
    if checks and constraints.constrained(schema):
        limits = limits_of(kind, schema)
    if limits is None:
        return by_value
    nullable = free or "null" in types_of(schema)
    if pa.types.is_null(kind):
        return Plan(node, path, nullable, lambda array, exact: ["null"], limits)
    if pa.types.is_struct(kind):
        fields = fields_of(list(kind), schema, path, checks=checks) if free or "object" in wanted else None
        kernel = None if fields is None else object_kernel(fields)
        return Plan(node, path, nullable, kernel, limits, below=fields)
    if pa.types.is_map(kind):
        extra = schema.get("additionalProperties", True)
        fits = free or ("object" in wanted and not {"properties", "required"} & schema.keys() and extra is not False)
        values = _map_values(kind, extra, path, checks) if fits else None
        return Plan(node, path, nullable, None if values is None else map_kernel(values), limits, below=values)
    if is_list(kind):
        items = plan_for(kind.value_type, schema.get("items", True), (*path, 0), checks=checks)
        fits = free or "array" in wanted
        return Plan(node, path, nullable, list_kernel(items) if fits else None, limits, below=items)
    leaf = free_leaf(kind) if free else leaf_for(kind, wanted, schema)
    return Plan(node, path, nullable, None if leaf is None else _as_kernel(leaf), limits, leaf)


def _union(kind: pa.DataType, schema: Mapping[str, Any], path: Path) -> Plan | None:
    """The plan for scalars under ``anyOf`` or ``oneOf``: the first branch that takes every such value as it stands.

    None where an earlier branch might take one, or none does. (The exact path prefers the first branch without a cast.)
    """
    branches = schema["anyOf"] if "anyOf" in schema else schema["oneOf"]
    if not all(isinstance(branch, Mapping) and types_of(branch) and _OPEN.isdisjoint(branch) for branch in branches):
        return None
    nullable = any("null" in types_of(branch) and not constraints.constrained(branch) for branch in branches)
    own = own_types(kind)
    for branch in branches:
        wanted = tuple(name for name in types_of(branch) if name != "null")
        leaf = leaf_for(kind, wanted, branch)
        if leaf is not None and leaf not in CASTS:
            plan = plan_for(kind, branch, path)
            return Plan(schema, path, nullable, plan.kernel, plan.limits, plan.leaf)
        if not own or not own.isdisjoint(wanted):
            return None
    return None


def _as_kernel(leaf: Leaf) -> Kernel:
    return lambda array, _exact: leaf(array)


# ---- making text ---------------------------------------------------------------------------------


def render(plan: Plan, array: Any, exact: Exact) -> Parts:
    """The text of an array's values.

    Raises:
        NeedsRows: some value does not fit.
    """
    if plan.kernel is None:
        return by_value(plan, array, exact)
    try:
        plain = settled(array)
        if plain.null_count and not plan.nullable:
            raise NeedsRows
        if all(limit(plain) for limit in plan.limits):
            return ["null"] if plain.null_count == len(plain) else plan.kernel(plain, exact)
    except (Unsure, pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.lib.ArrowCapacityError):
        pass  # the exact path knows
    return by_value(plan, array, exact)


def by_value(plan: Plan, array: Any, exact: Exact) -> Parts:
    """The same value by value, on the exact path."""
    exact.nulled = []
    try:
        fitted = [exact.value(value, plan.node, plan.path) for value in column_values(array)]
    except Misfit:
        raise NeedsRows from None
    if exact.nulled:  # what is set to null is counted, row by row
        raise NeedsRows
    texts = _encoder.encode_lines(fitted).split(b"\n")[:-1]
    large = sum(map(len, texts)) > 1 << 30
    if large:
        return [pa.array(texts, pa.large_binary()).view(pa.large_string())]
    return [pa.array(texts, pa.binary()).view(pa.string())]


def object_kernel(fields: Fields) -> Kernel:
    """Structs as objects."""

    def present(array: Any, exact: Exact) -> Parts:
        return fields.parts(array.field, exact)

    return lambda array, exact: around_nulls(array, lambda there: present(there, exact))


def list_kernel(items: Plan) -> Kernel:
    """Lists as arrays."""

    def present(array: Any, exact: Exact) -> Parts:
        flat, offsets = flattened(array)
        if not len(flat):
            return ["[]"]
        return ["[", joined_lists(join(render(items, flat, exact), len(flat)), offsets), "]"]

    return lambda array, exact: around_nulls(array, lambda there: present(there, exact))


def _map_values(kind: pa.MapType, node: Any, path: Path, checks: bool) -> Plan | None:
    """The plan for the values of maps of scalars; None for others (paths of unknown fields below have the keys in
    them), and where a key is no text."""
    if not is_text(settled_type(kind.key_type)) or pa.types.is_nested(settled_type(kind.item_type)):
        return None
    return plan_for(kind.item_type, node, path, checks=checks)


def map_kernel(values: Plan) -> Kernel:
    """Maps as objects."""

    def present(array: Any, exact: Exact) -> Parts:
        keys, items, offsets = entries(array)
        if not len(keys):
            return ["{}"]
        names = settled(keys)
        check_distinct(names, offsets)
        text = join([*string_parts(names), ":", *render(values, items, exact)], len(keys))
        return ["{", joined_lists(text, offsets), "}"]

    return lambda array, exact: around_nulls(array, lambda there: present(there, exact))


# ---- objects -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of an object: those that go out, in order, and those that no schema knows."""

    emitted: tuple[tuple[str, int, Plan], ...]
    unknown: tuple[tuple[Path, int], ...]

    def parts(self, column: Callable[[int], Any], exact: Exact, texts: dict[int, Parts] | None = None) -> Parts:
        """The text of objects whose columns ``column`` gives; each column's own text goes into ``texts`` too."""
        parts: Parts = ["{"]
        for name, place, plan in self.emitted:
            text = render(plan, column(place), exact)
            parts += [("," if len(parts) > 1 else "") + name + ":", *text]
            if texts is not None:
                texts[place] = text
        self.note_unknown(column, exact)
        return [*parts, "}"]

    def note_unknown(self, column: Callable[[int], Any], exact: Exact) -> None:
        """Count the objects that have a value in an unknown field."""
        for path, place in self.unknown:
            array = column(place)
            count = len(array) - array.null_count
            if count:
                exact.unknown.note(template(path), count, _some(array))


def fields_of(
    given: Sequence[pa.Field], schema: Mapping[str, Any], path: Path, *, checks: bool = True
) -> Fields | None:
    """How the fields of a struct (or the columns of a page) stand in an object of the schema.

    None if the exact path must say: a field is missing that is required, a name stands twice, or patterns decide.
    """
    columns = {field.name: (i, field.type) for i, field in enumerate(given)}
    properties: Mapping[str, Any] = schema.get("properties") or {}
    extra = schema.get("additionalProperties", "properties" not in schema)
    if len(columns) < len(given) or not set(schema.get("required") or ()) <= set(columns):
        return None
    further = [name for name in columns if name not in properties]
    if further and "patternProperties" in schema:
        return None
    wanted = [(name, node) for name, node in properties.items() if name in columns and node is not DROPPED]
    wanted += [(name, extra) for name in further if extra is not False]
    emitted = [
        (
            _encoder.encode(name).decode(),
            columns[name][0],
            plan_for(columns[name][1], node, (*path, name), checks=checks),
        )
        for name, node in wanted
    ]
    unknown = [((*path, name), columns[name][0]) for name in further if extra is False]
    return Fields(tuple(emitted), tuple(unknown))


def _some(array: Any) -> Iterator[Any]:
    """Values that are there, made only if somebody looks."""
    yield from (value for value in column_values(array[:_LOOKED_AT]) if value is not None)
