"""How much faster the tap is with several workers: `python -m examples.tap_helpdesk.speed`.

A server in a process of its own waits 50 ms before each reply of 100 rows. The tap reads the tickets of 64 accounts
with 1, 2, 4, 8 and 16 workers; each run is a process, and its whole time counts, start and end included.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent


@contextmanager
def server(accounts: int, tickets: int, comments: int, latency_ms: float) -> Iterator[str]:
    """Run a server that holds `tickets` for each account and up to `comments` for each of those; its address."""
    options = {"port": 0, "accounts": accounts, "tickets": tickets, "comments": comments, "events": 0}
    command = [sys.executable, "-m", f"{__package__}.server", f"--latency-ms={latency_ms}", "--even"]
    command += [f"--{name}={value}" for name, value in options.items()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[2].rstrip(",")
        finally:
            process.terminate()


def measure(url: str, workers: int, more: list[str]) -> tuple[float, float, int]:
    """Run the tap once: seconds, seconds of CPU, rows."""
    environment = {**os.environ, "BURLER_LOG_LEVEL": "ERROR"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump({"base_url": url, "partition_workers": workers}, config)
        config.flush()
        command = [sys.executable, "-m", "burler", "run", str(HERE), "--config", config.name, *more]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
            assert process.stdout is not None
            rows = sum(line.startswith(b'{"type":"RECORD"') for line in process.stdout)
    if process.returncode:
        sys.exit(f"the tap failed with exit code {process.returncode}")
    seconds = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, rows


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m examples.tap_helpdesk.speed", description=__doc__.split("\n")[0])
    parser.add_argument("--accounts", type=int, default=64)
    parser.add_argument("--tickets", type=int, default=1000, help="of each account")
    parser.add_argument("--comments", type=int, default=0, help="of a ticket, at most; then they are read as well")
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    given = parser.parse_args()
    sys.stdout.write("| workers | seconds | rows | rows/s | CPU seconds | times as fast | / workers |\n")
    sys.stdout.write("| --- | --- | --- | --- | --- | --- | --- |\n")
    streams = "tickets,comments" if given.comments else "tickets"
    with server(given.accounts, given.tickets, given.comments, given.latency_ms) as url:
        first = 0.0
        for workers in given.workers:
            seconds, cpu, rows = measure(url, workers, ["--select", streams])
            first = first or seconds * workers
            times = first / seconds
            sys.stdout.write(
                f"| {workers} | {seconds:.2f} | {rows:,} | {rows / seconds:,.0f} | {cpu:.2f} | {times:.2f} "
                f"| {times / workers:.2f} |\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
