"""The report of a run: what is in it of errors and bookmarks, and what never gets into it. (Its shape:
tests/cli/test_report_docs.py.)"""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from reportruns import ANY, Streams, streams_of

from burler.errors import StreamError

FAILURES, POINTS = 1000, 500
"""Kept in a report, at the most (docs/reports.md): of a run, of a stream."""


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
    characters)."""
    secret = "hunter2correcthorse"
    run = Streams(f"tap-{secret}")
    run.add(f"s-{secret}", [f"b{secret}", f"c{secret}"], error=ValueError(f"key {secret} refused"))
    for at in (290, 298):
        run.add(f"cut{at}", [None, "x" * at + secret, "y" * at + secret])
    run.failing("parts", {f"part {secret}": ValueError(secret)})
    ended, text = run.run(form=form, password=secret)
    assert ended.code != 0 and "***" in text and "***" in ended.stderr
    assert not [part for part in (secret[:8], secret[-8:]) if part in text + ended.stderr]


# ---- rounds of a tail -----------------------------------------------------------------------------


def tail(run: Streams, rounds: int) -> dict[str, Any]:
    return run.report(tail=True, tail_max_rounds=rounds, new_record_polling_interval_ms=1)


def test_rounds_are_added_up_and_the_plot_has_points_for_all_of_them():
    run = Streams()

    @run.tap.sync("orders", key_properties="id", replication_key="id", order="asc", schema=ANY)
    def orders(stream: Any) -> Any:
        last = stream.bookmark or 0
        yield from ({"id": n} for n in range(max(last, 1), last + 4))  # the last one comes again

    found = tail(run, 800)
    (one,) = found["streams"]
    assert {key: one[key] for key in ("status", "rows", "updated", "rounds", "bookmark_from", "bookmark_to")} == {
        "status": "succeeded",
        "rows": 2400,
        "updated": 2400,
        "rounds": 800,
        "bookmark_from": None,
        "bookmark_to": 2400,
    }
    assert one["counts"] == {"repeated": 799}
    assert found["totals"]["rows"] == 2400 and one["seconds"] < found["seconds"]
    (series,) = found["series"]
    assert 10 <= len(series["seconds"]) <= 501
    assert (series["rows"][-1], series["bookmark"][-1]) == (2400, 2400)
    assert max(b - a for a, b in zip(series["rows"], series["rows"][1:], strict=False)) < 2400 / 4


def test_parts_that_fail_in_each_round_are_told_in_each_and_of_many_the_newest_stay():
    """Where one stream fills the list another has room."""
    run = Streams()
    rounds: list[int] = []
    run.tap.partitions("orders", key="part")(lambda: [{"part": n} for n in range(40)])

    @run.tap.sync("orders", replication_key="id", schema=ANY)
    def orders(partition: Any) -> Any:
        if partition["part"] == 0:
            rounds.append(1)
        yield {"id": len(rounds)}
        raise ValueError(f"round {len(rounds)}")

    run.tap.partitions("users", key="part")(lambda: [{"part": 1}])

    @run.tap.sync("users", replication_key="id", schema=ANY)
    def users(partition: Any) -> Any:
        yield {"id": 1}
        if len(rounds) == 27:
            raise ValueError("new")

    found = streams_of(tail(run, 27))
    assert found["orders"]["error_count"] == 27 * 40
    kept = found["orders"]["errors"]
    assert FAILURES - 1 <= len(kept) <= FAILURES
    assert (kept[0]["message"], kept[-1]["message"]) == ("round 3", "round 27")
    assert [one["message"] for one in found["users"]["errors"]] == ["new"]


# ---- points over time: enough for a plot, and never more ----------------------------------------------


def test_a_short_run_keeps_each_page_and_a_long_one_few_points_from_all_of_its_time():
    run = Streams()
    run.add("long", range(4000))

    @run.tap.sync("short", replication_key="id", bookmark_strategy="manual", schema=ANY)
    def short(stream: Any) -> Any:
        for value in range(20):
            time.sleep(0.002)
            stream.save_bookmark(value)
            yield [{"id": value}]

    long, few = run.report(page_max_rows=1)["series"]
    assert few["bookmark"][:21] == [None, *range(20)]
    assert few["rows"][:21] == list(range(21))
    seconds = long["seconds"]
    assert POINTS // 10 < len(seconds) <= POINTS + 1
    assert len(seconds) == len(long["rows"]) == len(long["bookmark"])
    assert (long["rows"][0], long["rows"][-1], long["bookmark"][-1]) == (0, 3999, 3999)
    assert seconds == sorted(seconds)


@pytest.mark.nightly
def test_many_streams_share_the_room_for_points():
    """About 100,000 for all. That many pages take long."""
    run = Streams()
    for number in range(210):
        run.add(f"s{number}", range(490))
    found = [len(one["seconds"]) for one in run.report(page_max_rows=1)["series"]]
    assert sum(found) <= 105_000
    assert min(found) >= 4


def test_a_bookmark_of_a_megabyte_is_cut_and_the_newest_one_stays():
    run = Streams()
    run.add("a", [None, *(f"{number}" + "x" * 1_000_000 for number in range(5)), "y" * 1_000_000])
    (series,) = run.report(page_max_rows=1)["series"]
    assert series["bookmark"][-1][0] == "y"
    assert max(map(len, filter(None, series["bookmark"]))) <= 304
