"""Plots: axes with round values, lines that stay inside, and nothing where there is nothing to plot."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.internals import report_plot, report_ticks


def labels(ticks: list[tuple[float, str]]) -> list[str]:
    return [text for _, text in ticks]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 100, ["0", "20", "40", "60", "80", "100"]),
        (0, 681_613, ["0", "200,000", "400,000", "600,000"]),
        (0, 1, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (-7, 7, ["-5", "0", "5"]),
        (0.1, 0.1003, ["0.1000", "0.1001", "0.1002", "0.1003"]),
        (1_234_567_000, 1_234_567_890, [f"1,234,567,{n}" for n in ("000", "200", "400", "600", "800")]),
        (5, 5, ["5"]),
        (1.25, 1.25, ["1.25"]),
        (0, 0, ["0"]),
        (0, 3e18, ["0", "1e+18", "2e+18", "3e+18"]),
    ],
)  # fmt: skip
def test_round_numbers(low: float, high: float, expected: list[str]):
    assert labels(report_ticks.number_ticks(low, high)) == expected


@pytest.mark.parametrize(
    ("high", "expected"),
    [
        (0, ["0 s"]),
        (0.01, ["0 s", "0.002 s", "0.004 s", "0.006 s", "0.008 s", "0.01 s"]),
        (5, ["0 s", "1 s", "2 s", "3 s", "4 s", "5 s"]),
        (90, ["0 s", "15 s", "30 s", "45 s", "1 min", "1.25 min", "1.5 min"]),
        (3000, ["0 s", "10 min", "20 min", "30 min", "40 min", "50 min"]),
        (86400, ["0 s", "6 h", "12 h", "18 h", "1 d"]),
        (86400 * 365, ["0 s", "100 d", "200 d", "300 d"]),
    ],
)
def test_round_lengths_of_time(high: float, expected: list[str]):
    assert labels(report_ticks.duration_ticks(high)) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ("2024-05-01T00:00:00Z", "2024-05-01T00:00:20Z", [f"05-01 00:00:{s:02}" for s in (0, 5, 10, 15, 20)]),
        ("2024-05-01T10:00:00Z", "2024-05-01T14:00:00Z", [f"2024-05-01 {h}:00" for h in range(10, 15)]),
        ("2024-05-01T10:00:00Z", "2024-05-05T10:00:00Z", [f"2024-05-0{d}" for d in range(2, 6)]),
        ("2024-01-15", "2024-05-15", ["2024-02", "2024-03", "2024-04", "2024-05"]),
        ("2020-01-01", "2024-01-01", ["2020", "2021", "2022", "2023", "2024"]),
        ("1900-06-01", "2024-01-01", ["1920", "1940", "1960", "1980", "2000", "2020"]),
        ("0001-01-01", "9999-12-31", ["2000", "4000", "6000", "8000"]),
        ("2024-05-01", "2024-05-01", ["05-01 00:00:00"]),
        ("9999-12-31T23:00:00Z", "9999-12-31T23:59:59Z", [f"9999-12-31 23:{m:02}" for m in (0, 15, 30, 45)]),
    ],
)
def test_round_moments(low: str, high: str, expected: list[str]):
    assert labels(report_ticks.moment_ticks(report_ticks.moment_of(low), report_ticks.moment_of(high))) == expected


@given(
    st.floats(-1e15, 1e15), st.floats(0, 1e15), st.sampled_from([report_ticks.number_ticks, report_ticks.moment_ticks])
)
def test_ticks_lie_between_the_ends_and_are_few(low: float, span: float, ticks_of):
    if ticks_of is report_ticks.moment_ticks:
        low, span = low % 2e11 - 6e10, span % 5e10
    high = low + span
    ticks = ticks_of(low, high)
    assert 1 <= len(ticks) <= 8
    slack = 1e-9 * max(abs(low), abs(high), 1.0)
    assert all(low - slack <= at <= high + slack for at, _ in ticks)
    assert len({text for _, text in ticks}) == len(ticks)


@given(st.floats(0, 1e12))
def test_lengths_of_time_are_few_and_told_apart(high: float):
    ticks = report_ticks.duration_ticks(high)
    assert 1 <= len(ticks) <= 8
    assert all(0 <= at <= high for at, _ in ticks)
    assert len({text for _, text in ticks}) == len(ticks)


def test_texts_of_lengths():
    assert [report_ticks.length_text(s) for s in (0, 59.94, 60, 3599.6, 3661, 360_000)] == [
        "0.0 s", "59.9 s", "1 min 0 s", "1 h 0 min", "1 h 1 min", "100 h 0 min",
    ]  # fmt: skip
    assert [report_ticks.duration_text(s) for s in (0, 0.25, 90, 5400, 129_600)] == [
        "0 s",
        "0.25 s",
        "1.5 min",
        "1.5 h",
        "1.5 d",
    ]


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("1970-01-01", 0),
        ("1970-01-01T00:00:01Z", 1),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:00.5000000Z", 0.5),
        ("1970-01-01T00:00:00", None),  # without a zone nobody knows when
        ("19700101", None),  # an id
        ("1970-13-01", None),
        ("0000-01-01", None),
        ("abcd-", None),
        ("", None),
        (5, None),
        (None, None),
    ],
)
def test_which_bookmarks_are_moments(value: object, moment: float | None):
    assert report_ticks.moment_of(value) == moment


@pytest.mark.parametrize(
    ("value", "number"),
    [(5, 5.0), (-1.5, -1.5), (True, None), ("5", None), (None, None), (10**400, None), (-(10**400), None)],
)
def test_which_bookmarks_are_numbers(value: object, number: float | None):
    assert report_ticks.number_of(value) == number


def points_of(svg: str) -> tuple[list[float], list[float]]:
    """The x and y values of the line."""
    (path,) = re.findall(r'class="line" d="([^"]*)"', svg)
    assert re.fullmatch(r"M[\d.]+ [\d.]+(H[\d.]+V[\d.]+)*H[\d.]+", path), path
    return [float(x) for x in re.findall(r"[MH]([\d.]+)", path)], [float(y) for y in re.findall(r"[V ]([\d.]+)", path)]


def test_rows_rise_from_the_floor_to_the_top():
    xs, ys = points_of(report_plot.rows_plot([0, 1, 2], [0, 50, 100]))
    assert ys == [166.0, 89.0, 12.0]
    assert xs[0] < xs[1] < xs[2] == xs[3] == 464.0
    assert points_of(report_plot.rows_plot([0, 1], [50, 100]))[1] == [89.0, 12.0]


def test_a_bookmark_begins_where_the_first_value_is_and_ends_with_the_stream():
    svg = report_plot.bookmark_plot([0, 1, 2, 4], [None, "2024-01-01", "2024-01-03", "2024-01-03"])
    xs, ys = points_of(svg)
    assert xs[0] == pytest.approx(xs[-1] - (xs[-1] - xs[0]) * 1.0)
    assert (ys[0], ys[-1]) == (166.0, 12.0)
    assert xs[-1] == 464.0
    left = float(re.search(r'class="grid" d="M([\d.]+) ', svg)[1])
    assert xs[0] == pytest.approx(left + (464 - left) / 4, abs=0.2)


@pytest.mark.parametrize(
    "values", [[None, None], [1, None], ["a", "b"], [1, "2024-01-01"], [True, False], [{}, {}], [], [5]]
)
def test_bookmarks_without_an_axis_have_no_plot(values: list):
    assert report_plot.bookmark_plot([float(i) for i in range(len(values))], values) == ""


@pytest.mark.parametrize(("seconds", "rows"), [([], []), ([0.0], [5]), ([0.0, 1.0], [0, 0])])
def test_without_rows_there_is_no_plot(seconds: list[float], rows: list[int]):
    assert report_plot.rows_plot(seconds, rows) == ""


@given(
    st.lists(st.tuples(st.floats(0, 1e8), st.integers(0, 2**62)), min_size=2, max_size=30),
    st.booleans(),
)
def test_no_line_leaves_the_picture(points: list[tuple[float, int]], moments: bool):
    seconds = sorted(at for at, _ in points)
    values = [value for _, value in points]
    if moments:
        texts = [datetime.fromtimestamp(value % 2**33, UTC).isoformat() for value in values]
        svg = report_plot.bookmark_plot(seconds, texts)
    else:
        svg = report_plot.rows_plot(seconds, sorted(values)) or report_plot.rows_plot(seconds, [*values[:-1], 1])
    xs, ys = points_of(svg)
    assert all(0 <= x <= 480 for x in xs)
    assert all(11.9 <= y <= 166.1 for y in ys)


@pytest.mark.parametrize("values", [[5e-324, 0], [1e300, -1e300], [0, 1e-310], [10**17, 10**17 + 1], [1e16, 1e16]])
def test_strange_numbers_have_a_plot_as_well(values: list[float]):
    xs, ys = points_of(report_plot.bookmark_plot([0.0, 0.0], values))
    assert all(0 <= x <= 480 for x in xs)
    assert all(11.9 <= y <= 166.1 for y in ys)
