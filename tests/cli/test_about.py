"""--about: one answer from the declarations, as data, text, JSON and Markdown."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import jsonschema
import pytest

import burler
from burler.testing import canary
from support.cli import script

SECRET = canary("config")
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


def about(tap):
    """What a tap's own command says of it, as data."""
    ended = script(tap, "--about=json")
    assert (ended.code, ended.stderr) == (0, "")
    return json.loads(ended.stdout)


def shown(tap, form):
    ended = script(tap, f"--about={form}")
    assert (ended.code, ended.stderr) == (0, "")
    return ended.text


def delivery(tap):
    """What it promises of each stream."""
    return {one["name"]: one["delivery"] for one in about(tap)["streams"]}


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
    known = ["catalog", "properties", "discover", "state", "about", "test", "batch", "activate-version"]
    assert said["capabilities"] == known
    first, second = said["streams"]
    assert {key: first[key] for key in first if key != "delivery"} == {
        "name": "contacts", "replication_method": "INCREMENTAL", "key_properties": ["id"], "replication_key": "at",
    }  # fmt: skip
    assert (second["replication_method"], second["replication_key"]) == ("FULL_TABLE", None)
    assert all(len(stream["delivery"]) == 4 for stream in said["streams"])


def test_settings_are_one_valid_schema_of_the_whole_config():
    schema = about(make())["settings"]
    jsonschema.Draft4Validator.check_schema(schema)
    check = jsonschema.Draft4Validator(schema)
    assert check.is_valid({"url": "x", "token": "y", "start_date": "2024-01-01T00:00:00Z", "max_file_bytes": 5})
    assert not check.is_valid({"url": "x"})
    assert not check.is_valid({"url": "x", "token": "y", "currently_syncing": 5})
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
    said = shown(make(contacts={}), form)
    assert SECRET not in said
    assert "token" in said and "plain" in said and "accounts" in said


RECURSIVE = {
    "$schema": "http://json-schema.org/draft-04/schema#",
    "$ref": "#/$defs/a",
    "$defs": {"a": {"properties": {"a": {}, "again": {"$ref": "#"}}}},
}


@pytest.mark.parametrize(
    "spec",
    [None, ["a"], {"a": 1, "db": {"password": SECRET}}, lambda config: None, RECURSIVE],
    ids=["none", "list", "object", "function", "recursive schema"],
)
def test_every_form_of_a_config_spec_renders(spec):
    for form in ("text", "json", "markdown"):
        said = shown(make(spec), form)
        assert SECRET not in said and said.endswith("\n")
    assert ("a" in about(make(spec))["settings"]["properties"]) == (spec is not None and not callable(spec))


def test_the_text():
    lines = shown(make(contacts={"key_properties": ["id"], "replication_key": "at"}), "text").splitlines()
    assert lines[:2] == [f"tap-crm 1.2 (burler {burler.__version__})", "The CRM."]
    assert "  contacts: INCREMENTAL by at, keys: id" in lines
    told = dict(re.findall(r"^  ([\w.*]+)  +(\S.*)$", "\n".join(lines), re.MULTILINE))
    assert told["url"] == "string, required  [TAP_CRM_URL]"
    assert told["token"] == "string, required, secret  [TAP_CRM_TOKEN]"
    assert told["n"] == "integer or null, default 3  [TAP_CRM_N]"
    assert told["mode"] == '"a" or "b"  [TAP_CRM_MODE]'
    assert told["tags"] == "list of string  [TAP_CRM_TAGS]"
    assert told["db.host"] == "string, required  [TAP_CRM_DB__HOST]"
    assert told["accounts.*.pin"].endswith("secret") and "secret" in told["plain"]
    assert max(map(len, lines)) <= 120
    bare = shown(burler.tap("tap-bare"), "text")
    assert "tap-bare without a version" in bare and "the tap names no keys" in bare and "None" not in bare


def test_the_markdown():
    said = shown(make(contacts={"key_properties": ["id"]}), "markdown")
    assert "| `url` | string | yes |  | Where \\| it is, in full. | `TAP_CRM_URL` |" in said
    assert "| `token` | string | yes |  | As the API gives it. (secret) | `TAP_CRM_TOKEN` |" in said
    assert "| `contacts` | FULL_TABLE | `id` | none |" in said
    assert "| `page_max_rows` |" in said and "### `contacts`\n\n- Every row" in said
    for block in said.split("\n\n"):
        if block.startswith("|"):
            bars = {line.replace("\\|", "").count("|") for line in block.strip().splitlines()}
            assert len(bars) == 1, block


def test_another_form_is_refused():
    ended = script(make(), "--about=yaml")
    assert ended.code == 2 and "'yaml' is not one of 'text'" in ended.one_critical()


# ---- delivery -------------------------------------------------------------------------------------


def promises(**options):
    return delivery(make(s=options))["s"]


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
    lost, again, moves, _tail = promises(**options)
    assert lost.startswith("Every row that the function yields arrives at least once")
    assert ("`at` below the bookmark, or deletes, may not be seen" in lost) == ("replication_key" in options)
    assert twice in again and state in moves


class Flaky(Exception):
    """An error of a source."""


class Weekly:
    """A strategy of an author's own."""

    def is_due(self, since):
        return since.seconds > 604_800


KEYED = {"replication_key": "at", "key_properties": "id"}


@pytest.mark.parametrize(
    ("options", "item", "says"),
    [
        ({"bookmark_strategy": "every_seconds(30)"}, 2, "STATE comes every 30 seconds in which rows come at the most"),
        ({"bookmark_strategy": "every_seconds(1)"}, 2, "STATE comes every second in which rows come at the most often"),
        ({"bookmark_strategy": "on_page"}, 2, "STATE comes after each page that the function yields at the most often"),
        ({"bookmark_strategy": "on_page"}, 2, "the bookmark is the greatest value out, also when the run is stopped"),
        (
            {"bookmark_strategy": "manual"},
            2,
            "STATE comes where the function calls `stream.save_bookmark()`, and at the",
        ),
        ({"bookmark_strategy": "manual"}, 2, "; the bookmark is what the function saves, and moves nowhere else."),
        ({"bookmark_strategy": "manual"}, 0, "as long as its author saves no bookmark ahead of it: the author vouches"),
        (
            {"bookmark_strategy": Weekly()},
            2,
            "STATE comes when `Weekly` says so, and at the end; the bookmark moves when",
        ),
        ({"bookmark_strategy": Weekly()}, 2, "and only `stream.state` is saved on the way"),
        ({"order": "asc", "on_unsorted": "end_of_sync"}, 2, "(checked; where they don't, it moves at the end only)"),
        (
            {"order": "asc", "resume": "exclusive"},
            2,
            "is the greatest value that a greater one has followed, at the end",
        ),
        (
            {"order": "asc", "resume": "exclusive"},
            1,
            "; a run resumes behind the bookmark, so after a whole run none doe",
        ),
        ({"resume": "exclusive"}, 0, "with a `at` at or below the bookmark, or deletes, may not be seen"),
        ({"lookback": timedelta(days=2)}, 0, "with a `at` more than 2 days below the bookmark"),
        (
            {"lookback": timedelta(days=1, hours=1)},
            1,
            "those of the last 1 day and 3,600 seconds before it (lookback), in",
        ),
        ({"lookback": 0.5}, 1, "so do those of the last 0.5 seconds, days or units before it (lookback), in each run"),
        ({"signpost": True}, 1, "so do those that lie behind the time at which the last sync began (signpost)"),
        ({"signpost": True}, 2, "no bookmark passes the time at which the sync began"),
        (
            {"retry_sync_on": Flaky},
            1,
            "by `id`. After Flaky it is begun anew, up to 3 times: rows of a try that failed h",
        ),
        (
            {"retry_sync_on": (Flaky, OSError), "max_retries": 1},
            1,
            "After Flaky or OSError it is begun anew, once: rows",
        ),
        ({"on_bad_record": "skip"}, 0, "A row that does not fit its schema is left out, and told of."),
        (
            {"on_bad_record": "null"},
            0,
            "A value that does not fit its schema becomes null, and is told of; where it may",
        ),
    ],
)
def test_what_each_option_promises(options, item, says):
    said = promises(**KEYED, **options)
    assert says in said[item]
    assert says not in promises(**KEYED)[item]
    assert all(sentence.endswith(".") and ".." not in sentence and "  " not in sentence for sentence in said)


def test_nothing_is_promised_twice_or_for_nothing():
    said = " ".join(promises(**KEYED, retry_sync_on=Flaky, max_retries=0))
    assert "anew" not in said and "partition" not in said and "lookback" not in said and "signpost" not in said


def test_a_full_table_that_goes_on_says_where():
    lost, again, moves, _tail = promises(resumable_by="id", key_properties="id")
    assert (
        "What the source changes at or below the `id` at which an interrupted table stands is seen with the next"
        in lost
    )
    assert "goes on in the next run at the greatest `id` that is out, whose rows may come again." in again
    assert "Rows carry a `version`, the same one while a table goes on," in again
    assert (
        "while a table is interrupted it holds the greatest `id` that is out, since rows rise by it (checked)" in moves
    )
    bare = promises(resumable_by="id", versions=False)[1]
    assert "whose rows may come again, and rows that are gone from the source stay in the target." in bare
    assert "version" not in bare


def partitioned(order=None, **options):
    tap = make(s=options)
    tap.partitions("s", order=order)(lambda: [{"account": "a"}])
    return delivery(tap)["s"]


def test_partitions_say_whose_bookmark_it_is_and_what_a_failing_one_leaves():
    lost, _again, moves, failing, _tail = partitioned(**KEYED, workers=4)
    assert "ends its partition with an error" in lost
    assert "the bookmark moves when its partition is complete" in moves
    assert moves.endswith("; each partition has a bookmark and a `stream.state` of its own.")
    assert failing.startswith(
        "A partition that fails stops no other: its bookmark does not pass what is missing, the run"
    )
    assert "exit code 1" in failing and "Up to 4 partitions run at a time: their rows mix" in failing
    _lost, _again, moves, failing, _tail = partitioned("asc", **KEYED)
    assert "those that are finished collapse into the stream's, since partitions rise (checked)" in moves
    assert "at a time" not in failing
    _lost, again, moves, failing, _tail = partitioned()
    assert "or in which anything failed, it does not come" in again
    assert "bookmark" not in failing and moves.endswith("keeps in `stream.state`, which is each partition's own.")
    assert "After Flaky the partition is begun anew" in partitioned(**KEYED, retry_sync_on=Flaky)[1]


def test_a_line_of_streams_says_what_holds_what():
    tap = burler.tap("tap-family")
    options = {"schema": {"properties": {"id": {}, "at": {}}}, "replication_key": "at"}
    tap.stream("tickets", order="asc", retry_sync_on=OSError, **options).sync(lambda: [])
    tap.sync("comments", parent="tickets", rollup=True, retry_sync_on=Flaky, **options)(lambda parent: [])
    tap.sync("likes", parent="comments", schema=options["schema"])(lambda parent: [])
    tap.stream("full", schema=options["schema"]).sync(lambda: [])
    tap.sync("below", parent="full", schema=options["schema"])(lambda parent: [])
    said = delivery(tap)
    assert "a run begins where `comments` stands, if that is further back (rollup)" in said["tickets"][1]
    assert said["tickets"][-2] == "Its bookmark passes a row once what `comments` has for that row is out, too."
    lost, again, moves, failing, passes, _in_a_tail = said["comments"]
    assert "does not fit its schema ends this stream with an error" in lost
    assert "unless `tickets` is read again far enough back (rollup)" in lost
    assert "After Flaky the call for a row of `tickets` is begun anew" in again
    assert "After OSError `tickets` is begun anew" in again
    assert moves.endswith("; its own bookmark moves when all is out.")
    assert failing.startswith(
        "A call that fails for a row of `tickets` stops no other, and the run ends with exit code 1"
    )
    assert "no bookmark of the streams above passes that row, so the next run brings it again" in failing
    assert "`likes`" in passes
    assert said["below"][3].endswith("exit code 1: the next run reads all of it again.")
    assert len(said["full"]) == 4


def test_a_source_that_is_told_is_not_promised_too_much():
    tap = make(s={**KEYED, "replication_method": "LOG_BASED"})
    tap.acknowledge("s")(lambda bookmark: None)
    told = delivery(tap)["s"][-1]
    assert told.startswith(
        "The source is told how far it may forget once a STATE that moved the stream has left the tap."
    )
    assert "not that a target has stored it." in told
    assert told.endswith("With `acknowledge_state_file` it is told what that file confirms, and no more.")


def test_a_pattern_says_what_its_retries_bring():
    tap = burler.tap("tap-found")
    tap.discover(lambda: {})
    tap.sync("*", retry_sync_on=Flaky)(lambda: [])
    assert "After Flaky it is begun anew, up to 3 times" in delivery(tap)["*"][1]


def test_rows_that_a_post_transform_leaves_out_are_spoken_of():
    tap = make(s={})
    assert "post_transform" not in delivery(tap)["s"][0]
    tap = make(s={})
    tap.post_transform("s")(lambda record: record if record else None)
    assert "Rows for which the stream's post_transform gives None are left out." in delivery(tap)["s"][0]


def test_a_stream_beside_another_follows_it():
    tap = make(commits={"key_properties": ["id"], "replication_key": "at"})
    tap.stream("files", emitted_by="commits", key_properties=["id"])
    tap.schema("files", ANY)
    _lost, again, moves = delivery(tap)["files"]
    assert "the rows of those of `commits` whose `at` equals the bookmark may come again" in again
    assert moves.startswith("Its rows come in the run of `commits`, and STATE moves with it.")


def test_a_pattern_says_that_discovery_decides():
    tap = burler.tap("tap-found")
    tap.discover(lambda: {})
    tap.sync("*", order="asc")(lambda: [])
    text = shown(tap, "text")
    assert "*: as discovered, keys: as discovered" in text
    assert "stands for every stream that discovery finds" in " ".join(text.split())
    assert "has no key" not in text and "holds no bookmark" not in text
    assert "| `*` | as discovered | as discovered | as discovered |" in shown(tap, "markdown")


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
    tap = burler.tap("tap-crm", config_spec={"type": "object", **spec})
    for form in ("json", "text", "markdown"):
        assert _HUSH not in shown(tap, form)
