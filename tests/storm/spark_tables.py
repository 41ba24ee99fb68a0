"""Exports of a lake that grows, killed at random moments, while others read its tables."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burler.lake import LakeWriter, open_store
from burler.singer.messages import ActivateVersion, Schema
from storm.harness import Program, same, workers_of
from support import postgres
from support.cli import PYTHON

TAP = "tap-x"
FORMATS = ("delta", "parquet", "iceberg", "jdbc")
BIG = 50_100
"""So many new rows are more than an export does without Spark."""
KEYS = 1_000
Rows = list[tuple[int, int]]

# Exports each time that it is told to, and says when it is done.
EXPORT = """
import json, sys
from burler.spark import export, session
said = json.loads(sys.argv[1])
spark = session(conf=said["conf"], master="local[2]") if said["conf"] else None
print("begins", flush=True)
for _line in sys.stdin:
    for table in said["tables"]:
        export(spark, said["lake"], **table)
    print("done", flush=True)
"""
READER = """
import json, sys
from burler.spark import session, table
spark = session(conf=json.loads(sys.argv[1]), master="local[1]")
for folder in sys.stdin:
    row = table(spark, folder.strip()).selectExpr("count(*)", "coalesce(sum(cast(name as bigint)), 0)").first()
    print(json.dumps(list(row)), flush=True)
"""
QUICK = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


class Lake:
    """A lake of tap-x that grows by whole commits; in ``odd`` ones a row has to be read in the exact way."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._at = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)

    def commit(
        self,
        stream: str,
        rows: list[dict[str, Any]],
        *,
        keys: tuple[str, ...] = ("id",),
        odd: bool = False,
        version: int | None = None,
    ) -> None:
        """One more file of a stream, with the columns id and name. ``version``: of a whole table, which it ends."""
        self._at += dt.timedelta(minutes=1)
        fields = {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}}
        with LakeWriter(open_store(str(self.root)), TAP, emit_state=lambda state: None) as writer:
            writer.schema(Schema(stream, {"type": "object", "properties": fields}, keys))
            for number, row in enumerate(rows):
                record = json.dumps(row)
                if odd and number == 0:
                    record = record.replace(f'"id": {row["id"]}', f'"id": {row["id"]}.0')
                time = self._at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
                more = "" if version is None else f',"version":{version}'
                line = f'{{"type":"RECORD","stream":"{stream}","record":{record},"time_extracted":"{time}"{more}}}\n'
                writer.record_line(stream, line.encode(), self._at, version)
            if version is not None:
                writer.activate_version(ActivateVersion(stream, version))


@dataclass(frozen=True)
class Plan:
    """One story: ``kills`` of exports into tables of ``formats``; ``big``: each of so many rows that it needs Spark.
    ``spark_looks``: Spark is among those who look, too."""

    seed: int
    formats: tuple[str, ...]
    kills: int
    big: bool
    spark_looks: bool


@dataclass
class Outcome:
    """The tables by now, each as (id, name) of its rows, and what the lake has. ``looks``: who saw so many rows with
    such a sum of their names. ``told``: so many rows an export had said to be out before it was killed."""

    tables: dict[tuple[str, str], Rows]
    log: list[int]
    latest: dict[int, int]
    whole: set[tuple[int, int]]
    told: dict[str, tuple[int, int]]
    looks: list[tuple[str, int, int]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    killed: int = 0


class Check:
    """Holds tables against the lake: each commit adds rows whose sum is known, so that a part of one shows.

    - Whoever looks sees whole versions only, and none that is older than the one before.
    - What an export has said to be out is there after the next one was killed.
    - After an export in peace the tables hold exactly the rows of the lake, no row of a killed one twice, and nothing
      that a killed one has begun lies about.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.figures: Counter[str] = Counter()

    def take(self, outcome: Outcome) -> None:
        """See ``Check``."""
        assert not outcome.wrong, "\n".join(outcome.wrong)
        assert not outcome.left, f"left behind: {outcome.left}"
        for format, (told, found) in outcome.told.items():
            assert found >= told, f"{format}: {told} rows had been told, and the table has {found}"
        last: dict[str, int] = {}
        for who, count, total in outcome.looks:
            assert (count, total) in outcome.whole, f"{who} saw {count} rows with sum {total}: no whole version"
            assert count >= last.get(who, -1), f"{who} saw {count} rows after {last[who]}"
            last[who] = count
            self.figures[f"looks by {who}"] += 1
        for (format, stream), rows in outcome.tables.items():
            wanted = outcome.log if stream == "log" else outcome.latest.values()
            same(f"{format}, {stream}", [name for _id, name in rows], wanted)
            assert stream == "log" or dict(rows) == outcome.latest, f"{format}, {stream}: not the latest of each key"
        self.figures["exports killed"] += outcome.killed
        self.figures["rows of tables"] += sum(map(len, outcome.tables.values()))

    def finish(self) -> None:
        """Whoever was there to look has looked."""
        for format in self.plan.formats:
            assert self.figures[f"looks by a reader of {format}"], f"nobody has looked at {format}"


@dataclass(frozen=True)
class Tables:
    """The world. ``big``: exports through Spark into Delta and Parquet; else small ones into one format of four."""

    big: bool
    at_a_time: int = 1

    def plan(self, seed: int) -> Plan:
        """See ``World``."""
        if self.big:
            return Plan(seed, ("delta", "parquet"), 2, True, seed % 3 == 0)
        return Plan(seed, (FORMATS[seed % len(FORMATS)],), 6, False, False)

    def check(self, plan: Plan) -> Check:
        """See ``World``."""
        return Check(plan)

    def run(self, plan: Plan, folder: Path, check: Check) -> Iterator[Outcome]:
        """See ``World``."""
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(postgres.running()) if "jdbc" in plan.formats else None
            story = _Story(plan, folder, server)
            with story.watched():
                for number in range(plan.kills):
                    story.round(big=plan.big and number % 2 == 0)
                    yield story.outcome()
            yield story.outcome()


class _Story:
    def __init__(self, plan: Plan, folder: Path, server: Any) -> None:
        self.plan, self.folder, self.server = plan, folder, server
        self.database = server.new_database() if server else ""
        self.lake, self.chance = Lake(folder / "lake"), random.Random(f"tables {plan.seed}")
        self.log: list[int] = []
        self.latest: dict[int, int] = {}
        self.whole = {(0, 0)}
        self.looks: list[tuple[str, int, int]] = []
        self.wrong: list[str] = []
        self.told: dict[str, tuple[int, int]] = {}
        self.kills = self.runs = 0

    def out(self, format: str) -> str:
        """Where the tables of a format are."""
        if self.server:
            return f"postgresql://burler@127.0.0.1:{self.server.port}/{self.database}"
        return str(self.folder / format)

    def grow(self, rows: int) -> None:
        """One more commit to each stream."""
        numbers = range(len(self.log), len(self.log) + rows)
        made = [{"id": self.chance.randrange(KEYS), "name": str(number)} for number in numbers]
        odd = self.chance.random() < 0.33
        self.whole.add((len(self.log) + rows, sum(self.log) + sum(numbers)))
        self.lake.commit("log", made, keys=(), odd=odd)
        self.lake.commit("users", made, odd=odd)
        self.log += numbers
        self.latest.update({row["id"]: int(row["name"]) for row in made})

    def exporter(self, *, big: bool) -> Program:
        """A process that exports when it is told to."""
        options = {"jdbc": {"password": postgres.PASSWORD}, "parquet": {"keep_versions": "100000"}}
        tables = [{"out": self.out(one), "format": one, "options": options.get(one, {})} for one in self.plan.formats]
        said = {"lake": str(self.lake.root), "tables": tables, "conf": QUICK if big else {}}
        self.runs += 1
        words = [PYTHON, "-c", EXPORT, json.dumps(said)]
        return Program(words, self.folder, f"export-{self.runs}", variables={"PYTHONWARNINGS": "default"}, stdin=True)

    def round(self, *, big: bool) -> None:
        """Exports of a lake that grows, until one is killed somewhere; then one to the end."""
        rows = BIG if big else self.chance.randint(1, 400)
        before = len(self.log)
        with self.exporter(big=big) as one:
            self._line(one)
            timer = threading.Timer(self.chance.random() * (12.0 if big else 1.2), self._kill, (one,))
            timer.start()
            while True:
                self.grow(rows)
                if not self._told(one):
                    break
                before, rows = len(self.log), self.chance.randint(1, 400)
            timer.join()
        for format in self.plan.formats:
            there = self.read(format, "log")
            self.told[format] = (before, len(there or ()))
        if self.chance.random() < 0.5:
            self.grow(self.chance.randint(1, 400))
        with self.exporter(big=big) as one:
            self._line(one)
            assert self._told(one), f"the export after a kill ended with {one.process.wait()}: {one.stderr[-2000:]}"

    def _kill(self, one: Program) -> None:
        """The process, or one of its Python workers; in the end the process in any case."""
        workers = workers_of(one.pid)
        victim = self.chance.choice(workers) if workers and self.chance.random() < 0.3 else one.pid
        self.kills += 1
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        one.until(lambda: False, 0.0 if victim == one.pid else 3.0)
        one.send(signal.SIGKILL)

    def _line(self, one: Program) -> bytes:
        return one.stdout.readline()

    def _told(self, one: Program) -> bool:
        """Export; False if it was killed before it was done."""
        assert one.process.stdin is not None
        try:
            one.process.stdin.write(b"\n")
            one.process.stdin.flush()
        except OSError:
            return False
        return self._line(one) == b"done\n"

    def outcome(self) -> Outcome:
        """What there is now, after an export in peace."""
        tables = {
            (format, stream): self.read(format, stream) or [] for format in self.plan.formats for stream in STREAMS
        }
        left = [str(path) for one in ("_staging-*", "_pending-*") for path in self.folder.rglob(one)]
        if self.server:
            stages = self.server.ask("select tablename from pg_tables where tablename like '%stage%'", self.database)
            left += [str(row) for row in stages]
        looks, self.looks = self.looks, []
        killed, self.kills = self.kills, 0
        return Outcome(
            tables, self.log, self.latest, self.whole, dict(self.told), looks, list(self.wrong), left, killed
        )

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Readers that look at ``log`` all the while."""
        over = threading.Event()
        with contextlib.ExitStack() as stack:
            looks: dict[str, Callable[[], tuple[int, int] | None]] = {}
            for format in self.plan.formats:
                looks[f"a reader of {format}"] = lambda format=format: _summed(self.read(format, "log"))
            if self.plan.spark_looks:
                looks["Spark"] = stack.enter_context(self._spark())
            threads = [threading.Thread(target=self._look, args=(*one, over), daemon=True) for one in looks.items()]
            for thread in threads:
                thread.start()
            try:
                yield
            finally:
                over.set()
                for thread in threads:
                    thread.join(60)

    def _look(self, who: str, look: Callable[[], tuple[int, int] | None], over: threading.Event) -> None:
        while not over.wait(0.05):
            try:
                found = look()
            except Exception as error:
                self.wrong.append(f"{who} could not read: {type(error).__name__}: {str(error)[:300]}")
                return
            if found is not None:
                self.looks.append((who, *found))

    @contextlib.contextmanager
    def _spark(self) -> Iterator[Callable[[], tuple[int, int] | None]]:
        """A Spark of its own, which answers as often as it is asked."""
        import deltalake

        command = [sys.executable, "-c", READER, json.dumps(QUICK)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None and process.stdout is not None
            asked, answered, folder = process.stdin, process.stdout, Path(self.out("delta")) / TAP / "log"

            def look() -> tuple[int, int] | None:
                if not deltalake.DeltaTable.is_deltatable(str(folder)):
                    return None
                print(folder, file=asked, flush=True)
                count, total = json.loads(answered.readline())
                return count, total

            yield look
            asked.close()

    def read(self, format: str, stream: str) -> Rows | None:
        """(id, name) of all rows as a reader that is not burler finds them; None where there is no table yet."""
        if format == "jdbc":
            if self.server.ask(f"""select to_regclass('"{TAP}"."{stream}"')""", self.database) == [(None,)]:
                return None
            rows = self.server.ask(f'select id, name from "{TAP}"."{stream}"', self.database)
        else:
            found = {"delta": _delta, "parquet": _parquet, "iceberg": _iceberg}[format](Path(self.out(format)), stream)
            if found is None:
                return None
            rows = found
        return [(int(at), int(name)) for at, name in rows]


STREAMS = ("log", "users")


def _summed(rows: Rows | None) -> tuple[int, int] | None:
    return None if rows is None else (len(rows), sum(name for _id, name in rows))


def _delta(out: Path, stream: str) -> list[Any] | None:
    import deltalake

    folder = str(out / TAP / stream)
    if not deltalake.DeltaTable.is_deltatable(folder):
        return None
    return _pairs(deltalake.DeltaTable(folder).to_pyarrow_table(columns=["id", "name"]))


def _parquet(out: Path, stream: str) -> list[Any] | None:
    """DuckDB by itself, with the SQL of docs/table-formats.md."""
    import duckdb

    folder = out / TAP / stream
    if not (folder / "_latest.json").exists():
        return None
    with duckdb.connect() as connection:
        connection.execute(
            f"set variable files = (select list('{folder}/' || file.path) "
            f"from (select unnest(files) as file from read_json('{folder}/_latest.json')))"
        )
        if not connection.execute("select coalesce(len(getvariable('files')), 0)").fetchall()[0][0]:
            return []
        return connection.execute(
            "select id, name from read_parquet(getvariable('files'), union_by_name = true)"
        ).fetchall()


def _iceberg(out: Path, stream: str) -> list[Any] | None:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.exceptions import NoSuchTableError

    if not (out / "catalog.db").exists():
        return None
    catalog = SqlCatalog("burler", uri=f"sqlite:///{out}/catalog.db", init_catalog_tables="false")
    try:
        return _pairs(catalog.load_table((TAP, stream)).scan(selected_fields=("id", "name")).to_arrow())
    except NoSuchTableError:
        return None
    finally:
        catalog.close()


def _pairs(table: Any) -> list[Any]:
    return list(zip(table.column("id").to_pylist(), table.column("name").to_pylist(), strict=True))
