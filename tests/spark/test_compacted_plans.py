"""Whatever is written, compacted, vacuumed and exported in whatever order: a table holds each row once.

Beside a lake that was never compacted, exported in one go. Rows are few, so no Spark is started.
"""

from __future__ import annotations

import datetime as dt
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from burler.lake import care, open_store
from burler.spark import export

pytestmark = pytest.mark.usefixtures("packages")
DAY = 86_400.0


def rows_of(out: Path) -> Counter[tuple[int, int | None]]:
    """How often each row stands in the table, by id and version."""
    import deltalake

    table = deltalake.DeltaTable(str(out / "tap-x" / "log")).to_pyarrow_table(columns=["id", "_sdc_version"])
    return Counter((row["id"], row["_sdc_version"]) for row in table.to_pylist())


@pytest.mark.parametrize("seed", range(6))
def test_appended_tables_hold_each_row_once(lake: Any, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    plain = type(lake)(tmp_path / "plain")
    now, number = time.time(), 0
    versions: list[int | None] = [None, 1, 2, 3] if seed % 3 else [None]
    for _ in range(30):
        deed = chance.random()
        if deed < 0.5 or not number:
            rows = [{"id": number + at, "name": "x"} for at in range(chance.randrange(1, 4))]
            number += len(rows)
            version, activate = chance.choice(versions), None
            if version is not None and chance.random() < 0.25:
                activate = version
            same = dt.datetime(2024, 5, 1, tzinfo=dt.UTC) if chance.random() < 0.5 else None
            for one in (lake, plain):
                one.commit("log", rows, keys=(), version=version, activate=activate, time=same)
        elif deed < 0.7:
            care.compact(open_store(str(lake.root)), below_bytes=chance.choice([700, 3000, 10**6]))
        elif deed < 0.8:
            now += 8 * DAY
            care.vacuum(open_store(str(lake.root)), yes=True, now=lambda moment=now: moment)
        else:
            export(None, str(lake.root), tmp_path / "out")
    export(None, str(lake.root), tmp_path / "out")
    export(None, str(plain.root), tmp_path / "whole")
    assert rows_of(tmp_path / "out") == rows_of(tmp_path / "whole")
    assert care.check(open_store(str(lake.root))).findings == ()


@pytest.mark.parametrize("vacuum", [False, True])
@pytest.mark.parametrize(("taken", "read"), [(0, 4), (2, 2), (4, 0)])
def test_what_was_taken_before_decides_what_is_read(
    lake: Any, tmp_path: Path, taken: int, read: int, vacuum: bool
) -> None:
    """All parts taken: the compacted file is skipped. None: it is read. Some: the others are, if they are there."""
    out = tmp_path / "out"
    lake.commit("log", [{"id": 0, "name": "first"}], keys=(), schema={"properties": {"id": {"type": "integer"}}})
    export(None, str(lake.root), out)
    for number in range(1, 5):
        lake.commit("log", [{"id": number, "name": "x"}], keys=())
        if number <= taken:
            export(None, str(lake.root), out)
    store = open_store(str(lake.root))
    assert [len(file.parts) for file in care.compact(store).streams[0].files] == [4]
    if vacuum:
        care.vacuum(store, yes=True, now=lambda: time.time() + 8 * DAY)

    (result,) = export(None, str(lake.root), out)

    assert sorted(rows_of(out).elements()) == [(number, None) for number in range(5)]
    assert result.rows_read == (5 if vacuum and taken == 2 else read)
    assert result.skipped == (taken == 4)
