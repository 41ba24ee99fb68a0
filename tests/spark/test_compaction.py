"""Tables of a lake that is compacted, at whatever moment, are those of the same lake that is not."""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

import pytest

from burler.lake import care, open_store
from burler.spark import export, table

SAME = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
TEXT = {"type": ["null", "string"]}
WIDER = {"type": "object", "properties": {"id": {"type": "integer"}, "name": TEXT, "more": TEXT}}
DAYS_8 = 8 * 86_400


@pytest.fixture
def lakes(lake: Any, tmp_path: Any) -> tuple[Any, Any]:
    """One that is compacted, one that is not."""
    return lake, type(lake)(tmp_path / "plain")


def commit(lakes: Any, *args: Any, **options: Any) -> None:
    for lake in lakes:
        lake.commit(*args, **options)


def compact(lakes: Any, *, vacuum: bool = False) -> int:
    store = open_store(str(lakes[0].root))
    done = care.compact(store)
    if vacuum:
        care.vacuum(store, yes=True, now=lambda: time.time() + DAYS_8)
    return sum(len(stream.files) for stream in done.streams)


def tables(spark: Any, lakes: Any, out: Any, stream: str, *columns: str) -> list[list[tuple[Any, ...]]]:
    """The rows of both lakes' tables, sorted; the first lake's goes on from the exports before."""
    found = []
    for lake, folder in zip(lakes, ("compacted", f"plain-{time.monotonic_ns()}"), strict=True):
        export(spark, str(lake.root), str(out / folder))
        rows = table(spark, out / folder / "tap-x" / stream).selectExpr(*columns).collect()
        found.append(sorted((tuple(row) for row in rows), key=repr))
    return found


def test_the_latest_row_of_a_key_stays_the_latest(spark: Any, lakes: Any, tmp_path: Any) -> None:
    """Equal keys and equal times: commits and lines decide, and a compacted file is as old as what is in it."""
    for name in "ab":
        commit(lakes, "users", [{"id": key, "name": f"{name}{key}"} for key in range(4)], time=SAME)
    commit(lakes, "users", [{"id": 1, "name": "wider", "more": "x"}], schema=WIDER, time=SAME)
    commit(lakes, "users", [{"id": 2, "name": "b"}, {"id": 2, "name": "last"}], time=SAME)
    commit(lakes, "users", [{"id": 3, "name": "odd"}], time=SAME, clean=False)

    assert compact(lakes) == 2
    one, other = tables(spark, lakes, tmp_path, "users", "id", "name", "more")

    assert one == other == [(0, "b0", None), (1, "wider", "x"), (2, "last", None), (3, "odd", None)]


@pytest.mark.parametrize("vacuum", [False, True])
def test_exports_before_between_and_after(spark: Any, lakes: Any, tmp_path: Any, vacuum: bool) -> None:
    columns = ("id", "name", "_sdc_extracted_at", "_sdc_version")
    for number in range(2):
        commit(lakes, "users", [{"id": number, "name": f"u{number}"}, {"id": 9, "name": f"u{number}"}])
        commit(lakes, "log", [{"id": number, "name": "l"}] * 2, keys=())
    tables(spark, lakes, tmp_path, "log", *columns)
    for number in range(2, 4):
        commit(lakes, "users", [{"id": number, "name": f"u{number}"}, {"id": 9, "name": f"u{number}"}])
        commit(lakes, "log", [{"id": number, "name": "l"}, {"id": number, "name": None}], keys=(), clean=number == 2)
    assert compact(lakes, vacuum=vacuum) == 2

    for stream, count in (("log", 8), ("users", 5)):
        one, other = tables(spark, lakes, tmp_path, stream, *columns)
        assert one == other
        assert len(one) == count
    commit(lakes, "log", [{"id": 50, "name": "l"}], keys=())
    assert compact(lakes) == 1
    one, other = tables(spark, lakes, tmp_path, "log", *columns)
    assert one == other
    (skipped,) = export(None, str(lakes[0].root), str(tmp_path / "compacted"), streams=["log"])
    assert skipped.skipped
    compact(lakes, vacuum=True)
    one, other = tables(spark, lakes, tmp_path, "log", *columns)
    assert one == other


def test_versions_of_a_full_table(spark: Any, lakes: Any, tmp_path: Any) -> None:
    for version in (1, 2):
        for part in range(2):
            activate = version if part else None
            commit(lakes, "items", [{"id": part, "name": f"v{version}"}], keys=(), version=version, activate=activate)
    commit(lakes, "items", [{"id": 7, "name": "after"}], keys=())
    assert compact(lakes) == 2

    one, other = tables(spark, lakes, tmp_path, "items", "id", "name", "_sdc_version")

    assert one == other == [(0, "v2", 2), (1, "v2", 2), (7, "after", None)]


def test_a_lake_without_manifest_is_read_once(spark: Any, lakes: Any, tmp_path: Any) -> None:
    for number in range(3):
        commit(lakes, "log", [{"id": number, "name": "l"}], keys=())
    compact(lakes)
    lakes[0].manifest_path("log").unlink()

    one, other = tables(spark, lakes, tmp_path, "log", "id", "name")

    assert one == other
