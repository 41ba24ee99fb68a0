"""Keys that may be null, and a stream that breaks off: no row of the table is left out for it."""

import sqlite3

import pytest
from foreign import foreign

import burler
from burler.testing import run_tap

WIDE = 700_000
"""Characters that a row has beside its key: some of them fill a page."""


class Broken(Exception):
    """What stands for a lost network."""


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


def two_runs(url, stream, pages=3, **options):
    """The ids of a run that breaks off after some pages, and those of the run that goes on."""
    first = run_tap(tap_of(url, pages=pages, **options))
    assert "gone away" in str(first.result.errors)
    second = run_tap(tap_of(url, **options), state=first.states[-1])
    assert not second.result.errors
    return [[row["id"] for row in out.records(stream)] for out in (first, second)]


@pytest.mark.parametrize("options", [{"keys": "k", "order": "asc"}, {"resumable_by": "k"}])
@pytest.mark.parametrize("kind, value", [("int", "i"), ("text", "'k' || 100 + i")])
def test_rows_without_a_key_come_though_the_first_run_breaks_off(pg, adbc, options, kind, value):
    pg.execute(f"create table t (id int primary key, k {kind}, filler text)")
    made = f"select i, case when i <= 12 then {value} end, repeat('x', {WIDE}) from generate_series(1, 14) i"
    pg.execute(f"insert into t {made}")
    first, second = two_runs(pg.url, "public.t", adbc=adbc, **options)
    assert 2 < len(first) < 14 and len(second) < 10
    assert {*first, *second} == set(range(1, 15))


def in_sqlite(path, *statements):
    with sqlite3.connect(path) as shop:
        for statement in statements:
            shop.execute(statement)
    shop.close()


@pytest.mark.parametrize("key", [["1, null", "1, 'x'"], ["null, 'a'", "null, 'b'"], ["null, null", "2, null"]])
def test_a_primary_key_of_sqlite_may_be_null(tmp_path, key):
    rows = ", ".join(f"({i}, {key[i >= 15]}, printf('%.150000c', 'x'))" for i in range(30))
    table = "create table t (id integer, a integer, b text, c integer, filler text, primary key (a, b, c))"
    in_sqlite(tmp_path / "t.db", table, f"insert into t (id, a, b, filler) values {rows}")
    first, second = two_runs(f"sqlite:///{tmp_path}/t.db", "t", pages=2, resumable_by="*")
    assert {*first, *second} == set(range(30))


@pytest.mark.parametrize("kind", ["sqlite", "oracle", "mysql"])
@pytest.mark.parametrize("options", [{"keys": "k", "order": "asc"}, {"resumable_by": "k"}])
def test_rows_without_a_key_in_other_databases(tmp_path, kind, options):
    """Oracle has nulls behind all values unless it is told; MySQL and SQL Server know no NULLS FIRST."""
    path, url = tmp_path / "t.db", f"sqlite:///{tmp_path}/t.db"
    if kind != "sqlite":
        url = foreign(kind, path, {"other": {"id": None}})
    in_sqlite(path, "create table t (id integer primary key, k integer, filler text)")
    rows = ", ".join(f"({i}, {i if i < 25 else 'null'}, printf('%.150000c', 'x'))" for i in range(30))
    in_sqlite(path, f"insert into t values {rows}")
    first, second = two_runs(url, "t" if kind == "sqlite" else "main.t", pages=2, **options)
    assert {*first, *second} == set(range(30)) and len(second) < 20
