"""Plots of a report: axes with round values, lines that stay inside, and nothing where there is nothing to plot."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reportruns import Clock, ended, new_report


def plots(seconds: list[float], bookmarks: list[Any], rows: list[int] | None = None) -> dict[str, str]:
    """The pictures of a stream that had these bookmarks and rows at these times: by their titles."""
    clock = Clock()
    report = new_report(clock)
    begun = clock.seconds
    report.stream_began("a", method="INCREMENTAL", bookmark=bookmarks[0])
    counts = rows or list(range(len(seconds)))
    for at, bookmark, count in list(zip(seconds, bookmarks, counts, strict=True))[1:]:
        clock.seconds = begun + at
        report.page("a", count, bookmark)
    ended(report, "a", rows=counts[-1], bookmark_from=bookmarks[0], bookmark_to=bookmarks[-1])
    found = re.findall(r"<svg .*?<title>(.*?)</title>.*?</svg>", report.to_html(), re.DOTALL)
    svgs = re.findall(r"<svg .*?</svg>", report.to_html(), re.DOTALL)
    return dict(zip(found, svgs, strict=True))


def labels(svg: str, axis: str = "y") -> list[str]:
    return re.findall(rf'<text class="{axis}"[^>]*>([^<]*)<', svg)


def bookmark_plot(*bookmarks: Any) -> str:
    return plots([10.0 * i for i in range(len(bookmarks))], list(bookmarks)).get("Bookmark over time", "")


def test_axes_have_round_values():
    for low, high, expected in (
        (0, 100, ["0", "20", "40", "60", "80", "100"]),
        (0, 681_613, ["0", "200,000", "400,000", "600,000"]),
        (0, 1.0, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (-7, 7, ["-5", "0", "5"]),
        (0.1, 0.1003, ["0.1000", "0.1001", "0.1002", "0.1003"]),
        (1_234_567_000, 1_234_567_890, [f"1,234,567,{n}" for n in ("000", "200", "400", "600", "800")]),
        (5, 5, ["5"]),
        (1.25, 1.25, ["1.25"]),
        (0, 3e18, ["0", "1e+18", "2e+18", "3e+18"]),
        ("2024-05-01T00:00:00Z", "2024-05-01T00:00:20Z", [f"05-01 00:00:{s:02}" for s in (0, 5, 10, 15, 20)]),
        ("2024-05-01T10:00:00Z", "2024-05-01T14:00:00Z", [f"2024-05-01 {h}:00" for h in range(10, 15)]),
        ("2024-05-01T10:00:00Z", "2024-05-05T10:00:00Z", [f"2024-05-0{d}" for d in range(2, 6)]),
        ("2024-01-15", "2024-05-15", ["2024-02", "2024-03", "2024-04", "2024-05"]),
        ("2020-01-01", "2024-01-01", ["2020", "2021", "2022", "2023", "2024"]),
        ("1900-06-01", "2024-01-01", ["1920", "1940", "1960", "1980", "2000", "2020"]),
        ("0001-01-01", "9999-12-31", ["2000", "4000", "6000", "8000"]),
        ("2024-05-01", "2024-05-01", ["05-01 00:00:00"]),
        ("9999-12-31T23:00:00Z", "9999-12-31T23:59:59Z", [f"9999-12-31 23:{m:02}" for m in (0, 15, 30, 45)]),
    ):
        assert labels(bookmark_plot(low, high)) == expected, (low, high)


def test_lengths_of_time_are_round():
    for seconds, expected in (
        (0.01, ["0 s", "0.002 s", "0.004 s", "0.006 s", "0.008 s", "0.01 s"]),
        (5, ["0 s", "1 s", "2 s", "3 s", "4 s", "5 s"]),
        (90, ["0 s", "15 s", "30 s", "45 s", "1 min", "1.25 min", "1.5 min"]),
        (3000, ["0 s", "10 min", "20 min", "30 min", "40 min", "50 min"]),
        (86400, ["0 s", "6 h", "12 h", "18 h", "1 d"]),
        (86400 * 365, ["0 s", "100 d", "200 d", "300 d"]),
    ):
        found = labels(plots([0, seconds], [1, 2])["Bookmark over time"], "x")
        # A hundredth of a second is no whole one for a clock of floats.
        assert found in (expected, expected[:-1]), seconds


def test_which_bookmarks_are_moments_or_numbers_and_have_a_plot():
    plotted = [
        "1970-01-01",
        "1970-01-01T00:00:01Z",
        "1970-01-01T01:00:00+01:00",
        "1970-01-01T00:00:00.5000000Z",
        5,
        -1.5,
    ]
    others = [
        "1970-01-01T00:00:00",
        "19700101",
        "1970-13-01",
        "0000-01-01",
        "abcd-",
        "",
        "5",
        True,
        10**400,
        -(10**400),
    ]
    assert [value for value in plotted if not bookmark_plot(value, value)] == []
    assert [value for value in others if bookmark_plot(value, value)] == []
    for values in ([None, None], ["a", "b"], [1, "2024-01-01"], [{}, {}]):
        assert bookmark_plot(*values) == "", values


def points_of(svg: str) -> tuple[list[float], list[float]]:
    """The x and y values of the line."""
    (path,) = re.findall(r'class="line" d="([^"]*)"', svg)
    assert re.fullmatch(r"M[\d.]+ [\d.]+(H[\d.]+V[\d.]+)*H[\d.]+", path), path
    return [float(x) for x in re.findall(r"[MH]([\d.]+)", path)], [float(y) for y in re.findall(r"[V ]([\d.]+)", path)]


def test_rows_rise_from_the_floor_to_the_top():
    xs, ys = points_of(plots([0, 1, 2], [None] * 3, [0, 50, 100])["Rows over time"])
    assert list(dict.fromkeys(ys)) == [166.0, 89.0, 12.0]
    assert xs[0] < xs[1] < xs[2] == xs[-1] == 464.0


def test_a_bookmark_begins_where_the_first_value_is_and_ends_with_the_stream():
    svg = plots([0, 1, 2, 4], [None, "2024-01-01", "2024-01-03", "2024-01-03"])["Bookmark over time"]
    xs, ys = points_of(svg)
    assert (ys[0], ys[-1]) == (166.0, 12.0)
    assert xs[-1] == 464.0
    left = float(re.search(r'class="grid" d="M([\d.]+) ', svg)[1])
    assert xs[0] == pytest.approx(left + (464 - left) / 4, abs=0.2)


def assert_inside(svg: str) -> None:
    """The line does not leave the picture, and the labels are few, each another."""
    xs, ys = points_of(svg)
    assert all(0 <= x <= 480 for x in xs)
    assert all(11.9 <= y <= 166.1 for y in ys)
    for axis in "xy":
        found = labels(svg, axis)
        assert 1 <= len(found) <= 8
        assert len(set(found)) == len(found)


@given(
    st.lists(st.tuples(st.floats(0, 1e8), st.integers(0, 2**62)), min_size=3, max_size=30),
    st.sampled_from(["moments", "numbers", "floats"]),
)
def test_no_line_leaves_the_picture(points: list[tuple[float, int]], kind: str):
    seconds = sorted({at for at, _ in points} | {0.0, 1.0})
    values: list[Any] = [(points[i % len(points)][1]) for i in range(len(seconds))]
    rows = sorted(value + 1 for value in values)
    if kind == "moments":
        values = [datetime.fromtimestamp(value % 2**33, UTC).isoformat() for value in values]
    elif kind == "floats":
        values = [value / 7 - 1e9 for value in values]
    found = plots(seconds, values, [0, *rows[1:]])
    assert "Bookmark over time" in found
    for svg in found.values():
        assert_inside(svg)


@pytest.mark.parametrize("values", [[5e-324, 0], [1e300, -1e300], [0, 1e-310], [10**17, 10**17 + 1], [1e16, 1e16]])
def test_strange_numbers_have_a_plot_as_well(values: list[float]):
    xs, _ys = points_of(bookmark_plot(*values))
    assert all(0 <= x <= 480 for x in xs)
