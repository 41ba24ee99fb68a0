"""tap_ledger in plain runs: what comes of what the log says, and of what it does not say."""

import json
import os
from decimal import Decimal

import psycopg
import pytest

import burler
import tap_ledger
from burler.testing import run_tap
from support.cli import script
from support.clocks import until
from tap_ledger import pgoutput
from tap_ledger.feed import Feed, shown
from tap_ledger.slot import Source
from tap_ledger.tests.follow import Copy, error_of, no_row_behind_the_state_that_covers_it, place_of
from tap_ledger.values import adapt

BIG = "(select string_agg(md5(i::text), '') from generate_series(1, 400) i)"  # 12,800 characters that don't get smaller


def discovered(books, folder):
    """The catalog, as the tap's own command prints it."""
    (folder / "config.json").write_text(json.dumps(books.config))
    return json.loads(script(tap_ledger.tap, "--discover", "--config", "config.json", cwd=folder).stdout)


def rows_of(out):
    """The records without their place in the log."""
    return [{name: value for name, value in row.items() if name != "_sdc_lsn"} for row in out.records("entries")]


def source_of(books):
    """What the tap reads."""
    return Source(books.config["database_url"], slot=books.slot, publication="burler_ledger", table="public.entries")


def state_at(lsn, table):
    """A state that stands there."""
    return {"bookmarks": {"entries": {"stream_state": {"lsn": lsn, "table": table}}}}


def test_a_first_run_reads_all_and_a_second_one_what_has_changed(books):
    first = books.run()
    assert len(first.records("entries")) == 200
    assert first.types[:2] == ["SCHEMA", "ACTIVATE_VERSION"] and first.types[-2:] == ["ACTIVATE_VERSION", "STATE"]
    books.do("insert into entries (account_id, amount, memo) values (3, 1.5, 'new')")
    books.do("update entries set amount = 7 where id = 5", "delete from entries where id = 6")
    second = books.run(first.states[-1])
    assert [row["id"] for row in second.records("entries")] == [201, 5, 6]
    assert [row.get("amount") for row in second.records("entries")] == [1.5, 7, None]
    assert [row["_sdc_deleted_at"] is None for row in second.records("entries")] == [True, True, False]
    assert Copy().take(first.messages).take(second.messages).entries() == books.entries()
    assert books.confirmed() == place_of(second.states[-1])
    assert not books.run(second.states[-1]).records("entries")


def test_rows_of_a_transaction_have_one_place_and_come_in_its_order(books):
    first = books.run()
    with psycopg.connect(books.url) as early, psycopg.connect(books.url) as late:
        early.execute("insert into entries (account_id, amount, memo) values (1, 1, 'begun first')")
        late.execute("insert into entries (account_id, amount, memo) values (1, 1, 'committed first')")
        late.commit()
        early.execute("update entries set memo = 'begun first, changed' where memo = 'begun first'")
    rows = books.run(first.states[-1]).records("entries")
    assert [row["memo"] for row in rows] == ["committed first", "begun first", "begun first, changed"]
    assert rows[0]["_sdc_lsn"] < rows[1]["_sdc_lsn"] == rows[2]["_sdc_lsn"]


def test_no_state_cuts_a_transaction(books):
    first = books.run()
    books.do("insert into entries (account_id, amount) select 1, 1 from generate_series(1, 25000)")
    second = books.run(first.states[-1])  # a STATE is due each 10,000 rows
    assert len(second.records("entries")) == 25_000
    assert len({row["_sdc_lsn"] for row in second.records("entries")}) == 1
    assert "STATE" in second.types[10_000:20_000]
    no_row_behind_the_state_that_covers_it(second.messages)


def test_what_is_rolled_back_never_comes(books):
    first = books.run()
    with psycopg.connect(books.url) as connection:
        connection.execute("insert into entries (account_id, amount) values (1, 1)")
        connection.rollback()
    second = books.run(first.states[-1])
    assert not second.records("entries")


def test_a_snapshot_is_the_table_at_one_place_of_the_log(books):
    source = source_of(books)
    with source.connected() as connection:
        source.make(connection)
        table = source.check(connection, ("id",))
    books.book("before")
    with source.snapshot() as (reader, lsn):
        books.book("after")
        assert reader.execute("select count(*), max(memo) filter (where id > 200) from entries").fetchone() == (
            201,
            "before",
        )
    assert [row["memo"] for row in books.run(state_at(lsn, table)).records("entries")] == ["after"]


def test_what_was_read_is_not_what_may_be_forgotten(books):
    place = place_of(books.run().states[-1])
    books.book("new")
    feed = Feed(source_of(books).connect(replication=True), books.slot, "burler_ledger", place)
    try:
        messages = (pgoutput.decode(data) for data in iter(lambda: feed.read(10), None) if isinstance(data, bytes))
        end = next(message for message in messages if isinstance(message, pgoutput.Commit))
        feed.reached(end.end_lsn)
        feed.tell(ask=True)
        sent = "select write_lsn >= %s::pg_lsn from pg_stat_replication where application_name = 'tap-ledger %s'"
        written = sent % (f"'{shown(end.end_lsn)}'", os.getpid())
        until(lambda: (True,) in books.ask(written), "the server has heard how far it is read")
        assert books.confirmed() == place
        feed.acknowledged = end.end_lsn
    finally:
        feed.close()
    until(lambda: books.confirmed() == end.end_lsn, "the last word was heard, too")


def test_what_a_server_sends_again_after_a_crash_is_left_out(books, monkeypatch, tmp_path):
    unconfirmed = {"acknowledge_state_file": str(tmp_path / "none.json")}
    first = books.run(**unconfirmed)
    books.book("one")
    second = books.run(first.states[-1], **unconfirmed)
    books.book("two")
    monkeypatch.setattr("tap_ledger.log.Feed", lambda link, slot, name, _start: Feed(link, slot, name, 0))
    assert [row["memo"] for row in books.run(first.states[-1], **unconfirmed).records("entries")] == ["one", "two"]
    assert [row["memo"] for row in books.run(second.states[-1], **unconfirmed).records("entries")] == ["two"]


COLUMNS = {
    "yes boolean": ["true", "false"],
    "small smallint": ["-32768"],
    "price numeric(20, 4)": ["12345678901234.5678", "-0.5"],
    "exact numeric": ["0.1000000000000000000000000000000001", "1e30"],
    "whole numeric(30, 0)": ["123456789012345678901234567890"],
    "ratio double precision": ["0.1", "1e-300", "3"],
    "single real": ["1.1"],
    "fixed char(5)": ["'ab'"],
    "day date": ["'2024-02-29'"],
    "moment timestamptz": ["'2024-06-30 23:59:59.123456+05:30'", "'0001-01-02 00:00:00Z'"],
    "naive timestamp": ["'2024-06-30 23:59:59'"],
    "clock time": ["'12:30:00.5'"],
    "took interval": ["'1 day 02:03:04'"],
    "bytes bytea": ["'\\x00ff10'"],
    "ident uuid": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
    "address inet": ["'10.0.0.1/24'"],
    "doc json": ['\'{"a": [1, 0.30000000000000000001, null], "b": "é"}\''],
    "docb jsonb": ["'[1, {\"x\": null}]'", "'null'"],
    "numbers integer[]": ["'{1,NULL,3}'", "'{}'"],
    "grid integer[][]": ["'{{1,2},{3,4}}'"],
    "prices numeric(10, 2)[]": ["'{1.50,NULL}'"],
    "words text[]": ["array['a,b', 'with \"quotes\"', null, '', 'NULL', E'back\\\\slash']"],
    "moments timestamptz[]": ["'{2024-06-30 23:59:59+02}'"],
    "mood mood": ["'happy'"],
    "moods mood[]": ["'{happy,sad}'"],
    "age age": ["42"],
    "sure sure": ["true"],
    "span int4range": ["'[1,5)'"],
    "cash money": ["'12.34'"],
}


def test_every_type_comes_as_burler_sql_reads_it_from_snapshot_and_log_alike(books):
    books.do("create type mood as enum ('happy', 'sad')", "create domain sure as boolean")
    books.do("create domain years as integer", "create domain age as years check (value >= 0)")
    books.do(f"alter table entries {', '.join(f'add column {column}' for column in COLUMNS)}", "delete from entries")
    empty = books.run()
    names = [column.split()[0] for column in COLUMNS]
    for values in zip(*(given * 2 if len(given) == 1 else given[:2] for given in COLUMNS.values()), strict=True):
        books.do(f"insert into entries (account_id, amount, {', '.join(names)}) values (1, 1, {', '.join(values)})")
    books.do("insert into entries (account_id, amount) values (1, 1)")
    books.do("insert into entries (account_id, amount, ratio) values (1, 1, 'NaN')")
    changes = rows_of(books.run(empty.states[-1], on_nan="null"))
    snapshot = rows_of(books.run(slot=f"{books.slot}b", on_nan="null"))
    assert changes == snapshot and len(changes) == 4

    plain = burler.tap("tap-plain")
    plain.client(lambda: burler.sql.Database(books.config["database_url"], naive_times="utc"))
    plain.discover(lambda client: client.discover(tables="entries"))
    plain.sync("*")(lambda client, stream: client.pages(stream))
    read = run_tap(plain, {"on_nan": "null"}).records("public.entries")
    assert [{**row, "_sdc_deleted_at": None} for row in sorted(read, key=lambda row: row["id"])] == snapshot


def test_digits_stay_and_what_is_no_moment_is_not_made_one(books):
    with psycopg.connect(books.url, autocommit=True) as connection:
        adapt(connection)
        row = connection.execute(
            "select '0.30000000000000000001'::jsonb, 'infinity'::timestamptz, '0044-03-15 BC'::timestamptz"
        ).fetchone()
    assert row[0] == Decimal("0.30000000000000000001") and row[1] == "infinity" and row[2].endswith(" BC")


def test_a_big_value_that_an_update_leaves_alone_is_there_all_the_same(books):
    books.do(f"update entries set memo = {BIG} where id <= 3")
    first = books.run()
    memo = books.entries()[1]["memo"]
    books.do("update entries set amount = 0 where id = 1")
    books.do("alter table entries replica identity full", "update entries set amount = 0 where id = 2")
    books.do("update entries set amount = 0 where id = 3", "delete from entries where id = 3")
    rows = books.run(first.states[-1]).records("entries")
    assert [row["id"] for row in rows] == [1, 2, 3, 3]
    assert all(row["memo"] == memo for row in rows)


def test_a_big_value_of_a_row_that_is_gone_is_left_out(books):
    books.do(f"update entries set memo = {BIG} where id = 3")
    first = books.run()
    books.do("update entries set amount = 0 where id = 3", "delete from entries where id = 3")
    rows = books.run(first.states[-1]).records("entries")
    assert "memo" not in rows[0] and rows[0]["amount"] == 0 and rows[1]["_sdc_deleted_at"]


@pytest.mark.parametrize("identity", ["default", "full"])
def test_a_key_that_changes_deletes_the_row_under_the_old_one(books, identity):
    books.do(f"alter table entries replica identity {identity}")
    first = books.run()
    books.do("update entries set id = 1001 where id = 1", "update entries set amount = 3 where id = 2")
    second = books.run(first.states[-1])
    assert [(row["id"], row["_sdc_deleted_at"] is None) for row in second.records("entries")] == [
        (1, False), (1001, True), (2, True)
    ]  # fmt: skip
    assert ("memo" in second.records("entries")[0]) is (identity == "full")
    assert Copy().take(first.messages).take(second.messages).entries() == books.entries()


def test_a_big_key_that_stays_is_no_new_key(books):
    books.do("delete from entries where id > 2", "alter table entries add column code text")
    books.do("alter table entries alter column code set storage external")
    books.do(f"update entries set code = left(id || {BIG}, 2500)", "alter table entries drop constraint entries_pkey")
    books.do("alter table entries add primary key (code)")
    first = books.run()
    assert [len(row["code"]) for row in first.records("entries")] == [2500, 2500]
    books.do("update entries set amount = 0 where id = 1")
    (row,) = books.run(first.states[-1]).records("entries")
    assert row["code"] == books.ask("select code from entries where id = 1")[0][0] and row["amount"] == 0


def test_what_postgresql_computes_is_unsupported_since_no_log_has_it(books, tmp_path):
    books.do("alter table entries add column twice numeric generated always as (amount * 2) stored")
    entry = discovered(books, tmp_path)["streams"]
    said = {tuple(one["breadcrumb"]): one["metadata"] for stream in entry for one in stream["metadata"]}
    assert said["properties", "twice"]["inclusion"] == "unsupported"
    first = books.run()
    books.do("update entries set amount = 3 where id = 1")
    second = books.run(first.states[-1])
    assert "twice" not in first.records("entries")[0] and second.records("entries")[0]["amount"] == 3


def test_a_table_that_is_truncated_is_an_empty_version(books):
    first = books.run()
    books.book("before")
    books.do("truncate entries")
    books.book("after")
    second = books.run(first.states[-1])
    assert second.types == ["SCHEMA", "RECORD", "ACTIVATE_VERSION", "RECORD", "STATE"]
    copy = Copy().take(first.messages).take(second.messages)
    assert copy.entries() == books.entries() and len(copy.rows) == 1
    forbidden = books.run(first.states[-1])
    assert "stands at" in error_of(forbidden)  # what the second run has read is acknowledged


def test_where_versions_are_forbidden_a_truncated_table_is_an_error(books):
    first = books.run(full_table_versions=False)
    books.do("truncate entries")
    assert "was truncated" in error_of(books.run(first.states[-1], full_table_versions=False))


def test_other_tables_of_the_publication_are_left_alone(books):
    books.do("alter publication burler_ledger add table accounts")
    first = books.run()
    books.do("update accounts set name = 'x'", "truncate accounts")
    books.book("mine")
    assert [row["memo"] for row in books.run(first.states[-1]).records("entries")] == ["mine"]


def test_a_column_that_is_dropped_is_missing_and_no_error(books):
    first = books.run()
    books.do("update entries set memo = 'x', tags = null where id = 1", "alter table entries drop column memo")
    books.do("update entries set amount = 1 where id = 2")
    rows = books.run(first.states[-1]).records("entries")
    assert [row["id"] for row in rows] == [1, 2] and "memo" not in rows[1]


def test_a_column_that_nobody_selected_is_not_read_from_the_log_either(books, tmp_path):
    catalog = discovered(books, tmp_path)
    for entry in catalog["streams"]:
        entry["metadata"].append({"breadcrumb": [], "metadata": {"selected": entry["stream"] == "entries"}})
        entry["metadata"].append({"breadcrumb": ["properties", "details"], "metadata": {"selected": False}})
    first = run_tap(tap_ledger.tap, books.config, catalog=catalog)
    books.do("update entries set memo = 'x' where id = 1")
    second = run_tap(tap_ledger.tap, books.config, catalog=catalog, state=first.states[-1])
    assert "details" not in first.records("entries")[0] and "details" not in second.records("entries")[0]
    assert second.records("entries")[0]["memo"] == "x"
