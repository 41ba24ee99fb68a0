"""Which files a reader of a lake has to open: told by the manifest, and by listing the store, in wall seconds.

    python tests/bench/lake_plan_bench.py                # one stream of 100,000 files, 3 rounds
    python tests/bench/lake_plan_bench.py --files 5000

The lake lies on an S3 server of this machine (moto, in a process of its own), whose listing has 1,000 names a page, as
S3's has. Both plans are asked for the files of one hour, and must give the same. The bar: with a manifest a plan is
made at least 20 times as fast as by listing. moto may take longer for a page of names than S3 does, so the number of
requests is shown, too: it is what would be paid for.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from burler.lake import manifest_doc as doc
from burler.lake.layout import file_name
from burler.lake.snapshot import FileStats
from burler.singer.messages import format_time

BAR = 20
TAP, STREAM = "tap-events", "events"
_LINE = (
    b'{"key_properties":["id"],"schema":{"properties":{"id":{"type":"integer"}},"type":"object"},'
    b'"stream":"events","type":"SCHEMA"}'
)
_BEGIN = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
_MINUTE = dt.timedelta(minutes=1)


def manifest_of(files: int) -> tuple[bytes, list[str]]:
    """A manifest of so many files, one a minute, and the paths of the files in the lake."""
    document = doc.new_document(TAP, STREAM)
    digest = doc.add_schema(document, _LINE)
    for number in range(files):
        first, last = _BEGIN + number * _MINUTE, _BEGIN + number * _MINUTE + dt.timedelta(seconds=59)
        name = f"{digest}/{file_name(STREAM, first, last)}"
        stats = FileStats(1000, 300_000, format_time(first), format_time(last), sequence=number + 1, clean=True)
        document["file_stats"][name] = stats.to_wire()
        document["files"].append(name)
    document["sequence"] = files
    return doc.to_bytes(document), [f"raw/{TAP}/{STREAM}/{name}" for name in document["files"]]


def serve(files: int) -> None:
    """The server: fills itself, prints its URL, and ends with its input."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from moto.s3.models import s3_backends
    from werkzeug.serving import make_server

    class Counting(MotoRequestHandler):
        def log(self, *_a: Any, **_k: Any) -> None:
            pass

    data, paths = manifest_of(files)
    backend = s3_backends["123456789012"]["aws"]
    for bucket in ("told", "listed"):
        backend.create_bucket(bucket, "us-east-1")
        for path in paths:
            backend.put_object(bucket, path, b"x")
    backend.put_object("told", f"raw/{TAP}/{STREAM}/manifest.json", data)
    application = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Counting)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


@contextlib.contextmanager
def serving(files: int) -> Iterator[str]:
    """A server with both lakes; its URL."""
    command = [sys.executable, __file__, "--serve", "--files", str(files)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def plan(url: str, bucket: str) -> list[str]:
    """The files of the first hour, from a store that knows nothing yet."""
    from burler import lake

    options = {"key": "a", "secret": "b", "endpoint_url": url, "client_kwargs": {"region_name": "us-east-1"}}
    store = lake.open_store(f"s3://{bucket}", options=options)
    found = lake.read(store, tap=TAP, stream=STREAM, since=_BEGIN, until=_BEGIN + dt.timedelta(hours=1)).files
    return [file.path for file in found]


def measure(files: int, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Wall and CPU seconds (of the reader) of each plan; those by listing have one round, since they take long."""
    took: dict[str, list[tuple[float, float]]] = {"told": [], "listed": []}
    with serving(files) as url:
        plan(url, "told")  # imports, and a first connection
        for number in range(rounds):
            plans = {}
            for bucket in ("told", "listed") if number == 0 else ("told",):
                wall, cpu = time.perf_counter(), time.process_time()
                plans[bucket] = plan(url, bucket)
                took[bucket].append((time.perf_counter() - wall, time.process_time() - cpu))
            if len({tuple(paths) for paths in plans.values()}) != 1 or len(plans["told"]) != min(60, files):
                raise SystemExit(f"the plans differ: { ({name: len(paths) for name, paths in plans.items()}) }")
    return took


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
    measured = measure(given.files, given.rounds)
    wall = {name: statistics.median(one[0] for one in rounds) for name, rounds in measured.items()}
    cpu = {name: statistics.median(one[1] for one in rounds) for name, rounds in measured.items()}
    ratio, size = wall["listed"] / wall["told"], len(manifest_of(given.files)[0]) / 1e6
    asked = {"told": f"a manifest of {size:.1f} MB", "listed": f"{-(-given.files // 1000)} pages of names"}
    print(f"{given.files:,} files, {os.cpu_count()} cores, CPython {sys.version.split()[0]}")
    for name, said in (("told", "with a manifest"), ("listed", "by listing")):
        print(f"{said:16} {wall[name]:8.2f} s, {cpu[name]:6.2f} s of CPU: {asked[name]}")
    print(f"ratio            {ratio:8.1f}     (bar {BAR})")
    return 0 if ratio >= BAR else 1


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    raise SystemExit(main())
