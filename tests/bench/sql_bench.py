"""A PostgreSQL table to RECORD lines, and to BATCH files in Parquet, in wall seconds: burler beside ``COPY`` and
meltanolabs-tap-postgres.

    python tests/bench/sql_bench.py                     # 2,000,000 rows, 3 rounds
    python tests/bench/sql_bench.py --rows 200000 --no-peers

It starts a server of its own (``tests/support/postgres.py``), so PostgreSQL's programs must be on the machine. Wall
seconds of whole processes, since the server works beside them; candidates take turns. The output is compared with
PostgreSQL's own JSON before anything is timed. A first run's rows are counted, and the timed ones must give as much:
counting lines beside a candidate would take a fifth of the cores that it and the server need.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
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
from typing import Any

import environments

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

TABLES = ("standard", "with_json")
_BARS = {"standard": (0.5, 0.7), "with_json": (0.35, 0.4)}  # of COPY's rows a second: as RECORD, as Parquet
_COLUMNS = """
    i::bigint as id, 'first ' || i % 1000 as first_name, 'last ' || i % 1000 as last_name, 'city ' || i % 100 as city,
    'user' || i % 1000 || '@example.com' as email, repeat('x', 120) as note, i * 0.5::float8 as score,
    (i % 1000) / 7.0::float8 as ratio, i % 2 = 0 as active, timestamptz '2024-01-01 00:00+00' + i * interval '1 second'
    as updated_at, (i % 100000 / 100.0)::numeric(12, 2) as amount, date '2020-01-01' + (i % 1000)::int as born
"""
_NESTED = "jsonb_build_object('a', i % 100, 'b', 'text', 'c', null) as address, array[i, i + 1, i + 2]::int[] as marks"
TAP = """
import burler

tap = burler.tap("tap-bench", config_spec={{"url": "", "table": ""}})

@tap.client
def client(config):
    return burler.sql.Database(config["url"])

@tap.discover
def discover(client, config):
    return client.discover(schemas=["public"], tables=config["table"])

@tap.sync("*")
def rows(client, stream):
    return client.pages(stream)

tap.cli()
"""
COPY = """
import sys, psycopg
with psycopg.connect(sys.argv[1]) as connection, open("/dev/null", "wb") as out:
    cursor = connection.cursor()
    with cursor.copy(f"copy {sys.argv[2]} to stdout (format csv)") as copied:
        for data in copied:
            out.write(data)
    print("COPY", cursor.rowcount)
"""
# In a process of their own: the memory of this one would count for those that it starts.
ROWS = """
import json, sys, pyarrow.parquet as pq
for path in sys.argv[1:]:
    for row in pq.read_table(path).to_pylist():
        print(json.dumps(row, default=str))
"""
COUNT = "import sys, pyarrow.parquet as pq; print(sum(pq.read_metadata(path).num_rows for path in sys.argv[1:]))"
_RECORD, _COPIED = re.compile(rb'"type": ?"RECORD"'), re.compile(rb"COPY (\d+)")
_LONGEST = len('"type": "RECORD"')
_ROW_BYTES = 200  # a line of a row has more


@dataclass
class Runs:
    """What the runs of one candidate took: wall and CPU seconds, and the greatest peak in bytes.

    Attributes:
        size: the bytes of its first run's output, the rows of which were counted.
    """

    rows: int
    size: int | None = None
    walls: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)
    peak: int = 0

    @property
    def rate(self) -> float:
        """Rows per wall second, by the median."""
        return self.rows / statistics.median(self.walls)


class Bench:
    """A server with tables in it, and the candidates' commands."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        (folder / "tap_bench.py").write_text(TAP.format())
        (folder / "copy_bench.py").write_text(COPY)

    def burler(self, table: str) -> list[str]:
        """The command of burler's tap of one table."""
        config = self.folder / f"{table}.json"
        config.write_text(json.dumps({"url": self.url, "table": table}))
        return [sys.executable, str(self.folder / "tap_bench.py"), "--config", str(config)]

    def batch(self, table: str) -> list[str]:
        """The same with BATCH files."""
        config = self.folder / f"{table}-batch.json"
        files = {"encoding": {"format": "parquet"}, "storage": {"root": str(self.files)}}
        config.write_text(json.dumps({"url": self.url, "table": table, "batch_config": files}))
        return [sys.executable, str(self.folder / "tap_bench.py"), "--config", str(config)]

    @property
    def files(self) -> Path:
        """Where BATCH files go."""
        return self.folder / "files"

    def copy(self, table: str) -> list[str]:
        """The command of ``COPY`` through psycopg."""
        return [sys.executable, str(self.folder / "copy_bench.py"), self.url, table]

    def meltano(self, table: str) -> list[str]:
        """The command of meltanolabs-tap-postgres, with that table selected.

        Raises:
            environments.NotInstalled: it can't be installed.
        """
        script = Path(environments.python_of("meltanolabs-tap-postgres")).parent / "tap-postgres"
        config, catalog = self.folder / "meltano.json", self.folder / f"meltano-{table}.json"
        config.write_text(json.dumps({"sqlalchemy_url": self.url.replace("postgresql:", "postgresql+psycopg2:")}))
        if not catalog.exists():
            found = subprocess.run([script, "--config", config, "--discover"], check=True, capture_output=True)
            streams = [one for one in json.loads(found.stdout)["streams"] if one["tap_stream_id"] == f"public-{table}"]
            for entry in streams[0]["metadata"]:
                entry["metadata"]["selected"] = True
            catalog.write_text(json.dumps({"streams": streams}))
        return [str(script), "--config", str(config), "--catalog", str(catalog)]

    def run(self, command: list[str], runs: Runs) -> None:
        """One run, its output read through a pipe and thrown away. The first one's rows are counted, and it is not
        timed.

        Raises:
            SystemExit: it fails, or gives another number of rows, or an output of another size.
        """
        shutil.rmtree(self.files, ignore_errors=True)
        counts = runs.size is None
        records, size, last = 0, 0, b""
        begun = time.perf_counter()
        with (self.folder / "stderr").open("wb") as said:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said)
            assert process.stdout is not None
            descriptor = process.stdout.fileno()
            while data := os.read(descriptor, 1 << 16):
                size += len(data)
                if counts:
                    data = last + data
                    found = list(_RECORD.finditer(data))
                    records += len(found)
                    last = data[max(found[-1].end() if found else 0, len(data) - _LONGEST + 1) :]
            _pid, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            process.stdout.close()
        if process.returncode:
            raise SystemExit(f"{command[:2]} failed:\n{(self.folder / 'stderr').read_text()[-2000:]}")
        took = time.perf_counter() - begun
        copied, in_files = _COPIED.search(last), int(self.ask_files(COUNT) or 0)
        if counts:
            rows = int(copied[1]) if copied else records + in_files
            runs.size = size
            self._expect(command, rows, runs.rows)
            return
        if in_files:
            self._expect(command, in_files, runs.rows)
        elif abs(size - (runs.size or 0)) >= _ROW_BYTES:  # a time's digits may differ, a row may not
            raise SystemExit(f"{command[:2]} gave {size:,} bytes, and {runs.size:,} before")
        runs.walls.append(took)
        runs.cpus.append(used.ru_utime + used.ru_stime)
        runs.peak = max(runs.peak, used.ru_maxrss * 1024)

    def _expect(self, command: list[str], rows: int, wanted: int) -> None:
        if rows != wanted:
            raise SystemExit(f"{command[:2]} gave {rows:,} rows, not {wanted:,}")

    def ask_files(self, script: str) -> bytes:
        """What a script says of all BATCH files, whose paths it is given; of none there is nothing to say."""
        paths = [str(path) for path in sorted(self.files.glob("*.parquet"))]
        if not paths:
            return b""
        return subprocess.run([sys.executable, "-c", script, *paths], check=True, capture_output=True).stdout


@contextlib.contextmanager
def prepared(rows: int) -> Iterator[Bench]:
    """A server with the tables, full and small."""
    from support import postgres

    with postgres.running() as server, tempfile.TemporaryDirectory() as folder:
        for table in TABLES:
            columns = _COLUMNS + (f", {_NESTED}" if table == "with_json" else "")
            for name, count in ((table, rows), (f"{table}_few", 10_000), (f"{table}_part", max(1, rows // 20))):
                server.execute(
                    f"create table {name} as select {columns} from generate_series(1, {count}) i",
                    f"alter table {name} add primary key (id)",
                )
        server.execute("vacuum analyze")
        yield Bench(Path(folder), server.url())


def compare(bench: Bench, table: str) -> int:
    """Hold burler's records, and the rows of its files, against PostgreSQL's own JSON of the same rows; gives their
    number.

    Raises:
        SystemExit: they differ.
    """
    import psycopg

    with psycopg.connect(bench.url) as connection:
        connection.execute("set timezone = 'UTC'")
        found = connection.execute(f"select row_to_json(t)::text from {table} t").fetchall()
    wanted = [json.loads(text, parse_float=Decimal) for (text,) in found]
    for row in wanted:
        row["updated_at"] = row["updated_at"].replace("+00:00", "Z")
    for name, rows in (("records", _records(bench.burler(table))), ("files", _in_files(bench, table))):
        got = {row["id"]: row for row in rows}
        for row in wanted:
            if got.pop(row["id"], None) != row:
                raise SystemExit(f"row {row['id']} of {table} is not what PostgreSQL says ({name})")
        if got or len(rows) != len(wanted):
            raise SystemExit(f"{len(rows) - len(wanted)} rows of {table} are not in PostgreSQL ({name})")
    return len(wanted)


def _records(command: list[str]) -> list[dict[str, Any]]:
    done = subprocess.run(command, check=True, capture_output=True)
    messages = [json.loads(line, parse_float=Decimal) for line in done.stdout.splitlines()]
    return [message["record"] for message in messages if message["type"] == "RECORD"]


def _in_files(bench: Bench, table: str) -> list[dict[str, Any]]:
    """The rows of BATCH files as JSON has them; what is JSON text in a column is read."""
    shutil.rmtree(bench.files, ignore_errors=True)
    subprocess.run(bench.batch(table), check=True, capture_output=True)
    rows = [json.loads(line, parse_float=Decimal) for line in bench.ask_files(ROWS).splitlines()]
    for row in rows:
        row["updated_at"] = row["updated_at"].replace(" ", "T").replace("+00:00", "Z")
        row["amount"] = Decimal(row["amount"])
        if "address" in row:
            row["address"] = json.loads(row["address"], parse_float=Decimal)
    return rows


def measure(bench: Bench, rows: int, rounds: int, *, peers: bool) -> list[str]:
    """All rounds; gives the lines of the report."""
    found: dict[tuple[str, str], Runs] = {}
    commands: list[tuple[tuple[str, str], list[str], int]] = []
    for table in TABLES:
        commands.append((("COPY csv, psycopg", table), bench.copy(table), rows))
        commands.append((("burler", table), bench.burler(table), rows))
        commands.append((("burler, few", table), bench.burler(f"{table}_few"), 10_000))
        commands.append((("burler, BATCH parquet", table), bench.batch(table), rows))
        commands.append((("burler, BATCH parquet, few", table), bench.batch(f"{table}_few"), 10_000))
        if peers:
            try:
                part = max(1, rows // 20)
                commands.append((("meltanolabs-tap-postgres", table), bench.meltano(f"{table}_part"), part))
            except environments.NotInstalled as error:
                print(f"meltanolabs-tap-postgres is left out: {error}", file=sys.stderr)
    for _ in range(rounds + 1):
        for name, command, count in commands:
            bench.run(command, found.setdefault(name, Runs(count)))
    return _report(found)


def _report(found: dict[tuple[str, str], Runs]) -> list[str]:
    lines = ["| table | candidate | rows | wall s | CPU s | rows/s | peak MB |", "|---|---|---|---|---|---|---|"]
    for (name, table), runs in found.items():
        wall, cpu = statistics.median(runs.walls), statistics.median(runs.cpus)
        figures = f"{runs.rows:,} | {wall:.2f} | {cpu:.2f} | {runs.rate:,.0f} | {runs.peak / 1e6:.0f}"
        lines.append(f"| {table} | {name} | {figures} |")
    for table in TABLES:
        mine, floor = found["burler", table], found["COPY csv, psycopg", table]
        files, peer = found["burler, BATCH parquet", table], found.get(("meltanolabs-tap-postgres", table))
        lines.append(_bar(f"{table}: x COPY", mine.rate / floor.rate, _BARS[table][0]))
        lines.append(_bar(f"{table}: BATCH parquet x COPY", files.rate / floor.rate, _BARS[table][1]))
        if peer is not None:
            lines.append(_bar(f"{table}: x meltanolabs-tap-postgres", mine.rate / peer.rate, 10))
        for name in ("burler", "burler, BATCH parquet"):
            many, few = found[name, table].peak, found[f"{name}, few", table].peak
            most = 1.1 * few + 10e6
            verdict = "PASS" if many <= most else "MISS"
            lines.append(f"{table}: {name}: memory {many / 1e6:.0f} MB, at most {most / 1e6:.0f}: {verdict}")
    return lines


def _bar(what: str, reached: float, least: float) -> str:
    return f"{what}: {reached:.2f}, must reach {least}: {'PASS' if reached >= least else 'MISS'}"


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true", help="leave meltanolabs-tap-postgres out")
    given = parser.parse_args(arguments)
    with prepared(given.rows) as bench:
        for table in TABLES:
            print(f"{table}: {compare(bench, f'{table}_few'):,} rows are what PostgreSQL says")
        for line in measure(bench, given.rows, given.rounds, peers=not given.no_peers):
            print(line)


if __name__ == "__main__":
    main()
