"""What discovery finds: tables, views, keys, metadata, names of every kind."""

import pytest
from shops import NAMES, quoted, rows_of, table_tap

import burler
from burler.errors import SqlError
from burler.testing import canary, run_tap


def found(url, **more):
    with burler.sql.Database(url) as database:
        return {entry.tap_stream_id: entry for entry in database.discover(**more).entries.values()}


def test_tables_and_views_with_keys_and_metadata(pg):
    pg.execute("create table orders (b int, a int, note text not null, primary key (b, a))")
    pg.execute("create table codes (x int, code text not null unique)", "create table loose (x int)")
    pg.execute("create view open_orders as select * from orders", "create materialized view m as select 1 as one")
    entries = found(pg.url)
    assert list(entries) == ["public.codes", "public.loose", "public.m", "public.open_orders", "public.orders"]
    assert entries["public.orders"].key_properties == ("b", "a")
    assert entries["public.codes"].key_properties == ("code",)
    assert entries["public.loose"].key_properties == entries["public.open_orders"].key_properties == ()
    meta = entries["public.open_orders"].metadata
    assert meta[()]["is-view"] is True
    assert meta[()]["schema-name"] == "public"
    assert meta[()]["database-name"] == pg.name
    assert meta[()]["valid-replication-keys"] == ["b", "a", "note"]
    assert entries["public.m"].metadata[()]["is-view"] is True
    assert entries["public.orders"].metadata["properties", "note"] == {
        "inclusion": "available",
        "sql-datatype": "text",
    }
    assert entries["public.orders"].metadata["properties", "a"]["inclusion"] == "automatic"
    assert entries["public.orders"].schema["properties"]["note"] == {"type": "string"}


def test_schemas_and_patterns_choose(pg):
    pg.execute(
        "create schema other", "create table other.a_1 (x int)", "create table a_1 (x int)", "create table b (x int)"
    )
    assert set(found(pg.url)) == {"other.a_1", "public.a_1", "public.b"}
    assert set(found(pg.url, schemas="public")) == {"public.a_1", "public.b"}
    assert set(found(pg.url, tables="a_*")) == {"other.a_1", "public.a_1"}
    assert set(found(pg.url, tables=["other.*", "b"])) == {"other.a_1", "public.b"}


def test_views_may_be_left_out(pg):
    pg.execute("create table t (x int)", "create view v as select 1 as x")
    assert set(found(pg.url, views=False)) == {"public.t"}


def test_parts_of_a_partitioned_table_are_no_streams_of_their_own(pg, adbc):
    pg.execute("create table t (x int) partition by range (x)")
    pg.execute("create table t_1 partition of t for values from (0) to (10)", "insert into t values (1)")
    assert set(found(pg.url)) == {"public.t"}
    assert rows_of(pg.url, "public.t", adbc=adbc) == [{"x": 1}]


def test_names_of_every_kind(pg, adbc):
    for number, name in enumerate(NAMES):
        columns = ", ".join(f"{quoted(other)} text" for other in NAMES if other != name)
        pg.execute(f"create table {quoted(name)} ({quoted(name)} int primary key, {columns})") if number == 0 else None
        pg.execute(f"create table {quoted(name)} ({quoted(name)} int primary key)") if number else None
        pg.execute(f"insert into {quoted(name)} ({quoted(name)}) values ({number}), ({number + 1})")
    discover = {"replication_keys": {f"public.{name}": name for name in NAMES}}
    tap = table_tap(pg.url, adbc=adbc, discover=discover, order="asc")
    out = run_tap(tap)
    assert not out.result.errors
    second = run_tap(tap, state=out.states[-1])
    assert not second.result.errors
    for number, name in enumerate(NAMES):
        assert [row[name] for row in out.records(f"public.{name}")] == [number, number + 1], name
        assert [row[name] for row in second.records(f"public.{name}")] == [number + 1], name
    assert set(out.records(f"public.{NAMES[0]}")[0]) == set(NAMES)


def test_a_table_without_columns_is_left_out(pg):
    pg.execute("create table nothing ()", "create table t (x int)")
    assert set(found(pg.url)) == {"public.t"}


def test_two_tables_of_one_stream_name_are_an_error(pg):
    pg.execute('create schema "a.b"', "create schema a", 'create table "a.b".c (x int)', 'create table a."b.c" (x int)')
    with pytest.raises(SqlError, match=r"two tables would be the stream 'a\.b\.c'"):
        found(pg.url)


def test_no_table_that_fits_is_one_clear_error(pg):
    pg.execute("create table orders (x int)")
    with pytest.raises(SqlError, match=r"no table or view in the database is called 'order'. Tables there: 'orders'"):
        found(pg.url, tables="order")
    with pytest.raises(SqlError, match=r"there is no schema 'nope' in the database. Schemas: .*'public'"):
        found(pg.url, schemas=["nope"])


def test_columns_that_the_user_may_not_read_are_unsupported(pg, server):
    pg.execute("create table t (id int primary key, secret text)", "insert into t values (1, 'x')")
    password = canary("reader")
    pg.execute("drop role if exists reader", f"create role reader login password '{password}'")
    pg.execute("grant select (id) on t to reader")
    url = server.url(pg.name, user="reader", password=password)
    try:
        entry = found(url)["public.t"]
        assert entry.metadata["properties", "secret"]["inclusion"] == "unsupported"
        assert entry.key_properties == ("id",)
        assert rows_of(url, "public.t") == [{"id": 1}]
    finally:
        pg.execute("drop owned by reader", "drop role reader")


def test_tables_that_the_user_may_not_read_at_all_are_left_out(pg, server, caplog):
    pg.execute("create table t (id int primary key)", "create table closed (id int primary key)")
    password = canary("limited")
    pg.execute("drop role if exists limited", f"create role limited login password '{password}'")
    pg.execute("grant select on t to limited")
    try:
        assert list(found(server.url(pg.name, user="limited", password=password))) == ["public.t"]
    finally:
        pg.execute("drop owned by limited", "drop role limited")
    assert "may read no column of 'public.closed'; left out" in caplog.text and "GRANT SELECT" in caplog.text


def test_arrays_of_a_domain_are_arrays_of_what_it_is_made_of(pg, adbc):
    pg.execute("create domain pos as int", "create table t (id int primary key, p pos[])")
    pg.execute("insert into t values (1, array[1, 2]::pos[])")
    (row,) = rows_of(pg.url, "public.t", adbc=adbc)
    assert row == {"id": 1, "p": [1, 2]}


def test_a_view_has_the_key_that_the_catalog_gives_it(pg, adbc):
    pg.execute("create view v as select 1 as id, 'x' as name")
    root = {"selected": True, "is-view": True, "view-key-properties": ["id"]}
    entry = {"tap_stream_id": "public.v", "stream": "public.v", "metadata": [{"breadcrumb": [], "metadata": root}]}
    out = run_tap(table_tap(pg.url, adbc=adbc), catalog={"streams": [entry]})
    assert not out.result.errors
    assert out.messages[0]["key_properties"] == ["id"]


def test_declared_streams_read_tables_of_other_names(pg, adbc):
    pg.execute("create schema crm", "create table crm.people (id int primary key, name text)")
    pg.execute("insert into crm.people values (1, 'Ann')")
    tap = burler.tap("tap-crm")

    @tap.client
    def client():
        return burler.sql.Database(pg.url, adbc=adbc)

    schema = {"properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}

    @tap.sync("contacts", key_properties="id", schema=schema)
    def contacts(client, stream):
        yield from client.pages(stream, table="crm.people")

    out = run_tap(tap)
    assert not out.result.errors
    assert out.records("contacts") == [{"id": 1, "name": "Ann"}]


def test_an_empty_table_is_no_rows(pg, adbc):
    pg.execute("create table t (id int primary key, j json)")
    out = run_tap(table_tap(pg.url, adbc=adbc))
    assert not out.result.errors
    assert out.types == ["SCHEMA", "ACTIVATE_VERSION", "ACTIVATE_VERSION", "STATE"]


def test_a_thousand_columns(pg, adbc):
    names = [f"c{i}" for i in range(1000)]
    pg.execute(
        f"create table t ({', '.join(name + ' int' for name in names)})", "insert into t (c0, c999) values (1, 2)"
    )
    (row,) = rows_of(pg.url, "public.t", adbc=adbc)
    assert len(row) == 1000 and (row["c0"], row["c1"], row["c999"]) == (1, None, 2)
