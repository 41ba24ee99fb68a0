"""--about: one answer from the declarations, as data, text, JSON and Markdown."""

from __future__ import annotations

import json
from dataclasses import fields

import jsonschema
import pytest

import burler
from burler.cli.about import about, config_rows, render
from burler.cli.delivery import delivery
from burler.config import parse_spec
from burler.errors import UsageError
from burler.settings import Settings, markdown_table

SECRET = "hunter2-s3cr3t"
SPEC = {
    "type": "object",
    "required": ["url", "token"],
    "properties": {
        "url": {"type": "string", "description": "Where | it is,\nin full."},
        "token": {"type": "string", "default": SECRET, "description": "As the API gives it."},
        "plain": {"type": "string", "secret": True, "examples": [SECRET]},
        "n": {"type": ["integer", "null"], "default": 3},
        "mode": {"enum": ["a", "b"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "db": {"type": "object", "required": ["host"], "properties": {"host": {"type": "string"}}},
        "accounts": {"type": "array", "items": {"$ref": "#/$defs/account"}},
        "page_max_rows": {"type": "integer", "description": "The tap's own word."},
    },
    "$defs": {
        "account": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "pin": {"secret": True, "default": SECRET}},
        }
    },
}
ANY = {"type": "object", "properties": {"id": {}, "at": {}}}


def make(spec=SPEC, **streams):
    tap = burler.tap("tap-crm", config_spec=spec, version="1.2", description="The CRM.")
    for name, options in streams.items():

        @tap.sync(name, **options)
        def rows(config):
            yield {}

        tap.schema(name, ANY)
    return tap


def test_the_data():
    said = about(make(contacts={"key_properties": ["id"], "replication_key": "at"}, all={}))
    assert {key: said[key] for key in ("name", "version", "description", "sdk_version")} == {
        "name": "tap-crm", "version": "1.2", "description": "The CRM.", "sdk_version": burler.__version__,
    }  # fmt: skip
    assert said["capabilities"] == ["catalog", "properties", "discover", "state", "about", "test", "activate-version"]
    first, second = said["streams"]
    assert {key: first[key] for key in first if key != "delivery"} == {
        "name": "contacts", "replication_method": "INCREMENTAL", "key_properties": ["id"], "replication_key": "at",
    }  # fmt: skip
    assert (second["replication_method"], second["replication_key"]) == ("FULL_TABLE", None)
    assert all(len(stream["delivery"]) == 3 for stream in said["streams"])


def test_settings_are_one_valid_schema_of_the_whole_config():
    schema = about(make())["settings"]
    jsonschema.Draft4Validator.check_schema(schema)
    check = jsonschema.Draft4Validator(schema)
    assert check.is_valid({"url": "x", "token": "y", "start_date": "2024-01-01T00:00:00Z", "max_file_bytes": 5})
    assert not check.is_valid({"url": "x"})
    assert not check.is_valid({"url": "x", "token": "y", "currently_syncing": 5})
    assert {item.name for item in fields(Settings)} <= set(schema["properties"])
    assert schema["properties"]["page_max_rows"] == SPEC["properties"]["page_max_rows"]
    assert schema["properties"]["page_max_age_seconds"]["default"] == 1.0


def test_capabilities_are_honest():
    tap = make(
        a={"replication_method": "LOG_BASED", "replication_key": "at"}, b={"versions": False, "key_properties": ["id"]}
    )
    found = about(tap)["capabilities"]
    assert "log-based" in found and "activate-version" not in found


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_no_secret_in_any_form(form):
    shown = render(about(make(contacts={})), form)
    assert SECRET not in shown
    assert "token" in shown and "plain" in shown and "accounts" in shown


def test_keys_as_rows():
    rows = {row["key"]: row for row in config_rows(about(make())["settings"], "tap-crm")}
    assert rows["url"] == {
        "key": "url", "type": "string", "required": True, "default": "", "secret": False,
        "description": "Where | it is,\nin full.", "variable": "TAP_CRM_URL",
    }  # fmt: skip
    assert (rows["token"]["secret"], rows["token"]["default"], rows["token"]["required"]) == (True, "", True)
    assert (rows["n"]["type"], rows["n"]["default"]) == ("integer or null", "3")
    assert (rows["mode"]["type"], rows["tags"]["type"]) == ('"a" or "b"', "list of string")
    assert (rows["db.host"]["required"], rows["db.host"]["variable"]) == (True, "TAP_CRM_DB__HOST")
    assert (rows["accounts.*.pin"]["secret"], rows["accounts.*.pin"]["variable"]) == (True, "")
    assert rows["plain"]["secret"]


RECURSIVE = {
    "$schema": "http://json-schema.org/draft-04/schema#",
    "$ref": "#/$defs/a",
    "$defs": {"a": {"properties": {"a": {}, "again": {"$ref": "#"}}}},
}


@pytest.mark.parametrize(
    "spec", [None, ["a"], {"a": 1, "db": {"password": SECRET}}, lambda config: None, RECURSIVE], ids=str
)
def test_every_form_of_a_config_spec_renders(spec):
    said = about(make(spec))
    for form in ("text", "json", "markdown"):
        shown = render(said, form)
        assert SECRET not in shown and shown.endswith("\n")
    assert json.loads(render(said, "json")) == json.loads(json.dumps(said))
    assert ("a" in said["settings"]["properties"]) == (spec is not None and not callable(spec))


def test_a_form_may_be_given():
    form = parse_spec(["x"], place="p", folder=None)
    assert about(make(None), form=form)["settings"]["required"] == ["x"]


def test_the_text():
    lines = render(about(make(contacts={"key_properties": ["id"], "replication_key": "at"})), "text").splitlines()
    assert lines[:2] == [f"tap-crm 1.2 (burler {burler.__version__})", "The CRM."]
    assert "  url                      string, required  [TAP_CRM_URL]" in lines
    assert "  token                    string, required, secret  [TAP_CRM_TOKEN]" in lines
    assert "  contacts: INCREMENTAL by at, keys: id" in lines
    assert max(map(len, lines)) <= 120
    bare = render(about(burler.tap("tap-bare")), "text")
    assert "tap-bare without a version" in bare and "the tap names no keys" in bare and "None" not in bare


def test_the_markdown():
    shown = render(about(make(contacts={"key_properties": ["id"]})), "markdown")
    assert "| `url` | string | yes |  | Where \\| it is, in full. | `TAP_CRM_URL` |" in shown
    assert "| `token` | string | yes |  | As the API gives it. (secret) | `TAP_CRM_TOKEN` |" in shown
    assert "| `contacts` | FULL_TABLE | `id` | none |" in shown
    assert markdown_table() in shown and "### `contacts`\n\n- Every row" in shown
    for block in shown.split("\n\n"):
        if block.startswith("|"):
            bars = {line.replace("\\|", "").count("|") for line in block.strip().splitlines()}
            assert len(bars) == 1, block


def test_another_form_is_refused():
    with pytest.raises(UsageError, match=r"no form 'yaml'\. Known: text, json, markdown"):
        render(about(make()), "yaml")


# ---- delivery -------------------------------------------------------------------------------------


def promises(**options):
    return delivery(make(s=options).seal()["s"])


@pytest.mark.parametrize(
    ("options", "twice", "state"),
    [
        (
            {},
            "it has no key, so a target can't tell them from new ones. Rows carry a `version`",
            "STATE comes at the end of the stream, and when it is stopped or fails; it holds no bookmark",
        ),
        ({"key_properties": "id", "versions": False}, "rows that are gone from the source stay in the target", ""),
        (
            {"key_properties": ["id"], "replication_key": "at"},
            "rows whose `at` equals the bookmark may come again, since a run resumes at the bookmark, not behind it, "
            "unless the function goes by a position of its own in `stream.state`; a target tells them by `id`.",
            "the bookmark moves when the stream is complete; a run that is stopped before leaves it where it began.",
        ),
        (
            {"replication_key": "at", "order": "asc"},
            "it has no key",
            "the bookmark is the greatest value out, also when the run is stopped, since rows rise by it (checked).",
        ),
        (
            {"replication_key": "at", "bookmark_strategy": "every_n(1000)"},
            "rows since the last STATE may come again",
            "STATE comes after every 1,000 rows at the most often, and at the end; the bookmark is the greatest",
        ),
        (
            {"replication_key": "at", "bookmark_strategy": "every_n(1000)", "order": "none"},
            "",
            "leaves it where it began, and only `stream.state` is saved on the way.",
        ),
    ],
)
def test_what_a_stream_promises(options, twice, state):
    lost, again, moves = promises(**options)
    assert lost.startswith("Every row that the function yields arrives at least once")
    assert ("`at` below the bookmark, or deletes, may not be seen" in lost) == ("replication_key" in options)
    assert twice in again and state in moves


def test_rows_that_a_post_transform_leaves_out_are_spoken_of():
    tap = make(s={})
    assert "post_transform" not in delivery(tap.seal()["s"])[0]
    tap = make(s={})
    tap.post_transform("s")(lambda record: record if record else None)
    assert "Rows for which the stream's post_transform gives None are left out." in delivery(tap.seal()["s"])[0]


def test_a_stream_beside_another_follows_it():
    tap = make(commits={"key_properties": ["id"], "replication_key": "at"})
    tap.stream("files", emitted_by="commits", key_properties=["id"])
    tap.schema("files", ANY)
    specs = tap.seal()
    _lost, again, moves = delivery(specs["files"], specs)
    assert "the rows of those of `commits` whose `at` equals the bookmark may come again" in again
    assert moves.startswith("Its rows come in the run of `commits`, and STATE moves with it.")
    assert delivery(specs["files"])  # without the others, too


def test_a_pattern_says_that_discovery_decides():
    tap = burler.tap("tap-found")
    tap.discover(lambda: {})
    tap.sync("*", order="asc")(lambda: [])
    text = render(about(tap), "text")
    assert "*: as discovered, keys: as discovered" in text
    assert "stands for every stream that discovery finds" in " ".join(text.split())
    assert "has no key" not in text and "holds no bookmark" not in text
    assert "| `*` | as discovered | as discovered | as discovered |" in render(about(tap), "markdown")


def test_a_substream_says_what_it_does_not_see():
    tap = burler.tap("tap-family")
    schema = {"properties": {"id": {}, "at": {}}}
    tap.stream("parents", replication_key="at", schema=schema).sync(lambda: [])
    tap.stream("parents_full", schema=schema).sync(lambda: [])
    tap.sync("children", parent="parents", schema=schema)(lambda parent: [])
    tap.sync("all_children", parent="parents_full", schema=schema)(lambda parent: [])
    said = {one["name"]: " ".join(one["delivery"]) for one in about(tap)["streams"]}
    assert "where its row of `parents` does not may not be seen" in said["children"]
    assert "be seen" not in said["all_children"]


_HUSH = "hunter2HUSH"


@pytest.mark.parametrize(
    "spec",
    [
        {"properties": {"token": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"type": "string", "default": _HUSH}}},
        {"properties": {"db": {"type": "object", "default": {"password": _HUSH}}}},
        {"properties": {"url": {"type": "string", "default": f"https://u:{_HUSH}@h/"}}},
        {"properties": {}, "anyOf": [{"properties": {"password": {"const": _HUSH}}}]},
        {"properties": {"tokens": {"type": "array", "items": {"default": _HUSH, "enum": [_HUSH]}}}},
        {"properties": {"x": {"allOf": [{"secret": True}], "default": _HUSH}}},
        {"properties": {}, "additionalProperties": {"secret": True, "default": _HUSH}},
    ],
)
def test_no_default_of_a_secret_is_shown_wherever_it_stands(spec):
    from burler.cli.about import settings_schema
    from burler.config.forms import parse_spec

    assert _HUSH not in json.dumps(settings_schema(parse_spec({"type": "object", **spec}, place="x", folder=None)))
