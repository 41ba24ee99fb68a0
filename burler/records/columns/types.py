"""Column types as plain data: which one each place of a JSON Schema has, what Spark's and Arrow's types are made from,
and how two become one.

All fields are nullable: Singer rows may lack any field. Columns hold less than JSON says: text is text, or JSON of
something that has no narrower type. The schema tells them apart, for who writes a column and for who reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import TYPE_CHECKING, Any

from burler.errors import BurlerError, DataError
from burler.schema_tree import TYPES, type_of, types_of

if TYPE_CHECKING:
    import pyarrow as pa

DIGITS = 38
"""Decimal digits of both Spark's and Arrow's exact numbers."""
INT64_DIGITS = 19


@dataclass(frozen=True, slots=True)
class Scalar:
    """One of bigint, double, boolean, string, timestamp, date, binary; ``null`` for a field that holds no more.

    ``string`` also stands for everything without a narrower type: a JSON string is kept as its text,
    any other value as its JSON source text. ``json`` is text as well, of any value its JSON source text, so that
    nothing is lost; ``record_type`` never gives it. ``open`` stands for any JSON value while types are made, and
    becomes ``string`` or ``variant`` (Spark's type for any JSON value; text to Arrow). ``wide`` is a double whose
    values are integers in one version of the schema: one that no double holds exactly does not fit.
    """

    name: str


@dataclass(frozen=True, slots=True)
class DecimalOf:
    """decimal(38, scale)."""

    scale: int

    def has_room(self, digits: int) -> bool:
        """Whether it holds every number of so many digits before the point."""
        return DIGITS - self.scale >= digits


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of items of one type."""

    item: FieldType


@dataclass(frozen=True, slots=True)
class MapOf:
    """Text keys, values of one type."""

    value: FieldType


@dataclass(frozen=True, slots=True)
class StructOf:
    """Named fields in order."""

    fields: tuple[tuple[str, FieldType], ...]

    def get(self, name: str) -> FieldType | None:
        """The type of a field, None when there is none of that name."""
        return next((kind for field, kind in self.fields if field == name), None)


FieldType = Scalar | DecimalOf | ListOf | MapOf | StructOf

BIGINT, DOUBLE, BOOLEAN, STRING, TIMESTAMP, DATE, BINARY, NULL, JSON = map(
    Scalar, ("bigint", "double", "boolean", "string", "timestamp", "date", "binary", "null", "json")
)
OPEN, VARIANT, WIDE = Scalar("open"), Scalar("variant"), Scalar("wide")


def widest(kinds: Iterable[FieldType]) -> FieldType | None:
    """The type that holds every value of all of these exactly (numbers: by the number rule); None if there is none."""
    different = {kind for kind in kinds if kind != NULL}
    rest = different - {STRING}
    if len(rest) < 2:
        found = next(iter(rest), NULL)
    elif rest == {BIGINT, DOUBLE}:
        found = DOUBLE
    else:
        scales = [kind.scale for kind in rest if isinstance(kind, DecimalOf)]
        if not scales or len(scales) + (BIGINT in rest) < len(rest):
            return None
        found = DecimalOf(max(scales))
        if BIGINT in rest and not found.has_room(INT64_DIGITS):
            return None
    return STRING if STRING in different else found  # source text is kept, so nothing is lost


def replaced(kind: FieldType, old: FieldType, new: FieldType) -> FieldType:
    """``kind`` with ``new`` wherever it has ``old``, at any depth."""
    if kind == old:
        return new
    match kind:
        case StructOf(fields):
            return StructOf(tuple((name, replaced(inner, old, new)) for name, inner in fields))
        case ListOf(item):
            return ListOf(replaced(item, old, new))
        case MapOf(value):
            return MapOf(replaced(value, old, new))
    return kind


def names_in(kind: FieldType) -> Iterator[str]:
    """The names of all fields, at any depth."""
    match kind:
        case StructOf(fields):
            for name, inner in fields:
                yield name
                yield from names_in(inner)
        case ListOf(inner) | MapOf(inner):
            yield from names_in(inner)


def holds(kind: FieldType, wanted: FieldType) -> bool:
    """Whether ``wanted`` stands anywhere in ``kind``."""
    match kind:
        case StructOf(fields):
            return any(holds(inner, wanted) for _, inner in fields)
        case ListOf(inner) | MapOf(inner):
            return holds(inner, wanted)
    return kind == wanted


# ---- the places of a JSON Schema -------------------------------------------------------------------------------------

SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})
_ALL = frozenset(TYPES)
_INT64 = (-(2**63), 2**63 - 1)
_SINGER_DECIMAL_SCALE = 18
_DEEPEST = 200
_TIMES = {"date-time": TIMESTAMP, "date": DATE}


class SchemaNode:
    """A place in a JSON Schema: ``allOf`` laid in, its unions taken apart.

    Args:
        given: the schema; anything that is no object stands for one that says nothing.

    Attributes:
        schema: as it was given. branches: its alternatives.
        names: the JSON types that its values may have; all of them where nothing is said (``is_open``).
    """

    def __init__(self, given: Any) -> None:
        self.schema = _mapping(given)
        self.branches = tuple(branches_of(self.schema))
        found = [type_names(branch) for branch in self.branches]
        self.is_open = not all(found)
        self.names = frozenset().union(*(names or _ALL for names in found))

    @property
    def texts(self) -> str:
        """What text in a column is: "text" itself; "json" for values that are no text; "either" where both are
        possible, which only the text can tell."""
        if "string" not in self.names:
            return "json"
        return "text" if self.names <= SCALARS else "either"

    @property
    def wants_text(self) -> bool:
        """Whether its numbers are written as text (``singer.decimal``)."""
        return "string" in self.names and not self.names & {"number", "integer"} and not self.is_open

    @property
    def is_whole(self) -> bool:
        """Whether its numbers are integers."""
        return "integer" in self.names and "number" not in self.names

    @property
    def trims(self) -> bool:
        """Whether zeros at the end of its decimals come from the column alone: nobody has said how many digits."""
        return any(
            branch.get("format") == "singer.decimal" and "scale" not in branch and "multipleOf" not in branch
            for branch in self.branches
        )

    def says(self, key: str, value: str) -> bool:
        """Whether a branch has this keyword."""
        return any(branch.get(key) == value for branch in self.branches)

    @cached_property
    def properties(self) -> Mapping[str, SchemaNode]:
        """The fields that are declared."""
        found: dict[str, list[Any]] = {}
        for branch in self.branches:
            for name, below in _mapping(branch.get("properties")).items():
                found.setdefault(name, []).append(below)
        return {name: _either(below) for name, below in found.items()}

    @cached_property
    def required(self) -> frozenset[str]:
        """The fields that no object may be without, of those that are declared."""
        asked = [_names(branch.get("required")) for branch in self.branches if _mapping(branch.get("properties"))]
        return frozenset.intersection(*asked) & self.properties.keys() if asked else frozenset()

    @property
    def is_closed(self) -> bool:
        """Whether no other field may be there."""
        return any(branch.get("additionalProperties") is False for branch in self.branches)

    @cached_property
    def values(self) -> SchemaNode:
        """What a map's values are."""
        return _either([branch["additionalProperties"] for branch in self.branches if "additionalProperties" in branch])

    @cached_property
    def items(self) -> SchemaNode:
        """What a list's items are."""
        return _either([branch["items"] for branch in self.branches if "items" in branch])


def _either(nodes: list[Any]) -> SchemaNode:
    """One node for the places below several alternatives."""
    return SchemaNode({"anyOf": nodes} if len(nodes) > 1 else nodes[0] if nodes else {})


def branches_of(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The alternatives of a schema, ``allOf`` laid in; itself where it has none."""
    node = _merged(node)
    for key in ("anyOf", "oneOf"):
        if isinstance(parts := node.get(key), list) and parts:
            # "type" too: a branch that names none then takes the node's, one that does narrows it.
            rest = {key: value for key, value in node.items() if key not in ("anyOf", "oneOf")}
            below = [part if isinstance(part, Mapping) else {"type": []} for part in parts]
            return [found for part in below for found in branches_of(_joined(rest, part))]
    return [node]


def _joined(node: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """A node with a part that holds as well: the part's keywords win, but what is required is required by both."""
    required = _names(node.get("required")) | _names(part.get("required"))
    return {**node, **part, **({"required": sorted(required)} if required else {})}


def _merged(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """``allOf`` laid into its node: keywords of later parts win, properties and what is required are joined."""
    parts = node.get("allOf")
    if not isinstance(parts, list):
        return node
    out: dict[str, Any] = {key: value for key, value in node.items() if key != "allOf"}
    for part in parts:
        if isinstance(part, Mapping):
            inner = _merged(part)
            properties = {**_mapping(out.get("properties")), **_mapping(inner.get("properties"))}
            out = _joined(out, inner)
            if properties:
                out["properties"] = properties
    return out


def type_names(node: Mapping[str, Any]) -> set[str]:
    """JSON type names of a branch; from its values or keywords where ``type`` is absent. None where it refers to what
    is elsewhere: what stands beside a reference is not looked at."""
    if "$ref" in node:
        return set()
    if given := types_of(node):
        return set(given)
    values = node["enum"] if isinstance(node.get("enum"), list) else [node["const"]] if "const" in node else []
    if values:
        return {name if (name := type_of(value)) in TYPES else "number" for value in values}  # a Decimal, say
    return {"object"} if "properties" in node else {"array"} if "items" in node else set()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _names(value: Any) -> frozenset[str]:
    return (
        frozenset(name for name in value if isinstance(name, str)) if isinstance(value, list | tuple) else frozenset()
    )


def fields_of(schema: Mapping[str, Any]) -> dict[str, SchemaNode]:
    """The fields that have a column: those that a record's schema itself declares, not what its alternatives do."""
    return {name: SchemaNode(node) for name, node in _mapping(_merged(schema).get("properties")).items()}


# ---- types of columns ------------------------------------------------------------------------------------------------


class NoColumn(Exception):
    """A place that can't be a column; its text says which, and why."""


def record_type(
    schema: Mapping[str, Any],
    *,
    stream: str = "",
    error: type[BurlerError] = DataError,
    open_as: Scalar = STRING,
) -> StructOf:
    """The columns of a stream's rows.

    The top level is always a struct of the declared properties, also where ``additionalProperties`` is
    open: a table has columns (undeclared fields are dropped and counted by who reads the rows).

    Args:
        error: what to raise.
        open_as: the type of a value that may be any JSON, or one of types that no other type holds. ``JSON``, as in
            batch files: a column of text whose values may be more than text and other scalars holds JSON of all of
            them, of text too, so that a reader gets back what was sent.

    Raises:
        error: no properties, a recursive schema or a ``$ref`` (resolve references first).
    """
    fields = fields_of(schema)
    if not fields:
        raise error(f"stream '{stream}': its schema declares no properties, so there are no columns to make")
    try:
        record = StructOf(tuple((name, column_type(node, (name,))) for name, node in fields.items()))
    except RecursionError:
        raise error(f"stream '{stream}': its schema is recursive; a table can't be") from None
    except NoColumn as refused:
        raise error(f"stream '{stream}': {refused}") from None
    made = replaced(record, OPEN, STRING if open_as == JSON else open_as)
    made = _with_json(made, SchemaNode(schema)) if open_as == JSON else made
    assert isinstance(made, StructOf)
    return made


def _with_json(kind: FieldType, node: SchemaNode) -> FieldType:
    match kind:
        case StructOf(fields):
            below, none = node.properties, SchemaNode({})
            return StructOf(tuple((name, _with_json(inner, below.get(name, none))) for name, inner in fields))
        case ListOf(item):
            return ListOf(_with_json(item, node.items))
        case MapOf(value):
            return MapOf(_with_json(value, node.values))
    return JSON if kind == STRING and node.texts != "text" else kind


def column_type(node: SchemaNode, path: tuple[str, ...] = ()) -> FieldType:
    """The type of a column of such values; ``OPEN`` where they may be any JSON.

    Raises:
        NoColumn: it refers to what is elsewhere, or has an unknown type. RecursionError: it is nested too deeply.
    """
    if "$ref" in node.schema:
        raise NoColumn(f"field '{'.'.join(path)}' holds a $ref; resolve references first")
    if len(path) > _DEEPEST:
        raise RecursionError
    return _union([branch_type(branch, path) for branch in node.branches])


def branch_type(branch: Mapping[str, Any], path: tuple[str, ...] = ()) -> FieldType:
    """The same of one alternative."""
    names = type_names(branch)
    if not names:
        return OPEN
    if "number" in names:
        names = names - {"integer"}  # every integer is a number: the number rule holds
    return _union([_one(name, branch, path, alone=names <= {name, "null"}) for name in sorted(names)])


def _union(kinds: Iterable[FieldType]) -> FieldType:
    """What holds all of a node's types; any JSON where they do not widen."""
    different = list(dict.fromkeys(kind for kind in kinds if kind is not NULL))
    if len(different) < 2:
        return different[0] if different else NULL
    if not all(isinstance(kind, Scalar | DecimalOf) and kind != OPEN for kind in different):
        return OPEN
    return widest(different) or OPEN


def _one(name: str, node: Mapping[str, Any], path: tuple[str, ...], *, alone: bool) -> FieldType:
    """The type of a node seen as one JSON type. ``alone``: it may be nothing else (null apart)."""
    match name:
        case "null":
            return NULL
        case "boolean":
            return BOOLEAN
        case "integer":
            return _singer_decimal(node) or (DecimalOf(0) if _is_wide(node) else BIGINT)
        case "number":
            return _singer_decimal(node) or _number(node)
        case "string":
            return _text(node) if alone else (_singer_decimal(node) or STRING)
        case "array":
            items = node.get("items")
            if "prefixItems" in node or not isinstance(items, Mapping):
                return OPEN
            return ListOf(column_type(SchemaNode(items), (*path, "[]")))
        case "object":
            return _object(node, path)
    raise NoColumn(f"field '{'.'.join(path)}' has the unknown type '{name}'")


def _is_wide(node: Mapping[str, Any]) -> bool:
    """Whether an integer's own bounds leave 64 bits."""
    low, high = _INT64
    # An exclusive bound may stand one beyond the last value.
    bounds = {
        "minimum": (low, high),
        "maximum": (low, high),
        "exclusiveMinimum": (low - 1, high + 1),
        "exclusiveMaximum": (low - 1, high + 1),
    }
    return any(_is_number(node.get(key)) and not least <= node[key] <= most for key, (least, most) in bounds.items())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _number(node: Mapping[str, Any]) -> FieldType:
    step = node.get("multipleOf")
    if _is_number(step):
        _, digits, exponent = Decimal(str(step)).normalize().as_tuple()
        if digits == (1,) and isinstance(exponent, int) and -DIGITS <= exponent <= 0:
            return DecimalOf(-exponent)
    return DOUBLE


def _singer_decimal(node: Mapping[str, Any]) -> DecimalOf | None:
    if node.get("format") != "singer.decimal":
        return None
    try:
        scale = int(Decimal(str(node.get("scale", _SINGER_DECIMAL_SCALE))))
    except (InvalidOperation, ValueError, OverflowError):
        scale = _SINGER_DECIMAL_SCALE
    return DecimalOf(min(max(scale, 0), DIGITS))


def _text(node: Mapping[str, Any]) -> FieldType:
    if node.get("contentEncoding") == "base64":
        return BINARY
    return _TIMES.get(str(node.get("format"))) or _singer_decimal(node) or STRING


def _object(node: Mapping[str, Any], path: tuple[str, ...]) -> FieldType:
    properties, more = node.get("properties"), node.get("additionalProperties", False)
    if properties is not None and not isinstance(properties, Mapping):
        raise NoColumn(f"field '{'.'.join(path)}' has 'properties' that are no object")
    if "patternProperties" in node or (properties and more is not False):
        return OPEN  # open, or open beside named fields
    if properties:
        return StructOf(
            tuple((name, column_type(SchemaNode(inner), (*path, name))) for name, inner in properties.items())
        )
    if isinstance(more, Mapping) and more:
        return MapOf(column_type(SchemaNode(more), (*path, "{}")))
    return OPEN


# ---- types of Arrow --------------------------------------------------------------------------------------------------


def arrow_schema(record: StructOf) -> pa.Schema:
    """The same as an Arrow schema; equal to what Spark's own conversion of ``burler.spark.spark_schema`` gives."""
    import pyarrow as pa

    return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in record.fields])


def arrow_type(kind: FieldType) -> pa.DataType:
    """One type as Arrow's."""
    import pyarrow as pa

    match kind:
        case DecimalOf(scale):
            return pa.decimal128(DIGITS, scale)
        case ListOf(item):
            return pa.list_(pa.field("element", arrow_type(item)))
        case MapOf(value):
            return pa.map_(pa.string(), arrow_type(value))
        case StructOf(fields):
            return pa.struct([pa.field(name, arrow_type(inner)) for name, inner in fields])
        case Scalar(name):
            return (
                pa.timestamp("us", tz="UTC") if kind == TIMESTAMP else pa.type_for_alias(_ALIASES.get(name, "string"))
            )


_ALIASES = {
    "bigint": "int64", "double": "float64", "wide": "float64", "boolean": "bool", "date": "date32", "binary": "binary"
}  # fmt: skip
"""Arrow's words for scalar columns. All others but timestamps are text."""


_PLAIN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("is_boolean", {"type": "boolean"}),
    ("is_integer", {"type": "integer"}),
    ("is_floating", {"type": "number"}),
    ("is_timestamp", {"type": "string", "format": "date-time"}),
    ("is_date", {"type": "string", "format": "date"}),
    ("is_time", {"type": "string", "format": "time"}),
    ("is_null", {}),
)


def properties_of(schema: pa.Schema, *, nullable: bool) -> dict[str, Any]:
    """The schema of each column.

    Args:
        nullable: let every column be null, also those that the file declares as required.
    """
    return {field.name: _field(field, nullable) for field in schema}


def _field(field: pa.Field, nullable: bool) -> dict[str, Any]:
    node = schema_of(field.type, nullable=nullable)
    if (field.nullable or nullable) and isinstance(node.get("type"), str):
        node["type"] = ["null", node["type"]]
    return node


def schema_of(kind: pa.DataType, *, nullable: bool = False) -> dict[str, Any]:
    """The schema of values of an Arrow type that are not null."""
    import pyarrow as pa

    from burler.records.arrow.walk import is_binary, is_list

    if isinstance(kind, pa.BaseExtensionType):
        return (
            {"type": "string", "format": "uuid"}
            if kind.extension_name == "arrow.uuid"
            else schema_of(kind.storage_type)
        )
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return schema_of(kind.value_type, nullable=nullable)
    for test, node in _PLAIN:
        if getattr(pa.types, test)(kind):
            return dict(node)
    if pa.types.is_decimal(kind):
        return _decimal(kind.scale)
    if is_binary(kind):
        return {"type": "string", "contentEncoding": "base64"}
    if pa.types.is_struct(kind):
        return {"type": "object", "properties": {one.name: _field(one, nullable) for one in kind}}
    if pa.types.is_map(kind):
        return {"type": "object", "additionalProperties": _field(kind.item_field, nullable)}
    if is_list(kind):
        return {"type": "array", "items": _field(kind.value_field, nullable)}
    return {"type": "string"}  # text, durations


def _decimal(scale: int) -> dict[str, Any]:
    if scale <= 0:
        return {"type": "integer"}
    return {"type": "number", "multipleOf": float(f"1e-{scale}")}
