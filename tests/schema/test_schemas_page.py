"""docs/schemas.md: its snippets run, with the values beside them. docs/without-the-framework.md: its errors come."""

from __future__ import annotations

import ast
import datetime as dt
import json
import re
from pathlib import Path

import pytest

import burler
from burler.schema import Inference, infer_schema, typed
from burler.singer import catalog_from_wire, format_time, to_map
from burler.testing import run_tap

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "schemas.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

CONTACT = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}
DEAL = {"type": "object", "properties": {"id": {"type": "integer"}, "amount": {"type": "number"}}}


def answer(schema):
    return {"get": {"responses": {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}}}


def envelope(*names, item):
    schema = {"type": "array", "items": {"$ref": f"#/components/schemas/{item}"}}
    for name in reversed(names):
        schema = {"type": "object", "properties": {name: schema}}
    return schema


API = {
    "openapi": "3.1.0",
    "info": {"title": "crm", "version": "1"},
    "paths": {
        "/deals": answer(envelope("data", item="Deal")),
        "/contacts": answer(envelope("data", "items", item="Contact")),
    },
    "components": {"schemas": {"Contact": CONTACT, "Deal": DEAL}},
}


@pytest.fixture
def scope(tmp_path):
    """The page's snippets, run in order in one module with the files beside it that they name."""
    (tmp_path / "contacts.json").write_text(json.dumps(CONTACT))
    (tmp_path / "companies.sample.jsonl").write_text('{"id": 1, "founded": "1987-02-03"}\n{"id": 2, "founded": null}\n')
    for name in ("api.yaml", "openapi.json"):
        (tmp_path / name).write_text(json.dumps(API))
    scope = {"__name__": "snippet", "__file__": str(tmp_path / "tap_crm.py")}
    for block in BLOCKS:
        exec(compile(block, "docs/schemas.md", "exec", dont_inherit=True), scope)
    return scope


def test_every_source_in_a_tap_that_runs(scope):
    out = run_tap(scope["tap"], {"base_url": "https://crm"})
    assert not out.result.errors
    schemas = {m["stream"]: m["schema"]["properties"] for m in out.messages if m["type"] == "SCHEMA"}
    assert schemas == {
        "contacts": CONTACT["properties"],
        "companies": {"id": {"type": "integer"}, "founded": {"type": ["null", "string"], "format": "date"}},
        "deals": DEAL["properties"],
        "notes": {"id": {"type": "integer"}, "text": {"type": ["null", "string"]}},
        "tags": {"name": {"type": "string"}},
        "extras": {"url": {"type": "string", "const": "https://crm"}},
    }
    assert out.records("notes") == [{"id": 30, "text": None}]
    assert out.records("companies") == [{"id": 7, "founded": "1999-12-31"}]


def test_the_page_shows_each_source_as_users_write_it():
    shown = "\n".join(BLOCKS)
    for name in ("json_file", "inferred", "openapi", "typed"):
        assert f"schema=burler.{name}(" in shown or f', burler.{name}("' in shown, name
        assert f"`burler.{name}(" in PAGE, name
    assert "tap.schema(" in shown and "schema=burler." in shown and "@tap.schema(" in shown
    assert not re.search(r"import .*(infer|openapi|typed)_?source|from burler\.schema\.\w+ import", shown)
    assert "burler.wsdl" in PAGE


def test_what_stands_beside_an_expression_is_its_value(scope):
    seen = 0
    for block in BLOCKS:
        lines = block.splitlines()
        for node in ast.parse(block).body:
            comment = lines[node.end_lineno] if node.end_lineno < len(lines) else ""
            if isinstance(node, ast.Expr) and comment.startswith(("# {", "# [")):
                value = eval(compile(ast.Expression(node.value), "docs/schemas.md", "eval"), scope)
                assert value == ast.literal_eval(comment.removeprefix("# "))
                seen += 1
    assert seen == 4


def test_the_sources_of_an_api(scope, tmp_path):
    config = {"base_url": tmp_path.as_uri()}
    for name in ("contact", "contacts", "remote"):
        assert scope[name].load(where="docs", config=config) == CONTACT


# ---- docs/without-the-framework.md: errors of wrong arguments ------------------------------------------

TEXT = (DOCS / "without-the-framework.md").read_text(encoding="utf-8")
CALLS = {
    "`format_time` of": [
        (ValueError, lambda: format_time(dt.datetime(2024, 1, 1))),  # noqa: DTZ001
        (OverflowError, lambda: format_time(dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-1))))),
    ],
    "`to_map` of": [
        (KeyError, lambda: to_map([{}])),
        (TypeError, lambda: to_map([{"breadcrumb": "x", "metadata": {}}])),
        (TypeError, lambda: to_map([5])),
    ],
    "`Inference(...)`, `infer_schema` with": [
        (ValueError, lambda: Inference(formats=["email"])),
        (ValueError, lambda: infer_schema([{}], map_keys=0)),
        (ValueError, lambda: Inference().merge(Inference(map_keys=5))),
    ],
    "`openapi` with": [
        (ValueError, lambda: burler.openapi("x", "X", recursive="no")),
        (ValueError, lambda: burler.openapi("x", "X", rows="a.")),
    ],
    "`typed` of": [(TypeError, lambda: typed(5))],
}


@pytest.mark.parametrize("row", CALLS)
def test_wrong_arguments_raise_what_the_page_says(row):
    [said] = re.findall(rf"^\| {re.escape(row)}.*\| (.*?) \|$", TEXT, re.MULTILINE)
    for kind, call in CALLS[row]:
        assert f"`{kind.__name__}`" in said
        with pytest.raises(kind) as caught:
            call()
        assert not isinstance(caught.value, burler.BurlerError)


def test_the_same_in_a_catalog_is_of_the_family():
    wire = {"streams": [{"tap_stream_id": "a", "schema": {}, "metadata": [{}]}]}
    with pytest.raises(burler.BurlerError):
        catalog_from_wire(wire)


def test_every_name_has_its_signature():
    """Each package's part ends with a block that the docs are made of: every public name, with its parameters."""
    import burler.config
    import burler.schema
    import burler.singer

    for package in (burler.singer, burler.config, burler.schema):
        found = re.findall(rf"^\.\. (?:autofunction|autoclass|data):: {package.__name__}\.(\w+)", TEXT, re.MULTILINE)
        assert sorted(found) == sorted(package.__all__)
