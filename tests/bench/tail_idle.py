"""What a tail costs that finds nothing new: CPU of one process.

    python tests/bench/tail_idle.py                     50 streams, polled each 5 s, for a minute
    python tests/bench/tail_idle.py --seconds 30 --streams 20 --interval-ms 1000
    python tests/bench/tail_idle.py --profile           the dearest functions, at a pace a hundred times as high

Four processes at the same time: a tap with burler.http on a local server that keeps connections and answers with an
empty page; a tap whose functions return an empty list (the engine's own share); one with a tail function to which
nothing comes; and a loop with plain ``requests`` at the same pace as the first (the floor). Exit code 1 where the first
needs more than 1 % of a core. On a busy machine, ``chrt -f 1 python ...`` keeps others from getting in between.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import os
import pstats
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tail_server import EMPTY, PLAIN, POLLED, PUSHED, Source, load, program, tail

BAR = 0.01
BLOCKED = "burler, pushed to"


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads of a process so far, by the scheduler's own clock (nanoseconds)."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in threads) / 1e9


def measure(children: dict[str, subprocess.Popen], seconds: float, warm_seconds: float) -> dict[str, float]:
    """The share of a core that each process needs."""
    time.sleep(warm_seconds)
    begun = time.monotonic()
    before = {name: cpu_seconds(child.pid) for name, child in children.items()}
    time.sleep(seconds)
    passed = time.monotonic() - begun
    shares = {name: (cpu_seconds(child.pid) - before[name]) / passed for name, child in children.items()}
    if ended := [name for name, child in children.items() if child.poll() is not None]:
        raise SystemExit(f"ended in the middle: {ended}")
    return shares


def shares(streams: int, interval_ms: int, seconds: float, warm_seconds: float) -> dict[str, float]:
    """Of burler with HTTP, without, with a tail function; of plain requests."""
    flags = ["--new-record-polling-interval-ms", str(interval_ms)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source = stack.enter_context(Source())
        env = {"SOURCE": source.url, "STREAMS": streams, "SECONDS": interval_ms / 1000}
        children = {
            "burler over HTTP": stack.enter_context(tail(folder, POLLED, *flags, **env)),
            "burler, no source": stack.enter_context(tail(folder, EMPTY, *flags, **env)),
            BLOCKED: stack.enter_context(tail(folder, PUSHED, SOURCE=source.address)),
            "requests alone": stack.enter_context(program([sys.executable, "-c", PLAIN], **env)),
        }
        found = measure(children, seconds, warm_seconds)
        expected = 2 * streams * seconds / (interval_ms / 1000)
        if source.requests < 0.7 * expected:
            raise SystemExit(
                f"{source.requests} requests came in place of some {expected:.0f}: the machine is too busy"
            )
    return found


def profile(streams: int, text: str, rounds: int) -> str:
    """The dearest functions of so many rounds without a wait, in this process."""
    from burler import Tap
    from burler.testing import FakeClock, run_tap

    with Source() as source:
        os.environ |= {"SOURCE": source.url, "STREAMS": str(streams)}
        space: dict[str, object] = {}
        exec(compile(text, "the tap", "exec"), space)
        tap = space["tap"]
        assert isinstance(tap, Tap)
        seen = cProfile.Profile()
        settings = {"tail": True, "tail_max_rounds": rounds, "new_record_polling_interval_ms": 50}
        begun = time.process_time()
        seen.runcall(run_tap, tap, settings, clock=FakeClock())
        cpu = time.process_time() - begun
    out = io.StringIO()
    pstats.Stats(seen, stream=out).sort_stats("tottime").print_stats(25)
    return f"{streams * rounds} polls, {cpu / streams / rounds * 1e6:.0f} us each with the profiler\n{out.getvalue()}"


def main(args: list[str] | None = None) -> int:
    """Measure and print; gives the exit code."""
    parser = argparse.ArgumentParser(description="CPU of a tail that finds nothing new.")
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--interval-ms", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--warm-seconds", type=float, default=10, help="before that")
    parser.add_argument("--profile", action="store_true", help="show the dearest functions")
    given = parser.parse_args(args)
    print(load())
    if given.profile:
        print(profile(given.streams, EMPTY, 200), profile(given.streams, POLLED, 40), sep="\n")
        return 0
    found = shares(given.streams, given.interval_ms, given.seconds, given.warm_seconds)
    polls = given.streams / given.interval_ms * 1000
    for name, share in found.items():
        each = "" if name == BLOCKED else f", {share / polls * 1e6:5.0f} us a poll ({polls:.0f} polls/s)"
        print(f"{name:20} {share:6.2%} of a core{each}")
    good = found["burler over HTTP"] <= BAR
    print(f"bar {BAR:.0%}: {'good' if good else 'MISSED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
