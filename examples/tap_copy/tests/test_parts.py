"""A big table is read on several connections, and what comes is what one would have read."""

import logging
import threading
import time
from pathlib import Path

import psycopg
import pytest
from taking import batched, expanded, messages

from burler.testing import bind_stream, run_tap
from tap_copy import parts, tap
from tap_copy.catalog import tables_of
from tap_copy.client import Warehouse

ROWS = 2000
LIMIT_SECONDS = 30


@pytest.fixture
def big(base, monkeypatch):
    """A table of 40 blocks or so, which counts as big here."""
    if int(base.ask("show server_version_num")[0][0]) < parts._RANGES_SINCE:
        pytest.skip("this server looks at a whole table for a part of it")
    monkeypatch.setattr(parts, "_LEAST_BYTES", 8192)
    base.do(
        "create table t (id int primary key, text text, at timestamptz, rate float8)",
        "insert into t select i, repeat('x', 120), timestamptz '2024-01-01 00:00+00' + i * interval '1 s', i / 7.0 "
        f"from generate_series(1, {ROWS}) i",
    )
    return base


def ids(rows):
    return sorted(row["id"] for row in rows)


@pytest.mark.parametrize("connections", [2, 3])
def test_each_connection_reads_a_part_into_files_of_its_own(big, connections):
    run = batched(big, connections=connections)
    found = messages(run, "BATCH")
    assert len(found) == connections and all(m["size"] for m in found)
    texts = [Path(m["manifest"][0].removeprefix("file://")).read_text() for m in found]
    assert all(text.startswith("id,text,at,rate\n") for text in texts)
    assert [text.count("\n") - 1 for text in texts] == [m["size"] for m in found]
    assert ids(expanded(run, "public.t")) == list(range(1, ROWS + 1))
    one = batched(big, connections=1)
    assert len(messages(one, "BATCH")) == 1
    by_id = {row["id"]: row for row in expanded(one, "public.t")}
    assert by_id == {row["id"]: row for row in expanded(run, "public.t")}


def test_parts_of_several_files_come_whole(big):
    big.do("update t set text = repeat('x', 3000 + id % 7)", "vacuum full t")
    run = batched(big, connections=2, max_file_bytes=1_500_000, compression="gzip")
    assert len(messages(run, "BATCH")) == 4
    assert sum(m["size"] for m in messages(run, "BATCH")) == ROWS
    assert ids(expanded(run, "public.t")) == list(range(1, ROWS + 1))


def test_all_parts_are_of_one_moment(big, monkeypatch):
    warehouse = Warehouse(
        big.config["database_url"],
        schemas=["public"],
        replication_key="at",
        folder=big.config["folder"],
        compression="none",
        most_bytes=1 << 28,
        connections=3,
    )
    connect = warehouse._connect

    def change_and_connect(snapshot=None):
        if snapshot is not None:
            big.do("update t set text = 'late'", "delete from t where id % 2 = 0")
            big.do("insert into t select max(id) + 1, 'late', '2025-01-01 00:00+00' from t")
        return connect(snapshot)

    monkeypatch.setattr(warehouse, "_connect", change_and_connect)
    with bind_stream(
        tap,
        "public.t",
        schema={"properties": {"id": {}, "text": {}, "at": {}, "rate": {}}},
        replication_key="at",
        replication_method="INCREMENTAL",
    ) as stream:
        found = list(warehouse.copy(stream))
    rows = "".join(Path(one.urls[0].removeprefix("file://")).read_text() for one in found)
    assert len(found) == 3 and sum(one.size for one in found) == ROWS and "late" not in rows
    assert [bool(one.bookmark) for one in found] == [False, False, True]
    assert found[-1].bookmark == "2024-01-01T00:33:20Z"


def test_what_is_new_comes_on_one_connection(big):
    first = batched(big, replication_key="at", connections=2)
    assert len(messages(first, "BATCH")) == 2
    config = {**big.config, "replication_key": "at", "batch_config": {"storage": {"root": str(big.folder)}}}
    second = run_tap(tap, config, state=first.states[-1])
    assert ids(expanded(second, "public.t")) == [ROWS] and len(messages(second, "BATCH")) == 1


@pytest.mark.parametrize("row", [1, ROWS])
def test_a_value_that_the_schema_does_not_know_is_in_no_file_that_a_message_names(big, row):
    big.do(f"update t set rate = 'NaN' where id = {row}")
    run = batched(big, connections=2)
    assert run.result.exit_code == 1 and "column 'rate': " in str(run.result.errors["public.t"])
    named = [url.removeprefix("file://") for m in messages(run, "BATCH") for url in m["manifest"]]
    assert len(named) < 2 and sorted(Path(path).name for path in named) == big.files()
    assert all("NaN" not in Path(path).read_text() for path in named)
    assert not any("version" in one for state in run.states for one in state.get("bookmarks", {}).values())


def test_where_no_further_connection_is_to_be_had_one_reads_it_all(big, caplog):
    big.do(f"alter role {big.reader} connection limit 1")
    try:
        with caplog.at_level(logging.INFO):
            run = batched(big, connections=3)
    finally:
        big.do(f"alter role {big.reader} connection limit -1")
    assert run.result.exit_code == 0 and len(messages(run, "BATCH")) == 1
    assert ids(expanded(run, "public.t")) == list(range(1, ROWS + 1))
    assert "table public.t is read on one connection" in caplog.text and big.password not in caplog.text


def test_who_waits_to_change_the_table_is_not_waited_for(big, monkeypatch):
    monkeypatch.setattr(parts, "_LOCK_MS", 100)
    changing = threading.Thread(target=big.do, args=("alter table t add column more int",))

    def connect(snapshot):
        if not changing.is_alive():
            changing.start()
            until = time.monotonic() + LIMIT_SECONDS
            waiting = "select 1 from pg_locks where not granted and mode = 'AccessExclusiveLock'"
            while not big.ask(waiting):
                assert time.monotonic() < until
                time.sleep(0.01)
        other = psycopg.connect(big.url)
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute(f"set transaction snapshot '{snapshot}'")
        return other

    with psycopg.connect(big.url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        (table,) = tables_of(connection, ["public"])
        with parts.in_parts(connection, table, 2, connect) as found:
            assert found == {connection: ""}
            assert connection.execute("select count(*) from t").fetchone() == (ROWS,)
    changing.join(LIMIT_SECONDS)
    assert not changing.is_alive()


def test_views_and_partitioned_tables_stay_whole(base, monkeypatch):
    monkeypatch.setattr(parts, "_LEAST_BYTES", 1)
    base.do(
        "create table whole (id int, part int) partition by list (part)",
        "create table part_1 partition of whole for values in (1)",
        "insert into whole select i, 1 from generate_series(1, 2000) i",
        "create view seen as select id from whole",
    )
    run = batched(base, connections=2)
    assert [m["size"] for m in messages(run, "BATCH")] == [2000, 2000]
