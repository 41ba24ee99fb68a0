"""Apps as tasks: what travels to an executor, and the rows that it becomes there; no Spark is needed for that."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path

import apps
import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan, In, LessThan
from pyspark.sql.pandas.types import to_arrow_schema
from reading import Planned, rows_of, source

from burler.errors import StreamError, UsageError
from burler.spark import reference
from burler.testing import canary, run_tap

APP = reference(apps.tap)


def expected(row):
    """A row of ``apps`` by the table of column types."""
    anything = row["anything"]
    if not isinstance(anything, str | None):
        anything = json.dumps(anything, separators=(",", ":"))
    return {
        **row,
        "price": Decimal(str(row["price"])),
        "at": None if row["at"] is None else dt.datetime.fromisoformat(row["at"]),
        "counts": list(row["counts"].items()),
        "anything": anything,
    }


def test_an_apps_rows_are_those_of_a_run_in_the_columns_that_spark_was_told():
    ran = run_tap(apps.tap, {"rows": 3000}, select="everything").records("everything")
    planned = Planned(app=APP, stream="everything", config={"rows": 3000})
    (batches,) = planned.batches()
    wanted = to_arrow_schema(planned.schema, timezone="UTC")
    assert all(batch.schema.equals(wanted, check_metadata=True) for batch in batches)
    assert [expected(row) for row in ran] == [row for batch in batches for row in batch.to_pylist()]


def test_partitions_are_tasks_and_a_limit_is_of_all_of_them():
    tasks = Planned(app=APP, stream="parts").tasks()
    assert [{row["account"] for row in task} for task in tasks] == [{letter} for letter in "abcd"]
    assert [len(task) for task in tasks] == [8] * 4
    (limited,) = Planned(app=APP, stream="parts", limit="10").tasks()
    assert [row["account"] for row in limited] == ["a"] * 8 + ["b"] * 2
    (one,) = Planned(app=APP, stream="parts", partitions="false").tasks()
    assert len(one) == 32


def test_fields_a_state_a_config_file_and_a_substream(tmp_path, monkeypatch):
    rows = rows_of(app=APP, stream="everything", fields="name,address.city")
    assert list(rows[0]) == ["id", "name", "address"] and rows[1]["address"] == {"city": "Bonn"}

    state = {"bookmarks": {"parts": {"partitions": {'{"account":"b"}': {"at": "2024-05-01T00:00:08.500000Z"}}}}}
    rows = rows_of(app=APP, stream="parts", state=state)
    assert [row["id"] for row in rows if row["account"] == "b"] == [8, 9]
    assert len([row for row in rows if row["account"] == "a"]) == 8

    assert rows_of(app=APP, stream="children") == [{"id": p * 10 + n, "parent": p} for p in range(3) for n in range(2)]

    path = tmp_path / "config.json"
    path.write_text('{"rows": 4}')
    planned = Planned(app=APP, stream="everything", config=str(path))
    path.unlink()
    assert [len(task) for task in planned.tasks()] == [4], "it was read on the driver"
    monkeypatch.setenv("TAP_APPS_ROWS", "3")
    assert len(rows_of(app=APP, stream="everything", config={"rows": 7})) == 3
    monkeypatch.setenv("TAP_APPS_ROWS", "many")
    with pytest.raises(UsageError, match="TAP_APPS_ROWS"):
        source(app=APP, stream="everything").schema()


def test_a_limit_and_a_reader_that_goes_away_end_a_source_that_would_go_on():
    before = threading.active_count()
    assert len(rows_of(app=APP, stream="slow", limit="15000")) == 15_000
    planned = Planned(app=APP, stream="slow")
    rows = planned.reader.read(planned.parts[0])
    next(rows)
    rows.close()
    assert threading.active_count() == before


@pytest.mark.usefixtures("values_in_logs")
def test_errors_of_an_app_are_one_line_with_their_place_and_nothing_shows_a_config():
    for stream, fail, said in (
        ("everything", "value", ["stream 'everything'", "row", "id", "no integer"]),
        ("everything", "raise", ["stream 'everything'", "apps.py:", "ValueError: the source said no to ***"]),
        ("parts", "c", ["stream 'parts'", "apps.py:", "this account is closed", 'partition {"account":"c"}']),
    ):
        config = {"fail": fail, "password": canary("source")}
        planned = Planned(app=APP, stream=stream, config=config, state={"token": canary("state")})
        assert "canary" not in repr(planned.reader) + repr(planned.parts)
        with pytest.raises(StreamError) as told:
            planned.tasks()
        assert all(part in str(told.value) for part in said), str(told.value)
        assert len(str(told.value).splitlines()) == 1


def test_our_own_tap_through_its_command_with_batch_on(tmp_path):
    """The rows of RECORDs, of BATCH files of lines and of columns, and of the app itself are the same."""
    repo = tmp_path / "repo"
    git = ["git", "-C", str(repo), "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    for n in range(5):
        (repo / "file").write_text(str(n))
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", f"change {n}"], check=True)
    tap = Path(__file__).parents[3] / "examples" / "tap_git"
    expected = rows_of(app=str(tap), stream="commits", config={"repo": str(repo)})
    assert len(expected) == 5
    for encoding in (None, {"format": "jsonl", "compression": "gzip"}, {"format": "parquet"}):
        storage = {"root": (tmp_path / "batches").as_uri()}
        more = {} if encoding is None else {"batch_config": {"encoding": encoding, "storage": storage}}
        command = f"{sys.executable} -m burler run {tap}"
        rows = rows_of(exec=command, stream="commits", catalog=_catalog(tap), config={"repo": str(repo), **more})
        assert sorted(rows, key=str) == sorted(expected, key=str)


def _catalog(tap):
    """As its discovery has it, once a process."""
    from support.cli import burler

    if tap not in _CATALOGS:
        done = burler("discover", tap, "--config", "/dev/stdin", stdin=b'{"repo": "."}')
        _CATALOGS[tap] = json.loads(done.text)
    return _CATALOGS[tap]


_CATALOGS: dict = {}


# ---- filters ------------------------------------------------------------------------------------------------------

SIX = dt.datetime(2024, 5, 1, 0, 0, 6, tzinfo=dt.UTC)
ALL, LATE = [1, 2, 3, 4, 6, 7, 8, 9], [6, 7, 8, 9]


@pytest.mark.parametrize(
    ("filters", "accounts", "ids"),
    [
        ([EqualTo(("account",), "b")], "b", ALL),
        ([In(("account",), ("a", "d")), EqualTo(("name",), "x")], "ad", ALL),
        ([EqualTo(("account",), "b"), In(("account",), ("a",))], "abcd", ALL),  # contradictory: Spark sees to it
        ([EqualTo(("account",), 5)], "abcd", ALL),  # of another type: who knows
        ([GreaterThan(("at",), SIX), GreaterThan(("id",), 7)], "abcd", LATE),
        ([EqualTo(("at",), SIX.date())], "abcd", ALL),
        ([LessThan(("at",), SIX)], "abcd", ALL),
    ],
    ids=["one", "some", "none-left", "type", "start", "day", "before"],
)
def test_filters_choose_partitions_and_the_start(filters, accounts, ids):
    tasks = Planned(*filters, app=APP, stream="parts", pushdown="true").tasks()
    assert ["".join({row["account"] for row in task}) for task in tasks] == list(accounts)
    assert [[row["id"] for row in task] for task in tasks] == [ids] * len(accounts)


@pytest.mark.parametrize(
    ("stream", "given", "ids"),
    [
        ("parts", {"config": {"start_date": "2024-05-01T00:00:07.9Z"}}, [8, 9] * 4),
        ("parts", {"state": {"bookmarks": {"parts": {"at": "2024-01-01T00:00:00Z"}}}}, ALL * 4),
        ("children", {}, [0, 1, 10, 11, 20, 21]),
    ],
    ids=["later", "state", "substream"],
)
def test_a_start_is_told_only_where_nothing_can_be_lost_by_it(stream, given, ids):
    tasks = Planned(GreaterThan(("at",), SIX), app=APP, stream=stream, pushdown="true", **given).tasks()
    assert [row["id"] for task in tasks for row in task] == ids
