"""A storm of signals: many runs of a tap, each stopped at a random moment, each gone on with.

    python tests/runtime/storm.py 500 [first seed]

Each run has a random kind of tap (busy, asleep, blocked in recv or on a lock, in pages), rows of 100 bytes or 200
kB, buffered or not, a fast or a slow reader, SIGTERM or SIGINT. It must end with 0, whole lines, a STATE that covers
exactly the rows that are out, its ``finally`` run; and a second run from that STATE must bring the rest.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tail_storm_process import while_alive
from tail_storm_reader import Reader
from tapprocess import PYTHON, environment, messages_of, write_tap

SLOW_BYTES_PER_SECOND = 5_000_000

SOURCE = """
import socket, sys, threading, time
import burler

tap = burler.tap("tap-storm", config_spec={"mode": "x", "size": 1, "count": 1, "stuck": 1, "every": 1, "order": "asc"})
CONFIG = None

@tap.client
def client(config):
    return config

def block(mode):
    if mode == "sleep":
        time.sleep(600)
    elif mode == "recv":
        a, b = socket.socketpair()
        with a, b:
            a.recv(1)
    elif mode == "lock":
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    while True:
        sum(range(100))

def rows(client, stream):
    mode, text = client["mode"], "x" * client["size"]
    start = stream.bookmark or 0
    try:
        if mode == "pages":
            for i in range(start, client["count"], 40):
                yield [{"id": n, "text": text} for n in range(i, min(i + 40, client["count"]))]
            return
        for i in range(start, client["count"]):
            if i == client["stuck"]:
                block(mode)
            if mode == "busy":
                sum(range(200))
            yield {"id": i, "text": text}
            stream.state["done"] = i
    finally:
        sys.stderr.write("FINALLY\\n")

tap.schema("rows", SCHEMA)
import os
every = os.environ["STORM_EVERY"]
tap.sync("rows", key_properties="id", replication_key="id", order="asc", bookmark_strategy=every)(rows)

if __name__ == "__main__":
    tap.cli()
"""


def plan(seed: int) -> dict[str, Any]:
    """What a run is like."""
    rng = random.Random(seed)
    mode = rng.choice(["busy", "sleep", "recv", "lock", "pages"])
    big = rng.random() < 0.4
    count = 400 if big else 30_000
    return {
        "mode": mode,
        "size": 200_000 if big else 100,
        "count": count,
        "stuck": rng.randrange(count) if mode not in ("busy", "pages") else -1,
        "every": rng.choice(["end_of_sync", "every_n(100)", "every_n(1000)", "every_n(1)" if big else "every_n(333)"]),
        "unbuffered": rng.random() < 0.5,
        "slow": rng.random() < 0.5,
        "signal": rng.choice([signal.SIGTERM, signal.SIGINT]),
        "after": rng.choice([0.0, 0.02, 0.1, 0.3]) * rng.random(),
    }


def start(folder: Path, run: dict[str, Any], state: Path | None, **more: Any) -> subprocess.Popen[bytes]:
    keys = ("mode", "size", "count", "stuck")
    variables = {f"TAP_STORM_{key.upper()}": str(value) for key, value in {**run, **more}.items() if key in keys}
    variables |= {"TAP_STORM_EVERY": "1", "TAP_STORM_ORDER": "asc", "STORM_EVERY": run["every"]}
    if run["unbuffered"]:
        variables["PYTHONUNBUFFERED"] = "1"
    return subprocess.Popen(
        [PYTHON, str(folder / "tap_storm.py"), *(["--state", str(state)] if state else [])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**variables),
    )


def ids_of(messages: list[dict[str, Any]]) -> list[int]:
    return [message["record"]["id"] for message in messages if message["type"] == "RECORD"]


def one_run(seed: int, folder: Path) -> str:
    """One run and its continuation; raises AssertionError with everything one wants to know."""
    run = plan(seed)
    process = start(folder, run, None)
    assert process.stdout is not None
    assert process.stderr is not None
    reader = Reader(process.stdout.fileno(), bytes_per_second=SLOW_BYTES_PER_SECOND if run["slow"] else None)
    reader.start()
    assert while_alive(process, reader.begun.is_set, 120), f"seed {seed}: nothing has come"
    time.sleep(run["after"])
    process.send_signal(run["signal"])
    reader.hurry()
    reader.join(120)
    with process.stdout, process.stderr:
        stderr = process.stderr.read().decode()
        code = process.wait(120)
    said = f"seed {seed}: {run}\n exit {code}, {len(reader.got)} bytes\n{stderr}"
    try:
        messages = messages_of(bytes(reader.got))
        out = ids_of(messages)
        ended = len(out) == run["count"]
        assert code == 0 or (ended and code in (-run["signal"], 130)), "exit code"
        assert messages[-1]["type"] == "STATE", messages[-1]["type"]
        assert stderr.count("FINALLY") == (1 if out or "FINALLY" in stderr else 0), "finally"
        assert "Traceback" not in stderr
        entry = messages[-1]["value"].get("bookmarks", {}).get("rows", {})
        assert out == list(range(len(out))), "rows"
        assert entry.get("id") == (out[-1] if out else None), (entry, out[-1:])
        assert entry.get("stream_state", {}).get("done", -1) < len(out)
        missing = set(range(run["count"])) - set(out) - set(_continued(seed, folder, run, messages[-1]["value"]))
        assert not missing, sorted(missing)[:5]
    except AssertionError as error:
        raise AssertionError(f"{error}\n{said}") from error
    return "ended before the signal" if ended else f"{run['mode']}, {run['size']} B"


def _continued(seed: int, folder: Path, run: dict[str, Any], state: dict[str, Any]) -> list[int]:
    path = folder / f"state-{seed}.json"
    path.write_text(json.dumps(state))
    process = start(folder, {**run, "unbuffered": False}, path, mode="rest", stuck=-1)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err.decode()
    return ids_of(messages_of(out))


def storm(seeds: Iterable[int], folder: Path, workers: int = 3) -> Counter[str]:
    """A run for each seed; how often which kind came."""
    write_tap(folder, SOURCE, "tap_storm.py")
    with ThreadPoolExecutor(workers) as pool:
        return Counter(pool.map(lambda seed: one_run(seed, folder), seeds))


def main() -> None:
    """The storm from the command line."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for kind, count in sorted(storm(range(first, first + runs), Path(folder)).items()):
            print(f"{count:5}  {kind}")
    print(f"{runs} runs, {time.monotonic() - begun:.0f} s, all clean")


if __name__ == "__main__":
    main()
