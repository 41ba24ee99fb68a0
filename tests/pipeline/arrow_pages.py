"""Any Arrow page with any schema for it, as hypothesis draws them: for the tests of what becomes of such pages."""

from __future__ import annotations

import contextlib
import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from support.strategies import node as node_of_any_form

DAY = 86_400

# ---- Arrow types and values of them --------------------------------------------------------------

TEXTS = st.one_of(
    st.text(max_size=6),
    st.text('"\\\n\t\0\x1f/\x7fé😀a', max_size=4),
    st.sampled_from(
        [
            "2024-01-02T03:04:05Z", "2024-01-02T03:04:05.5Z", "2024-01-02T03:04:05.123456Z",
            "2024-01-02T03:04:05.000000Z",
            "2024-01-02T03:04:05+02:00", "2024-01-02 03:04:05Z", "2024-01-02T03:04Z", "2024-01-02", "2024-02-30", "12",
            "1.50", "9999-12-31", "0000-01-01", "0001-01-01T00:00:00Z", "2024-01-02T24:00:00Z", "true", "null", "",
        ]
    ),
)  # fmt: skip
FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**70), 2**70).map(float),
    st.sampled_from([0.0, -0.0, 1e15, 1e16, 1e20, 5e-324, 1.7e308, 2.0**63, -(2.0**63), 2.0**53 + 2]),
)
ANY_FLOATS = st.one_of(FLOATS, st.sampled_from([float("nan"), float("inf"), -float("inf")]))


def small(limit):
    """Mostly numbers near zero, now and then any up to the limit."""
    return st.one_of(st.integers(-3, 3), st.integers(-limit, limit))


def instants(per):
    first, last = -62_135_596_800 * per, 253_402_300_800 * per
    least, most = max(first - per, -(2**63)), min(last + per, 2**63 - 1)
    edges = [edge for edge in (first, first - 1, last - 1, last) if -(2**63) <= edge < 2**63]
    return st.one_of(
        st.integers(-5, 5).map(lambda n: n * per),
        small(10**6 * per),
        st.integers(least, most),
        st.sampled_from(edges or [0]),
    )


def decimals(precision, scale):
    most = 10**precision - 1
    return st.one_of(small(most), st.integers(0, 99).map(lambda n: n * 10 ** max(scale, 0))).map(
        lambda n: Decimal((n < 0, tuple(map(int, str(min(abs(n), most)))), -scale))
    )


def scalar_types():
    kinds = [(kind, st.integers(-(2 ** (n - 1)), 2 ** (n - 1) - 1)) for kind, n in
             ((pa.int8(), 8), (pa.int16(), 16), (pa.int32(), 32), (pa.int64(), 64))]  # fmt: skip
    kinds += [(pa.uint8(), st.integers(0, 255)), (pa.uint64(), st.integers(0, 2**64 - 1))]
    kinds += [(pa.float64(), FLOATS), (pa.float64(), ANY_FLOATS)]
    kinds += [(pa.float32(), st.floats(width=32)), (pa.float16(), st.floats(width=16))]
    kinds += [(pa.float32(), st.floats(width=32, allow_nan=False, allow_infinity=False))]
    kinds += [(pa.float64(), st.integers(-100, 100).map(float))]
    kinds += [(kind, TEXTS) for kind in (pa.string(), pa.string(), pa.large_string(), pa.string_view())]
    kinds += [
        (pa.dictionary(pa.int8(), pa.string()), TEXTS),
        (pa.dictionary(pa.int32(), pa.int64()), st.integers(-9, 9)),
    ]
    kinds += [(pa.bool_(), st.booleans()), (pa.null(), st.none())]
    kinds += [(kind, st.binary(max_size=3)) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())]
    kinds += [(pa.date32(), small(3_000_000)), (pa.date64(), small(3_000_000).map(lambda n: n * DAY * 1000))]
    kinds += [(pa.decimal128(p, s), decimals(p, s)) for p, s in ((10, 2), (38, 0), (38, 38), (5, -3), (9, 6), (9, 7))]
    kinds += [(pa.decimal256(76, 20), decimals(76, 20)), (pa.decimal256(60, 0), decimals(60, 0))]
    for unit, per in (("s", 1), ("ms", 1000), ("us", 10**6), ("ns", 10**9)):
        kinds += [(pa.timestamp(unit, zone), instants(per)) for zone in ("UTC", "America/New_York", "+05:30", None)]
        kinds.append((pa.duration(unit), small(2**60)))
        time = pa.time32(unit) if per < 10**6 else pa.time64(unit)
        clock = st.one_of(st.integers(0, DAY - 1).map(lambda n, per=per: n * per), st.integers(0, DAY * per - 1))
        kinds.append((time, st.one_of(clock, clock, clock, st.just(DAY * per))))
    return kinds


SCALARS = scalar_types()
EXTENSIONS = [(pa.uuid(), st.integers(0, 2**128 - 1).map(lambda n: uuid.UUID(int=n).bytes)), (pa.json_(), TEXTS)]
NAMES = ["a", "b", "é", 'q"', "new\nline", ""]


def lists_of(inner):
    def made(kind_values, shape, size):
        kind, values = kind_values
        if shape == "fixed":
            return pa.list_(kind, size), st.lists(values, min_size=size, max_size=size)
        make = {"list": pa.list_, "large": pa.large_list, "view": pa.list_view, "large view": pa.large_list_view}[shape]
        return make(kind), st.lists(values, max_size=3)

    shapes = st.sampled_from(["list", "list", "large", "fixed", "view", "large view"])
    return st.builds(made, inner, shapes, st.integers(1, 2))


def structs_of(inner):
    def made(fields):
        kind = pa.struct([(name, field[0]) for name, field in fields.items()])
        return kind, st.fixed_dictionaries({name: field[1] for name, field in fields.items()})

    return st.dictionaries(st.sampled_from(NAMES), inner, max_size=3).map(made)


def maps_of(inner):
    keys = st.sampled_from(["k", 'k"', "l"])
    return inner.map(lambda field: (pa.map_(pa.string(), field[0]), st.lists(st.tuples(keys, field[1]), max_size=2)))


def with_nulls(field):
    return (field[0], st.one_of(field[1], field[1], field[1], st.none()))


LEAVES = st.one_of(st.sampled_from(SCALARS), st.sampled_from(SCALARS).map(with_nulls))
FIELDS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(lists_of(inner), structs_of(inner), maps_of(inner)).flatmap(
        lambda field: st.sampled_from([field, with_nulls(field)])
    ),
    max_leaves=4,
)

# ---- schemas -------------------------------------------------------------------------------------


def natural(kind):
    """A node that the type is made for."""
    if isinstance(kind, pa.BaseExtensionType):
        return {"type": "string"}
    if pa.types.is_dictionary(kind):
        return natural(kind.value_type)
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return {"type": "object", "properties": {field.name: nullable(natural(field.type)) for field in fields}}
    if pa.types.is_map(kind):
        return {"type": "object", "additionalProperties": nullable(natural(kind.item_type))}
    if hasattr(kind, "value_type"):
        return {"type": "array", "items": nullable(natural(kind.value_type))}
    if "timestamp" in str(kind):
        return {"type": "string", "format": "date-time"}
    if "date" in str(kind):
        return {"type": "string", "format": "date"}
    if "binary" in str(kind):
        return {"type": "string", "contentEncoding": "base64"}
    if "bool" in str(kind) or "null" in str(kind):
        return {"type": str(kind).removesuffix("ean").replace("bool", "boolean")}
    if pa.types.is_integer(kind):
        return {"type": "integer"}
    return {"type": "number"} if pa.types.is_floating(kind) or pa.types.is_decimal(kind) else {"type": "string"}


def nullable(node):
    if not isinstance(node, dict) or not isinstance(node.get("type"), str) or node["type"] == "null":
        return node
    return {**node, "type": ["null", node["type"]]}


@st.composite
def node_for(draw, kind):
    node = natural(kind) if draw(st.integers(0, 2)) else node_of_any_form(draw, 1)
    if isinstance(node, dict) and isinstance(node.get("properties"), dict) and draw(st.integers(0, 2)) == 0:
        node = {**node, "properties": dict(node["properties"])}
        for name in list(node["properties"])[:1]:
            del node["properties"][name]
        node.update(
            draw(st.sampled_from([{}, {"additionalProperties": True}, {"additionalProperties": {"type": "integer"}}]))
        )
    return nullable(node) if draw(st.integers(0, 4)) else node


@st.composite
def pages(draw):
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=3))
    fields = [draw(st.one_of(FIELDS, FIELDS, FIELDS, st.sampled_from(EXTENSIONS))) for _ in names]
    count = draw(st.integers(1, 6))
    columns = []
    for kind, values in fields:
        column = pa.array(draw(st.lists(values, min_size=count, max_size=count)), kind)
        if not pa.types.is_nested(kind) and not isinstance(kind, pa.BaseExtensionType) and draw(st.integers(0, 9)) == 0:
            with contextlib.suppress(pa.ArrowNotImplementedError):
                column = pc.run_end_encode(column)
        columns.append(column)
    first = draw(st.integers(0, count - 1))
    batch = pa.RecordBatch.from_arrays(columns, names=names).slice(first, draw(st.integers(1, count - first)))
    properties = {name: draw(node_for(kind)) for name, (kind, _) in zip(names, fields, strict=True)}
    if draw(st.integers(0, 5)) == 0:
        properties.pop(names[0])
    schema = {"type": "object", "properties": properties}
    if draw(st.integers(0, 5)) == 0:
        schema["additionalProperties"] = True
    return batch, schema
