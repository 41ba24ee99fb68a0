"""What an export of very many files costs its driver before the first row is read: CPU seconds and memory.

    python tests/bench/spark/plan_bench.py                     # 10,000 and 100,000 files; some minutes
    python tests/bench/spark/plan_bench.py --files 5000 --read # and reads them all

Nothing here depends on rows: each file has one. Per number of files, each in a process of its own:

    manifest   one snapshot of the manifest (``load_stream``)
    decide     which files an export reads: all of them, and the new ones of an increment of a hundredth
    scan       handing Spark the list: it looks at each path, and knows sizes and blocks of all afterwards
    plan       Spark's plan of the job
    read       with ``--read``: all rows, counted

The files are links to a few real ones, so that a lake of 100,000 files is made in seconds.
"""

from __future__ import annotations

import argparse
import datetime as dt
import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from burler.lake import FileStats
from burler.singer.messages import format_time
from support.internals import layout
from support.internals import manifest_document as doc

TAP, STREAM = "tap-events", "events"
_LINE = (
    b'{"key_properties":["id"],"schema":{"properties":{"id":{"type":"integer"},"name":{"type":"string"}},'
    b'"type":"object"},"stream":"events","type":"SCHEMA"}'
)
_ROW = (
    b'{"type":"RECORD","stream":"events","record":{"id":1,"name":"a"},"time_extracted":"2024-01-01T00:00:00.000000Z"}'
)
_BEGIN = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
_LINKS = 30_000
"""Links to one file: file systems allow 32,000 or 65,000."""
MB = 1e6


def make_lake(root: Path, files: int) -> None:
    """A lake of so many files of one row, a minute and a commit each."""
    document = doc.new_document(TAP, STREAM)
    digest = doc.add_schema(document, _LINE)
    folder = root / "raw" / TAP / STREAM
    (folder / digest).mkdir(parents=True)
    content = gzip.compress(_LINE + b"\n" + _ROW + b"\n")
    source = folder
    for number in range(files):
        first = _BEGIN + dt.timedelta(minutes=number)
        name = f"{digest}/{layout.file_name(STREAM, first, first)}"
        if number % _LINKS:
            (folder / name).hardlink_to(source)
        else:
            source = folder / name
            source.write_bytes(content)
        at = format_time(first)
        stats = FileStats(1, len(_LINE + _ROW) + 2, at, at, sequence=number + 1, clean=True)
        document["file_stats"][name] = stats.to_wire()
        document["files"].append(name)
    document["sequence"] = files
    (folder / "manifest.json").write_bytes(doc.to_bytes(document))


class Watch:
    """CPU seconds and memory of this process and its JVM, step by step."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self.jvm: int | None = None

    def _cpu(self) -> tuple[float, float]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        if self.jvm is None:
            return used.ru_utime + used.ru_stime, 0.0
        fields = Path(f"/proc/{self.jvm}/stat").read_text().rpartition(")")[2].split()
        return used.ru_utime + used.ru_stime, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure what happens inside."""
        began, cpu = time.monotonic(), self._cpu()
        yield
        python, jvm = (after - before for after, before in zip(self._cpu(), cpu, strict=True))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MB
        told = {"step": name, "wall": time.monotonic() - began, "python": python, "jvm": jvm, "peak": peak}
        self.steps.append({key: round(value, 2) if isinstance(value, float) else value for key, value in told.items()})


def planned(root: Path, watch: Watch) -> Any:
    """The manifest and the decision, without Spark."""
    from burler.lake import open_store
    from support.internals import export_options, formats_base, lakefiles, spark_plan

    store = open_store(str(root))
    with watch.step("manifest"):
        lake = lakefiles.load_stream(store, TAP, STREAM)
    options = export_options.ExportOptions()
    with watch.step("decide, all"):
        whole = spark_plan.decide(lake, formats_base.TableState(), options)
    assert len(whole.files) == len(lake.files)
    behind = {
        name: number - number // 100 if name.startswith("burler:") else number for name, number in whole.numbers.items()
    }
    state = formats_base.TableState(version=0, schema=whole.schema, numbers=behind)
    with watch.step("decide, 1 % new"):
        more = spark_plan.decide(lake, state, options)
    assert more.kind != "rebuild" and len(more.files) == len(lake.files) // 100, (more.kind, len(more.files))
    return lake, whole


def in_spark(root: Path, watch: Watch, read: bool) -> None:
    """The list of files handed to Spark, and its plan."""
    from burler.spark import session
    from support.internals import jvm, spark_scan, united

    lake, _ = planned(root, watch)
    spark = session("plans", {"spark.driver.memory": "4g"}, master="local[2]")
    spark.range(10).count()
    watch.jvm = jvm._started[-1][1].pid
    with watch.step("scan"):
        frame = spark_scan.scan(spark, lake.files, united.unite_stream(STREAM, lake.versions))
    with watch.step("plan"):
        frame._jdf.queryExecution().executedPlan().toString()
    heap = spark.sparkContext._jvm.java.lang.Runtime.getRuntime()
    spark.sparkContext._jvm.java.lang.System.gc()
    watch.steps.append({"step": "heap kept", "mb": round((heap.totalMemory() - heap.freeMemory()) / MB)})
    if read:
        with watch.step("read"):
            assert frame.count() == len(lake.files)
    status = Path(f"/proc/{watch.jvm}/status").read_text().splitlines()
    most = next(line for line in status if line.startswith("VmHWM"))
    watch.steps.append({"step": "JVM's most", "mb": round(int(most.split()[1]) * 1024 / MB)})


def in_process(stage: Callable[..., Any], root: Path, **options: Any) -> list[dict[str, Any]]:
    """Run a stage in a process of its own; its steps."""
    command = [sys.executable, __file__, "--stage", stage.__name__, "--root", str(root)]
    command += [f"--{name}" for name, value in options.items() if value]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    steps: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return steps


def report(files: int, steps: list[dict[str, Any]]) -> None:
    """One table, as it stands in docs/spark.md."""
    print(f"\n{files:,} files\n")
    print("| step | wall s | CPU s, Python | CPU s, JVM | Python's most, MB |\n| --- | --- | --- | --- | --- |")
    for one in steps:
        if "mb" in one:
            print(f"| {one['step']} | | | | {one['mb']:,} MB |")
        else:
            print(f"| {one['step']} | {one['wall']:.2f} | {one['python']:.2f} | {one['jvm']:.2f} | {one['peak']:.0f} |")


def main() -> None:
    """Measure, or be one of the processes that are measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, action="append", help="may be given again; 10,000 and 100,000")
    parser.add_argument("--read", action="store_true", help="read all files, too")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.stage:
        watch = Watch()
        if given.stage == "planned":
            planned(given.root, watch)
        else:
            in_spark(given.root, watch, given.read)
        print(json.dumps(watch.steps))
        return
    for files in given.files or (10_000, 100_000):
        root = Path(tempfile.mkdtemp(prefix="burler-plan-"))
        try:
            make_lake(root, files)
            size = next(root.rglob("manifest.json")).stat().st_size / MB
            print(f"manifest: {size:.1f} MB")
            report(files, in_process(in_spark, root, read=given.read))
        finally:
            shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
