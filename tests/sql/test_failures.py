"""What goes wrong with a database, as an operator sees it: one clear error each, no secret in it, no hanging."""

import logging
import signal
import subprocess
import sys
import threading
import time
import types
from urllib.parse import quote

import pytest
from shops import rows_of, table_tap

import burler
from burler.errors import SqlError
from burler.testing import canary, run_tap
from support import postgres
from support.clocks import until


def error_of(url, **more):
    with pytest.raises(SqlError) as caught:
        rows_of(url, "public.t", **more)
    said = str(caught.value)
    assert postgres.PASSWORD not in said
    assert len(said.splitlines()) <= 3
    return said


def test_a_wrong_password_is_not_shown(server, adbc):
    said = error_of(server.url(password=quote(canary("wrong") + "@:/", safe="")), adbc=adbc)
    assert "password authentication failed" in said
    assert "canary" not in said
    assert "burler:***@127.0.0.1" in said
    assert "Look at user and password" in said


def test_a_database_that_is_not_there(server, adbc):
    said = error_of(server.url("nope"), adbc=adbc)
    assert 'database "nope" does not exist' in said
    assert "Look at the database's name" in said


def test_a_server_that_is_not_there():
    said = error_of(f"postgresql://someone:{canary('nobody')}@127.0.0.1:1/x")
    assert "onnection refused" in said
    assert "Is the server up" in said
    assert "canary" not in said


@pytest.mark.parametrize("url", ["", "no url", "postgresql:/x", 5, None])
def test_what_is_no_url(url):
    with pytest.raises(SqlError, match="URL"):
        burler.sql.Database(url)


def test_an_unknown_kind_of_database():
    with pytest.raises(SqlError, match="SQLAlchemy knows no database 'paradox'"):
        burler.sql.Database(f"paradox://user:{canary('paradox')}@h/x").discover()


def test_a_driver_that_is_not_installed(monkeypatch):
    """The package is named, which the module is not always; and the URL once."""
    monkeypatch.setitem(sys.modules, "MySQLdb", None)
    with pytest.raises(SqlError) as caught:
        burler.sql.Database("mysql://h/x").discover()
    assert str(caught.value) == (
        "mysql://h/x: its driver 'MySQLdb' is not installed. Install it: pip install mysqlclient"
    )


@pytest.mark.parametrize(
    "given",
    [
        {"connect_timeout_seconds": 0},
        {"statement_timeout_seconds": "5"},
        {"connect_timeout_seconds": float("inf")},
        {"naive_times": "cet"},
    ],
)
def test_settings_that_are_none(given):
    with pytest.raises(SqlError, match=next(iter(given))):
        burler.sql.Database("sqlite://", **given)


def test_a_repr_shows_no_secret(server):
    shown = repr(burler.sql.Database(server.url() + "?sslpassword=" + canary("ssl")))
    assert shown.startswith("<Database postgresql")
    assert "canary" not in shown


def change_after_discovery(pg, adbc, *statements):
    """A tap whose table changes between discovery and sync."""
    tap = burler.tap("tap-shop")

    @tap.client
    def client():
        return burler.sql.Database(pg.url, adbc=adbc)

    @tap.discover
    def find(client):
        catalog = client.discover()
        pg.execute(*statements)
        return catalog

    @tap.sync("*")
    def rows(client, stream):
        return client.pages(stream)

    out = run_tap(tap)
    (error,) = out.result.errors.values()
    assert isinstance(error, SqlError)
    return str(error)


def test_a_table_that_was_dropped(pg, adbc):
    pg.execute("create table t (id int)")
    said = change_after_discovery(pg, adbc, "drop table t")
    assert said.startswith("stream 'public.t': ")
    assert 'relation "public.t" does not exist' in said
    assert "discover anew" in said


def test_a_column_that_was_dropped(pg, adbc):
    pg.execute("create table t (id int, name text)")
    said = change_after_discovery(pg, adbc, "alter table t drop column name")
    assert "name" in said
    assert "make the catalog anew" in said


def test_a_column_of_an_old_catalog(pg, adbc):
    pg.execute("create table t (id int)")
    schema = {"properties": {"id": {"type": "integer"}, "gone": {"type": "string"}}}
    entry = {"tap_stream_id": "public.t", "stream": "public.t", "schema": schema, "metadata": [
        {"breadcrumb": [], "metadata": {"selected": True}}]}  # fmt: skip
    out = run_tap(table_tap(pg.url, adbc=adbc), catalog={"streams": [entry]})
    assert "its table has no column 'gone' (any more)" in str(out.result.errors["public.t"])


def test_a_column_that_became_another_type_is_read_as_it_is_now(pg, adbc):
    """The rows say what is wrong, if something is."""
    pg.execute("create table t (id int)", "insert into t values (1)")
    tap = table_tap(pg.url, adbc=adbc)
    run_tap(tap)
    pg.execute("alter table t alter column id type text")
    assert run_tap(tap).records("public.t") == [{"id": "1"}]


def test_a_statement_that_takes_too_long(pg, adbc):
    pg.execute("create view t as select 1 as id, pg_sleep(30)::text as s")
    begin = time.monotonic()
    said = error_of(pg.url, adbc=adbc, database={"statement_timeout_seconds": 0.3})
    assert "statement timeout" in said and "statement_timeout_seconds" in said
    assert time.monotonic() - begin < 20


def test_the_time_that_the_target_takes_is_no_time_of_the_statement(pg, adbc):
    """A COPY is one statement from its first row to its last, however slowly they are taken."""
    fill(pg)
    with burler.sql.Database(pg.url, adbc=adbc, statement_timeout_seconds=2) as database:
        pages = database.query("select * from t")
        next(pages)
        time.sleep(2.2)
        assert sum(1 for _page in pages) > 3


def test_what_is_set_for_a_query_does_not_outlive_it(pg, adbc):
    """Behind a pool the connection is somebody else's next."""
    with burler.sql.Database(pg.url, adbc=adbc) as database:
        asked = "coalesce(current_setting('burler.p0', true), '') as left_behind, pg_backend_pid() as pid"
        (first,) = database.rows(f"select cast(:a as text) as given, {asked}", {"a": "secret"})
        (second,) = database.rows(f"select {asked}")
    assert first["given"] == first["left_behind"] == "secret"
    assert second == {"left_behind": "", "pid": first["pid"]}


def test_a_bookmark_of_another_type_than_its_key(pg, adbc):
    pg.execute("create table t (id int primary key)", "insert into t values (1)")
    said = error_of(
        pg.url,
        adbc=adbc,
        discover={"replication_keys": "id"},
        state={"bookmarks": {"public.t": {"id": 5.5}}},
    )
    assert 'invalid input syntax for type integer: "5.5"' in said and "take it out of the state" in said


def lost_tap(pg, adbc, **options):
    """A tap whose connection is ended by the server after the first page, once."""
    tap = burler.tap("tap-shop")
    killed = []

    @tap.client
    def client():
        return burler.sql.Database(pg.url, adbc=adbc)

    @tap.discover
    def find(client):
        return client.discover(replication_keys="id")

    @tap.sync("*", order="asc", bookmark_strategy="every_n(1)", **options)
    def rows(client, stream):
        for page in client.pages(stream):
            yield page
            if not killed:
                killed.append(True)
                pg.ask(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    f"where datname = '{pg.name}' and pid <> pg_backend_pid()"
                )

    return tap


def fill(pg):
    """More than the pipes between hold."""
    pg.execute("create table t (id int primary key, filler text)")
    pg.execute("insert into t select i, repeat('x', 1000) from generate_series(1, 15000) i")


def test_a_lost_connection_is_one_error_and_the_next_run_goes_on(pg, adbc):
    fill(pg)
    out = run_tap(lost_tap(pg, adbc))
    (error,) = out.result.errors.values()
    assert isinstance(error, SqlError)
    assert "terminat" in str(error) or "closed the connection" in str(error) or "lost" in str(error)
    assert postgres.PASSWORD not in str(error)
    got = out.records("public.t")
    assert 0 < len(got) < 15_000
    bookmark = out.states[-1]["bookmarks"]["public.t"]["id"]
    assert bookmark == got[-1]["id"]


def test_a_lost_connection_may_be_tried_again(pg):
    fill(pg)
    out = run_tap(lost_tap(pg, True, retry_sync_on=SqlError, max_retries=2))
    assert not out.result.errors
    assert {row["id"] for row in out.records("public.t")} == set(range(1, 15_001))


def test_a_function_that_stops_early_cancels_its_query(pg, adbc):
    pg.execute("create view slow as select i as id, pg_sleep(case when i > 30000 then 1 else 0 end)::text as s, "
               "repeat('x', 500) as filler from generate_series(1, 31000) i")  # fmt: skip
    with burler.sql.Database(pg.url, adbc=adbc) as database:
        pages = database.query("select * from slow")
        next(pages)
        begin = time.monotonic()
        pages.close()
        assert time.monotonic() - begin < 20
        until(lambda: pg.ask(RUNNING.format(pg.name)) == [(0,)])
    assert not [thread for thread in threading.enumerate() if thread.name == "burler-sql"]


def test_rows_before_an_error_come_before_it(pg, adbc):
    failing = "select i, repeat('x', 500) as filler, 1 / (9990 - i) as z from generate_series(1, 10000) i"
    with burler.sql.Database(pg.url, adbc=adbc) as database:
        rows = database.rows(failing)
        assert next(rows)["i"] == 1
        with pytest.raises(SqlError, match="division by zero"):
            list(rows)


def test_no_more_than_some_pages_are_fetched_ahead(pg, adbc):
    """A target may be slow, and the table larger than the memory: the server has to wait, too."""
    with burler.sql.Database(pg.url, adbc=adbc) as database:
        pages = database.query("select repeat('x', 1000) as filler from generate_series(1, 200000)")
        next(pages)
        waits = f"select 1 from pg_stat_activity where datname = '{pg.name}' and wait_event = 'ClientWrite'"
        until(lambda: pg.ask(waits))
        pages.close()


PASSES_ON = """
import socket, sys, threading
def pump(one, other):
    while some := one.recv(65536):
        other.sendall(some)
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    while True:
        near, far = listener.accept()[0], socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        for pair in ((near, far), (far, near)):
            threading.Thread(target=pump, args=pair, daemon=True).start()
"""


def test_a_server_that_answers_nothing_any_more_is_left_behind(pg):
    """To cancel asks it over a connection of its own, which hangs as well."""
    fill(pg)
    with subprocess.Popen([sys.executable, "-c", PASSES_ON, str(pg.port)], stdout=subprocess.PIPE) as between:
        url = pg.url.replace(f":{pg.port}/", f":{int(between.stdout.readline())}/")
        databases = [burler.sql.Database(url, adbc=adbc) for adbc in (True, False)]
        readers = [database.query("select * from t") for database in databases]
        for pages in readers:
            next(pages)
        between.send_signal(signal.SIGSTOP)
        ends = [threading.Thread(target=pages.close) for pages in readers]
        for end in ends:
            end.start()
        for end in ends:
            end.join(40)
        left = [end for end in ends if end.is_alive()]
        between.kill()
        assert not left
    for database in databases:
        database.close()


def test_connections_are_used_again_and_closed_at_the_end(pg, adbc):
    pg.execute("create table t (id int)", "insert into t values (1)")
    connected = f"select count(distinct pid) from pg_stat_activity where datname = '{pg.name}' and pid <> pg_backend_pid() and query not like '%pg_catalog%'"  # noqa: E501
    with burler.sql.Database(pg.url, adbc=adbc) as database:
        for _ in range(10):
            assert list(database.rows("select id from t")) == [{"id": 1}]
        assert pg.ask(connected)[0][0] <= 2
    until(lambda: pg.ask(connected) == [(0,)])


RUNNING = "select count(*) from pg_stat_activity where datname = '{}' and state = 'active' and pid <> pg_backend_pid()"


def test_streams_run_side_by_side_on_connections_of_their_own(pg, adbc):
    pg.execute("create table t (id int, part int)")
    pg.execute("insert into t select i, i % 8 from generate_series(1, 8000) i")
    tap = burler.tap("tap-shop")

    @tap.client
    def client():
        return burler.sql.Database(pg.url, adbc=adbc)

    @tap.partitions("t")
    def parts():
        return ({"part": i} for i in range(8))

    schema = {"properties": {"id": {"type": "integer"}, "part": {"type": "integer"}}}

    @tap.sync("t", key_properties="id", schema=schema, workers=4)
    def rows(client, partition):
        return client.query("select * from t where part = :part", partition)

    out = run_tap(tap)
    assert not out.result.errors
    assert sorted(row["id"] for row in out.records("t")) == list(range(1, 8001))


def test_what_a_driver_says_is_told_without_secrets(monkeypatch):
    password = canary("in-words") + "/+"
    ways = [password, quote(password, safe="")]
    driver = types.ModuleType("MySQLdb")
    driver.paramstyle, driver.version_info, driver.Error = "format", (2, 2, 0), type("Error", (Exception,), {})
    for name in ("OperationalError", "ProgrammingError", "InterfaceError", "InternalError"):
        setattr(driver, name, driver.Error)

    def connect(*_args, **_more):
        raise driver.Error(f"cannot use {ways[0]!r} or hidden for u")

    driver.connect = connect
    monkeypatch.setitem(sys.modules, "MySQLdb", driver)
    while ways:
        with pytest.raises(SqlError) as caught:
            burler.sql.Database(f"mysql://u:{quote(password, safe='')}@h/x?sslpassword=hidden").discover()
        said = "discovery: mysql://u:***@h/x?sslpassword=***: cannot use '***' or *** for u."
        assert str(caught.value) == said
        ways.pop(0)


def test_a_query_that_fails_names_its_stream(pg, adbc):
    tap = burler.tap("tap-shop")

    @tap.client
    def client():
        return burler.sql.Database(pg.url, adbc=adbc)

    @tap.sync("totals", schema={"properties": {"a": {"type": "integer"}}})
    def totals(client):
        return client.query("select 1 / 0 as a")

    said = str(run_tap(tap).result.errors["totals"])
    assert said.startswith("stream 'totals': query: postgresql")
    assert "division by zero" in said


def test_no_secret_is_in_any_log_line(pg, adbc, caplog):
    caplog.set_level(logging.DEBUG)
    pg.execute("create table t (id int, k timestamp)", "insert into t values (1, 'infinity')")
    run_tap(table_tap(pg.url, adbc=adbc))
    assert postgres.PASSWORD not in caplog.text


@pytest.mark.parametrize("slashes", ["///", "////"])
def test_a_slash_too_many_does_not_show_the_password(slashes):
    """As in sqlite:///: all behind it would be the name of a database."""
    with pytest.raises(SqlError, match="two slashes stand before the user") as caught:
        burler.sql.Database(f"postgresql:{slashes}me:{canary('slash')}@h/shop")
    assert "canary" not in str(caught.value)


def test_names_and_passwords_with_any_signs(pg, server, adbc):
    """Written with % in the URL; libpq gets them whole."""
    password, name = f" {canary('sp ace')} + 'x\"y\\ @:/ é%", "sp ace +'r"
    literal = password.replace("'", "''")
    pg.execute("create table t (id int)", "insert into t values (1)", f'drop role if exists "{name}"')
    pg.execute(f"create role \"{name}\" login password '{literal}'", f'grant select on t to "{name}"')
    url = server.url(pg.name, user=quote(name, safe=""), password=quote(password, safe=""))
    url += "?application_name=my%20tap&options=-c%20search_path%3Dpublic"
    try:
        assert rows_of(url, "public.t", adbc=adbc) == [{"id": 1}]
        with burler.sql.Database(url, adbc=adbc) as database:
            asked = "select current_setting('application_name') as a, current_setting('search_path') as p"
            assert list(database.rows(asked)) == [{"a": "my tap", "p": "public"}]
    finally:
        pg.execute(f'drop owned by "{name}"', f'drop role "{name}"')


def test_a_server_that_ends_idle_connections_ends_no_stream(pg, adbc):
    """In a transaction that a slow target keeps open, and between two tables."""
    fill(pg)
    limits = ("idle_in_transaction_session_timeout", "idle_session_timeout")
    pg.execute(*[f"alter database {pg.name} set {name} = 800" for name in limits])
    try:
        with burler.sql.Database(pg.url, adbc=adbc) as database:
            for _ in range(2):
                pages = database.query("select * from t")
                next(pages)
                time.sleep(1.2)
                assert sum(1 for _page in pages) > 3
                time.sleep(1.6)
    finally:
        pg.execute(*[f"alter database {pg.name} reset {name}" for name in limits])


def test_all_digits_come_whatever_the_server_shows_by_default(pg, adbc):
    pg.execute(f"alter database {pg.name} set extra_float_digits = -5", "create table t (a float8, b float4)")
    pg.execute("insert into t values (0.1234567890123456, 1.2345678)")
    try:
        (row,) = rows_of(pg.url, "public.t", adbc=adbc)
    finally:
        pg.execute(f"alter database {pg.name} reset extra_float_digits")
    assert row == {"a": 0.1234567890123456, "b": 1.2345678}


def test_a_lost_connection_takes_those_that_wait_with_it(pg, adbc):
    """Else each of them would cost a try of its own."""
    pg.execute("create table t (id int)", "insert into t values (1)")
    ends = "select pg_terminate_backend(pid) from pg_stat_activity where datname = '{}' and pid <> pg_backend_pid()"
    with burler.sql.Database(pg.url, adbc=adbc) as database:
        assert list(database.rows("select id from t")) == [{"id": 1}]
        pg.ask(ends.format(pg.name))
        with pytest.raises(SqlError):
            list(database.rows("select id from t"))
        assert list(database.rows("select id from t")) == [{"id": 1}]


@pytest.mark.parametrize("sign", ["@", "/", "#", "?"])
def test_a_password_that_is_not_encoded_is_refused_and_not_shown(sign):
    secret = f"pa{sign}{canary('ss')}"
    with pytest.raises(SqlError, match="write '@' as %40") as caught:
        burler.sql.Database(f"postgresql://me:{secret}@localhost:1/shop")
    assert "canary" not in str(caught.value)


def pid_of(database):
    (row,) = database.rows("select pg_backend_pid() as pid")
    return row["pid"]


@pytest.mark.parametrize(
    ("more", "sql"),
    [
        ({}, "select 1 / (3 - i) as i from generate_series(1, 5) i"),
        ({"statement_timeout_seconds": 1.5}, "select pg_sleep(30)"),
    ],
)
def test_a_connection_whose_query_failed_is_not_used_again(pg, adbc, more, sql):
    with burler.sql.Database(pg.url, adbc=adbc, **more) as database:
        before = pid_of(database)
        assert pid_of(database) == before
        with pytest.raises(SqlError):
            list(database.rows(sql))
        assert pid_of(database) != before


def test_nor_is_one_whose_rows_were_not_all_read(pg, adbc):
    with burler.sql.Database(pg.url, adbc=adbc) as database:
        before = pid_of(database)
        rows = database.rows("select i, repeat('x', 100) as filler from generate_series(1, 150000) i")
        next(rows)
        rows.close()
        assert pid_of(database) != before
