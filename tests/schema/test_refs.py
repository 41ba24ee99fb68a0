"""References inside one document: pointers, anchors, ids, what stands beside them, cycles, limits."""

from __future__ import annotations

import copy
import json
import time
import types

import pytest

from burler.errors import DeclarationError
from burler.schema import resolve_refs

TEXT = {"type": "string"}
NUMBER = {"type": "number"}


def resolve(schema, **more):
    before = copy.deepcopy(schema)
    out = resolve_refs(schema, source="stream 'a' (tap.py:5)", **more)
    assert schema == before
    return out


def refusal(schema, **more):
    with pytest.raises(DeclarationError) as caught:
        resolve(schema, **more)
    text = str(caught.value)
    assert text.startswith("stream 'a' (tap.py:5): ")
    assert len(text.split("\n")) <= 3
    return text


def props(schema, **definitions):
    return {"type": "object", "properties": schema, **definitions}


def field(schema, **document):
    """What a field of this schema becomes."""
    return resolve(props({"a": schema}, **document))["properties"]["a"]


# ---- pointers ------------------------------------------------------------------------------------


def test_nested_and_chained():
    schema = props(
        {
            "a": {"$ref": "#/definitions/address"},
            "list": {"type": "array", "items": {"$ref": "#/$defs/text"}},
            "union": {"anyOf": [{"$ref": "#/$defs/text"}, {"type": "null"}]},
            "same": {"$ref": "#/properties/list/items"},
            "in_list": {"$ref": "#/properties/union/anyOf/1"},
        },
        **{
            "definitions": {
                "address": {"type": "object", "properties": {"city": {"$ref": "#/definitions/name"}}},
                "name": {"$ref": "#/$defs/text"},
            },
            "$defs": {"text": TEXT},
        },
    )
    assert resolve(schema) == props(
        {
            "a": {"type": "object", "properties": {"city": TEXT}},
            "list": {"type": "array", "items": TEXT},
            "union": {"anyOf": [TEXT, {"type": "null"}]},
            "same": TEXT,
            "in_list": {"type": "null"},
        }
    )


@pytest.mark.parametrize(
    ("key", "pointer"),
    [
        ("a/b", "a~1b"),
        ("m~n", "m~0n"),
        ("~1", "~01"),
        ("p%q", "p%25q"),
        ("x y", "x%20y"),
        ("x y", "x y"),
        ("é", "%C3%A9"),
        ("é", "é"),
        ("", ""),
        ('k"l', "k%22l"),
        ("0", "0"),
        ("a#b", "a%23b"),
        ("a#b", "a#b"),
    ],
)
def test_escapes(key, pointer):
    assert field({"$ref": f"#/definitions/{pointer}"}, definitions={key: TEXT, "other": {}}) == TEXT


def test_empty_tokens():
    assert field({"$ref": "#/definitions//x/"}, definitions={"": {"x": {"": TEXT}}}) == TEXT


@pytest.mark.parametrize(
    "keyword",
    ["items", "not", "additionalProperties", "additionalItems", "contains", "propertyNames", "if", "then", "else"],
)
def test_every_keyword_that_holds_a_schema(keyword):
    assert field({keyword: {"$ref": "#/definitions/t"}}, definitions={"t": TEXT}) == {keyword: TEXT}


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "prefixItems", "items"])
def test_every_keyword_that_holds_a_list_of_schemas(keyword):
    assert field({keyword: [{"$ref": "#/definitions/t"}, NUMBER]}, definitions={"t": TEXT}) == {keyword: [TEXT, NUMBER]}


@pytest.mark.parametrize("keyword", ["properties", "patternProperties", "dependencies", "dependentSchemas"])
def test_every_keyword_that_holds_schemas_by_name(keyword):
    assert field({keyword: {"$ref": {"$ref": "#/definitions/t"}}}, definitions={"t": TEXT}) == {keyword: {"$ref": TEXT}}


def test_references_inside_of_unknown_keywords():
    """SCHEMA messages hold no $ref, wherever it stands."""
    assert field({"x-shown-as": [{"$ref": "#/definitions/t"}]}, definitions={"t": TEXT}) == {"x-shown-as": [TEXT]}
    assert field({"$ref": "#/x-own/t"}, **{"x-own": {"t": TEXT}}) == TEXT


@pytest.mark.parametrize("keyword", ["enum", "examples"])
def test_values_are_no_references(keyword):
    value = {"$ref": "#/nothing", "$id": "x", "definitions": {}, "x": {"$ref": "#/nothing", "id": "x"}}
    assert field({keyword: [value]}) == {keyword: [value]}
    assert field({"const": value, "default": value, "example": value}) == {
        "const": value,
        "default": value,
        "example": value,
    }


def test_fields_called_like_keywords():
    names = [
        "$ref",
        "definitions",
        "$defs",
        "$id",
        "id",
        "$anchor",
        "$schema",
        "enum",
        "default",
        "allOf",
        "properties",
    ]
    fields = {name: {"$ref": "#/definitions/t"} for name in names}
    assert resolve(props(fields, definitions={"t": TEXT})) == props(dict.fromkeys(names, TEXT))
    nested = {"deep": props(fields)}
    assert resolve(props(nested, definitions={"t": TEXT})) == props({"deep": props(dict.fromkeys(names, TEXT))})


def test_identification_and_definitions_are_left_out():
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://example.com/a.json",
        "$comment": "stays",
        **props({"a": {"$id": "#a", "$anchor": "x", "definitions": {"y": TEXT}, "type": "string"}, "b": {"id": "b"}}),
        "$defs": {},
        "definitions": {"z": TEXT},
    }
    assert resolve(schema) == {"$comment": "stays", **props({"a": TEXT, "b": {}})}


def test_a_base_path_needs_no_current_folder(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    (tmp_path / "b.json").write_text('{"type": "string"}')
    schema = props({"a": {"$ref": "b.json"}})
    assert resolve(schema, base=tmp_path / "tap.py", shared=[tmp_path])["properties"]["a"] == TEXT


def test_broken_marks_are_left_to_those_who_read_on():
    assert field({"id": 5, "$anchor": None, "definitions": 1}) == {"id": 5, "$anchor": None, "definitions": 1}


def test_a_reference_at_the_top():
    schema = {
        "$ref": "#/definitions/row",
        "definitions": {"row": props({"id": TEXT}), "unused": {"$ref": "#/definitions/unused"}},
    }
    assert resolve(schema) == props({"id": TEXT})
    assert resolve({**schema, "title": "T"}) == {**props({"id": TEXT}), "title": "T"}


def test_a_reference_to_a_boolean_schema():
    fields = {
        "a": {"$ref": "#/definitions/any"},
        "b": {"$ref": "#/definitions/any", "title": "B"},
        "c": {"$ref": "#/definitions/none", "title": "C"},
    }
    out = resolve(props(fields, definitions={"any": True, "none": False}))
    assert out == props({"a": True, "b": {"title": "B"}, "c": False})


def test_what_is_given_is_shared_with_nothing_that_comes_back():
    schema = props(
        {"a": {"$ref": "#/definitions/t"}, "b": {"$ref": "#/definitions/t"}, "c": {"allOf": [{"enum": ["x", "z"]}]}},
        definitions={"t": {"enum": ["x"]}},
    )
    out = resolve(schema)
    for name in "abc":
        out["properties"][name]["enum"].append("y")
    assert out["properties"] == {"a": {"enum": ["x", "y"]}, "b": {"enum": ["x", "y"]}, "c": {"enum": ["x", "z", "y"]}}
    assert schema["definitions"]["t"]["enum"] == ["x"]


def test_schemas_that_are_no_plain_dicts():
    """A schema in code may hold tuples and read-only mappings."""
    schema = types.MappingProxyType(
        {
            "properties": types.MappingProxyType({"a": {"$ref": "#/$defs/t"}}),
            "$defs": {"t": {"type": ("null", "string")}},
        }
    )
    assert resolve_refs(schema, source="x") == {"properties": {"a": {"type": ["null", "string"]}}}


@pytest.mark.parametrize("schema", [True, None, "text", 5, []])
def test_what_is_no_schema_is_given_back(schema):
    """Those who call say what they need, in their own words."""
    assert resolve_refs(schema, source="x") == schema


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"allOf": [{"required": [{}]}, {"required": ["id"]}]}, "required: [{}] lists what is no name of a field"),
        ({"properties": {"a": {"type": ["object", []]}}}, "type: ['object', []] lists what is no type"),
        ({"allOf": 7}, "allOf: 7 is no list of schemas"),
        ({"items": {"anyOf": "x"}}, "anyOf: 'x' is no list of schemas"),
        ({"multipleOf": float("nan")}, "multipleOf: nan is no number that JSON has"),
        ({"allOf": [{"multipleOf": float("inf")}, {"multipleOf": 2}]}, "multipleOf: inf is no number that JSON has"),
        ({"properties": {"a": {"enum": [1, float("-inf")]}}}, "the number -inf is none that JSON has"),
        ({"x-limits": {"top": float("inf")}}, "top: inf is no number that JSON has"),
    ],
)
def test_values_that_nobody_can_read_on_from(schema, says):
    with pytest.raises(DeclarationError) as caught:
        resolve_refs({"properties": {"b": {"$ref": "#/definitions/odd"}}, "definitions": {"odd": schema}}, source="x")
    text = str(caught.value)
    assert text.startswith("x: ") and says in text and "Reached by #/definitions/odd" in text


# ---- a part of a document -------------------------------------------------------------------------

OPENAPI = {
    "openapi": "3.1.0",
    "paths": {
        "/contacts": {"get": {"responses": {"default": {"$ref": "#/components/responses/Contacts"}, "200": {}}}},
    },
    "components": {
        "responses": {"Contacts": {"content": {"json": {"schema": {"$ref": "#/components/schemas/Contact"}}}}},
        "schemas": {
            "Contact": props({"id": {"$ref": "#/components/schemas/Id"}, "to": {"$ref": "#/components/schemas/To"}}),
            "Id": {"type": "integer"},
            "To": {"$id": "https://example.com/to.json", "$defs": {"x": TEXT}, "$ref": "#/$defs/x"},
            "Loop": {"$ref": "#/components/schemas/Loop"},
            "properties": TEXT,
        },
    },
}


def test_a_part_sees_the_whole_document():
    contact = props({"id": {"type": "integer"}, "to": TEXT})
    assert resolve(OPENAPI, pointer="#/components/schemas/Contact") == contact
    assert resolve(OPENAPI, pointer="/components/schemas/properties") == TEXT
    answer = resolve(OPENAPI, pointer="#/paths/~1contacts/get")
    assert answer["responses"]["default"]["content"]["json"]["schema"] == contact
    assert resolve({"$defs": {"x": {"$anchor": "here", **TEXT}}}, pointer="#here") == TEXT


@pytest.mark.parametrize(
    ("pointer", "says"),
    [
        ("#/components/schemas/Contcat", "'Contcat' is not there. Did you mean 'Contact'?"),
        ("#/openapi", "points to text, which is no schema"),
        ("#/components/schemas/Loop", "#/components/schemas/Loop -> #/components/schemas/Loop"),
        ("#Contact", "no schema has the anchor 'Contact'"),
    ],
)
def test_a_part_that_is_not_there(pointer, says):
    assert says in refusal(OPENAPI, pointer=pointer)


# ---- anchors and addresses ------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [{"$anchor": "t"}, {"id": "#t"}, {"$id": "#t"}, {"$dynamicAnchor": "t"}])
def test_anchors(mark):
    assert field({"$ref": "#t"}, definitions={"x": {"items": {**mark, **TEXT}}}) == {**TEXT}


def test_the_same_anchor_in_two_resources():
    definitions = {
        "one": {"$id": "one.json", "$defs": {"x": {"$anchor": "t", **TEXT}}},
        "two": {"$id": "two.json", "$defs": {"x": {"$anchor": "t", **NUMBER}}, "items": {"$ref": "#t"}},
    }
    base = {"$id": "https://example.com/all.json", "$defs": definitions}
    assert field({"$ref": "one.json#t"}, **base) == TEXT
    assert field({"$ref": "two.json#t"}, **base) == NUMBER
    assert field({"$ref": "two.json"}, **base) == {"items": NUMBER}
    assert "no schema has the anchor 't'" in refusal(props({"a": {"$ref": "#t"}}, **base))


@pytest.mark.parametrize(
    ("root", "inner", "reference"),
    [
        ("https://example.com/dir/root.json", "item.json", "item.json"),
        ("https://example.com/dir/root.json", "item.json", "https://example.com/dir/item.json"),
        ("https://example.com/dir/root.json", "item.json", "HTTPS://EXAMPLE.com/dir/item.json#"),
        ("https://example.com/dir/root.json", "/item.json", "../item.json"),
        ("https://example.com/dir/root.json", "urn:example:item", "urn:example:item"),
        ("urn:example:root", "urn:example:item", "urn:example:item"),
        ("urn:example:root", "urn:example:item", "urn:example:item#/$defs/../items"),
        ("https://example.com", "item.json", "https://example.com/item.json"),
        ("tag:example.com,2026:root", "https://example.com/item.json", "https://example.com/item.json"),
    ],
)
def test_addresses_declared_in_the_document_are_not_fetched(root, inner, reference):
    item = {"$id": inner, "items": TEXT, "$defs": {"..": {"items": TEXT}}}
    schema = {"$id": root, **props({"a": {"$ref": reference}}), "$defs": {"item": item}}
    assert resolve(schema)["properties"]["a"] == (TEXT if "$defs" in reference else {"items": TEXT})


def test_an_address_changes_what_the_pointers_below_count_from():
    inner = {"$id": "inner", "$defs": {"t": TEXT}, "items": {"$ref": "#/$defs/t"}}
    schema = {"$id": "https://example.com/root", **props({"a": inner}), "$defs": {"t": NUMBER}}
    assert resolve(schema)["properties"]["a"] == {"items": TEXT}
    # A pointer that goes through the inner schema finds the same.
    schema["properties"]["b"] = {"$ref": "#/properties/a/items"}
    assert resolve(schema)["properties"]["b"] == TEXT


def test_an_address_nested_in_an_address():
    schema = {
        "$id": "https://example.com/a/root.json",
        **props({"a": {"$ref": "b/c/leaf.json"}, "b": {"$ref": "b/node.json"}}),
        "$defs": {
            "node": {
                "$id": "b/node.json",
                "items": {"$ref": "c/leaf.json"},
                "$defs": {"leaf": {"$id": "c/leaf.json", **TEXT}},
            }
        },
    }
    assert resolve(schema) == props({"a": TEXT, "b": {"items": TEXT}})


def test_one_object_at_two_addresses():
    """An alias in YAML, or a dict used twice in code: what it refers to depends on where it stands."""
    twice = {"$ref": "t.json"}
    schema = {
        "properties": {"one": {"$ref": "#/$defs/a/properties/p"}, "two": {"$ref": "#/$defs/b/properties/p"}},
        "$defs": {
            "a": {"$id": "http://example.com/a/", "properties": {"p": twice}},
            "b": {"$id": "http://example.com/b/", "properties": {"p": twice}},
            "x": {"$id": "http://example.com/a/t.json", "type": "string"},
            "y": {"$id": "http://example.com/b/t.json", "type": "number"},
        },
    }
    assert resolve_refs(schema, source="x") == {"properties": {"one": {"type": "string"}, "two": {"type": "number"}}}


def test_only_real_addresses_count():
    """An id in a value, in an unknown keyword, or as the name of a field is none, while a real one is there."""
    schema = props(
        {"a": {"$ref": "https://example.com/t"}, "$id": {"enum": [{"$id": "https://example.com/t", **NUMBER}]}},
        **{
            "x-old": {"$id": "https://example.com/t", **NUMBER},
            "definitions": {"t": {"$id": "https://example.com/t", **TEXT}},
        },
    )
    assert resolve(schema)["properties"]["a"] == TEXT


def test_the_draft_says_what_an_id_is():
    """From draft 6 on ``id`` is no keyword, until draft 7 a reference made the ``$id`` beside it void."""
    schema = props({"a": {"id": "folder/", "items": {"$ref": "#/definitions/t"}}}, definitions={"t": TEXT})
    assert resolve({"$schema": "http://json-schema.org/draft-07/schema#", **schema})["properties"]["a"] == {
        "items": TEXT
    }
    assert "in 'folder/', which has an id of its own, 'definitions' is not there" in refusal(schema)
    beside = {
        "$id": "https://example.com/root",
        **props({"a": {"$id": "https://example.com/dir/x", "$ref": "t"}}),
        "definitions": {"one": {"$id": "t", **TEXT}, "two": {"$id": "dir/t", **NUMBER}},
    }
    assert resolve(beside)["properties"]["a"] == NUMBER
    assert resolve({**beside, "$schema": "http://json-schema.org/draft-07/schema"})["properties"]["a"] == TEXT


def test_dynamic_references():
    one = {"$defs": {"t": {"$dynamicAnchor": "t", **TEXT}}}
    assert field({"$dynamicRef": "#t"}, **one) == TEXT
    assert field({"$dynamicRef": "#/$defs/t", "title": "T"}, **one) == {**TEXT, "title": "T"}
    two = {"$defs": {**one["$defs"], "u": {"$id": "https://example.com/u", "$dynamicAnchor": "t"}}}
    text = refusal(props({"a": {"$dynamicRef": "#t"}}, **two))
    assert "$dynamicRef '#t' has several targets" in text and "not supported" in text
    assert "# -> #" in refusal(props({"a": {"$recursiveRef": "#"}}))


# ---- beside a reference ---------------------------------------------------------------------------


def test_keywords_beside_a_reference_hold_as_well():
    target = {
        "type": ["null", "object"],
        "title": "Address",
        "properties": {"city": {"type": ["string", "null"]}},
        "required": ["city"],
    }
    beside = {
        "$ref": "#/definitions/t",
        "type": "object",
        "title": "Home",
        "properties": {"city": {"minLength": 2}, "zip": {"$ref": "#/definitions/zip"}},
        "required": ["zip"],
        "definitions": {"unused": {}},
    }
    assert field(beside, definitions={"t": target, "zip": TEXT}) == {
        "type": "object",
        "title": "Home",
        "properties": {"city": {"type": ["string", "null"], "minLength": 2}, "zip": TEXT},
        "required": ["city", "zip"],
    }


def test_every_link_of_a_chain_adds_its_keywords():
    chain = {
        "a": {"$ref": "#/definitions/b", "minLength": 3, "title": "A"},
        "b": {"$ref": "#/definitions/c", "minLength": 5, "title": "B", "maxLength": 9},
        "c": {**TEXT, "title": "C", "description": "c"},
    }
    whole = {**TEXT, "title": "A", "description": "c", "minLength": 5, "maxLength": 9}
    assert field({"$ref": "#/definitions/a"}, definitions=chain) == whole
    # Seen before or not, each link is itself.
    both = props({"b": {"$ref": "#/definitions/b"}, "a": {"$ref": "#/definitions/a"}}, definitions=chain)
    assert resolve(both)["properties"] == {"a": whole, "b": {**whole, "title": "B"}}


def test_nothing_fits_where_nothing_fits_beside_the_reference():
    assert field({"$ref": "#/$defs/t", "allOf": [False]}, **{"$defs": {"t": TEXT}}) is False


def test_references_in_all_of():
    schema = {
        "allOf": [{"$ref": "#/definitions/base"}, {"properties": {"b": {"$ref": "#/definitions/t"}}}],
        "description": "both",
        "definitions": {"base": {"allOf": [props({"a": {"$ref": "#/definitions/t"}}, title="Base")]}, "t": TEXT},
    }
    assert resolve(schema) == {**props({"a": TEXT, "b": TEXT}), "title": "Base", "description": "both"}


# ---- cycles and missing targets -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "chain"),
    [
        (
            props(
                {"a": {"$ref": "#/definitions/x"}},
                definitions={
                    "x": {"properties": {"y": {"$ref": "#/definitions/y"}}},
                    "y": {"items": {"$ref": "#/definitions/x"}},
                },
            ),
            "#/definitions/x -> #/definitions/y -> #/definitions/x",
        ),
        (
            props({"a": {"$ref": "#/definitions/x"}}, definitions={"x": {"$ref": "#/definitions/x"}}),
            "#/definitions/x -> #/definitions/x",
        ),
        (props({"a": {"$ref": "#"}}), "# -> #"),
        (props({"a": {"$ref": ""}}), "# -> #"),
        (props({"a": {"properties": {"b": {"$ref": "#/properties/a"}}}}), "#/properties/a -> #/properties/a"),
        (
            props(
                {"a": {"$ref": "#/definitions/p"}},
                definitions={"p": {"$ref": "#/definitions/x"}, "x": {"not": {"$ref": "#/definitions/x"}}},
            ),
            ": #/definitions/x -> #/definitions/x",
        ),
        (
            props(
                {"a": {"$ref": "#/definitions/x"}},
                definitions={"x": {"allOf": [TEXT, {"$ref": "#y"}]}, "y": {"$anchor": "y", "$ref": "#/definitions/x"}},
            ),
            ": #/definitions/x -> #y -> #/definitions/x",
        ),
        (
            {"$id": "https://example.com/x", **props({"a": {"$ref": "x"}})},
            ": # -> #",
        ),
        (
            props(
                {"a": {"$ref": "#/definitions/x"}},
                definitions={"x": {"$ref": "#/definitions/y", "items": {"$ref": "#/definitions/x"}}, "y": {}},
            ),
            ": #/definitions/x -> #/definitions/x",
        ),
    ],
)
def test_cycles_show_their_chain(schema, chain):
    text = refusal(schema)
    assert "the schema refers to itself" in text and "can't be recursive" in text
    assert chain in text


def test_a_long_cycle_is_shown_in_part():
    definitions = {f"x{i}": {"items": {"$ref": f"#/definitions/x{(i + 1) % 40}"}} for i in range(40)}
    text = refusal(props({"a": {"$ref": "#/definitions/x0"}}, definitions=definitions))
    assert "#/definitions/x0 -> #/definitions/x1" in text and text.count("->") < 15 and "(31 more)" in text


def test_no_cycle():
    """The same target twice, one inside the other's sibling, and a definition nobody uses."""
    schema = props(
        {"a": {"$ref": "#/$defs/t"}, "b": {"properties": {"a": {"$ref": "#/$defs/t"}, "c": {"$ref": "#/$defs/u"}}}},
        **{"$defs": {"t": TEXT, "u": {"items": {"$ref": "#/$defs/t"}}, "loop": {"$ref": "#/$defs/loop"}}},
    )
    assert resolve(schema) == props({"a": TEXT, "b": {"properties": {"a": TEXT, "c": {"items": TEXT}}}})


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("#/definitions/nothing", "points to nothing: 'nothing' is not there."),
        ("#/definitions/tx", "points to nothing: 'tx' is not there. Did you mean 't'?"),
        ("#/definitions/t/type/x", "points to nothing: 'x' is not there"),
        ("#/required/5", "points to nothing: '5' is not there"),
        ("#/required/00", "points to nothing: '00' is not there"),
        ("#/required/-1", "points to nothing"),
        ("#/required/٣", "points to nothing"),
        ("#/required", "points to a list, which is no schema"),
        ("#/required/0", "points to text, which is no schema"),
        ("#t", "no schema has the anchor 't'. A JSON pointer begins with #/."),
        ("#definitions/t", "no schema has the anchor 'definitions/t'. A JSON pointer begins with #/."),
        ("other.json#/definitions/t", "not known which folder that counts from"),
        ("https://x/y.json", "is fetched only if http=True is given"),
        ("urn:example:nobody", "an address that no schema declares as its $id"),
        ("http://[::1", "is no address"),
        (None, "$ref None is no text"),
        ({"type": "string"}, "A field of this name stands below 'properties'"),
    ],
)
def test_references_to_nothing(reference, says):
    text = refusal(props({"a": {"$ref": reference}}, definitions={"t": TEXT}, required=["a"]))
    assert says in text and "$ref" in text


def test_a_missing_target_shows_how_it_was_reached():
    definitions = {"x": {"items": {"$ref": "#/definitions/y"}}, "y": {"items": {"$ref": "#/definitions/z"}}}
    text = refusal(props({"a": {"$ref": "#/definitions/x"}}, definitions=definitions))
    assert "$ref '#/definitions/z' points to nothing" in text
    assert "Reached by #/definitions/x -> #/definitions/y" in text


def test_an_address_in_an_error_shows_no_secret():
    text = refusal(props({"a": {"$ref": "https://user:hunter2@example.com/x.json?key=hunter2"}}))
    assert "hunter2" not in text and "example.com/x.json" in text
    assert "\n" not in refusal(props({"a": {"$ref": "#/a\nb\x1b[31m"}}))
    assert len(refusal(props({"a": {"$ref": "#/" + "x" * 100_000}}))) < 1000


# ---- limits ---------------------------------------------------------------------------------------


def test_a_chain_of_a_hundred():
    plain = {f"x{i}": {"$ref": f"#/definitions/x{i + 1}"} for i in range(100)}
    assert field({"$ref": "#/definitions/x0"}, definitions={**plain, "x100": TEXT}) == TEXT
    titled = {name: {**schema, "title": name} for name, schema in plain.items()}
    assert field({"$ref": "#/definitions/x0"}, definitions={**titled, "x100": TEXT}) == {**TEXT, "title": "x0"}


@pytest.mark.parametrize("keyword", ["properties", "allOf", "anyOf", "items"])
def test_a_thousand_levels_are_refused(keyword):
    def inside(schema):
        return {keyword: {"properties": {"x": schema}, "items": schema}.get(keyword, [schema])}

    by_reference = {f"x{i}": inside({"$ref": f"#/definitions/x{i + 1}"}) for i in range(1000)}
    schema = props({"a": {"$ref": "#/definitions/x0"}}, definitions={**by_reference, "x1000": TEXT})
    assert "nested deeper than 64 levels" in refusal(schema)
    # The deepest first: each level finds the one below it resolved.
    from_below = {f"f{i}": {"$ref": f"#/definitions/x{i}"} for i in range(1000, -1, -1)}
    assert "nested deeper than 64 levels" in refusal({**schema, "properties": from_below})
    deep = TEXT
    for _ in range(1000):
        deep = inside(deep)
    with pytest.raises(DeclarationError, match="nested deeper than 64 levels"):
        resolve_refs(props({"a": deep}), source="x")


def test_a_schema_that_holds_itself_in_code():
    schema = props({})
    schema["properties"]["a"] = schema
    with pytest.raises(DeclarationError, match="Does it hold itself"):
        resolve_refs(schema, source="x")


def test_sixty_levels_are_fine():
    deep = TEXT
    for _ in range(60):
        deep = props({"x": deep})
    assert resolve(deep) == deep


@pytest.mark.parametrize(
    "level",
    [
        lambda i: props({"a": {"$ref": f"#/$defs/x{i}"}, "b": {"$ref": f"#/$defs/x{i}"}}),
        lambda i: {"anyOf": [{"$ref": f"#/$defs/x{i}"}, {"$ref": f"#/$defs/x{i}"}]},
        lambda i: {"allOf": [props({f"a{i}": {"$ref": f"#/$defs/x{i}"}}), props({f"b{i}": {"$ref": f"#/$defs/x{i}"}})]},
        lambda i: {"$ref": f"#/$defs/x{i}", **props({f"p{i}": {"$ref": f"#/$defs/x{i}"}})},
    ],
)
def test_thirty_doublings_are_refused_at_once(level):
    definitions = {f"x{i}": level(i + 1) for i in range(30)}
    schema = props({"a": {"$ref": "#/$defs/x0"}}, **{"$defs": {**definitions, "x30": TEXT}})
    before = time.process_time()
    assert "more than 1,000,000 values" in refusal(schema)
    assert time.process_time() - before < 1


def test_large_values_count_as_well():
    schema = props(
        {f"f{i}": {"$ref": "#/$defs/t"} for i in range(1001)}, **{"$defs": {"t": {"enum": list(range(1000))}}}
    )
    assert "more than 1,000,000 values" in refusal(schema)


def test_resolved_schemas_stay_as_they_are():
    schema = props(
        {
            "a": {"allOf": [{"pattern": "a"}, {"pattern": "b"}, {"pattern": "c"}]},
            "b": {"allOf": [{"anyOf": [TEXT, NUMBER]}, {"anyOf": [NUMBER, {}]}], "type": ["null", "number"]},
        }
    )
    once = resolve(schema)
    assert resolve(once) == once
    assert json.dumps(once).count('"pattern"') == 3
