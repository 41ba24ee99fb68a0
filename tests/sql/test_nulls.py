"""Keys that may be null, and a stream that breaks off: no row of the table is left out for it."""

import pytest
import sqlalchemy as sa

import burler
from burler.sql import Column, Table
from burler.testing import run_tap
from support.internals import sql_other, sql_reading


class Broken(Exception):
    """What stands for a lost network."""


@pytest.fixture
def small_pages(monkeypatch):
    """Pages of seven rows, however they are read."""
    from support.internals import postgres_links
    from support.internals import sql_other as other

    fetch = postgres_links.AdbcLink.fetch

    def cut(self, sql):
        for batch in fetch(self, sql):
            yield from (batch.slice(i, 7) for i in range(0, batch.num_rows, 7))

    monkeypatch.setattr(postgres_links.AdbcLink, "fetch", cut)
    monkeypatch.setattr(postgres_links, "_MOST_ROWS", 7)
    monkeypatch.setattr(other, "_FIRST", 7)
    monkeypatch.setattr(other, "_MOST_ROWS", 7)


def tap_of(url, *, pages=None, adbc=None, keys=None, **options):
    """A tap whose streams break off after some pages."""
    tap = burler.tap("tap-nulls")

    @tap.client
    def client():
        return burler.sql.Database(url, adbc=adbc)

    @tap.discover
    def find(client):
        return client.discover(tables=["t"], replication_keys=keys)

    @tap.sync("*", bookmark_strategy="every_n(1)", **options)
    def rows(client, stream):
        for number, page in enumerate(client.pages(stream)):
            if number == pages:
                raise Broken("gone away")
            yield page

    return tap


def two_runs(url, stream, **options):
    """The ids of a run that breaks off after three pages, and those of the run that goes on."""
    first = run_tap(tap_of(url, pages=3, **options))
    assert "gone away" in str(first.result.errors)
    second = run_tap(tap_of(url, **options), state=first.states[-1])
    assert not second.result.errors
    return [[row["id"] for row in out.records(stream)] for out in (first, second)]


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("options", [{"keys": "k", "order": "asc"}, {"resumable_by": "k"}])
@pytest.mark.parametrize("kind, value", [("int", "i"), ("text", "'k' || 100 + i")])
def test_rows_without_a_key_come_though_the_first_run_breaks_off(pg, adbc, options, kind, value):
    pg.execute(f"create table t (id int primary key, k {kind})")
    pg.execute(f"insert into t select i, case when i <= 40 then {value} end from generate_series(1, 45) i")
    first, second = two_runs(pg.url, "public.t", adbc=adbc, **options)
    assert len(first) == 21 and len(second) < 30
    assert {*first, *second} == set(range(1, 46))


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("key", [["1, null", "1, 'x'"], ["null, 'a'", "null, 'b'"], ["null, null", "2, null"]])
def test_a_primary_key_of_sqlite_may_be_null(tmp_path, key):
    url = f"sqlite:///{tmp_path}/t.db"
    rows = [f"({i}, {key[i >= 20]})" for i in range(40)]
    with sqlite3_of(tmp_path / "t.db") as shop:
        shop.execute("create table t (id integer, a integer, b text, c integer, primary key (a, b, c))")
        shop.executescript(f"insert into t (id, a, b) values {', '.join(rows)}")
    first, second = two_runs(url, "t", resumable_by="*")
    assert {*first, *second} == set(range(40))


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("options", [{"keys": "k", "order": "asc"}, {"resumable_by": "k"}])
def test_rows_without_a_key_in_sqlite(tmp_path, options):
    with sqlite3_of(tmp_path / "t.db") as shop:
        shop.execute("create table t (id integer primary key, k integer)")
        shop.executemany("insert into t values (?, ?)", [(i, i if i < 30 else None) for i in range(40)])
    first, second = two_runs(f"sqlite:///{tmp_path}/t.db", "t", **options)
    assert {*first, *second} == set(range(40)) and len(second) < 30


def sqlite3_of(path):
    import contextlib
    import sqlite3

    @contextlib.contextmanager
    def block():
        connection = sqlite3.connect(path)
        with connection:
            yield connection
        connection.close()

    return block()


@pytest.mark.parametrize("dialect", ["mysql", "oracle", "mssql"])
def test_databases_that_have_nulls_last_are_asked_for_them_first(dialect):
    """Oracle has; MySQL and SQL Server know no NULLS FIRST."""
    k = Column("k", {"type": ["null", "integer"]}, type=sa.Integer())
    asked = sql_other._select_of(sql_reading.Reading("t", Table("t", None, (k,)), (k,), ("k",)))
    text = str(asked.compile(dialect=sa.make_url(f"{dialect}://").get_dialect()()))
    assert "ORDER BY CASE WHEN" in text and "IS NULL" in text
    goes_on = sql_other._select_of(sql_reading.Reading("t", Table("t", None, (k,)), (k,), ("k",), (5,)))
    assert "CASE" not in str(goes_on.compile())
