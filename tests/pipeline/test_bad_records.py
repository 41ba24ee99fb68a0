"""Rows that do not fit their schema: ``on_bad_record`` in its three forms, limits, NaN, constraints; with bookmarks."""

from __future__ import annotations

import datetime as dt
import json
import logging
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

import burler
from burler.errors import BadRecordError
from burler.testing import run_tap

UTC = dt.UTC
ID, AT = {"type": "integer"}, {"type": "string", "format": "date-time"}
SCHEMA = {
    "type": "object",
    "properties": {
        "id": ID,
        "at": AT,
        "n": {"type": ["null", "number"]},
        "must": {"type": "string"},
        "o": {
            "type": ["null", "object"],
            "properties": {"p": {"type": "integer"}, "q": {"type": ["null", "integer"]}},
        },
        "l": {
            "type": ["null", "array"],
            "items": {"type": "object", "properties": {"q": {"type": ["null", "integer"]}}},
        },
        "ns": {"type": ["null", "array"], "items": {"type": "integer"}},
        "any": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
    },
}


def at(number):
    return f"2024-01-01T00:{number // 60:02}:{number % 60:02}Z"


def good(number, **more):
    return {"id": number, "at": at(number), **more}


def tap_of(rows, *, schema=SCHEMA, as_bytes=False, **options):
    """A tap of one stream; ``rows`` is a list of rows, or of pages (lists)."""
    tap = burler.tap("tap-bad")
    options = {"key_properties": "id", "schema": schema, **options}

    @tap.sync("rows", **options)
    def rows_of():
        yield from [json.dumps(rows).encode()] if as_bytes else rows

    return tap


INCREMENTAL = {"replication_key": "at", "order": "asc", "bookmark_strategy": "every_n(2)"}


def ids(out):
    return [row["id"] for row in out.records("rows")]


def error_of(out):
    assert set(out.result.errors) == {"rows"} and out.result.exit_code == 1
    error = out.result.errors["rows"]
    assert isinstance(error, BadRecordError)
    return str(error)


def warnings_of(caplog, *words):
    told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    return [text for text in told if all(word in text for word in words)]


# ---- error ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_bytes", [False, True], ids=["rows", "bytes"])
@pytest.mark.parametrize("place", [0, 5, 40])
def test_error_ends_the_stream_behind_the_rows_before_it(place, as_bytes):
    rows = [good(i) for i in range(41)]
    rows[place] = good(place, n="x")
    out = run_tap(tap_of(rows, as_bytes=as_bytes))
    assert ids(out) == list(range(place))
    text = error_of(out)
    assert f"row id={place}: field 'n' is a string; the schema wants number" in text and "stream 'rows'" in text


def test_the_bookmark_covers_what_is_out_and_no_more():
    rows = [good(i) for i in range(6)]
    rows[4] = good(4, o={"p": "x"})
    out = run_tap(tap_of(rows, **INCREMENTAL))
    assert ids(out) == [0, 1, 2, 3]
    assert "'o.p'" in error_of(out)
    assert out.states[-1]["bookmarks"]["rows"]["at"] == at(3)
    # The next run begins there, and stops at the same row.
    again = run_tap(tap_of(rows[3:], **INCREMENTAL), state=out.states[-1])
    assert ids(again) == [3] and again.states[-1]["bookmarks"]["rows"]["at"] == at(3)


def test_the_first_row_moves_no_bookmark():
    out = run_tap(tap_of([good(0, n="x"), good(1)], **INCREMENTAL))
    assert ids(out) == [] and "row id=0" in error_of(out)
    assert all("at" not in state.get("bookmarks", {}).get("rows", {}) for state in out.states)


@pytest.mark.parametrize("as_bytes", [False, True], ids=["rows", "bytes"])
@pytest.mark.parametrize(
    ("bad", "path", "found", "wanted"),
    [
        ({"n": "x"}, "n", "a string", "number"),
        ({"must": True}, "must", "a boolean", "string"),
        ({"must": None}, "must", "None", "string"),
        ({"at": "2024-01-01"}, "at", "text that is no date-time", "with a T and a zone"),
        ({"o": {"p": "x"}}, "o.p", "a string", "integer"),
        ({"o": [1]}, "o", "list", "object"),
        ({"l": [{"q": 1}, {"q": "x"}]}, "l[1].q", "a string", "integer"),
        ({"l": [{"q": 1}, None]}, "l[1]", "None", "object"),
        ({"ns": [1, 2, "x"]}, "ns[2]", "a string", "integer"),
        ({"any": "x"}, "any", "a string", "integer or array"),
        ({"any": [1, "x"]}, "any[1]", "a string", "integer"),
        ({"id": None}, "id", "None", "integer"),
    ],
)
def test_the_error_says_where_and_what(bad, path, found, wanted, as_bytes):
    out = run_tap(tap_of([good(0), {**good(7), **bad}, good(8)], as_bytes=as_bytes))
    text = error_of(out)
    assert len(out.records("rows")) == 1
    assert f"field '{path}'" in text and found in text and wanted in text and "stream 'rows'" in text
    assert f"row id={bad.get('id', 7)}" in text
    assert len(text.splitlines()) <= 3
    assert ("key_properties that every row has" if path == "id" else "Mend the value") in text


def test_a_missing_key_or_required_field_says_so():
    for row, schema in [({"at": at(1)}, SCHEMA), (good(1), {**SCHEMA, "required": ["must"]})]:
        for policy in ("error", "null"):
            out = run_tap(tap_of([good(0, must="x"), row], schema=schema, on_bad_record=policy))
            assert "is missing" in error_of(out) and ids(out) == [0]


@pytest.mark.parametrize("as_bytes", [False, True], ids=["rows", "bytes"])
@pytest.mark.parametrize("policy", ["error", "skip", "null"])
def test_the_setting_log_values_shows_the_value(policy, as_bytes, caplog):
    tap = tap_of([good(0), good(7, n="x-4711")], as_bytes=as_bytes, on_bad_record=policy)
    for config, shown in ({}, False), ({"log_values": True}, True), ({"log_values": "false"}, False):
        caplog.clear()
        out = run_tap(tap, config=config)
        text = caplog.text + "".join(map(str, out.result.errors.values()))
        assert ("field 'n' is str 'x-4711'" in text) == ("x-4711" in text) == shown
        assert ("row id=7: field 'n' is a string; the" in text) != shown


def test_a_long_value_is_shown_by_its_beginning(values_in_logs):
    out = run_tap(tap_of([good(0, n="x" * 100_000)]))
    assert len(error_of(out)) < 500
    for value in (10**5000, {"x": "y" * 10**6}, ["é" * 10**6]):
        assert len(error_of(run_tap(tap_of([good(0, n=value)])))) < 500


def test_other_streams_go_on():
    tap = tap_of([good(0, n="x")])

    @tap.sync("others", schema={"properties": {"id": ID}})
    def others():
        yield {"id": 1}

    out = run_tap(tap)
    assert out.records("others") == [{"id": 1}] and "row id=0" in error_of(out)


# ---- skip -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_bytes", [False, True], ids=["rows", "bytes"])
def test_skip_leaves_rows_out_and_tells_of_them(caplog, as_bytes):
    rows = [good(i, **({"n": "x"} if i % 10 == 3 else {})) for i in range(100)]
    rows[50] = good(50, l=[{"q": "y"}])
    out = run_tap(tap_of(rows, on_bad_record="skip", as_bytes=as_bytes))
    assert out.result.exit_code == 0 and not out.result.errors
    assert ids(out) == [i for i in range(100) if i % 10 != 3 and i != 50]
    told = warnings_of(caplog, "left out (on_bad_record)")
    assert 1 <= len(told) <= 10
    assert "row id=3:" in told[0] and "field 'n' is a string;" in told[0]
    (summary,) = warnings_of(caplog, "11 rows were left out")
    assert "n (10)" in summary and "l[].q (1)" in summary and "'rows'" in summary


def test_skip_lets_the_bookmark_go_on():
    rows = [good(i) for i in range(7)]
    rows[3], rows[6] = good(3, n="x"), good(6, n="y")
    out = run_tap(tap_of(rows, on_bad_record="skip", **INCREMENTAL))
    assert ids(out) == [0, 1, 2, 4, 5]
    assert out.states[-1]["bookmarks"]["rows"]["at"] in (at(5), at(6))
    seen = [state["bookmarks"]["rows"]["at"] for state in out.states if "rows" in state.get("bookmarks", {})]
    assert seen == sorted(seen)


def test_a_row_whose_replication_key_is_broken_is_skipped_like_any_other(caplog):
    rows = [good(0), {"id": 1, "at": "yesterday"}, good(2)]
    out = run_tap(tap_of(rows, on_bad_record="skip", **INCREMENTAL))
    assert ids(out) == [0, 2] and out.states[-1]["bookmarks"]["rows"]["at"] == at(2)
    assert len(warnings_of(caplog, "row id=1:", "'at'")) == 1


def test_skipped_rows_count_for_no_row_of_the_run(caplog):
    caplog.set_level(logging.INFO)
    out = run_tap(tap_of([good(0), good(1, n="x")], on_bad_record="skip"))
    assert out.result.rows == {"rows": 1}
    (counter,) = [r.getMessage() for r in caplog.records if "record_count" in r.getMessage()]
    assert '"value": 1' in counter or '"value":1' in counter


@pytest.mark.parametrize("as_bytes", [False, True], ids=["rows", "bytes"])
@pytest.mark.parametrize("policy", ["skip", "null"])
@pytest.mark.parametrize("most", [1, 3, 20])
def test_more_bad_rows_than_allowed_end_the_stream(policy, most, as_bytes):
    rows = [good(i, **({"n": "x"} if i % 2 else {})) for i in range(60)]
    out = run_tap(tap_of(rows, on_bad_record=policy, as_bytes=as_bytes), {"max_bad_records": most})
    text = error_of(out)
    last = 2 * most + 1  # the row that is one too many
    assert f"row id={last}" in text and "max_bad_records" in text and str(most) in text
    assert ids(out) == [i for i in range(last) if policy == "null" or i % 2 == 0]


def test_as_many_bad_rows_as_allowed_pass():
    rows = [good(i, **({"n": "x"} if i < 3 else {})) for i in range(6)]
    out = run_tap(tap_of(rows, on_bad_record="skip"), {"max_bad_records": 3})
    assert not out.result.errors and ids(out) == [3, 4, 5]


def test_the_limit_counts_over_pages():
    pages = [[good(i), good(i + 1, n="x")] for i in range(0, 20, 2)]
    out = run_tap(tap_of(pages, on_bad_record="skip"), {"max_bad_records": 4})
    assert "row id=9:" in error_of(out) and ids(out) == [0, 2, 4, 6, 8]


def test_all_rows_skipped_is_no_error_below_the_limit():
    out = run_tap(tap_of([good(i, n="x") for i in range(50)], on_bad_record="skip"))
    assert ids(out) == [] and not out.result.errors
    assert "SCHEMA" in out.types


# ---- null -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_bytes", [False, True], ids=["rows", "bytes"])
@pytest.mark.parametrize(
    ("bad", "made", "path"),
    [
        ({"n": "x"}, {"n": None}, "n"),
        ({"o": {"p": 1, "q": "x"}}, {"o": {"p": 1, "q": None}}, "o.q"),
        ({"o": {"p": "x", "q": 1}}, {"o": None}, "o.p"),  # p may not be null, the object around it may
        ({"o": [1]}, {"o": None}, "o"),
        ({"l": [{"q": 1}, {"q": "x"}]}, {"l": [{"q": 1}, {"q": None}]}, "l[1].q"),
        ({"l": [{"q": 1}, None]}, {"l": None}, "l[1]"),
        ({"l": {"q": 1}}, {"l": None}, "l"),
        ({"ns": [1, "x"]}, {"ns": None}, "ns[1]"),
        ({"any": "x"}, {"any": None}, "any"),
        ({"n": "x", "o": {"q": "y"}}, {"n": None, "o": {"q": None}}, "n"),
    ],
)
def test_null_takes_the_place_of_the_field_or_of_what_is_around_it(caplog, bad, made, path, as_bytes):
    out = run_tap(tap_of([good(0, n=1.5), good(1, **bad), good(2)], on_bad_record="null", as_bytes=as_bytes))
    assert not out.result.errors
    assert out.records("rows") == [good(0, n=1.5), good(1, **made), good(2)]
    (told,) = warnings_of(caplog, "set to null (on_bad_record)")
    assert "row id=1:" in told and f"field '{path}'" in told
    (summary,) = warnings_of(caplog, "fields of 1 row were set to null")
    assert path.replace("[1]", "[]") + " (1)" in summary


@pytest.mark.parametrize("bad", [{"id": "x"}, {"id": None}, {"at": "x"}, {"must": 1.5}], ids=str)
def test_keys_and_fields_that_may_not_be_null_stay_errors(bad):
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"]}}
    for name, node in (("id", ID), ("at", AT)):
        schema["properties"][name] = {**node, "type": ["null", node["type"]]} if name == "at" else node
    out = run_tap(tap_of([good(0), {**good(1), **bad}], schema=schema, on_bad_record="null", **INCREMENTAL))
    assert ids(out) == [0]
    assert f"field '{next(iter(bad))}'" in error_of(out)


def test_a_nullable_key_is_not_made_null_either():
    schema = {"properties": {"id": {"type": ["null", "integer"]}, "at": AT}}
    out = run_tap(tap_of([good(0), {**good(1), "id": "x"}], schema=schema, on_bad_record="null"))
    assert ids(out) == [0] and "field 'id'" in error_of(out)


def test_a_row_with_several_bad_fields_counts_once():
    rows = [good(i, n="x", o={"q": "y"}, ns="z") for i in range(3)]
    out = run_tap(tap_of(rows, on_bad_record="null"), {"max_bad_records": 3})
    assert not out.result.errors
    assert out.records("rows") == [good(i, n=None, o={"q": None}, ns=None) for i in range(3)]


def test_null_keeps_the_bookmark_going():
    rows = [good(i, **({"n": "x"} if i % 2 else {"n": 1})) for i in range(6)]
    out = run_tap(tap_of(rows, on_bad_record="null", **INCREMENTAL))
    assert ids(out) == list(range(6)) and out.states[-1]["bookmarks"]["rows"]["at"] == at(5)


def test_unknown_fields_of_skipped_rows_are_counted_at_the_most_once(caplog):
    rows = [good(0, new=1), good(1, n="x", new=1), good(2, o={"new": 1})]
    for policy in ("skip", "null"):
        caplog.clear()
        out = run_tap(tap_of(rows, on_bad_record=policy))
        assert not out.result.errors
        assert warnings_of(caplog, "new")


# ---- which policy counts --------------------------------------------------------------------------


def test_the_operator_comes_before_the_author():
    rows = [good(0), good(1, n="x"), good(2)]
    for option, setting, wanted in [
        (None, None, "error"),
        ("skip", None, "skip"),
        ("null", None, "null"),
        (None, "skip", "skip"),
        ("skip", "error", "error"),
        ("error", "null", "null"),
        ("null", "skip", "skip"),
    ]:
        options = {} if option is None else {"on_bad_record": option}
        out = run_tap(tap_of(rows, **options), {} if setting is None else {"on_bad_record": setting})
        assert ids(out) == {"error": [0], "skip": [0, 2], "null": [0, 1, 2]}[wanted], (option, setting)
        assert bool(out.result.errors) == (wanted == "error")


@pytest.mark.parametrize(
    "config",
    [{"on_bad_record": "ignore"}, {"on_nan": "skip"}, {"max_bad_records": "many"}, {"check_constraints": "maybe"}],
    ids=str,
)
def test_settings_that_are_none_are_refused_before_anything_runs(config):
    with pytest.raises(burler.BurlerError, match=next(iter(config))):
        run_tap(tap_of([good(0)]), config)


def test_an_option_that_is_none_is_refused_where_it_stands():
    with pytest.raises(burler.BurlerError, match="on_bad_record 'skp'"):
        tap_of([], on_bad_record="skp")


def test_each_stream_has_its_own_policy_and_its_own_count():
    tap = burler.tap("tap-two")
    for name, policy in (("a", "skip"), ("b", "null"), ("c", "error")):

        @tap.sync(name, schema=SCHEMA, on_bad_record=policy)
        def rows():
            yield from [good(i, n="x") for i in range(3)]

    out = run_tap(tap, {"max_bad_records": 3})
    assert [len(out.records(name)) for name in "abc"] == [0, 3, 0]
    assert set(out.result.errors) == {"c"}


# ---- NaN and constraints --------------------------------------------------------------------------


def test_nan_is_an_error_or_null_on_request():
    for number in (float("nan"), float("-inf"), Decimal("NaN")):
        rows = [good(0, n=1.5), good(1, n=number), good(2)]
        assert "field 'n'" in error_of(run_tap(tap_of(rows)))
        out = run_tap(tap_of(rows), {"on_nan": "null"})
        assert out.records("rows") == [good(0, n=1.5), good(1, n=None), good(2)]
        assert ids(run_tap(tap_of(rows, on_bad_record="skip"))) == [0, 2]


def test_nan_where_null_may_not_be_is_an_error_still():
    rows = [good(0), good(1, o={"p": float("nan")})]
    assert "'o.p'" in error_of(run_tap(tap_of(rows), {"on_nan": "null"}))
    out = run_tap(tap_of(rows), {"on_nan": "null", "on_bad_record": "null"})
    assert out.records("rows")[1] == good(1, o=None)


def test_constraints_are_held_and_can_be_switched_off(caplog):
    schema = {"properties": {"id": ID, "at": AT, "level": {"type": ["null", "string"], "enum": ["low", "high", None]}}}
    rows = [good(0, level="low"), good(1, level="middle"), good(2, level=None)]
    text = error_of(run_tap(tap_of(rows, schema=schema)))
    assert "field 'level'" in text and "enum 'low', 'high', None" in text and "check_constraints" in text
    assert ids(run_tap(tap_of(rows, schema=schema, on_bad_record="skip"))) == [0, 2]
    nulled = run_tap(tap_of(rows, schema=schema, on_bad_record="null"))
    assert [row["level"] for row in nulled.records("rows")] == ["low", None, None]
    for config, options in (({"check_constraints": False}, {}), ({}, {"check_constraints": False})):
        assert run_tap(tap_of(rows, schema=schema, **options), config).records("rows") == rows
    both = run_tap(tap_of(rows, schema=schema, check_constraints=False), {"check_constraints": True})
    assert "field 'level'" in error_of(both)


def test_null_is_no_way_out_where_the_enum_does_not_know_it():
    schema = {"properties": {"id": ID, "at": AT, "level": {"type": ["null", "string"], "enum": ["low"]}}}
    assert "field 'level'" in error_of(run_tap(tap_of([good(0, level="x")], schema=schema, on_bad_record="null")))


# ---- hooks and bookmark functions -----------------------------------------------------------------


def test_hooks_see_only_rows_that_fit():
    tap = tap_of([good(0, n=1), good(1, n="x"), good(2, n=3)], on_bad_record="skip")
    seen = []

    @tap.post_transform("rows")
    def double(record):
        seen.append(record["id"])
        return {**record, "n": record["n"] * 2}

    out = run_tap(tap)
    assert seen == [0, 2] and [row["n"] for row in out.records("rows")] == [2, 6]


@pytest.mark.parametrize("policy", ["error", "skip", "null"])
def test_what_a_hook_breaks_is_a_bad_row_too(policy):
    tap = tap_of([good(i, n=i) for i in range(4)], on_bad_record=policy)

    @tap.post_transform("rows")
    def spoil(record):
        return {**record, "n": "x"} if record["id"] == 2 else record

    out = run_tap(tap)
    assert ids(out) == {"error": [0, 1], "skip": [0, 1, 3], "null": [0, 1, 2, 3]}[policy]
    assert bool(out.result.errors) == (policy == "error")


def test_a_bookmark_function_is_asked_for_rows_that_are_out():
    tap = tap_of([good(i, **({"n": "x"} if i in (1, 4) else {})) for i in range(5)], on_bad_record="skip")
    asked = []

    @tap.bookmark("rows")
    def position(record):
        asked.append(record["id"])
        return record["at"]

    out = run_tap(tap)
    assert asked == [0, 2, 3] == ids(out)


# ---- as a process ---------------------------------------------------------------------------------

PROCESS = """
import burler

tap = burler.tap("tap-bad")


PROPERTIES = {{
    "id": {{"type": "integer"}},
    "at": {{"type": "string", "format": "date-time"}},
    "n": {{"type": ["null", "number"]}},
}}


@tap.sync("rows", key_properties="id", replication_key="at", order="asc", schema={{"properties": PROPERTIES}}{more})
def rows():
    for i in range(5):
        yield {{"id": i, "at": f"2024-01-01T00:00:0{{i}}Z", "n": "x\\u2028y" if i == 3 else i}}
"""


@pytest.mark.parametrize(
    ("more", "code", "rows", "bookmark", "told"),
    [
        ("", 1, [0, 1, 2], at(2), "row id=3: field 'n' is"),
        (', on_bad_record="skip"', 0, [0, 1, 2, 4], at(4), "1 row was left out"),
        (', on_bad_record="null"', 0, [0, 1, 2, 3, 4], at(4), "fields of 1 row were set to null"),
    ],
)
def test_a_process_ends_with_the_code_and_the_line_on_stderr(tmp_path, more, code, rows, bookmark, told):
    (tmp_path / "tap_bad.py").write_text(PROCESS.format(more=more), encoding="utf-8")
    command = [sys.executable, "-m", "burler", "run", "tap_bad.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=60)
    stderr = done.stderr.decode()
    assert done.returncode == code, stderr
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert [m["record"]["id"] for m in messages if m["type"] == "RECORD"] == rows
    assert messages[-1] == {"type": "STATE", "value": {"bookmarks": {"rows": {"at": bookmark}}}}
    lines = [line for line in stderr.splitlines() if told in line]
    assert len(lines) == 1 and ("CRITICAL" in lines[0]) == (code == 1)
    assert "Traceback" not in stderr


def test_the_page_on_values_says_what_happens():
    """docs/values.md: its snippet runs, and its sentences on it are true."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "values.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    scope = {"__name__": "snippet"}
    exec(compile(snippet, "docs/values.md", "exec"), scope)
    assert scope["skipped"].records("orders") == [{"id": 1, "total": Decimal("12.50")}]
    assert scope["nulled"].records("orders") == [{"id": 1, "total": Decimal("12.50")}, {"id": 2, "total": None}]
    assert scope["refused"].records("orders") == [{"id": 1, "total": Decimal("12.50")}]
    (told,) = re.findall(r"```text\n(.*?)\n```", page, re.DOTALL)
    assert str(scope["refused"].result.errors["orders"]) == told
