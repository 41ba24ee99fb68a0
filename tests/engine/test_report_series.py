"""Points over time: enough for a plot, and never more."""

from __future__ import annotations

import time
from typing import Any

import pytest
from reportruns import ANY, Streams

POINTS = 500
"""Of one stream, at the most (docs/reports.md)."""


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
    """100,000 for all: what has come to its end is thinned as well. That many pages take long."""
    run = Streams()
    for number in range(210):
        run.add(f"s{number}", range(490))
    found = [len(one["seconds"]) for one in run.report(page_max_rows=1)["series"]]
    assert sum(found) <= 100_600
    assert min(found) >= 4


def test_a_bookmark_of_a_megabyte_is_cut_and_the_newest_one_stays():
    run = Streams()
    run.add("a", [None, *(f"{number}" + "x" * 1_000_000 for number in range(5)), "y" * 1_000_000])
    (series,) = run.report(page_max_rows=1)["series"]
    assert series["bookmark"][-1][0] == "y"
    assert max(map(len, filter(None, series["bookmark"]))) <= 204
