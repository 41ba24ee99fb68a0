"""Schemas: references resolved, files found beside the module that names them."""

from __future__ import annotations

import copy
import json
import sys

import pytest

import burler
from burler.errors import DeclarationError
from burler.schema import resolve_refs
from burler.testing import run_tap

TEXT = {"type": "string"}


def resolve(schema):
    before = copy.deepcopy(schema)
    out = resolve_refs(schema, source="stream 'a' (tap.py:5)")
    assert schema == before
    return out


def props(schema, **definitions):
    return {"type": "object", "properties": schema, **definitions}


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
        ("é", "%C3%A9"),
        ("", ""),
        ('k"l', "k%22l"),
        ("0", "0"),
    ],
)
def test_escapes(key, pointer):
    schema = props({"a": {"$ref": f"#/definitions/{pointer}"}}, definitions={key: TEXT, "other": {}})
    assert resolve(schema) == props({"a": TEXT})


def test_keywords_beside_a_reference_are_laid_over_it():
    schema = props(
        {"a": {"$ref": "#/definitions/t", "type": ["null", "string"], "description": {"$ref": "#/definitions/d"}}},
        definitions={"t": {"type": "string", "format": "date"}, "d": {"x": 1}},
    )
    assert resolve(schema)["properties"]["a"] == {"type": ["null", "string"], "format": "date", "description": {"x": 1}}


def test_a_reference_to_a_boolean_schema():
    fields = {"a": {"$ref": "#/definitions/any"}, "b": {"$ref": "#/definitions/any", "title": "B"}}
    assert resolve(props(fields, definitions={"any": True})) == props({"a": True, "b": {"title": "B"}})


def test_a_reference_at_the_top():
    schema = {
        "$ref": "#/definitions/row",
        "definitions": {"row": props({"id": TEXT}), "unused": {"$ref": "#/definitions/unused"}},
    }
    assert resolve(schema) == props({"id": TEXT})
    assert resolve({**schema, "title": "T"}) == {**props({"id": TEXT}), "title": "T"}


def test_fields_called_like_keywords():
    schema = props({"$ref": TEXT, "definitions": TEXT, "$defs": {"$ref": "#/definitions/t"}}, definitions={"t": TEXT})
    assert resolve(schema) == props({"$ref": TEXT, "definitions": TEXT, "$defs": TEXT})


def test_what_is_given_is_shared_with_nothing_that_comes_back():
    schema = props(
        {"a": {"$ref": "#/definitions/t"}, "b": {"$ref": "#/definitions/t"}}, definitions={"t": {"enum": ["x"]}}
    )
    out = resolve_refs(schema, source="x")
    out["properties"]["a"]["enum"].append("y")
    assert out["properties"]["b"]["enum"] == schema["definitions"]["t"]["enum"] == ["x"]


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
        (props({"a": {"properties": {"b": {"$ref": "#/properties/a"}}}}), "#/properties/a -> #/properties/a"),
        (
            props(
                {"a": {"$ref": "#/definitions/p"}},
                definitions={"p": {"$ref": "#/definitions/x"}, "x": {"not": {"$ref": "#/definitions/x"}}},
            ),
            ": #/definitions/x -> #/definitions/x",
        ),
    ],
)
def test_cycles_show_their_chain(schema, chain):
    with pytest.raises(DeclarationError) as caught:
        resolve(schema)
    assert str(caught.value).startswith("stream 'a' (tap.py:5): the schema refers to itself")
    assert chain in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("#/definitions/nothing", "points to nothing ('nothing' is not there)"),
        ("#/definitions/t/type/x", "points to nothing ('x' is not there)"),
        ("#/required/5", "points to nothing ('5' is not there)"),
        ("#/required/-1", "points to nothing"),
        ("#t", "is an anchor"),
        ("other.json#/definitions/t", "points outside the document"),
        ("https://x/y.json", "points outside the document"),
        ("", "points outside the document"),
    ],
)
def test_references_to_nothing(reference, says):
    schema = props({"a": {"$ref": reference}}, definitions={"t": TEXT}, required=["a"])
    with pytest.raises(DeclarationError) as caught:
        resolve(schema)
    assert says in str(caught.value)
    assert "tap.py:5" in str(caught.value)


def test_the_schema_message_holds_no_reference():
    tap = burler.tap("tap-x")

    @tap.sync("a")
    def rows():
        yield {"at": "2024-01-01T02:00:00+02:00"}

    tap.schema(
        "a", props({"at": {"$ref": "#/definitions/t"}}, definitions={"t": {"type": "string", "format": "date-time"}})
    )
    run = run_tap(tap)
    assert "$ref" not in json.dumps(run.messages) and "definitions" not in json.dumps(run.messages)
    assert run.records("a") == [{"at": "2024-01-01T00:00:00Z"}]


# ---- files ---------------------------------------------------------------------------------------


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A tap in a package of its own, with a schema file beside it; the current folder is elsewhere."""
    package = tmp_path / "some_tap_pkg"
    (package / "schemas").mkdir(parents=True)
    (package / "schemas" / "a.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(props({"id": TEXT})).encode())
    (package / "__init__.py").write_text(
        "import burler\ntap = burler.tap('tap-x')\n"
        "tap.schema('a', method=burler.json_file('schemas/a.json'))\n"
        "@tap.sync('a')\ndef a():\n    yield {'id': 'x'}\n"
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("some_tap_pkg")
    del sys.modules["some_tap_pkg"]


def test_a_schema_file_counts_from_its_module(module):
    assert run_tap(module.tap).records("a") == [{"id": "x"}]


def test_broken_schema_files(tmp_path):
    with pytest.raises(DeclarationError, match=r"schema file .*no\.json: No such file"):
        burler.json_file(tmp_path / "no.json").load()
    bad = tmp_path / "bad.json"
    for content in (b"{", b"", b'{"a": "\xff"}'):
        bad.write_bytes(content)
        with pytest.raises(DeclarationError, match=r"schema file .*bad\.json is not JSON"):
            burler.json_file(bad).load()


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"properties": []}])
def test_a_stream_without_properties_is_refused(schema):
    tap = burler.tap("tap-x")
    tap.schema("a", schema)

    @tap.sync("a")
    def rows():
        return []

    with pytest.raises(DeclarationError, match=r"stream 'a' \(.*test_schema\.py:\d+\): its schema must be"):
        run_tap(tap)
