"""Schemas out of OpenAPI documents: 3.0, 3.1 and Swagger 2.0, JSON and YAML, files and URLs."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import burler
from burler.errors import DeclarationError, MissingExtra
from burler.schema import openapi
from burler.testing import run_tap
from support.servers import serving

WHERE = "stream 'a' (tap.py:3)"
DATA = Path(__file__).parent / "openapi"


def load(source, component, config=None, **options):
    schema = openapi(source, component, **options).load(where=WHERE, config=config or {})
    assert "$ref" not in json.dumps(schema)
    jsonschema.Draft4Validator.check_schema(without_exclusive(schema))
    return schema


def without_exclusive(node):
    """Draft 4 knows other exclusive bounds than all later drafts."""
    if isinstance(node, list):
        return [without_exclusive(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: without_exclusive(value) for key, value in node.items() if not key.startswith("exclusive")}


def properties(source, component, **options):
    return load(source, component, **options)["properties"]


def document(**schemas):
    return {"openapi": "3.0.3", "info": {"title": "t", "version": "1"}, "paths": {}, "components": {"schemas": schemas}}


@pytest.fixture
def write(tmp_path):
    def write(content, name="api.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def of(write, schema, **others):
    """The property ``x`` of a component, out of the document."""
    path = write(document(Thing={"type": "object", "properties": {"x": schema}}, **others))
    return properties(path, "Thing")["x"]


# ---- whole documents of each dialect --------------------------------------------------------------


def test_openapi_30_yaml():
    schema = load(DATA / "crm30.yaml", "Contact")
    assert schema == {
        "type": "object",
        "description": "A person.",
        "required": ["id", "name", "country"],
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": "string", "minLength": 1},
            "country": {"type": "string", "enum": ["NO", "SE", "on"]},
            "born": {"type": ["null", "string"], "format": "date"},
            "created_at": {"type": "string", "format": "date-time"},
            "score": {"type": "number", "exclusiveMinimum": 0},
            "avatar": {"type": "string", "contentEncoding": "base64"},
            "kind": {"type": ["null", "string"], "enum": ["lead", "client", None]},
            "address": {
                "type": ["null", "object"],
                "description": "Where somebody lives.",
                "properties": {"city": {"type": "string"}, "zip": {"type": ["null", "string"]}},
            },
            "tags": {"type": "array", "items": {"type": "string"}},
            "extra": {"type": "object", "additionalProperties": {"type": "string"}},
            "nullable": {"type": "boolean"},
            "example": {"type": "string"},
        },
    }


def test_operations_of_30():
    contact = load(DATA / "crm30.yaml", "Contact")
    assert load(DATA / "crm30.yaml", "GET /contacts", rows="data.items") == contact
    assert load(DATA / "crm30.yaml", "get /contacts/{id}") == contact
    assert load(DATA / "crm30.yaml", "POST /contacts") == contact  # 201
    assert load(DATA / "crm30.yaml", "GET /errors")["properties"] == {"message": {"type": "string"}}  # default
    assert sorted(properties(DATA / "crm30.yaml", "GET /contacts")) == ["data", "next"]


def test_openapi_31_json():
    schema = load(DATA / "shop31.json", "#/components/schemas/Order")
    assert schema == {
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "string", "format": "uuid"},
            "total": {"type": ["null", "number"], "exclusiveMinimum": 0},
            "state": {"type": "string", "enum": ["open"]},
            "note": {"type": ["null", "string"]},
            "position": {"type": "array", "items": {"type": "number"}},
            "lines": {
                "type": "array",
                "items": {"type": "object", "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}}},
            },
        },
    }
    assert load(DATA / "shop31.json", "GET /orders") == schema


def test_swagger_20():
    schema = load(DATA / "pets20.yaml", "Pet")
    assert schema == {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "chip": {"type": ["null", "string"]},
            "photo": {"type": "string"},
            "since": {"type": "string", "format": "date-time"},
        },
    }
    assert load(DATA / "pets20.yaml", "GET /pets") == schema
    assert load(DATA / "pets20.yaml", "#/definitions/Pet") == schema


# ---- the dialect, word by word ---------------------------------------------------------------------

OTHER = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"type": "string", "nullable": True}, {"type": ["null", "string"]}),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        ({"nullable": True}, {}),
        ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["null", "string"], "enum": ["a", None]}),
        ({"enum": ["a", 1]}, {"type": ["string", "integer"], "enum": ["a", 1]}),
        ({"enum": ["a", None], "nullable": True}, {"type": ["null", "string"], "enum": ["a", None]}),
        ({"type": "string", "x-nullable": True, "x-order": 3}, {"type": ["null", "string"]}),
        ({"$ref": "#/components/schemas/Other", "nullable": True}, {**OTHER, "type": ["null", "object"]}),
        (
            {"allOf": [{"$ref": "#/components/schemas/Other"}], "nullable": True, "description": "d"},
            {**OTHER, "type": ["null", "object"], "description": "d"},
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}], "nullable": True},
            {"type": ["null", "string", "integer"]},
        ),
        (
            {"anyOf": [{"$ref": "#/components/schemas/Other"}, {"type": "string", "format": "date"}]},
            {"type": ["object", "string"], "format": "date", "properties": OTHER["properties"]},
        ),
        ({"type": "integer", "format": "int64"}, {"type": "integer"}),
        ({"type": "number", "format": "double"}, {"type": "number"}),
        ({"type": "string", "format": "byte"}, {"type": "string", "contentEncoding": "base64"}),
        ({"type": "string", "format": "binary"}, {"type": "string"}),
        ({"type": "string", "format": "password", "readOnly": True}, {"type": "string"}),
        (
            {"type": "string", "format": "uuid", "example": "x", "xml": {}, "externalDocs": {}},
            {"type": "string", "format": "uuid"},
        ),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, {"type": "number", "exclusiveMinimum": 1}),
        ({"type": "number", "maximum": 1, "exclusiveMaximum": False}, {"type": "number", "maximum": 1}),
        ({"properties": {"a": {"type": "string"}}}, OTHER),
        (
            {"type": "array", "items": {"type": "string", "nullable": True}},
            {"type": "array", "items": {"type": ["null", "string"]}},
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer", "nullable": True}},
            {"type": "object", "additionalProperties": {"type": ["null", "integer"]}},
        ),
        ({"type": "string", "default": {"nullable": True}}, {"type": "string", "default": {"nullable": True}}),
        ({"oneOf": [OTHER, OTHER], "discriminator": {"propertyName": "a"}}, OTHER),
    ],
)
def test_words(write, given, made):
    assert of(write, given, Other=OTHER) == made


def test_null_passes_where_nullable_says_so(write):
    """A judge that is not ours: what nullable admits is valid, and what it does not is not."""
    other = {"type": "object", "properties": {"a": {"type": "string"}}}
    for asked in (
        {"$ref": "#/components/schemas/Other", "nullable": True},
        {
            "allOf": [{"$ref": "#/components/schemas/Other"}, {"properties": {"b": {"type": "integer"}}}],
            "nullable": True,
        },
        {"type": "string", "enum": ["a"], "nullable": True},
        {"anyOf": [{"type": "string"}, {"$ref": "#/components/schemas/Other"}], "nullable": True},
    ):
        assert jsonschema.Draft4Validator(of(write, asked, Other=other)).is_valid(None)
        strict = {key: value for key, value in asked.items() if key != "nullable"}
        assert not jsonschema.Draft4Validator(of(write, strict, Other=other)).is_valid(None)


def test_write_only_fields_are_left_out(write):
    user = {
        "type": "object",
        "required": ["name", "password"],
        "properties": {
            "name": {"type": "string"},
            "password": {"type": "string", "writeOnly": True},
            "token": {"allOf": [{"$ref": "#/components/schemas/Secret"}]},
            "key": {"$ref": "#/components/schemas/Secret"},
            "writeOnly": {"type": "boolean"},
        },
    }
    path = write(document(User=user, Secret={"type": "string", "writeOnly": True}))
    assert load(path, "User") == {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "writeOnly": {"type": "boolean"}},
    }


def test_parts_ask_for_no_write_only_field(write):
    """Fields that the schema around a part writes only are in no answer, so the part can't require them."""
    user = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "mail": {"type": "string"},
            "password": {"type": "string", "writeOnly": True},
        },
        "anyOf": [{"required": ["name", "password"]}, {"required": ["mail"]}],
    }
    schema = of(write, user)
    assert schema["anyOf"] == [{"required": ["name"]}, {"required": ["mail"]}]
    assert jsonschema.Draft4Validator(schema).is_valid({"name": "n"})
    part = {"properties": {"mail": {"type": "string"}}, "required": ["password"], "unevaluatedProperties": False}
    [left] = of(write, {**user, "allOf": [part]})["allOf"]
    assert "required" not in left


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"required": [{}]}, "required: [{}] lists what is no name of a field"),
        ({"oneOf": [{"type": "object", "properties": {"a": {}}, "required": [[]]}]}, "required: [[]]"),
        ({"properties": {"a": {"type": [[]]}}}, "type: [[]] lists what is no type"),
        ({"properties": {"a": {"allOf": 7, "writeOnly": True}}}, "allOf: 7 is no list of schemas"),
        ({"properties": {"a": {"anyOf": 5}}}, "anyOf: 5 is no list of schemas"),
        ({"properties": {"a": {"allOf": [{"required": [{}]}, {"required": [[]]}]}}}, "required: [{}]"),
    ],
)
def test_odd_values(write, schema, says):
    with pytest.raises(DeclarationError) as caught:
        load(write(document(Thing={"type": "object", **schema})), "Thing")
    text = str(caught.value)
    assert text.startswith(WHERE) and "api.json" in text and says in text and len(text.split("\n")) <= 3


def test_all_of_inheritance(write):
    base = {
        "type": "object",
        "required": ["id"],
        "properties": {"id": {"type": "integer"}},
        "discriminator": {"propertyName": "id"},
    }
    pet = {
        "allOf": [
            {"$ref": "#/components/schemas/Base"},
            {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
        ]
    }
    schema = load(write(document(Base=base, Pet=pet)), "Pet")
    assert list(schema["properties"]) == ["id", "name"]
    assert sorted(schema["required"]) == ["id", "name"]
    assert "allOf" not in schema


def test_a_union_at_the_top_becomes_one_object(write):
    cat = {
        "type": "object",
        "required": ["id", "lives"],
        "properties": {"id": {"type": "integer"}, "lives": {"type": "integer"}},
    }
    dog = {
        "type": "object",
        "required": ["id"],
        "properties": {"id": {"type": "string"}, "tricks": {"type": "array", "items": {"type": "string"}}},
    }
    refs = [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}]
    schema = load(write(document(Cat=cat, Dog=dog, Pet={"oneOf": refs, "nullable": True})), "Pet")
    assert schema == {
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": ["integer", "string"]},
            "lives": {"type": "integer"},
            "tricks": {"type": "array", "items": {"type": "string"}},
        },
    }


NODE = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "parent": {"$ref": "#/components/schemas/Node"},
        "twin": {"$ref": "#/components/schemas/Twin"},
    },
}
TWIN = {
    "type": "object",
    "properties": {"node": {"$ref": "#/components/schemas/Node", "nullable": True}, "n": {"type": "integer"}},
}


def test_a_schema_that_holds_itself(write):
    path = write(document(Node=NODE, Twin=TWIN))
    with pytest.raises(DeclarationError) as caught:
        load(path, "Node")
    assert "Node" in str(caught.value)
    assert 'recursive="open"' in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3
    assert properties(path, "Node", recursive="open") == {
        "id": {"type": "integer"},
        "parent": {},
        "twin": {"type": "object", "properties": {"node": {}, "n": {"type": "integer"}}},
    }
    with pytest.raises(ValueError, match="recursive='cut' is unknown"):
        openapi(path, "Node", recursive="cut")


def test_references_to_other_files(tmp_path, write):
    write(
        {"Address": {"type": "object", "properties": {"zip": {"type": "string", "nullable": True, "example": "1"}}}},
        "parts.json",
    )
    path = write(document(Thing={"type": "object", "properties": {"x": {"$ref": "parts.json#/Address"}}}))
    assert properties(path, "Thing")["x"] == {"type": "object", "properties": {"zip": {"type": ["null", "string"]}}}


# ---- what is not there -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("component", "message"),
    [
        ("Contcat", "there is no component 'Contcat'. Did you mean 'Contact'?"),
        ("zzz", "there is no component 'zzz'. Components: Contact, Address"),
        (
            "#/components/schemas/Contacts",
            "there is no schema at '#/components/schemas/Contacts'. Did you mean 'Contact'",
        ),
        ("GET /contact", "there is no operation 'GET /contact'. Did you mean 'GET /contacts'"),
        ("DELETE /contacts", "there is no operation 'DELETE /contacts'. It has: GET /contacts, POST /contacts."),
        ("GET /export", "the answer 200 of 'GET /export' has no JSON schema (only text/csv)."),
        ("GET /broken", "'GET /broken' describes no successful answer (it has: 404)."),
        ("Kind", "'Kind' is no object with named fields (but null or string)"),
        (
            "Anything",
            "'Anything' is no object with named fields (but an object without any), so no stream's rows. Say with",
        ),
    ],
)
def test_what_is_not_there(component, message):
    with pytest.raises(DeclarationError) as caught:
        load(DATA / "crm30.yaml", component)
    assert str(caught.value).startswith(f"{WHERE}: OpenAPI document ")
    assert message in str(caught.value)


def test_rows_that_are_not_there():
    with pytest.raises(DeclarationError, match=r"'GET /contacts' has no field 'itmes' there\. Fields: items, total\."):
        load(DATA / "crm30.yaml", "GET /contacts", rows="data.itmes")
    with pytest.raises(DeclarationError, match=r"'GET /contacts' is no object with named fields \(but string\)"):
        load(DATA / "crm30.yaml", "GET /contacts", rows="next")
    with pytest.raises(ValueError, match="is no path"):
        openapi(DATA / "crm30.yaml", "GET /contacts", rows="data.")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", "is not JSON: line 1"),
        (
            "a.json",
            '{"openapi": "3.0.0", "openapi": "3.1.0"}',
            "the key 'openapi' is there twice in one object (line 1)",
        ),
        (
            "a.yaml",
            "openapi: 3.0.0\npaths: {}\npaths: {}\n",
            "is not YAML of JSON values: the key 'paths' is there twice (line 3)",
        ),
        ("a.yaml", "openapi: [3\ninfo: x", "is not YAML of JSON values"),
        ("a.yaml", "openapi: !!python/object/apply:os.getcwd []", "is not YAML of JSON values"),
        ("a.yaml", "", "is no OpenAPI document"),
        ("a.yaml", "just text", "is no OpenAPI document"),
        ("a.json", "[]", "is no OpenAPI document"),
        ("a.json", '{"type": "object"}', "is no OpenAPI document"),
        ("a.yaml", "openapi: 4.0.0", "is of version '4.0.0'"),
        ("a.yaml", "swagger: '1.2'", "is of version '1.2'"),
        ("a.json", '{"a":' * 100_000, "is nested too deep"),
        ("a.yaml", "? [a]\n: 1", "a key is no text"),
    ],
)
def test_broken_documents(write, name, content, message):
    path = write(content, name)
    with pytest.raises(DeclarationError) as caught:
        load(path, "X")
    assert str(caught.value).startswith(f"{WHERE}: OpenAPI document {path} ") or str(caught.value).startswith(
        f"{WHERE}: OpenAPI document {path}: "
    )
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3


def test_missing_documents(tmp_path):
    with pytest.raises(DeclarationError, match=r"none\.yaml: No such file or directory\. Is the path right\?"):
        load(tmp_path / "none.yaml", "X")
    with pytest.raises(DeclarationError, match=r"is a folder\. Give the path of a JSON or YAML file"):
        load(tmp_path, "X")
    (tmp_path / "x.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DeclarationError, match="is not UTF-8"):
        load(tmp_path / "x.json", "X")


def test_yaml_is_jsons_data(write):
    path = write(
        "openapi: 3.0.0\ncomponents:\n  schemas:\n    T: &t\n      type: object\n      properties:\n"
        "        on: {type: string, enum: [no, 2024-01-02, 12:30:00, 0777, 1_000, ~], nullable: true}\n"
        "        2024-01-02: {type: number, minimum: 1e3, maximum: 2}\n        200: {type: boolean}\n"
        "    U:\n      <<: *t\n      description: merged\n",
        "a.yml",
    )
    assert properties(path, "T") == {
        "on": {"type": ["null", "string"], "enum": ["no", "2024-01-02", "12:30:00", "0777", "1_000", None]},
        "2024-01-02": {"type": "number", "minimum": 1000.0, "maximum": 2},
        "200": {"type": "boolean"},
    }
    assert load(path, "U")["description"] == "merged"


def test_yaml_without_pyyaml(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtra, match=r"pip install '(PyYAML>=|\.\[openapi\]' in burler's clone)"):
        load(write("openapi: 3.0.0", "a.yaml"), "X")
    load(write(document(X=OTHER)), "X")  # JSON needs nothing


def test_a_bug_inside_a_package_is_not_taken_for_its_absence(write, tmp_path, monkeypatch):
    (tmp_path / "yaml.py").write_text("import some_other_missing_pkg\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "yaml", raising=False)
    with pytest.raises(ModuleNotFoundError, match="some_other_missing_pkg"):
        load(write("openapi: 3.0.0", "a.yaml"), "X")


# ---- where documents come from -----------------------------------------------------------------------


@pytest.fixture
def server():
    """``server.answers[path]`` is a status and what is sent, or where to; ``server.kind`` the Content-Type."""

    def answer(asked):
        status, body = found.answers.get(asked.path, (404, b"no"))
        headers = {"Content-Type": found.kind} if found.kind else {}
        return status, {"Location": body.decode()} if status == 302 else headers, body

    with serving(answer) as found:
        found.answers, found.kind = {}, ""
        yield found


def test_a_url_and_a_function_of_the_config(server):
    server.answers = {"/api": (200, json.dumps(document(Thing=OTHER)).encode()), "/yaml": (200, b"openapi: 3.0.0")}
    assert load(f"{server.url}/api", "Thing") == OTHER
    assert load(lambda config: config["url"], "Thing", {"url": f"{server.url}/api"}) == OTHER
    with pytest.raises(DeclarationError, match=r"there is no component 'X'\. Components: none"):
        load(f"{server.url}/yaml", "X")


def test_references_on_the_web_only_if_asked_for(server):
    part = json.dumps({"A": {"type": "string", "nullable": True}}).encode()
    whole = document(Thing={"type": "object", "properties": {"x": {"$ref": "parts.json#/A"}}})
    server.answers = {"/api.json": (200, json.dumps(whole).encode()), "/parts.json": (200, part)}
    assert properties(f"{server.url}/api.json", "Thing", http=True) == {"x": {"type": ["null", "string"]}}
    with pytest.raises(DeclarationError, match="http"):
        load(f"{server.url}/api.json", "Thing")


def test_references_count_from_where_the_document_was_found(server, tmp_path):
    """After a redirect that is another address; of a ``file:`` URL it is the file's folder."""
    part = json.dumps({"A": {"type": "string"}})
    whole = json.dumps(document(Thing={"type": "object", "properties": {"x": {"$ref": "parts.json#/A"}}}))
    server.answers = {
        "/latest": (302, f"{server.url}/v2/api.json".encode()),
        "/v2/api.json": (200, whole.encode()),
        "/v2/parts.json": (200, part.encode()),
    }
    assert properties(f"{server.url}/latest", "Thing", http=True) == {"x": {"type": "string"}}
    folder = tmp_path / "some folder"
    folder.mkdir()
    (folder / "api.json").write_text(whole)
    (folder / "parts.json").write_text(part)
    assert properties((folder / "api.json").as_uri(), "Thing") == {"x": {"type": "string"}}


def test_a_page_in_place_of_a_document(server):
    server.answers = {"/page": (200, b" <!DOCTYPE html><p>Log in")}
    with pytest.raises(DeclarationError, match=r"/page is neither JSON nor YAML: it begins like a web page"):
        load(f"{server.url}/page", "X")


def test_the_type_that_a_server_gives(server):
    """A document whose address says nothing of its kind, and one whose address says the wrong thing."""
    server.answers = {"/api": (200, b"openapi: 3.0.0"), "/api.json": (200, b"openapi: 3.0.0")}
    server.kind = "application/json"
    with pytest.raises(DeclarationError, match=r"/api is not JSON: line 1"):
        load(f"{server.url}/api", "X")
    server.kind = "application/vnd.oai.openapi+yaml"
    with pytest.raises(DeclarationError, match="there is no component 'X'"):
        load(f"{server.url}/api.json", "X")


def test_errors_of_the_web_do_not_show_secrets(server):
    host = server.url.removeprefix("http://")
    for url, message in (
        (f"http://ann:hush@{host}/none?key=hush", "answered 404. Is the address right?"),
        ("http://ann:hush@127.0.0.1:9/none?key=hush", "the connection was refused"),
    ):
        with pytest.raises(DeclarationError) as caught:
            load(url, "Thing")
        assert message in str(caught.value)
        assert "hush" not in str(caught.value)


def test_a_function_of_the_config_that_fails():
    with pytest.raises(DeclarationError, match="the function for the document failed: the config has no 'url'"):
        load(lambda config: config["url"], "Thing")
    with pytest.raises(DeclarationError, match="it raised ZeroDivisionError") as caught:
        load(lambda config: 1 / 0, "Thing", {})
    assert str(caught.value).startswith(WHERE)
    with pytest.raises(DeclarationError, match="is a path or a URL, not NoneType"):
        load(lambda config: None, "Thing")


def test_a_relative_path_counts_from_the_module_that_calls(tmp_path, monkeypatch):
    (tmp_path / "tap_there.py").write_text("from burler.schema import openapi\nsource = openapi('a.json', 'Thing')\n")
    (tmp_path / "a.json").write_text(json.dumps(document(Thing=OTHER)))
    monkeypatch.syspath_prepend(tmp_path)
    import tap_there

    assert tap_there.source.load(where=WHERE, config={}) == OTHER


def test_a_tap_with_such_a_schema_runs():
    tap = burler.tap("tap-crm")

    @tap.sync("contacts", key_properties="id")
    def contacts():
        yield {"id": 1, "name": "Ann", "country": "NO", "address": None, "kind": None, "password": "not for us"}

    tap.schema("contacts", load(DATA / "crm30.yaml", "GET /contacts", rows="data.items"))
    out = run_tap(tap)
    assert out.result.exit_code == 0
    assert out.records("contacts") == [{"id": 1, "name": "Ann", "country": "NO", "kind": None, "address": None}]


@pytest.mark.parametrize("name", ["a/b", "a~1b", "a%2Fb", "a b", "a#b", "é", "", "0", "GET"])
def test_hostile_names(write, name):
    path = write({**document(**{name: OTHER}), "paths": {f"/{name}": answer(OTHER)}})
    assert load(path, name) == OTHER
    if " " not in name:
        assert load(path, f"GET /{name}") == OTHER


def answer(schema):
    return {"get": {"responses": {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}}}


def test_shared_folders(tmp_path, write):
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "parts.yaml").write_text("A: {type: string, nullable: true}")
    path = write(document(Thing={"type": "object", "properties": {"x": {"$ref": "parts.yaml#/A"}}}))
    assert properties(path, "Thing", shared=[tmp_path / "common"]) == {"x": {"type": ["null", "string"]}}
    with pytest.raises(DeclarationError, match=r"parts\.yaml"):
        load(path, "Thing")


REFS = st.sampled_from("ABCD").map(lambda name: {"$ref": f"#/components/schemas/{name}"})
SCHEMAS = st.recursive(
    st.one_of(REFS, st.just({"type": "string", "nullable": True})),
    lambda inner: st.one_of(
        inner.map(lambda items: {"type": "array", "items": items}),
        st.tuples(inner, st.booleans()).map(lambda two: {"allOf": [two[0]], "nullable": two[1]}),
        st.dictionaries(st.sampled_from("xyz"), inner, min_size=1).map(lambda p: {"type": "object", "properties": p}),
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from("ABCD"), SCHEMAS, min_size=4, max_size=4))
def test_opened_cycles_always_end(schemas):
    """Whatever refers to whatever: recursive="open" gives a schema, and the plain one if there is no cycle."""
    start = {"type": "object", "properties": {"a": {"$ref": "#/components/schemas/A"}}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "api.json"
        path.write_text(json.dumps(document(Start=start, **schemas)))
        opened = load(path, "Start", recursive="open")
        try:
            plain = load(path, "Start")
        except DeclarationError as error:
            assert "refers to itself" in str(error)
        else:
            assert opened == plain
