"""A run that is stopped while its database works: it ends at once, and so does its query."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from support.clocks import until

TAP = """
    import burler

    tap = burler.tap("tap-slow", config_spec={"url": "", "adbc": True})

    @tap.client
    def client(config):
        return burler.sql.Database(config["url"], adbc=config["adbc"])

    @tap.discover
    def find(client):
        return client.discover(replication_keys="id")

    @tap.sync("*", order="asc", bookmark_strategy="every_n(1)")
    def rows(client, stream):
        return client.pages(stream)
"""


@pytest.fixture
def start(pg, tmp_path):
    """Start a run of a slow view in a process of its own."""
    (tmp_path / "tap_slow.py").write_text(textwrap.dedent(TAP))
    running = []

    def begin(adbc):
        (tmp_path / "config.json").write_text(json.dumps({"url": pg.url, "adbc": adbc}))
        command = [sys.executable, "-m", "burler", "run", "tap_slow.py", "--config", "config.json"]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def queries(pg):
    return (
        pg.ask(
            "select count(*) from pg_stat_activity where state = 'active' and query like '%pg_sleep%' "
            f"and query not like '%pg_stat%' and datname = '{pg.name}'"
        )[0][0]
        or pg.ask(f"select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = '{pg.name}'")[0][0]
    )


@pytest.mark.parametrize("adbc, number", [(True, signal.SIGTERM), (False, signal.SIGINT)])
def test_a_signal_ends_a_run_that_waits_for_its_first_row(pg, start, adbc, number):
    pg.execute("create view slow as select 1 as id, pg_sleep(120)::text as s")
    process = start(adbc)
    until(lambda: queries(pg))
    begin = time.monotonic()
    process.send_signal(number)
    out, said = process.communicate(timeout=30)
    assert time.monotonic() - begin < 25
    assert process.returncode == 0, said
    assert json.loads(out.splitlines()[-1])["type"] == "STATE"
    until(lambda: not queries(pg))


def test_a_signal_ends_a_run_that_waits_for_a_table_which_somebody_locks(pg, start):
    import psycopg

    pg.execute("create table t (id int primary key)")
    with psycopg.connect(pg.url) as holder:
        holder.execute("lock table t in access exclusive mode")
        process = start(adbc=True)
        waits = f"select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = '{pg.name}'"
        until(lambda: pg.ask(waits) == [(1,)])
        process.send_signal(signal.SIGTERM)
        _out, said = process.communicate(timeout=30)
        assert process.returncode == 0, said
        until(lambda: pg.ask(waits) == [(0,)])


def test_a_signal_ends_a_run_that_waits_for_sqlite(tmp_path):
    import sqlite3

    numbers = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000000000)"
    with sqlite3.connect(tmp_path / "s.db") as shop:
        shop.execute(f"create view slow as {numbers} select i as id from n where i < 0")
    (tmp_path / "tap_slow.py").write_text(textwrap.dedent(TAP))
    (tmp_path / "config.json").write_text(json.dumps({"url": "sqlite:///s.db", "adbc": False}))
    command = [sys.executable, "-m", "burler", "run", "tap_slow.py", "--config", "config.json"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert json.loads(process.stdout.readline())["type"] == "SCHEMA"
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        _out, said = process.communicate(timeout=20)
        assert process.returncode == 0, said
    finally:
        process.kill()
        process.communicate()


def test_a_killed_run_leaves_no_query_behind_once_it_has_rows_to_send(pg, start):
    pg.execute("create table t (id int primary key, filler text)")
    pg.execute("insert into t select i, repeat('x', 1000) from generate_series(1, 50000) i")
    process = start(adbc=True)
    process.stdout.readline()
    process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    mine = f"select count(*) from pg_stat_activity where datname = '{pg.name}' and pid <> pg_backend_pid()"
    until(lambda: pg.ask(mine) == [(0,)])


def test_a_reader_that_goes_away_ends_the_run(pg, start):
    pg.execute("create table t (id int primary key, filler text)")
    pg.execute("insert into t select i, repeat('x', 1000) from generate_series(1, 50000) i")
    process = start(adbc=False)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=30) == 4
    mine = f"select count(*) from pg_stat_activity where datname = '{pg.name}' and pid <> pg_backend_pid()"
    until(lambda: pg.ask(mine) == [(0,)])
