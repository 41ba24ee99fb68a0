"""References, by hypothesis: the resolver equals a slow one that is written differently, and what it makes of a schema
takes exactly what the schema takes, says jsonschema."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from burler.errors import DeclarationError
from burler.schema import resolve_refs
from support.strategies import json_values

NAMES = ("a", "b", "a/b", "m~n", "%25", "é", "", "$ref", "0")
FIELDS = ("a", "b", "$ref", "definitions")
NOTES = {"title", "description"}


def pointer(name):
    return "#/definitions/" + name.replace("~", "~0").replace("/", "~1").replace("%", "%25")


# ---- schemas -------------------------------------------------------------------------------------

TYPES = st.sampled_from(["string", "integer", "number", "null", "object", "array", "boolean"])
LEAVES = st.one_of(
    st.builds(lambda name: {"type": name}, TYPES),
    st.builds(lambda names: {"type": names}, st.lists(TYPES, min_size=1, max_size=3, unique=True)),
    st.builds(
        lambda values: {"enum": values},
        st.lists(st.sampled_from([1, "x", None, True, 2.5, {}]), min_size=1, max_size=4),
    ),
    st.builds(lambda low, high: {"minimum": low, "maximum": high}, st.integers(0, 2), st.integers(1, 3)),
    st.builds(lambda low: {"minimum": low, "exclusiveMinimum": True}, st.integers(0, 2)),
    st.builds(lambda low: {"minLength": low, "pattern": "x"}, st.integers(0, 2)),
    st.builds(lambda pattern: {"pattern": pattern}, st.sampled_from(["x", "^y"])),
    st.builds(lambda count: {"multipleOf": count}, st.sampled_from([2, 3, 0.5])),
    st.just({}),
)
REFERENCES = st.builds(lambda name: {"$ref": pointer(name)}, st.sampled_from(NAMES))


def with_siblings(one, two):
    return {**{key: value for key, value in two.items() if key != "$ref"}, **one}


def deeper(inner):
    objects = st.builds(
        lambda properties, required: {"properties": properties, **({"required": required} if required else {})},
        st.dictionaries(st.sampled_from(FIELDS), inner, min_size=1, max_size=3),
        st.lists(st.sampled_from(FIELDS), unique=True, max_size=2),
    )
    return st.one_of(
        objects,
        st.builds(lambda items: {"items": items}, inner),
        st.builds(lambda one: {"patternProperties": {"^[ab]": one}}, inner),
        st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda part: {"not": part}, inner),
        st.builds(lambda parts: {"allOf": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts, node: {**node, "allOf": parts}, st.lists(inner, min_size=1, max_size=3), objects),
        st.builds(with_siblings, REFERENCES, inner),
        st.builds(with_siblings, REFERENCES, objects),
    )


NODES = st.recursive(st.one_of(LEAVES, REFERENCES), deeper, max_leaves=6)
DOCUMENTS = st.builds(
    lambda definitions, properties: {"definitions": definitions, "properties": properties},
    st.fixed_dictionaries(dict.fromkeys(NAMES, NODES)),
    st.dictionaries(st.sampled_from(FIELDS), NODES, min_size=1, max_size=3),
)
VALUES = json_values(
    st.one_of(st.none(), st.booleans(), st.integers(-1, 7), st.sampled_from([0.5, 2.5, "", "x", "xx", "y", "yx"])),
    st.sampled_from([*FIELDS, "c"]),
    most=5,
)
SLOW = settings(suppress_health_check=[HealthCheck.filter_too_much])

# ---- the slow resolver -----------------------------------------------------------------------------


class Endless(Exception):
    pass


class TooLong(Exception):
    pass


def substituted(document, siblings):
    """One reference after the other is replaced by the text of what it points to, until none is left.

    ``siblings(target, beside)`` says what a reference with keywords beside it becomes.
    """
    whole = copy.deepcopy(document)
    for step in range(3000):
        place = next(references(whole, ()), None)
        if place is None:
            return {key: value for key, value in whole.items() if key != "definitions"}
        node = whole
        for key in place:
            node = node[key]
        beside = {key: value for key, value in node.items() if key != "$ref"}
        target = copy.deepcopy(document["definitions"][next(name for name in NAMES if pointer(name) == node["$ref"])])
        node.clear()
        node.update(siblings(target, beside))
        if len(place) > 60:
            raise Endless
        if step % 10 == 9 and len(json.dumps(whole)) > 20_000:
            raise TooLong
    raise Endless


def references(node, place, *, names=False):
    """Places of references, those outside of definitions only."""
    if isinstance(node, list):
        for i, item in enumerate(node):
            yield from references(item, (*place, i))
    elif isinstance(node, dict):
        if not names and isinstance(node.get("$ref"), str):
            yield place
        for key, value in node.items():
            if key == "enum" or (key == "definitions" and not place):
                continue
            yield from references(value, (*place, key), names=key in ("properties", "patternProperties") and not names)


def both_hold(target, beside):
    return {"allOf": [target, beside]} if beside else target


def strip(node, *, names=False):
    """Without what the generated schemas may hold and a plain substitution can't be compared in."""
    if isinstance(node, list):
        return [strip(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {}
    for key, value in node.items():
        if not names and (key == "allOf" or ("$ref" in node and key != "$ref")):
            continue
        out[key] = strip(value, names=key in ("properties", "patternProperties") and not names)
    return out


@SLOW
@given(DOCUMENTS)
def test_equal_to_substitution(document):
    """Without siblings and allOf both give the same schema, or both find no end."""
    definitions = {name: strip(node) for name, node in document["definitions"].items()}
    document = {"definitions": definitions, "properties": strip(document["properties"], names=True)}
    before = copy.deepcopy(document)
    try:
        wanted = substituted(document, lambda target, beside: target)
    except Endless:
        with pytest.raises(DeclarationError, match="refers to itself"):
            resolve_refs(document, source="x")
        return
    except TooLong:
        assume(False)
    assert resolve_refs(document, source="x") == wanted
    assert document == before


@SLOW
@given(DOCUMENTS, st.lists(VALUES, min_size=8, max_size=8), st.lists(VALUES, min_size=4, max_size=4))
def test_takes_what_the_schema_takes(document, values, more):
    """Keywords beside a reference are, for jsonschema, written out as an allOf of both."""
    try:
        plain = substituted(document, both_hold)
    except (Endless, TooLong):
        return
    out = resolve_refs(document, source="x")
    assert not list(references(out, ())) and resolve_refs(out, source="x") == out
    one, two = Draft4Validator(plain), Draft4Validator(out)
    fields = list(document["properties"])
    for value in (*values, *(dict.fromkeys(fields, value) for value in more)):
        assert one.is_valid(value) == two.is_valid(value), (value, out)


@SLOW
@given(DOCUMENTS, VALUES)
def test_takes_what_jsonschema_takes_by_its_own_references(document, value):
    """Without siblings (which draft 4 passes over) jsonschema follows the references itself."""
    definitions = {name: strip(node) for name, node in document["definitions"].items()}
    document = {"definitions": definitions, "properties": strip(document["properties"], names=True)}
    try:
        out = resolve_refs(document, source="x")
    except DeclarationError:
        return
    for instance in (value, dict.fromkeys(document["properties"], value)):
        assert Draft4Validator(out).is_valid(instance) == Draft4Validator(document).is_valid(instance)
