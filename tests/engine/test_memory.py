"""Memory stays flat in the number of rows, whatever a tap yields. The whole table: ``memorytaps.py``."""

from __future__ import annotations

from pathlib import Path

import memorytaps
import pytest
from memorytaps import BIG, SMALL, Case

QUICK = ("dicts, small rows", "bytes, small rows, 1000 a page", "small first, 1 MB rows", "lists, 1 MB rows, 4 a page")
OTHERS = pytest.mark.nightly
"""The same of further ways to give rows."""


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[] if str(case) in QUICK else OTHERS, id=str(case)) for case in memorytaps.CASES]
)
def test_peak_memory_does_not_grow_with_the_rows(tmp_path: Path, case: Case):
    if case.kind == "arrow":
        pytest.importorskip("pyarrow")
    few, many = memorytaps.counts(case, whole=False)
    first, second = memorytaps.peak(case, few, tmp_path), memorytaps.peak(case, many, tmp_path)
    if case.kind == "small first":
        # Rows that grow a thousandfold at once: 64 of them are gathered before anybody looks at one.
        assert second <= 64 * 2 + 80, (first, second)
        return
    assert second <= first * 1.1 + 10, (first, second)
    if case.size == SMALL and case.kind != "arrow":  # pyarrow alone has more
        assert second <= 60, (first, second)


def test_the_figures_show_a_tap_that_keeps_its_rows(tmp_path: Path):
    """A measurement that always said "flat" would prove nothing."""
    case = Case("kept", SMALL, 1000)
    first, second = memorytaps.peak(case, 10_000, tmp_path), memorytaps.peak(case, 100_000, tmp_path)
    assert second > first + 80


@pytest.mark.parametrize("kind", ["dicts", "lists"])
def test_big_rows_are_few_at_a_time(tmp_path: Path, kind: str):
    """Also the first page, of which nothing is known: with 1 MB rows a hundred of them would be a hundred megabytes."""
    case = Case(kind, BIG, 1 if kind == "dicts" else 4)
    assert memorytaps.peak(case, 120, tmp_path) <= 90
