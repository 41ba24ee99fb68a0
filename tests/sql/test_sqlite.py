"""SQLite: embedded, with values that may be of any type whatever their column says."""

import sqlite3
import threading

import pytest
from shops import NAMES, quoted, rows_of, table_tap

import burler
from burler.errors import SqlError
from burler.testing import run_tap


@pytest.fixture
def shop(tmp_path):
    """A database file: ``shop.url``, ``shop.execute(...)``."""

    class Shop:
        path = tmp_path / "shop file.db"
        url = f"sqlite:///{path}"

        @staticmethod
        def execute(*statements):
            connection = sqlite3.connect(Shop.path)
            with connection:
                for statement in statements:
                    connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)
            connection.close()

    return Shop


def found(url, **more):
    with burler.sql.Database(url) as database:
        return {entry.tap_stream_id: entry for entry in database.discover(**more).entries.values()}


def test_tables_views_and_their_types(shop):
    shop.execute(
        "create table orders (id integer primary key, ref text not null, total decimal(10,2), paid boolean, "
        "at datetime, day date, data json, photo blob, rate real, anything)",
        "create view open as select id from orders",
    )
    entries = found(shop.url)
    assert list(entries) == ["open", "orders"]
    assert entries["orders"].key_properties == ("id",)
    assert entries["open"].metadata[()]["is-view"] is True
    bounds = {"minimum": -(2**63), "maximum": 2**63 - 1}
    assert entries["orders"].schema["properties"] == {
        "id": {"type": "integer", **bounds},
        "ref": {"type": "string"},
        "total": {"type": ["null", "number"]},
        "paid": {"type": ["null", "boolean"]},
        "at": {"type": ["null", "string"], "format": "date-time"},
        "day": {"type": ["null", "string"], "format": "date"},
        "data": {},
        "photo": {"type": ["null", "string"], "contentEncoding": "base64"},
        "rate": {"type": ["null", "number"]},
        "anything": {},
    }


def test_values_come_out_as_they_are(shop):
    shop.execute(
        "create table t (id integer primary key, n decimal(10,2), b boolean, at datetime, d date, j json, p blob, x)",
        ("insert into t values (1, 12.5, 1, '2024-05-01 10:00:00.250000', '2024-05-01', ?, ?, 'é')",
         ('{"a": [1, 2.50]}', b"\x00\xff")),
        "insert into t values (9223372036854775807, 3, 0, '2024-05-01T10:00:00+02:00', null, '[]', null, 5)",
        "insert into t values (3, null, null, '2024-05-01 10:00', null, null, null, 1.5)",
    )  # fmt: skip
    assert rows_of(shop.url, "t") == [
        {"id": 1, "n": 12.5, "b": True, "at": "2024-05-01T10:00:00.250000Z", "d": "2024-05-01", "j": {"a": [1, 2.5]},
         "p": "AP8=", "x": "é"},
        {"id": 3, "n": None, "b": None, "at": "2024-05-01T10:00:00Z", "d": None, "j": None, "p": None, "x": 1.5},
        {"id": 9223372036854775807, "n": 3, "b": False, "at": "2024-05-01T08:00:00Z", "d": None, "j": [], "p": None,
         "x": 5},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "kind, value", [("integer", "'many'"), ("boolean", "2"), ("datetime", "'yesterday'"), ("real", "'1,5'")]
)
def test_a_value_of_another_type_than_its_column_is_refused(shop, kind, value):
    shop.execute(f"create table t (id integer primary key, v {kind})", f"insert into t values (1, {value})")
    out = run_tap(table_tap(shop.url))
    assert "'v'" in str(out.result.errors["t"])


KEYS = {
    "integer": ["-5", "0", "7", "9223372036854775807"],
    "real": ["-1.5", "0.25", "2", "1e300"],
    "text": ["'A'", "'Z'", "'a'", "'é'"],
    "text collate nocase": ["'A'", "'Z'", "'a'", "'é'"],
    "date": ["'2024-01-01'", "'2024-02-29'", "'2024-03-01'", "'2025-01-01'"],
    "datetime": ["'2024-01-01 00:00:00'", "'2024-01-01T00:00:00.250Z'", "'2024-01-01 03:00:00+02:00'", "'2025-01-01'"],
    "timestamp": ["'2024-01-01 00:00'", "'2024-01-01 00:00:00.000001'", "'2024-01-01 00:00:00.000002'",
                  "'2024-01-01 00:00:00.001'"],
}  # fmt: skip


@pytest.mark.parametrize("kind", KEYS)
def test_a_second_run_begins_at_the_greatest_value(shop, kind):
    a, b, c, d = KEYS[kind]
    if kind == "datetime":
        d = "'2025-01-01 00:00:00'"
    shop.execute(f"create table t (id int primary key, k {kind})")  # "int": rows lie as they were put in
    shop.execute(f"insert into t values (3, {c}), (1, {a}), (2, {b})")
    tap = table_tap(shop.url, discover={"replication_keys": "k"}, order="asc", bookmark_strategy="every_n(1)")
    first = run_tap(tap)
    assert not first.result.errors
    assert [row["id"] for row in first.records("t")] == [1, 2, 3]
    shop.execute(f"insert into t values (5, {d}), (4, {c})")
    second = run_tap(tap, state=first.states[-1])
    assert not second.result.errors
    got = [row["id"] for row in second.records("t")]
    assert set(got) >= {3, 4, 5} and got[-1] == 5


def test_a_time_that_is_none_is_no_row_that_silently_never_comes(shop):
    shop.execute(
        "create table t (id integer primary key, k datetime)", "insert into t values (1, '2024-01-01 00:00:00')"
    )
    tap = table_tap(shop.url, discover={"replication_keys": "k"}, order="asc")
    first = run_tap(tap)
    shop.execute("insert into t values (2, 'yesterday')")
    second = run_tap(tap, state=first.states[-1])
    assert "row id=2: field 'k' is text that is no date-time; the schema wants" in str(second.result.errors["t"])


def test_an_interrupted_table_goes_on_at_its_key(shop):
    shop.execute("create table t (a integer, b integer, filler text, primary key (a, b))")
    shop.execute(*[f"insert into t values ({i // 10}, {i}, printf('%.150000c', 'x'))" for i in range(50)])
    broken = [True]
    tap = burler.tap("tap-shop")

    @tap.client
    def client():
        return burler.sql.Database(shop.url)

    @tap.discover
    def find(client):
        return client.discover()

    @tap.sync("t", resumable_by="a", bookmark_strategy="every_n(1)")
    def rows(client, stream):
        for number, page in enumerate(client.pages(stream)):
            if broken and number == 3:
                raise ConnectionError
            yield page

    first = run_tap(tap)
    out = [row["b"] for row in first.records("t")]
    assert out == list(range(len(out))) and 15 < len(out) < 45
    broken.clear()
    second = run_tap(tap, state=first.states[-1])
    assert not second.result.errors
    rest = [row["b"] for row in second.records("t")]
    assert rest == list(range(rest[0], 50)) and 10 < rest[0] < len(out)  # 10 is the first of its account


def test_names_of_every_kind(shop):
    shop.execute(*[f"create table {quoted(name)} ({quoted(name)} integer primary key)" for name in NAMES[:-4]])
    shop.execute(*[f"insert into {quoted(name)} values (7)" for name in NAMES[:-4]])
    tap = table_tap(shop.url, discover={"replication_keys": {name: name for name in NAMES[:-4]}}, order="asc")
    out = run_tap(tap)
    assert not out.result.errors
    for name in NAMES[:-4]:
        assert out.records(name) == [{name: 7}]


def test_queries_with_values(shop):
    shop.execute("create table t (id integer, name text)", "insert into t values (1, 'a'), (2, 'b%')")
    with burler.sql.Database(shop.url) as database:
        assert list(database.rows("select * from t where name = :name", {"name": "b%"})) == [{"id": 2, "name": "b%"}]
        assert list(database.rows("select id from t where name like '%b%'")) == [{"id": 2}]
        with pytest.raises(SqlError, match="':name', and no such value"):
            list(database.rows("select :name"))
        with pytest.raises(SqlError, match="is given 'x'"):
            list(database.rows("select 1 as a", {"x": 1}))
        with pytest.raises(SqlError, match="two columns the name 'id'"):
            list(database.rows("select id, id from t"))


def test_a_missing_file_is_not_made(tmp_path):
    path = tmp_path / "nope.db"
    with burler.sql.Database(f"sqlite:///{path}") as database, pytest.raises(SqlError, match="there is no such file"):
        database.discover()
    assert not path.exists()


@pytest.mark.parametrize("uri", ["file:{}", "file://{}", "file://localhost{}"])
def test_a_missing_file_of_a_uri_is_not_made(tmp_path, uri):
    path = tmp_path / "no pe.db"
    url = f"sqlite:///{uri.format(path)}?uri=true".replace(" ", "%20")
    with burler.sql.Database(url) as database, pytest.raises(SqlError, match=r"no pe\.db': there is no such file"):
        database.discover()
    assert not path.exists()


def test_as_many_threads_as_one_likes_have_a_connection_each(shop):
    shop.execute("create table t (id integer)", *[f"insert into t values ({i})" for i in range(500)])
    with burler.sql.Database(shop.url) as database:
        asked = [database.query("select * from t") for _ in range(30)]
        assert [len(next(pages)) for pages in asked] == [10] * 30
        for pages in asked:
            pages.close()


def test_a_view_of_a_table_that_is_gone_is_left_out(shop, caplog):
    shop.execute("create table t (x integer)", "create table q (x integer)", "create view broken as select * from q")
    shop.execute("drop table q")
    assert list(found(shop.url)) == ["t"]
    assert "'broken' can't be read (no such table: main.q); it is left out" in caplog.text


def test_json_that_is_none_names_its_stream_and_column(shop):
    shop.execute("create table t (id integer primary key, j json)", "insert into t values (1, '{\"a\": tru')")
    said = str(run_tap(table_tap(shop.url)).result.errors["t"])
    assert said.startswith("stream 't': column 'j' holds a value that can't be read: ")


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "text.db"
    path.write_text("no database at all, but long enough to be looked at" * 50)
    with burler.sql.Database(f"sqlite:///{path}") as database, pytest.raises(SqlError, match="file is not a database"):
        database.discover()


def test_a_database_without_tables(shop):
    shop.execute("create table t (x)", "drop table t")
    with pytest.raises(SqlError, match="no table or view"):
        found(shop.url)


def test_a_table_that_somebody_locks(shop):
    shop.execute("create table t (x integer)", "insert into t values (1)")
    tap = table_tap(shop.url + "?timeout=0.05", discover={"tables": "t"})
    holder = sqlite3.connect(shop.path)
    run_tap(tap)
    holder.execute("pragma locking_mode = exclusive")
    holder.execute("begin exclusive")
    try:
        with pytest.raises(SqlError, match="database is locked"):
            run_tap(tap)
    finally:
        holder.close()


def test_texts_and_blobs_of_a_megabyte_come_in_small_pages(shop):
    shop.execute("create table t (id integer primary key, x text)")
    shop.execute(*[("insert into t values (?, ?)", (i, "x" * 1_000_000)) for i in range(120)])
    with burler.sql.Database(shop.url) as database:
        sizes = [len(page) for page in database.query("select * from t")]
    assert sizes[0] == 10 and set(sizes[1:]) <= {1, 2}


def test_big_rows_behind_many_small_ones_come_in_small_pages(shop):
    """A page may not be as many rows as fitted into the one before."""
    shop.execute("create table t (id integer primary key, x text)")
    shop.execute(*[("insert into t values (?, ?)", (i, "x" * (1 if i < 6000 else 200_000))) for i in range(6400)])
    with burler.sql.Database(shop.url) as database:
        pages = list(database.query("select * from t"))
    assert sum(len(page) for page in pages) == 6400
    assert max(sum(len(row["x"]) for row in page) for page in pages) <= 12_000_000


@pytest.mark.parametrize(
    "statement",
    [
        "delete from t", "delete from t returning id", "insert into t values (9) returning id", "drop table t",
        "create table other (x)", "vacuum", "pragma user_version = 7", "pragma query_only = 0",
        "pragma journal_mode = wal", "attach 'other.db' as other",
    ],
)  # fmt: skip
def test_what_writes_is_refused(shop, statement, monkeypatch):
    monkeypatch.chdir(shop.path.parent)
    shop.execute("create table t (id integer primary key)", "insert into t values (1), (2)")
    before = shop.path.read_bytes()
    with burler.sql.Database(shop.url) as database:
        with pytest.raises(SqlError, match="lets only through what reads"):
            list(database.query(statement))
        assert list(database.rows("select id from t")) == [{"id": 1}, {"id": 2}]
    assert shop.path.read_bytes() == before
    assert [path.name for path in shop.path.parent.iterdir()] == ["shop file.db"]


def test_a_primary_key_that_cannot_be_null_has_no_null_in_its_schema(shop):
    shop.execute(
        "create table a (id integer primary key)",
        "create table b (id int primary key)",
        "create table c (x integer, y integer, primary key (x, y))",
        "create table d (code text primary key)",
    )
    entries = found(shop.url)
    assert entries["a"].schema["properties"]["id"]["type"] == "integer"
    for table, column in (("b", "id"), ("c", "x"), ("d", "code")):  # SQLite lets nulls in there
        assert "null" in entries[table].schema["properties"][column]["type"]


def test_a_statement_that_runs_long_ends_when_its_reader_stops(shop):
    shop.execute("create table t (id integer)")
    endless = (
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000000000) "
        "select i from n where i < 20 or i = 0"
    )
    with burler.sql.Database(shop.url) as database:
        pages = database.query(endless)
        assert len(next(pages)) == 10
        pages.close()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("burler-sql")]


def test_many_threads_read_at_a_time(shop):
    shop.execute("create table t (id integer primary key)", *[f"insert into t values ({i})" for i in range(500)])
    with burler.sql.Database(shop.url) as database:
        counts = []
        threads = [
            threading.Thread(target=lambda: counts.append(len(list(database.rows("select * from t")))))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert counts == [500] * 8


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    def no_module(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    from burler.sql import Database

    monkeypatch.setattr("importlib.import_module", no_module)

    with pytest.raises(
        burler.errors.MissingExtra, match=r"of burler's extra 'sql'. Install it: pip install 'SQLAlchemy>="
    ):
        Database("sqlite://")


def test_queries_are_counted_in_the_report(shop):
    shop.execute("create table t (x integer)")
    found = []
    tap = burler.tap("tap-shop")

    @tap.client
    def client():
        return burler.sql.Database(shop.url)

    @tap.sync("t", schema={"properties": {"x": {"type": ["null", "integer"]}}})
    def rows(client, stream):
        yield from client.pages(stream)
        yield from client.query("select 5 as x")
        found.append(stream.tally.to_json())

    assert run_tap(tap).records("t") == [{"x": 5}]
    assert found == [{"queries": 2}]


def test_no_order_is_asked_for_without_resumable_by(shop):
    shop.execute("create table orders (id integer, name text)", "create index by_id on orders (id)")
    shop.execute("insert into orders values (3, 'c'), (1, 'a'), (2, 'b')")
    rows = rows_of(shop.url, "orders", bookmark_strategy="end_of_sync")
    assert [row["id"] for row in rows] == [3, 1, 2]
