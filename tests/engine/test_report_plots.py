"""Plots of a report: axes, lines that stay inside, and nothing where there is nothing to plot."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from reportruns import Streams


def plots(*cases: list[Any]) -> list[dict[str, str]]:
    """The pictures of streams that had these bookmarks, one a page: by their titles."""
    run = Streams()
    for number, bookmarks in enumerate(cases):
        run.add(f"s{number}", [None, *bookmarks])
    page, found = run.page(page_max_rows=1), []
    for number in range(len(cases)):
        part = re.search(rf'<details [^>]*id="s{number}".*?</details>', page, re.DOTALL)
        svgs = re.findall(r"<svg .*?</svg>", part[0] if part else "", re.DOTALL)
        found.append({re.search("<title>(.*?)</title>", svg)[1]: svg for svg in svgs})
    return found


def labels(svg: str, axis: str = "y") -> list[str]:
    return re.findall(rf'<text class="{axis}"[^>]*>([^<]*)<', svg)


def bookmark_plots(*cases: list[Any]) -> list[str]:
    return [found.get("Bookmark over time", "") for found in plots(*cases)]


def test_the_axes_name_the_least_and_the_greatest():
    cases = (
        (0, 681_613, ["0", "681,613"]),
        (-7, 7, ["-7", "7"]),
        (0.1, 0.1003, ["0.1", "0.1003"]),
        (5, 5, ["5"]),
        (0, 3e18, ["0", "3e+18"]),
        ("2024-05-01T10:00:00+02:00", "2024-05-01T11:00:00+02:00", ["2024-05-01 08:00:00", "2024-05-01 09:00:00"]),
        ("0001-01-01", "9999-12-31", ["0001-01-01 00:00:00", "9999-12-31 00:00:00"]),
    )
    for svg, (low, high, expected) in zip(bookmark_plots(*([*case[:2]] for case in cases)), cases, strict=True):
        assert labels(svg) == expected, (low, high)


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
    ]
    alike = [[value, value] for value in plotted]
    assert all(bookmark_plots(*alike))
    none = [*([value, value] for value in others), ["a", "b"]]
    assert [case for case, svg in zip(none, bookmark_plots(*none), strict=True) if svg] == []


def points_of(svg: str) -> tuple[list[float], list[float]]:
    """The x and y values of the line."""
    (path,) = re.findall(r'class="line" d="([^"]*)"', svg)
    assert re.fullmatch(r"M[\d.]+ [\d.]+(H[\d.]+V[\d.]+)*H[\d.]+", path), path
    return [float(x) for x in re.findall(r"[MH]([\d.]+)", path)], [float(y) for y in re.findall(r"[V ]([\d.]+)", path)]


def test_rows_and_bookmarks_rise_from_the_floor_to_the_top():
    (found,) = plots(["2024-01-01", "2024-01-03", "2024-01-03"])
    for title in ("Rows over time", "Bookmark over time"):
        xs, ys = points_of(found[title])
        assert (ys[0], ys[-1]) == (166.0, 12.0)
        assert xs == sorted(xs)


def assert_inside(svg: str) -> None:
    """The line does not leave the picture, and the labels are few, each another."""
    xs, ys = points_of(svg)
    assert all(0 <= x <= 480 for x in xs)
    assert all(11.9 <= y <= 166.1 for y in ys)
    for axis in "xy":
        found = labels(svg, axis)
        assert 1 <= len(found) <= 8
        assert len(set(found)) == len(found)


@settings(max_examples=15)
@given(st.lists(st.integers(0, 2**62), min_size=3, max_size=30), st.floats(1e-6, 1e6))
def test_no_line_leaves_the_picture(values: list[int], scale: float):
    strange = [[5e-324, 0], [1e300, -1e300], [0, 1e-310], [10**17, 10**17 + 1], [1e16, 1e16]]
    moments = [datetime.fromtimestamp(value % 2**33, UTC).isoformat() for value in values]
    cases = [values, moments, [value / 7 * scale - 1e9 for value in values], *strange]
    for found in plots(*cases):
        assert "Bookmark over time" in found
        for svg in found.values():
            assert_inside(svg)
