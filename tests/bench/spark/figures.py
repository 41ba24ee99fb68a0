"""What was measured, and whether it reaches the bars."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taking import Took

PASS, MISS = "PASS", "MISS"


@dataclass(frozen=True)
class Bar:
    """Something that was asked for: ``value`` is at most (or at least) ``bound``."""

    what: str
    value: float
    bound: float
    least: bool = False

    @property
    def verdict(self) -> str:
        """PASS or MISS."""
        reached = self.value >= self.bound if self.least else self.value <= self.bound
        return PASS if reached else MISS

    def __str__(self) -> str:
        kind = "at least" if self.least else "at most"
        return f"{self.what}: {self.value:.2f}, {kind} {self.bound:g}: {self.verdict}"


@dataclass
class Found:
    """Runs by part of the benchmark, number of rows and candidate, and the bars."""

    runs: dict[tuple[str, int, str], list[Took]] = field(default_factory=lambda: defaultdict(list))
    bars: list[Bar] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def add(self, part: str, rows: int, candidate: str, took: Took) -> None:
        """One more run."""
        self.runs[part, rows, candidate].append(took)

    def take(self, other: Found) -> None:
        """All that another has."""
        for key, runs in other.runs.items():
            self.runs[key] += runs
        self.bars += other.bars
        self.checked += other.checked
        self.left_out += other.left_out

    def wall(self, part: str, rows: int, candidate: str) -> float:
        """The median of a candidate's wall seconds."""
        return statistics.median(took.wall for took in self.runs[part, rows, candidate])

    def cpu(self, part: str, rows: int, candidate: str) -> float:
        """The median of its CPU seconds."""
        return statistics.median(took.cpu for took in self.runs[part, rows, candidate])

    def markdown(self) -> str:
        """A table for people, the bars below it."""
        head = ("part", "rows", "candidate", "wall s", "CPU s", "rows / wall s", "peak MB")
        lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for (part, rows, candidate), runs in self.runs.items():
            wall, cpu = self.wall(part, rows, candidate), self.cpu(part, rows, candidate)
            rate = f"{rows / wall:,.0f}" if rows and wall else ""
            peak = max(took.peak for took in runs)
            memory = f"{peak / 1e6:,.0f}" if peak else ""
            lines.append(f"| {part} | {rows:,} | {candidate} | {wall:.2f} | {cpu:.2f} | {rate} | {memory} |")
        lines += ["", *(f"- {bar}" for bar in self.bars)]
        lines += [f"- compared: {text}" for text in self.checked]
        lines += [f"- left out: {text}" for text in self.left_out]
        return "\n".join(lines)

    def write(self, path: Path) -> None:
        """All of it as JSON."""
        runs = [
            {"part": part, "rows": rows, "candidate": candidate, "runs": [asdict(took) for took in some]}
            for (part, rows, candidate), some in self.runs.items()
        ]
        bars = [{**asdict(bar), "verdict": bar.verdict} for bar in self.bars]
        told = {"runs": runs, "bars": bars, "checked": self.checked, "left_out": self.left_out}
        path.write_text(json.dumps(told, indent=1) + "\n")
