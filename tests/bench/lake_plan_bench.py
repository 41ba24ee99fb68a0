"""Which files a reader of a lake has to open: told by the manifest, and by listing the store.

    python tests/bench/lake_plan_bench.py                # one stream of 100,000 files, 3 rounds; some ten minutes
    python tests/bench/lake_plan_bench.py --files 5000
    python tests/bench/run.py --lake-plan 5000           # the same, from where all is measured

The lake lies on an S3 server of this machine (moto, in a process of its own), whose listing has 1,000 names a page, as
S3's has. Both plans are asked for the files of one hour, in turns, and must give the same. The bar: with a manifest a
plan is made at least 20 times as fast as by listing, in wall seconds.

**Most of that ratio is moto's.** It looks at all keys of a bucket for each page of names, so that listing many files
takes it minutes; S3 takes a tenth of a second or two for a page, however many there are. What does not depend on the
server stands beside it: the requests, by kind, and the reader's CPU; and what the server itself worked. From these
it is reckoned, not measured, what a store would give that answers each request in 100 ms and sends 100 MB a second.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import datetime as dt
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burler.lake import LakeWriter, open_store
from burler.singer.messages import Schema, format_time

BAR = 20
PLANS = {"told": "with a manifest", "listed": "by listing"}  # by the bucket that has the lake
_REQUEST_SECONDS, _BYTES_A_SECOND = 0.1, 100e6  # of the store that is reckoned with
TAP, STREAM = "tap-events", "events"
_BEGIN = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
_MINUTE = dt.timedelta(minutes=1)


def manifest_of(files: int) -> tuple[bytes, list[str]]:
    """A manifest of so many files, one a minute, and the paths of the files in the lake: one real file, and as many
    entries like its own."""
    with tempfile.TemporaryDirectory() as folder:
        with LakeWriter(open_store(folder), TAP, emit_state=lambda state: None) as writer:
            writer.schema(Schema(STREAM, {"type": "object", "properties": {"id": {"type": "integer"}}}, ("id",)))
            line = b'{"type":"RECORD","stream":"events","record":{"id":1},"time_extracted":"%s"}\n'
            writer.record_line(STREAM, line % format_time(_BEGIN).encode(), _BEGIN)
        document = json.loads((Path(folder) / "raw" / TAP / STREAM / "manifest.json").read_bytes())
    [only], [stats] = document["files"], document["file_stats"].values()
    stamp = f"{_BEGIN:%Y%m%dT%H%M%SZ}"
    assert f"{stamp}-{stamp}" in only, only
    document |= {"files": [], "file_stats": {}, "sequence": files}
    for number in range(files):
        first, last = _BEGIN + number * _MINUTE, _BEGIN + number * _MINUTE + dt.timedelta(seconds=59)
        name = only.replace(f"{stamp}-{stamp}", f"{first:%Y%m%dT%H%M%SZ}-{last:%Y%m%dT%H%M%SZ}")
        told = {"first": format_time(first), "last": format_time(last), "sequence": number + 1}
        document["files"].append(name)
        document["file_stats"][name] = {**stats, **told, "records": 1000, "bytes": 300_000}
    data = json.dumps(document, separators=(",", ":")).encode()
    return data, [f"raw/{TAP}/{STREAM}/{name}" for name in document["files"]]


@dataclass(frozen=True)
class Took:
    """What one plan took: wall and CPU seconds of the reader, CPU seconds of the server, requests by kind."""

    wall: float
    cpu: float
    server: float
    requests: dict[str, int]


def serve(files: int) -> None:
    """The server: fills itself, prints its URL, tells what it did for each line that it is sent, and ends with them."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from moto.s3.models import s3_backends
    from werkzeug.serving import make_server

    requests: collections.Counter[str] = collections.Counter()

    class Counting(MotoRequestHandler):
        def log_request(self, *_a: Any, **_k: Any) -> None:
            requests["LIST" if "list-type=" in self.path else self.command] += 1

        def log(self, *_a: Any, **_k: Any) -> None:
            pass

    data, paths = manifest_of(files)
    backend = s3_backends["123456789012"]["aws"]
    for bucket in PLANS:
        backend.create_bucket(bucket, "us-east-1")
        for path in paths:
            backend.put_object(bucket, path, b"x")
    backend.put_object("told", f"raw/{TAP}/{STREAM}/manifest.json", data)
    application = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Counting)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    used = time.process_time()
    for _line in sys.stdin:
        print(json.dumps({"server": time.process_time() - used, "requests": requests}), flush=True)
        used = time.process_time()
        requests.clear()


@contextlib.contextmanager
def serving(files: int) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """A server with both lakes: its URL, and a function that gives what it did since that was asked last."""
    command = [sys.executable, __file__, "--serve", "--files", str(files)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        answers = process.stdout

        def told() -> dict[str, Any]:
            print(file=process.stdin, flush=True)
            told: dict[str, Any] = json.loads(answers.readline())
            return told

        try:
            yield process.stdout.readline().strip(), told
        finally:
            process.stdin.close()


def plan(url: str, bucket: str) -> list[str]:
    """The files of the first hour, from a store that knows nothing yet."""
    from burler import lake

    options = {"key": "a", "secret": "b", "endpoint_url": url, "client_kwargs": {"region_name": "us-east-1"}}
    store = lake.open_store(f"s3://{bucket}", options=options)
    found = lake.read(store, tap=TAP, stream=STREAM, since=_BEGIN, until=_BEGIN + dt.timedelta(hours=1)).files
    return [file.path for file in found]


def measure(files: int, rounds: int) -> dict[str, list[Took]]:
    """What each plan took, round by round.

    Raises:
        SystemExit: the plans are not the same.
    """
    took: dict[str, list[Took]] = {name: [] for name in PLANS}
    with serving(files) as (url, told):
        plan(url, "told")  # imports, and a first connection
        told()
        for _round in range(rounds):
            plans = {}
            for bucket in PLANS:
                wall, cpu = time.perf_counter(), time.process_time()
                plans[bucket] = plan(url, bucket)
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                took[bucket].append(Took(wall, cpu, **told()))
            if len({tuple(paths) for paths in plans.values()}) != 1 or len(plans["told"]) != min(60, files):
                raise SystemExit(f"the plans differ: { ({name: len(paths) for name, paths in plans.items()}) }")
    return took


def report(files: int, took: dict[str, list[Took]]) -> tuple[list[str], float]:
    """Lines for people, of medians; and how many times as fast the plan with a manifest was, in wall seconds."""
    size = len(manifest_of(files)[0])
    lines = [f"{files:,} files, a manifest of {size / 1e6:.1f} MB; {os.cpu_count()} cores, {len(took['told'])} rounds"]
    wall, cpu, reckoned = {}, {}, {}
    for name, said in PLANS.items():
        wall[name] = statistics.median(one.wall for one in took[name])
        cpu[name] = statistics.median(one.cpu for one in took[name])
        server = statistics.median(one.server for one in took[name])
        requests = took[name][-1].requests
        sent = size / _BYTES_A_SECOND if name == "told" else 0.0
        reckoned[name] = cpu[name] + sum(requests.values()) * _REQUEST_SECONDS + sent
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(requests.items()))
        lines.append(
            f"{said:16}{wall[name]:8.2f} s of wall; CPU: the reader's {cpu[name]:.2f} s, moto's {server:.2f} s; {kinds}"
        )
    ratio = wall["listed"] / wall["told"]
    lines += [
        f"times as fast   {ratio:8.1f} in wall seconds (bar {BAR}), of which much is moto's; "
        f"{cpu['listed'] / cpu['told']:.1f} in the reader's CPU",
        f"reckoned, for a store that answers in {_REQUEST_SECONDS * 1000:.0f} ms and sends "
        f"{_BYTES_A_SECOND / 1e6:.0f} MB/s: {reckoned['told']:.2f} s and {reckoned['listed']:.2f} s, "
        f"{reckoned['listed'] / reckoned['told']:.1f} times as fast",
    ]
    return lines, ratio


def main(args: list[str] | None = None) -> int:
    """Measure and print; 1 if the bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(args)
    if given.serve:
        serve(given.files)
        return 0
    if any(importlib.util.find_spec(name) is None for name in ("moto", "s3fs")):
        raise SystemExit("this needs moto and s3fs: pip install '.[test]'")
    lines, ratio = report(given.files, measure(given.files, given.rounds))
    print("\n".join(lines))
    return 0 if ratio >= BAR else 1


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    raise SystemExit(main())
