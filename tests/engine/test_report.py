"""The report of a run: what is in it of errors and bookmarks, and what never gets into it. (Its shape:
tests/cli/test_report_docs.py.)"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from reportruns import ANY, Streams, streams_of

from burler.errors import StreamError

FAILURES = 1000
"""Kept in a report, at the most (docs/reports.md)."""


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_errors_of_streams_and_of_their_parts_are_told_once():
    run = Streams()
    run.failing(
        "tickets",
        {
            "no text": ValueError(),
            "broken": Unprintable(),
            "long": ValueError("x" * 1_000_000),
            "lines": ValueError("one\ntwo\n\nthree\nfour"),
            "half \ud800": ValueError("half \ud800"),
        },
    )
    run.add("a", [None, 1], error=KeyError("nothing"))
    run.add("b", [None, 1], error=StreamError("b", "stream 'b': no rows"))
    found = run.report()
    streams = streams_of(found)
    empty, broken, long, lines, half = streams["tickets"]["errors"]
    assert (empty["where"], empty["type"], empty["message"]) == ("partition no text", "ValueError", "")
    assert (broken["type"], broken["message"]) == ("Unprintable", "")
    assert len(long["message"]) < 700 and long["message"].endswith(" ...")
    assert lines["message"] == "one\n  two\n  three ..."
    assert half["message"] == "half \\ud800"
    (error,) = streams["a"]["errors"]
    assert "reportruns.py:" in error.pop("place")
    assert error == {"where": None, "type": "KeyError", "message": "'nothing'"}
    (error,) = streams["b"]["errors"]
    assert (error["type"], error["message"]) == ("StreamError", "no rows")
    assert (found["totals"]["errors"], found["totals"]["streams_failed"]) == (7, 3)


def test_of_many_failures_a_thousand_are_kept_and_all_are_counted():
    run = Streams()
    for name in "ab":
        run.failing(name, {str(number): ValueError(number) for number in range(750)})
    streams = run.report(max_failures=10_000)["streams"]
    assert sum(len(one["errors"]) for one in streams) == FAILURES
    assert [one["error_count"] for one in streams] == [750, 750]


def test_a_run_in_which_nothing_began_has_a_report():
    run = Streams()
    run.add("a")
    found = run.report(page_max_rows=0)
    assert (found["status"], found["exit_code"], found["streams"], found["series"]) == ("failed", 2, [], [])
    assert "page_max_rows" in found["error"]["message"] and found["totals"]["errors"] == 1
    assert run.table(page_max_rows=0) == []


@pytest.mark.parametrize("form", ["json", "html"])
def test_every_bookmark_has_a_form(form: str):
    shown = {
        "text": ("2024-01-01", "2024-01-01"),
        "number": (5, 5),
        "great": (2**70, 2**70),
        "float": (1.5, 1.5),
        "long": ("é" * 1000, "é" * 300 + " ..."),
    }
    run = Streams()
    for name, (value, _shown) in shown.items():
        run.add(name, [value, value])
    _ended, text = run.run(form=form)
    if form == "html":
        cells = {cell.strip() for cell in re.findall(r">([^<]+)<", text)}
        assert {"2024-01-01", "5", str(2**70), "1.5"} <= cells and "é" * 301 not in text
        return
    found: dict[str, Any] = streams_of(json.loads(text))
    assert found.keys() == shown.keys()
    for name, one in found.items():
        assert one["bookmark_from"] == one["bookmark_to"] == shown[name][1]


def test_a_stream_that_is_retried_goes_on_where_it_was():
    run = Streams()
    tries: list[int] = []

    @run.tap.sync("a", key_properties="id", replication_key="id", order="asc", schema=ANY, retry_sync_on=OSError)
    def rows(stream: Any) -> Any:
        tries.append(1)
        yield {"id": len(tries)}
        if len(tries) == 1:
            raise OSError("gone")

    found = run.report()
    (one,) = found["streams"]
    assert (one["status"], one["bookmark_to"], one["rounds"], len(found["series"])) == ("succeeded", 2, 1, 1)


@pytest.mark.parametrize("form", ["json", "text", "html"])
def test_no_secret_of_the_config_is_in_a_report_or_the_log(form: str):
    """A secret in names, bookmarks and errors; also where a cut goes through one (a text of a bookmark ends after 300
    characters, a point of the series after 200)."""
    secret = "hunter2correcthorse"
    run = Streams(f"tap-{secret}")
    run.add(f"s-{secret}", [f"b{secret}", f"c{secret}"], error=ValueError(f"key {secret} refused"))
    for at in (190, 290):
        run.add(f"cut{at}", [None, "x" * at + secret, "y" * at + secret])
    run.failing("parts", {f"part {secret}": ValueError(secret)})
    ended, text = run.run(form=form, password=secret)
    assert ended.code != 0 and "***" in text and "***" in ended.stderr
    assert not [part for part in (secret[:8], secret[-8:]) if part in text + ended.stderr]
