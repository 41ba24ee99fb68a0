"""Whatever is written, compacted, vacuumed and exported in whatever order: the plans of export read each row once.

No Spark session: a plan is carried out here in Python, as ``burler.spark.rows`` does it, beside a lake that was never
compacted.
"""

from __future__ import annotations

import datetime as dt
import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from burler.lake import care, open_store, read_lines
from support.internals import export_options, formats_base, lakefiles, spark_plan

pytestmark = pytest.mark.usefixtures("packages")
DAY = 86_400.0


@dataclass
class Table:
    """What stands in for a table: rows as (id, version), and the state that its publications leave."""

    rows: list[tuple[int, int | None]] = field(default_factory=list)
    state: formats_base.TableState = field(default_factory=formats_base.TableState)
    kinds: list[str] = field(default_factory=list)

    def export(self, lake: lakefiles.LakeStream) -> None:
        plan = spark_plan.decide(lake, self.state, export_options.ExportOptions())
        self.kinds.append(plan.kind)
        if plan.kind == "skip":
            return
        self.rows = ([] if plan.kind == "rebuild" else self.rows) + rows_of(lake, plan)
        version = 0 if self.state.version is None else self.state.version + 1
        # Delta keeps the numbers of earlier publications that a later one does not write.
        self.state = formats_base.TableState(version, plan.schema, {**self.state.numbers, **plan.numbers})


def rows_of(lake: lakefiles.LakeStream, plan: spark_plan.Plan) -> list[tuple[int, int | None]]:
    """The rows that a plan takes from its files, by the rule of 11.31."""
    found = []
    active = plan.active
    for file in plan.files:
        for line in read_lines(lake.store, file.lake_path):
            message = json.loads(line)
            if message["type"] != "RECORD":
                continue
            version = message.get("version")
            if active is not None:
                counts = version == active.version if version is not None else file.rank > active.rank
                counts = counts or (version is not None and version > active.version and file.rank >= active.rank)
                if not counts:
                    continue
            found.append((message["record"]["id"], version))
    return found


def export(root: Any, table: Table) -> None:
    table.export(lakefiles.load_stream(open_store(str(root)), "tap-x", "log"))


@pytest.mark.parametrize("seed", range(12))
def test_appended_tables_hold_each_row_once(lake: Any, tmp_path: Any, seed: int) -> None:
    chance = random.Random(seed)
    plain = type(lake)(tmp_path / "plain")
    table, now, number = Table(), time.time(), 0
    versions: list[int | None] = [None, 1, 2, 3] if seed % 3 else [None]
    for _ in range(30):
        deed = chance.random()
        if deed < 0.5:
            rows = [{"id": number + at, "name": "x"} for at in range(chance.randrange(1, 4))]
            number += len(rows)
            version, activate = chance.choice(versions), None
            if version is not None and chance.random() < 0.25:
                activate = version
            if chance.random() < 0.05:
                rows = []
            same = dt.datetime(2024, 5, 1, tzinfo=dt.UTC) if chance.random() < 0.5 else None
            for one in (lake, plain):
                one.commit("log", rows, keys=(), version=version, activate=activate, time=same)
        elif deed < 0.7:
            care.compact(open_store(str(lake.root)), below_bytes=chance.choice([700, 3000, 10**6]))
        elif deed < 0.8:
            now += 8 * DAY
            moment = now
            care.vacuum(open_store(str(lake.root)), yes=True, now=lambda moment=moment: moment)
        elif number:
            export(lake.root, table)
    if not number:
        return
    export(lake.root, table)
    whole = Table()
    export(plain.root, whole)
    assert Counter(table.rows) == Counter(whole.rows)
    # These lakes are committed file by file, without the files that describe a lake.
    assert {one.kind for one in care.check(open_store(str(lake.root))).findings} == {"json"}


@pytest.mark.parametrize("vacuum", [False, True])
@pytest.mark.parametrize(("taken", "kind"), [(0, "append"), (2, "append"), (4, "skip")])
def test_what_was_taken_before_decides_what_is_read(lake: Any, taken: int, kind: str, vacuum: bool) -> None:
    """All parts taken: the compacted file is skipped. None: it is read. Some: the others are, if they are there."""
    lake.commit("log", [{"id": 0, "name": "first"}], keys=(), schema={"properties": {"id": {"type": "integer"}}})
    table = Table()
    export(lake.root, table)
    for number in range(1, 5):
        lake.commit("log", [{"id": number, "name": "x"}], keys=())
        if number <= taken:
            export(lake.root, table)
    store = open_store(str(lake.root))
    assert [len(file.parts) for file in care.compact(store).streams[0].files] == [4]
    if vacuum:
        care.vacuum(store, yes=True, now=lambda: time.time() + 8 * DAY)

    stream = lakefiles.load_stream(store, "tap-x", "log")
    plan = spark_plan.decide(stream, table.state, export_options.ExportOptions())
    export(lake.root, table)

    assert sorted(row for row, _ in table.rows) == [0, 1, 2, 3, 4]
    assert plan.kind == ("rebuild" if vacuum and taken == 2 else kind)
    assert len(plan.files) == {"skip": 0, "append": 1 if taken == 0 else 2, "rebuild": 2}[plan.kind]
