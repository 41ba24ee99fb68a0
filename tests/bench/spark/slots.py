"""``burler extract`` of a source that waits, with more and more slots: each number in a process of its own."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from figures import Bar, Found
from same import Differ
from taking import Took, run

PROGRAM = Path(__file__).resolve().parent / "programs" / "extract_slots.py"
PART = "extract, 16 partitions that wait 1 s"
SLOTS = (1, 4, 16)
PARTITIONS, SECONDS, ROWS = 16, 1.0, 1000
LEAST_SPEED_UP = {4: 0.6, 16: 0.25}  # of the number of slots: a job, its commits and its state take a second or two


def measure(rounds: int, slots: tuple[int, ...] = SLOTS, *, seconds: float = SECONDS) -> Found:
    """A warm session's extraction at each number of slots.

    Raises:
        taking.Failed: an extraction does. Differ: not all rows were committed.
    """
    found = Found()
    rows = PARTITIONS * ROWS
    for _ in range(rounds):
        for number in slots:
            told = _run(number, seconds)
            if told["rows"] != rows:
                raise Differ(f"{told['rows']:,} rows were committed with {number} slots, not {rows:,}")
            found.add(PART, rows, f"{number} slots", Took(told["wall"], told["cpu"]))
            found.add(PART, rows, f"{number} slots, first in its session", Took(told["cold"], told["cpu"]))
    one = found.wall(PART, rows, f"{slots[0]} slots")
    for number in slots[1:]:
        speed_up = one / found.wall(PART, rows, f"{number} slots") / number
        found.bars.append(
            Bar(f"extract, {number} slots: times as fast for each slot", speed_up, LEAST_SPEED_UP[number], least=True)
        )
    return found


def _run(slots: int, seconds: float) -> dict[str, float]:
    """What the program says, and the CPU seconds of its process and all below it."""
    command = [sys.executable, str(PROGRAM), str(slots), str(PARTITIONS), str(seconds)]
    with tempfile.TemporaryDirectory() as folder:
        took = run(command, Path(folder))
        told: dict[str, float] = json.loads((Path(folder) / "out.txt").read_text().splitlines()[-1])
    return {**told, "cpu": took.cpu}
