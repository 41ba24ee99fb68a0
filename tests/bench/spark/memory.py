"""Memory of an export does not grow with rows: a process each, the JVM's heap bounded alike.

Flat means: the driver's Python, and what is alive in the JVM's heap behind a garbage collection, at most 1.1 times and
10 MB more with many rows than with few (the rule of all of burler's benchmarks). The peak of the whole tree of
processes is told beside it: a JVM takes of its heap what it may.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import lakes
import same
import taking
from figures import Bar, Found

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = Path(__file__).resolve().parent / "programs" / "export_once.py"
PART = "memory of an export"
HEAP = "1g"
_MORE, _BYTES = 1.1, 10e6


def measure(folder: Path, lake_folder: Path, sizes: Sequence[int]) -> Found:
    """One export for each size, the least and the greatest compared.

    Raises:
        taking.Failed: an export does. same.Differ: it wrote other rows than it should.
    """
    found = Found()
    folder.mkdir(parents=True, exist_ok=True)
    held: dict[int, dict[str, int]] = {}
    for rows in (min(sizes), max(sizes)):
        given, out, report = lakes.made(lake_folder, "std", rows), folder / "out", folder / "held.json"
        shutil.rmtree(out, ignore_errors=True)
        command = [sys.executable, str(PROGRAM), str(given.base), str(out), HEAP, str(report)]
        found.add(PART, rows, f"burler export, -Xmx{HEAP}", taking.run(command, folder))
        held[rows] = json.loads(report.read_text())
        keys = max(1, rows * 5 // 6)
        same.check({"burler": same.mark(same.delta_files(str(out / lakes.TAP / "std")), "_sdc_extracted_at")}, keys)
    few, many = held[min(sizes)], held[max(sizes)]
    for name, said in (("python", "the driver's Python, peak MB"), ("heap", "alive in the JVM's heap, MB")):
        most = (_MORE * few[name] + _BYTES) / 1e6
        what = f"{said}, {max(sizes):,} rows; {min(sizes):,} rows take {few[name] / 1e6:.0f}"
        found.bars.append(Bar(what, many[name] / 1e6, round(most, 1)))
    return found
