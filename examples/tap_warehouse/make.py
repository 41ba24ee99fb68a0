"""Makes the files of the warehouse: `python -m examples.tap_warehouse.make FOLDER --days 3`.

`--late DAY` writes a day that is before all others, with an old time; `--correct DAY` writes one again, changed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import os
import random
from pathlib import Path

SALES_A_DAY = 200
EVENTS_A_DAY = 50


def write_day(folder: Path, day: int, *, correction: int = 0) -> Path:
    """The sales of a day of May 2024, as its file; gives the path."""
    chance = random.Random(day)
    text = io.StringIO(newline="")
    out = csv.writer(text, delimiter=";")
    out.writerow(["sale_id", "sold_at", "article", "pieces", "amount", "paid", "remark"])
    for number in range(SALES_A_DAY):
        at = f"2024-05-{day:02} {8 + number // 60:02}:{number % 60:02}:00"
        amount = f"{chance.randrange(100, 100_000) / 100:.2f}"
        remark = f'"{number}"; as agreed\nby phone' if number % 50 == 0 else ("corrected" if correction else None)
        out.writerow([day * 1000 + number, at, chance.randrange(1, 100), 1 + number % 3, amount, "true", remark])
    return _write(folder / f"sales-2024-05-{day:02}.csv.gz", gzip.compress(text.getvalue().encode(), mtime=0))


def write_events(folder: Path, day: int) -> Path:
    """The events of a day, in a folder of their own; gives the path."""
    chance = random.Random(day)
    lines = [
        json.dumps(
            {
                "device": f"gate-{number % 5}",
                "at": f"2024-05-{day:02}T{number // 4:02}:{number % 4 * 15:02}:00Z",
                "kind": chance.choice(["open", "close"]),
                "celsius": round(chance.uniform(-5, 30), 2),
            }
        )
        for number in range(EVENTS_A_DAY)
    ]
    return _write(folder / "events" / "2024" / "05" / f"{day:02}.jsonl", ("\n".join(lines) + "\n").encode())


def _write(path: Path, data: bytes) -> Path:
    """A file that is there as a whole or not at all: under another name first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(data)
    part.replace(path)
    return path


def main(arguments: list[str] | None = None) -> None:
    """Write what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--days", type=int, default=0, metavar="N", help="from the second of May on")
    parser.add_argument("--late", type=int, metavar="DAY", help="with a time of last year, as a copy would have it")
    parser.add_argument("--correct", type=int, metavar="DAY")
    given = parser.parse_args(arguments)
    for day in range(2, 2 + given.days):
        write_day(given.folder, day)
        write_events(given.folder, day)
    if given.late is not None:
        path = write_day(given.folder, given.late)
        os.utime(path, (1_700_000_000, 1_700_000_000))
    if given.correct is not None:
        write_day(given.folder, given.correct, correction=1)


if __name__ == "__main__":
    main()
