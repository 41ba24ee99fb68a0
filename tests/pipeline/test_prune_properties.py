"""Selection, by hypothesis: whatever the schema and the catalog, the pruned SCHEMA and the rows agree."""

from __future__ import annotations

import copy

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator

import burler
from burler.singer import fields
from burler.testing import run_tap

NAMES = ("a", "b", "c", "items", "properties", "anyOf", "x.y")
UNKNOWN = ("x1", "x2", "other")

# ---- schemas, rows, selections -------------------------------------------------------------------

LEAVES = st.sampled_from(
    [{"type": "integer"}, {"type": ["null", "string"]}, {"type": "boolean"}, {"type": ["number", "null"]}]
)


@st.composite
def objects(draw, inner, names=NAMES):
    chosen = draw(st.lists(st.sampled_from(names), unique=True, min_size=1, max_size=4))
    schema = {"type": "object", "properties": {name: draw(inner) for name in chosen}}
    extra = draw(st.sampled_from([None, None, False, True, {"type": "integer"}]))
    if extra is not None:
        schema["additionalProperties"] = extra
    if draw(st.integers(0, 3)) == 0:
        schema["required"] = draw(st.lists(st.sampled_from(chosen), unique=True, min_size=1))
    if draw(st.integers(0, 5)) == 0:
        schema["patternProperties"] = {"^x[12]$": {"type": "integer"}}
    if draw(st.integers(0, 5)) == 0:
        schema["minProperties"] = len(schema.get("required", ()))
    return schema


def deeper(inner):
    return st.one_of(
        objects(inner),
        objects(inner),
        st.builds(lambda items: {"type": ["array", "null"], "items": items}, inner),
        st.builds(lambda one: {"anyOf": [{"type": "null"}, one]}, objects(inner)),
        st.builds(
            lambda word, one, two: {word: [one, {"type": "array", "items": two}, {"type": "integer"}]},
            st.sampled_from(["anyOf", "oneOf"]),
            objects(inner),
            inner,
        ),
        st.builds(
            lambda one, two: {"type": "object", "allOf": [{"properties": one}, {"properties": two}]},
            st.dictionaries(st.sampled_from(NAMES[:3]), inner, min_size=1, max_size=2),
            st.dictionaries(st.sampled_from(NAMES[3:]), inner, min_size=1, max_size=2),
        ),
    )


@st.composite
def schemas(draw):
    schema = draw(objects(st.recursive(LEAVES, deeper, max_leaves=5)))
    schema["properties"] = {"id": {"type": "integer"}, **schema["properties"]}
    schema.pop("minProperties", None)
    return schema


def value_for(draw, schema):
    """A value that fits a schema as it is."""
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return value_for(draw, draw(st.sampled_from(schema[word])))
    kinds = schema.get("type")
    kind = draw(st.sampled_from(kinds)) if isinstance(kinds, list) else kinds
    if kind == "object":
        properties = dict(schema.get("properties") or {})
        for part in schema.get("allOf") or ():
            properties |= part["properties"]
        needed = schema.get("required", ())
        row = {name: value_for(draw, sub) for name, sub in properties.items() if name in needed or draw(st.booleans())}
        for name in draw(st.lists(st.sampled_from(UNKNOWN), unique=True, max_size=2)):
            row.setdefault(name, draw(st.integers(0, 9)))
        return row
    if kind == "array":
        return [value_for(draw, schema["items"]) for _ in range(draw(st.integers(0, 2)))]
    return draw(
        {
            "integer": st.integers(-9, 9),
            "string": st.text(max_size=3),
            "boolean": st.booleans(),
            "number": st.floats(-9, 9),
            "null": st.none(),
        }[kind]
    )


SAID = st.fixed_dictionaries(
    {},
    optional={
        "selected": st.sampled_from([True, False, False, "true", "false", None]),
        "selected-by-default": st.booleans(),
        "inclusion": st.sampled_from(["available", "automatic", "unsupported"]),
    },
)


@st.composite
def cases(draw):
    schema = draw(schemas())
    rows = [{**value_for(draw, schema), "id": i} for i in range(draw(st.integers(1, 9)))]
    said = {crumb: draw(SAID) for crumb in slow_fields(schema) if draw(st.integers(0, 2))}
    if draw(st.integers(0, 3)) == 0:
        said[("properties", "other")] = {"selected": False}  # a field that only an open schema would let in
    return schema, rows, said


# ---- a slow reference, written from the rules ----------------------------------------------------


def slow_fields(schema):
    """All breadcrumbs, each level from the one above it until nothing new comes."""
    found, queue = [], [((), schema)]
    while queue:
        path, node = queue.pop(0)
        for name, sub in node.get("properties", {}).items():
            if (*path, "properties", name) not in found:
                found.append((*path, "properties", name))
            queue.append(((*path, "properties", name), sub))
        if isinstance(node.get("items"), dict):
            queue.append(((*path, "items"), node["items"]))
        for word in ("anyOf", "oneOf", "allOf"):
            queue += [(path, branch) for branch in node.get(word, ())]
    return found


def slow_wanted(crumb, crumbs, said):
    """Whether a field comes out: it and every field on the way to it. The tap itself calls all but
    the key ``available``; that a catalog says ``automatic`` of them changes nothing."""
    for end in range(2, len(crumb) + 1):
        place = crumb[:end]
        if place not in crumbs or place == ("properties", "id"):
            continue
        words = said.get(place, {})
        if words.get("inclusion") == "unsupported":
            return False
        selected = {"true": True, "false": False}.get(words.get("selected"), words.get("selected"))
        selected = words.get("selected-by-default") if selected is None else selected
        if selected is False:
            return False
    return True


def strip(value, path, off):
    """A value less the fields that are off, found by their place in the data."""
    if isinstance(value, list):
        return [strip(item, (*path, "items"), off) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: strip(part, (*path, "properties", name), off)
        for name, part in value.items()
        if (*path, "properties", name) not in off
    }


# ---- the property --------------------------------------------------------------------------------


def run_of(schema, rows, said=None):
    """The schema that is sent, and the records, with a catalog that says this of the fields."""
    tap = burler.tap("tap-x")
    tap.sync("s", key_properties="id", schema=schema)(lambda: copy.deepcopy(rows))
    root = {"breadcrumb": [], "metadata": {"selected": True}}
    words = [{"breadcrumb": list(crumb), "metadata": words} for crumb, words in (said or {}).items()]
    stream = {"tap_stream_id": "s", "schema": schema, "metadata": [root, *words]}
    out = run_tap(tap, catalog=None if said is None else {"streams": [stream]})
    assert not out.result.errors
    return next(message["schema"] for message in out.messages if message["type"] == "SCHEMA"), out.records("s")


OPEN = {
    "properties": {
        "id": {"type": "integer"},
        "o": {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": True},
    },
    "additionalProperties": True,
}
UNION = {
    "properties": {
        "id": {"type": "integer"},
        "o": {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
                    "required": ["b"],
                },
                {
                    "type": "object",
                    "properties": {"a": {"type": "integer"}, "c": {"type": "string"}},
                    "required": ["c"],
                },
            ]
        },
    }
}


@settings(suppress_health_check=list(HealthCheck))
@given(case=cases())
@example(case=(OPEN, [{"id": 1, "o": {"a": 1, "more": 2}, "other": 3}], {("properties", "other"): {"selected": False}}))
@example(case=(OPEN, [{"id": 1, "o": {"a": 1}}], {("properties", "id"): {"selected": False}}))
@example(
    case=(
        UNION,
        [{"id": 1, "o": {"a": 1, "b": "x"}}, {"id": 2, "o": {"a": 1, "c": "x"}}],
        {
            ("properties", "o", "properties", "b"): {"selected": False},
            ("properties", "o", "properties", "c"): {"selected": "false"},
        },
    )
)
def test_the_pruned_schema_and_the_rows_agree(case):
    schema, rows, said = case
    before = copy.deepcopy((schema, rows, said))
    sent, records = run_of(schema, rows, said)
    assert (schema, rows, said) == before

    crumbs = slow_fields(schema)
    wanted = {crumb for crumb in crumbs if slow_wanted(crumb, crumbs, said)}
    assert {crumb for crumb, _node in fields(schema)} == set(crumbs)
    assert {crumb for crumb, _node in fields(sent)} == wanted

    off = {
        crumb
        for crumb in {*crumbs, *said}
        if crumb not in wanted and (crumb in crumbs or not slow_wanted(crumb, [crumb], said))
    }
    assert records == [strip(record, (), off) for record in run_of(schema, rows)[1]]
    assert [record["id"] for record in records] == [row["id"] for row in rows]
    validator = Draft4Validator(sent)
    for record in records:
        assert not list(validator.iter_errors(record)), (record, sent)
