"""The report on fields that no schema knows: what it says, what it hides, and that its schema keeps them."""

from __future__ import annotations

import copy
import json
import logging
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tapprocess import ROOT, write_tap

import burler
from burler.testing import run_tap
from support.cli import burler as run_burler

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "address": {"type": ["null", "object"], "properties": {"city": {"type": "string"}}},
        "tags": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "string"}}}},
        "grid": {"type": "array", "items": {"type": "array", "items": {"properties": {"n": {"type": "integer"}}}}},
    },
}
ROWS: list[dict[str, Any]] = [
    {"id": 1, "nick": "Bob", "address": {"city": "x", "floor": 3}, "tags": [{"n": "a", "color": "red"}, {"n": "b"}]},
    {"id": 2, "nick": None, "seen": "2024-01-02T03:04:05Z", "grid": [[{"n": 1, "m": {"deep": [1.5]}}], []]},
    {"id": 3, "nick": "Eve", "address": {"city": "y", "floor": None}, "tags": []},
]


def tap_of(rows: list[dict[str, Any]], schema: dict[str, Any]) -> burler.Tap:
    tap = burler.tap("tap-t")
    tap.sync("contacts", key_properties="id", schema=schema)(lambda: copy.deepcopy(rows))
    return tap


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def merged(base: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Two JSON objects as one, at every depth."""
    out = dict(base)
    for name, value in part.items():
        out[name] = merged(out[name], value) if isinstance(out.get(name), dict) else value
    return out


def test_the_report_names_the_fields_with_counts_and_the_schema_that_keeps_them(caplog: pytest.LogCaptureFixture):
    run = run_tap(tap_of(ROWS, SCHEMA))
    assert not run.result.errors
    fields, schema = warnings(caplog)
    assert fields == (
        "stream 'contacts': fields that its schema does not know were dropped: nick (3 of 3 rows), address.floor (2 of "
        "3 rows), grid[][].m (1 time), seen (1 of 3 rows), tags[].color (1 time)"
    )
    head, _, text = schema.partition("): ")
    assert head == "stream 'contacts': merged into its schema, this keeps them (from samples"
    number = {"type": ["null", "array"], "items": {"type": "number"}}
    deep = {"type": ["null", "object"], "properties": {"deep": number}}
    assert json.loads(text) == {
        "properties": {
            "nick": {"type": ["null", "string"]},
            "seen": {"type": ["null", "string"], "format": "date-time"},
            "address": {"properties": {"floor": {"type": ["null", "integer"]}}},
            "tags": {"items": {"properties": {"color": {"type": ["null", "string"]}}}},
            "grid": {"items": {"items": {"properties": {"m": deep}}}},
        }
    }


def test_examples_are_shown_where_they_are_asked_for(caplog: pytest.LogCaptureFixture):
    run_tap(tap_of(ROWS, SCHEMA), config={"log_values": True})
    assert warnings(caplog)[0] == (
        "stream 'contacts': fields that its schema does not know were dropped: "
        'nick (3 of 3 rows, e.g. "Bob"), address.floor (2 of 3 rows, e.g. 3), '
        'grid[][].m (1 time, e.g. {"deep": [1.5]}), seen (1 of 3 rows, e.g. "2024-01-02T03:04:05Z"), '
        'tags[].color (1 time, e.g. "red")'
    )


def test_with_the_schema_that_is_shown_nothing_is_dropped(caplog: pytest.LogCaptureFixture):
    run_tap(tap_of(ROWS, SCHEMA))
    part = json.loads(warnings(caplog)[1].partition("): ")[2])
    caplog.clear()
    run = run_tap(tap_of(ROWS, merged(SCHEMA, part)))
    assert warnings(caplog) == []
    assert run.records("contacts") == ROWS


@pytest.mark.parametrize("how", ["deselected", "open", "known"])
def test_nothing_is_said_of_fields_that_are_kept_or_not_wanted(caplog: pytest.LogCaptureFixture, how: str):
    schema = merged(SCHEMA, {"additionalProperties": how == "open"})
    if how == "deselected":
        schema["properties"]["nick"] = {"type": ["null", "string"]}
    rows = [{"id": 1}] if how == "known" else [{"id": 1, "nick": "Bob"}]
    select = "contacts,!contacts.nick" if how == "deselected" else None
    run = run_tap(tap_of(rows, schema), select=select)
    assert not run.result.errors
    assert warnings(caplog) == []
    assert ("nick" in run.records("contacts")[0]) is (how == "open")


def said_of(caplog: pytest.LogCaptureFixture, *rows: dict[str, Any], **schema: Any) -> tuple[str, str]:
    """The two lines of a run: the fields, and the schema that would keep them."""
    caplog.clear()
    run_tap(tap_of(list(rows), {"properties": {"id": {}, **schema}}), {"log_values": True})
    fields, schema_line = warnings(caplog)
    return fields.partition(": fields that its schema does not know were dropped: ")[2], schema_line


def test_examples_are_short_and_keep_to_their_line(caplog: pytest.LogCaptureFixture):
    strange = "bad\nname\x85" + "n" * 500
    row = {"long": "x" * 500, "lines": "a\nCRITICAL b\x1b[2J", "wide": "\u4e16" * 60, strange: [{"k": "v" * 100}]}
    row |= {"bytes": b"ab", "great": Decimal("1e999"), "deep": {"b": {"c": {"d": 1}}}}
    fields, schema = said_of(caplog, {"id": 1, **row})
    assert fields.isprintable() and schema.isprintable()
    assert set(json.loads(schema.partition("): ")[2])["properties"]) == set(row)
    for part in fields.split("), "):
        name, _, example = part.partition(" (1 of 1 row, e.g. ")
        assert 0 < len(example.removesuffix(")")) <= 40
        assert len(name) <= 100
    assert "bad\\nname\\x85nn" in fields
    assert '"a\\nCRITICAL b\\u001b[2J"' in fields


def test_an_example_that_says_something_is_preferred(caplog: pytest.LogCaptureFixture):
    rows = [{"id": 1, "a": None, "b": None}, {"id": 2, "a": "", "b": None}, {"id": 3, "a": 0}]
    assert said_of(caplog, *rows)[0] == "a (3 of 3 rows, e.g. 0), b (2 of 3 rows, e.g. null)"


def test_many_fields_are_named_by_their_number(caplog: pytest.LogCaptureFixture):
    rows = [{"id": n, **{f"field_{i}": i for i in range(990) if n < 1200 - i}} for n in range(1200)]
    fields, schema = said_of(caplog, *rows)
    assert fields.startswith("field_0 (1,200 of 1,200 rows, e.g. 0), field_1 (")
    assert "field_19 (1,181" in fields
    assert fields.endswith(", and 970 more")
    head, _, text = schema.partition("): ")
    part = json.loads(text)
    assert 1500 < len(text) <= 2000, "as many as there is room for"
    assert list(part["properties"])[:20] == [f"field_{i}" for i in range(20)]
    count = len(part["properties"])
    assert head == (
        f"stream 'contacts': merged into its schema, this keeps {count} of the 990 fields (from samples; "
        "BURLER_LOG_LEVEL=DEBUG shows all"
    )


def test_a_long_schema_is_whole_in_the_debug_log(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.DEBUG, "burler"):
        run_tap(tap_of([{"id": 1, **{f"field_{i}": i for i in range(100)}}], {"properties": {"id": {}}}))
    [debug] = [
        one.getMessage() for one in caplog.records if one.levelname == "DEBUG" and "field_99" in one.getMessage()
    ]
    assert len(json.loads(debug.partition("): ")[2])["properties"]) == 100


def test_values_under_secret_names_and_secrets_of_the_config_do_not_show(tmp_path: Path):
    """A long secret may be cut off in an example; its beginning is hidden as well."""
    secret = "tok_" + "0123456789abcdef" * 30
    source = """
    import burler
    tap = burler.tap("tap-x", config_spec=["access_token"])

    @tap.sync("rows", key_properties="id")
    def rows(config):
        token = config["access_token"]
        yield {"id": 1, "echo": token, "url": "https://x/?t=" + token, "api_key": "their-own-key",
               "o": {"password": "hunter22", "t": token}}

    tap.schema("rows", {"properties": {"id": {"type": "integer"}}})
    """
    ended = run_burler("run", write_tap(tmp_path, source), "--log-values", cwd=tmp_path, TAP_X_ACCESS_TOKEN=secret)
    assert ended.code == 0, ended.stderr
    assert len(ended.lines("WARNING")) == 2
    assert "tok_0123" not in ended.stderr
    assert "their-own-key" not in ended.stderr
    assert "hunter22" not in ended.stderr
    assert 'api_key (1 of 1 row, e.g. "***")' in ended.stderr
    assert 'url (1 of 1 row, e.g. "https://x/?t=***")' in ended.stderr


def test_the_docs_show_what_is_said(caplog: pytest.LogCaptureFixture):
    page = (ROOT / "docs" / "unknown-fields.md").read_text(encoding="utf-8")
    scope: dict[str, Any] = {"__name__": "snippet"}
    first, second = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(first, "docs/unknown-fields.md", "exec"), scope)
    assert warnings(caplog) == re.findall(r"^    \S+Z WARNING (.*)$", page, re.MULTILINE)
    caplog.clear()
    exec(compile(second, "docs/unknown-fields.md", "exec"), scope)
    assert scope["out"].records("contacts")[0]["address"] == {"city": "Bern"}
    assert warnings(caplog)[0].endswith("dropped: address.floor (1 of 2 rows), tags[].color (1 time)")
