"""Peak memory of taps as processes: what they yield, how many rows, of what size.

    python tests/engine/memorytaps.py

prints the whole table: 10,000 rows against 2,000,000 small ones, 20 against 400 of 1 MB. ``test_memory`` runs a part.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tapprocess import ROOT, python, write_tap

SOURCE = """
import json
import burler
tap = burler.tap("tap-memory", config_spec={"count": 1, "size": 1, "page": 1, "kind": "x"})

def row(i, size):
    return {"id": i, "text": "%d " % i + "x" * size}

def arrow_page(rows):
    import pyarrow
    return pyarrow.RecordBatch.from_pylist(rows)

KEPT = []

MADE = {
    "lists": lambda rows: rows,
    "kept": lambda rows: KEPT.append("x" * 1_000_000) or rows,  # a tap that does grow
    "bytes": lambda rows: json.dumps(rows).encode(),
    "arrow": arrow_page,
}

@tap.sync("rows", key_properties="id", replication_key="id", bookmark_strategy="every_n(1000)", order="asc")
def rows(stream):
    count, size, page, kind = (stream.config[name] for name in ("count", "size", "page", "kind"))
    if kind == "dicts":
        for i in range(count):
            yield row(i, size)
        return
    if kind == "small first":
        for i in range(20_000):
            yield row(i, 20)
        for i in range(20_000, 20_000 + count):
            yield row(i, size)
        return
    make = MADE[kind]
    for first in range(0, count, page):
        yield make([row(i, size) for i in range(first, min(first + page, count))])

tap.schema("rows", SCHEMA)
"""

WRAPPER = """
import os, resource, subprocess, sys
with open(os.devnull, "wb") as null:
    read, write = os.pipe()
    sink = subprocess.Popen(["wc", "-l"], stdin=read, stdout=subprocess.PIPE)
    os.close(read)
    done = subprocess.run(sys.argv[1:], stdout=write, stderr=subprocess.PIPE)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    os.close(write)
    lines, _ = sink.communicate()
sys.stderr.write(done.stderr.decode()[-2000:])
print(done.returncode, peak, int(lines))
"""

SMALL, BIG = 20, 1_000_000  # characters of text in a row


@dataclass(frozen=True)
class Case:
    """What a tap yields: single dicts, or pages of ``page`` rows as lists, JSON or Arrow."""

    kind: str
    size: int
    page: int = 1

    def __str__(self) -> str:
        rows = "1 MB rows" if self.size == BIG else "small rows"
        return f"{self.kind}, {rows}" + (f", {self.page} a page" if self.page > 1 else "")


CASES = [
    Case("dicts", SMALL),
    Case("lists", SMALL, 1000),
    Case("bytes", SMALL, 1000),
    Case("arrow", SMALL, 10_000),
    Case("dicts", BIG),
    Case("small first", BIG),
    Case("lists", BIG, 4),
    Case("bytes", BIG, 4),
    Case("arrow", BIG, 4),
]


def peak(case: Case, count: int, folder: Path) -> float:
    """The peak of a run's resident memory, in MB.

    Raises:
        AssertionError: the run failed, or wrote another number of lines.
    """
    path = write_tap(folder, SOURCE, "tap_memory.py")
    given = {"COUNT": count, "SIZE": case.size, "PAGE": case.page, "KIND": case.kind}
    variables = {f"TAP_MEMORY_{name}": str(value) for name, value in given.items()}
    command = [sys.executable, "-m", "burler", "run", str(path)]
    ended = python("-c", WRAPPER, *command, cwd=folder, timeout=600, PYTHONPATH=str(ROOT), **variables)
    code, kilobytes, lines = map(int, ended.stdout.split())
    assert code == 0, ended.stderr
    assert lines > count, ended.stderr
    return kilobytes / 1024


def counts(case: Case, *, whole: bool) -> tuple[int, int]:
    """The numbers of rows that are held against each other."""
    if case.size == BIG:
        return (20, 400) if whole else (20, 150)
    return (10_000, 2_000_000) if whole else (10_000, 300_000)


def main() -> None:
    """The whole table from the command line."""
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            few, many = counts(case, whole=True)
            try:
                first, second = peak(case, few, Path(folder)), peak(case, many, Path(folder))
            except AssertionError as error:
                print(f"{case!s:32} failed: {str(error).strip().splitlines()[-1]:.120}")
                worst = 1
                continue
            flat = second <= first * 1.1 + 10
            worst |= not flat
            print(
                f"{case!s:32} {few:>9,}: {first:6.1f} MB  {many:>9,}: {second:6.1f} MB  {'flat' if flat else 'GROWS'}"
            )
    sys.exit(worst)


if __name__ == "__main__":
    main()
