"""What a run of the benchmark found, row by row, and whether it reaches the bars."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cases import Bar, Case, MemoryRow, RateRow, StartRow
    from measure import Summary

MB = 1_000_000
PASS, MISS, NONE = "PASS", "MISS", "not measured"


@dataclass
class Results:
    """All that was measured. What could not be is in ``problems`` (burler's: errors) and ``notes`` (the peers').

    Attributes:
        rates: medians by case.
        memory: by case and number of rows.
        growth: by case and number of things (see ``growth``).
        workers: by case.
        starts: wall seconds by command.
        checked: how many records of a case were compared with the reference.
    """

    rates: dict[Case, Summary] = field(default_factory=dict)
    memory: dict[tuple[Case, int], Summary] = field(default_factory=dict)
    growth: dict[tuple[Case, int], Summary] = field(default_factory=dict)
    workers: dict[Case, Summary] = field(default_factory=dict)
    starts: dict[str, list[float]] = field(default_factory=dict)
    checked: dict[Case, int] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    scale: float = 1.0

    def ratio(self, case: Case, against: Case) -> float | None:
        """How many times the rows/s of another case; None if one of them is not there."""
        one, other = self.rates.get(case), self.rates.get(against)
        return one.rate / other.rate if one and other else None

    def reached(self, row: RateRow, bar: Bar) -> str:
        """PASS, MISS or that it was not measured."""
        ratio = self.ratio(row.case, bar.against)
        return NONE if ratio is None else PASS if ratio >= bar.least else MISS

    def rate_verdict(self, row: RateRow) -> str:
        """The verdict of all bars of a row."""
        return _together([self.reached(row, bar) for bar in row.bars])

    def many(self, row: MemoryRow) -> int:
        """The greater number of rows, as this run has it: a quick run has fewer."""
        return max(2 * self.few(row), round(row.many * self.scale))

    def few(self, row: MemoryRow) -> int:
        """The smaller number of rows."""
        return max(1, round(row.few * min(1.0, self.scale * 10)))

    def peaks(self, row: MemoryRow) -> tuple[float, float] | None:
        """Peak MB with few rows and with many."""
        few, many = self.memory.get((row.case, self.few(row))), self.memory.get((row.case, self.many(row)))
        return (few.peak / MB, many.peak / MB) if few and many else None

    def memory_verdict(self, row: MemoryRow) -> str:
        """Flat, and under the limit."""
        peaks = self.peaks(row)
        if peaks is None:
            return NONE
        few, many = peaks
        flat = many <= 1.1 * few + 10
        return PASS if flat and (row.most is None or many <= row.most) else MISS

    def start_value(self, row: StartRow) -> float | None:
        """Seconds, or their ratio: what the row's bar is about."""
        if any(name not in self.starts for name in row.commands):
            return None
        medians = {name: statistics.median(self.starts[name]) for name in row.commands}
        value = medians[row.command]
        if row.less is not None:
            value -= medians[row.less]
        return value / medians[row.over] if row.over is not None else value

    def start_verdict(self, row: StartRow) -> str:
        """At most what the bar says."""
        value = self.start_value(row)
        return NONE if value is None else PASS if value <= row.most else MISS


def _together(verdicts: list[str]) -> str:
    for verdict in (MISS, NONE):
        if verdict in verdicts:
            return verdict
    return PASS
