"""How long a new row of the source takes to the pipe, in a tail.

    python tests/bench/tail_latency.py                  500 rows, polled each 200 ms; 500 rows that are pushed
    python tests/bench/tail_latency.py --rows 100 --interval-ms 1000

Polled: a local HTTP server that keeps connections, burler.http, rows at random times. Exit code 1 where the 99th
percentile is above the polling interval and 100 ms; 0.1 s is also the bar for rows that come over a socket.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tail_server import POLLED, PUSHED, Source, load, tail

MARGIN_MS = 100.0
MOST_SECONDS = 60.0


class Arrivals(threading.Thread):
    """When each row's line was read from the tap's stdout, by its id."""

    def __init__(self, child: subprocess.Popen) -> None:
        super().__init__(daemon=True)
        self.pipe = child.stdout
        self.at: dict[int, float] = {}

    def run(self) -> None:
        """Until the tap closes it."""
        for line in self.pipe:
            if line.startswith(b'{"type":"RECORD"'):
                self.at.setdefault(json.loads(line)["record"]["id"], time.monotonic())

    def wait_for(self, number: int) -> None:
        """Until a row is there."""
        limit = time.monotonic() + MOST_SECONDS
        while number not in self.at:
            if time.monotonic() > limit:
                raise SystemExit(f"row {number} has not come within {MOST_SECONDS:.0f} s")
            time.sleep(0.001)


def measure(source: Source, child: subprocess.Popen, rows: int, pause_seconds: float) -> list[float]:
    """Milliseconds from the source to the pipe, of each row."""
    arrivals = Arrivals(child)
    arrivals.start()
    while source.add() and not arrivals.at:
        time.sleep(0.05)  # until the tap is there
    arrivals.wait_for(source.count)
    first = source.count + 1
    chance = random.Random(7)
    added = []
    for _ in range(rows):
        time.sleep(chance.uniform(0, 2 * pause_seconds))
        added.append(source.add())
    arrivals.wait_for(source.count)
    return [(arrivals.at[first + i] - at) * 1000 for i, at in enumerate(added)]


def polled(rows: int, interval_ms: int) -> list[float]:
    """Rows that are asked for over HTTP."""
    with tempfile.TemporaryDirectory() as folder, Source() as source:
        flags = ["--new-record-polling-interval-ms", str(interval_ms)]
        with tail(Path(folder), POLLED, *flags, SOURCE=source.url, STREAMS=1) as child:
            return measure(source, child, rows, pause_seconds=0.04)


def pushed(rows: int) -> list[float]:
    """Rows that come over a socket, in which the tail function blocks."""
    with tempfile.TemporaryDirectory() as folder, Source() as source:
        with tail(Path(folder), PUSHED, SOURCE=source.address) as child:
            return measure(source, child, rows, pause_seconds=0.04)


def percentile(values: list[float], share: float) -> float:
    """The value that so many are not above."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def tell(name: str, values: list[float], bar_ms: float) -> bool:
    """A line of figures; whether they are good enough."""
    good = percentile(values, 0.99) <= bar_ms
    print(
        f"{name:26} {len(values)} rows: median {percentile(values, 0.5):.1f} ms, 99 % within "
        f"{percentile(values, 0.99):.1f} ms, all within {max(values):.1f} ms; bar {bar_ms:.0f} ms: {'good' if good else 'MISSED'}"
    )
    return good


def main(args: list[str] | None = None) -> int:
    """Measure and print; gives the exit code."""
    parser = argparse.ArgumentParser(description="How long a new row takes from the source to the pipe.")
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--interval-ms", type=int, default=200)
    given = parser.parse_args(args)
    print(load())
    bar = given.interval_ms + MARGIN_MS
    good = tell(f"polled each {given.interval_ms} ms", polled(given.rows, given.interval_ms), bar)
    return 0 if tell("pushed", pushed(given.rows), MARGIN_MS) and good else 1


if __name__ == "__main__":
    sys.exit(main())
