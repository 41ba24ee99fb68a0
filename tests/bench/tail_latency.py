"""How long a new row of the source takes to the pipe, in a tail.

    python tests/bench/tail_latency.py                  500 rows, polled each 200 ms; 500 rows that are pushed
    python tests/bench/tail_latency.py --rows 100 --interval-ms 1000

Polled: a local HTTP server that keeps connections, burler.http, rows at random times. Exit code 1 where the 99th
percentile is above the polling interval and 100 ms; 100 ms is the bar for rows that come over a socket. Beside it runs
a plain loop that reads the same rows at the same interval: what the machine itself does to the figures.
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
from contextlib import ExitStack
from pathlib import Path

from tail_server import PLAIN_POLLED, PLAIN_PUSHED, POLLED, PUSHED, Source, load, program, tail

MARGIN_MS = 100.0
MOST_SECONDS = 60.0
PAUSE_SECONDS = 0.04  # between two rows, on average


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


def measure(source: Source, children: dict[str, subprocess.Popen], rows: int) -> dict[str, list[float]]:
    """Milliseconds from the source to the pipe, of each row, for each program; all read the same rows."""
    arrivals = {name: Arrivals(child) for name, child in children.items()}
    for one in arrivals.values():
        one.start()
    while not all(one.at for one in arrivals.values()):
        source.add()
        time.sleep(0.05)
    first = source.count + 1
    chance = random.Random(7)
    added = []
    for _ in range(rows):
        time.sleep(chance.uniform(0, 2 * PAUSE_SECONDS))
        added.append(source.add())
    for one in arrivals.values():
        one.wait_for(source.count)
    return {name: [(one.at[first + i] - at) * 1000 for i, at in enumerate(added)] for name, one in arrivals.items()}


def polled(rows: int, interval_ms: int) -> dict[str, list[float]]:
    """Rows that are asked for over HTTP: by burler, by plain requests."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source = stack.enter_context(Source())
        env = {"SOURCE": source.url, "STREAMS": 1, "SECONDS": interval_ms / 1000}
        flags = ["--new-record-polling-interval-ms", str(interval_ms)]
        children = {
            "burler": stack.enter_context(tail(folder, POLLED, *flags, **env)),
            "requests alone": stack.enter_context(program([sys.executable, "-c", PLAIN_POLLED], **env)),
        }
        return measure(source, children, rows)


def pushed(rows: int) -> dict[str, list[float]]:
    """Rows that come over a socket, in which the tail function blocks: by burler, by a loop that prints them."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source = stack.enter_context(Source())
        children = {
            "burler": stack.enter_context(tail(folder, PUSHED, SOURCE=source.address)),
            "a plain loop": stack.enter_context(program([sys.executable, "-c", PLAIN_PUSHED], SOURCE=source.address)),
        }
        return measure(source, children, rows)


def percentile(values: list[float], share: float) -> float:
    """The value that so many are not above."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def tell(title: str, found: dict[str, list[float]], bar_ms: float) -> bool:
    """Lines of figures; whether burler's are good enough."""
    print(f"{title}, {len(found['burler'])} rows, milliseconds from the source to the pipe")
    for name, values in found.items():
        print(
            f"  {name:16} median {percentile(values, 0.5):6.1f}   99 % within {percentile(values, 0.99):6.1f}   "
            f"all within {max(values):6.1f}"
        )
    good = percentile(found["burler"], 0.99) <= bar_ms
    print(f"  bar {bar_ms:.0f} ms: {'good' if good else 'MISSED'}")
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
