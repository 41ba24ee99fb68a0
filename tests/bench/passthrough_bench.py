"""A PostgreSQL table as files of BATCH messages that COPY wrote (examples/tap_copy), beside plain ``COPY`` and beside a
tap that makes a RECORD of each row, in wall seconds.

    python tests/bench/passthrough_bench.py             # 2,000,000 rows, 3 rounds
    python tests/bench/passthrough_bench.py --rows 200000

It starts a server of its own (``tests/support/postgres.py``), so PostgreSQL's programs must be on the machine. Wall
seconds of whole processes, start-up included, since the server works beside them; candidates take turns, those that
make RECORDs have one. What the files hold is compared with PostgreSQL's own JSON before anything is timed. The bar:
pass-through takes at most 1.2 times as long as plain ``COPY`` into a file.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
sys.path.append(str(HERE.parent))
if str(HERE) not in sys.path:
    sys.path.append(str(HERE))

BAR = 1.2
STREAM = "public.standard"
_COPY = """
import sys, psycopg
with psycopg.connect(sys.argv[1]) as connection, open(sys.argv[3], "wb", buffering=1 << 20) as out:
    with connection.cursor().copy(f"copy {sys.argv[2]} to stdout (format csv, header)") as copied:
        for data in copied:
            out.write(data)
"""
# As PipelineWise's tap does it: a cursor of the server's, a dict a row, its values made fit for JSON, one RECORD a row.
_ROWS = """
import datetime, decimal, json, sys, psycopg

def fit(value):
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat() + "T00:00:00+00:00"
    if isinstance(value, decimal.Decimal):
        return float(value)
    return value

with psycopg.connect(sys.argv[1]) as connection:
    with connection.cursor(name="rows") as cursor:
        cursor.itersize = 20_000
        cursor.execute(f"select * from {sys.argv[2]}")
        names = [column.name for column in cursor.description]
        extracted = datetime.datetime.now(datetime.timezone.utc).isoformat()
        for row in cursor:
            record = dict(zip(names, map(fit, row)))
            message = {"type": "RECORD", "stream": "standard", "record": record, "time_extracted": extracted}
            sys.stdout.write(json.dumps(message) + "\\n")
"""


@dataclass
class Runs:
    """What the runs of one candidate took: wall and CPU seconds (its own, not the server's)."""

    walls: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)

    @property
    def wall(self) -> float:
        """The median."""
        return statistics.median(self.walls)


class Bench:
    """A server with tables in it, and the candidates' commands. Files go below ``folder``."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.exports = folder / "exports"
        (folder / "copy_bench.py").write_text(_COPY)
        (folder / "rows_bench.py").write_text(_ROWS)

    def tap(self, name: str = "passed", *, batch: bool = True, tables: str = "public", gzip: bool = False) -> list[str]:
        """The command of the tap; all tables of a schema."""
        config = {"database_url": self.url, "schemas": [tables], "folder": str(self.exports)}
        config["compression"] = "gzip" if gzip else "none"
        if batch:
            config["batch_config"] = {"storage": {"root": str(self.exports)}}
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(config))
        return [sys.executable, "-m", "tap_copy", "--config", str(path)]

    def commands(self) -> dict[str, list[str]]:
        """Each candidate's command."""
        copy, rows = (str(self.folder / name) for name in ("copy_bench.py", "rows_bench.py"))
        target = str(self.exports / "plain.csv")
        return {
            "COPY to /dev/null": [sys.executable, copy, self.url, "standard", "/dev/null"],
            "COPY to a file": [sys.executable, copy, self.url, "standard", target],
            "tap-copy, passed through": self.tap(),
            "tap-copy, passed through, gzip": self.tap("gzip", gzip=True),
            "tap-copy, as RECORDs": self.tap("records", batch=False),
            "a RECORD a row (cursor, json.dumps)": [sys.executable, rows, self.url, "standard"],
        }

    def run(self, command: list[str], runs: Runs | None = None) -> bytes:
        """One run, its output read through a pipe; gives the last lines."""
        shutil.rmtree(self.exports, ignore_errors=True)
        self.exports.mkdir()
        begun = time.perf_counter()
        last = b""
        with (self.folder / "stderr").open("wb") as said:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=said, env={**os.environ, "PYTHONPATH": str(EXAMPLES)}
            )
            assert process.stdout is not None
            descriptor = process.stdout.fileno()
            while piece := os.read(descriptor, 1 << 16):
                last = (last + piece)[-(1 << 16) :]
            _pid, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            process.stdout.close()
        if process.returncode:
            raise SystemExit(f"{command[:3]} failed:\n{(self.folder / 'stderr').read_text()[-2000:]}")
        if runs is not None:
            runs.walls.append(time.perf_counter() - begun)
            runs.cpus.append(used.ru_utime + used.ru_stime)
        return last


@contextlib.contextmanager
def prepared(rows: int) -> Iterator[Bench]:
    """A server with the table, and a small one in a schema of its own."""
    from sql_bench import _COLUMNS

    from support import postgres

    with postgres.running() as server, tempfile.TemporaryDirectory() as folder:
        server.execute("create schema few")
        for name, count in (("standard", rows), ("few.standard", min(rows, 10_000))):
            server.execute(
                f"create table {name} as select {_COLUMNS} from generate_series(1, {count}) i",
                f"alter table {name} add primary key (id)",
            )
        server.execute("vacuum analyze")
        yield Bench(Path(folder), server.url())


def compare(bench: Bench) -> int:
    """Hold the rows of the small table's files against PostgreSQL's own JSON of them; gives their number.

    Raises:
        SystemExit: they differ.
    """
    import psycopg

    import burler.batch

    messages = [json.loads(line) for line in bench.run(bench.tap("few", tables="few")).splitlines()]
    (schema,) = [m["schema"] for m in messages if m["type"] == "SCHEMA"]
    passed = [m for m in messages if m["type"] == "BATCH"]
    got = {row["id"]: row for m in passed for row in burler.batch.read(m, schema).rows()}
    with psycopg.connect(bench.url) as connection:
        connection.execute("set timezone = 'UTC'")
        rows = connection.execute("select row_to_json(t)::text from few.standard t").fetchall()
    for (text,) in rows:
        wanted = json.loads(text, parse_float=Decimal)
        wanted["updated_at"] = wanted["updated_at"].replace("+00:00", "Z")
        if got.pop(wanted["id"], None) != wanted:
            raise SystemExit(f"row {wanted['id']} is not what PostgreSQL says")
    if got or sum(m["size"] for m in passed) != len(rows):
        raise SystemExit(f"{len(got)} rows are not in PostgreSQL")
    return len(rows)


def measure(bench: Bench, rows: int, rounds: int) -> tuple[list[str], dict[str, Runs]]:
    """All rounds; gives the lines of the report, and the figures.

    Raises:
        SystemExit: the tap's messages do not name all rows, or its files are not passed through.
    """
    commands = bench.commands()
    found = {name: Runs() for name in commands}
    for number in range(rounds):
        for name, command in commands.items():
            if number and "RECORD" in name:
                continue
            last = bench.run(command, found[name])
            if "passed" in name:
                _check_passed(last, rows)
    return _report(found, rows), found


def _check_passed(last: bytes, rows: int) -> None:
    messages = [json.loads(line) for line in last.splitlines()]
    passed = [m for m in messages if m["type"] == "BATCH"]
    if sum(m["size"] for m in passed) != rows or any(m["format"]["name"] != "csv" for m in passed):
        raise SystemExit("the tap did not pass all rows through")


def _report(found: dict[str, Runs], rows: int) -> list[str]:
    floor = found["COPY to a file"].wall
    lines = ["| candidate | wall s | CPU s | rows/s | x COPY to a file |", "|---|---|---|---|---|"]
    for name, runs in found.items():
        cpu = statistics.median(runs.cpus)
        lines.append(f"| {name} | {runs.wall:.2f} | {cpu:.2f} | {rows / runs.wall:,.0f} | {runs.wall / floor:.2f} |")
    ratio = found["tap-copy, passed through"].wall / floor
    verdict = "PASS" if ratio <= BAR else "MISS"
    return [*lines, f"pass-through: {ratio:.2f} x plain COPY, at most {BAR}: {verdict}"]


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    with prepared(given.rows) as bench:
        print(f"{compare(bench):,} rows are what PostgreSQL says; load {os.getloadavg()[0]:.1f}")
        for line in measure(bench, given.rows, given.rounds)[0]:
            print(line)
        print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
