"""Streams that go on at their bookmark: keys of every kind, in order, and what comes again."""

import pytest
from shops import table_tap

from burler.testing import run_tap

KEYS = {  # type -> rising values, as SQL literals
    "bigint": ["-5", "0", "7", "9007199254740993"],
    "smallint": ["1", "2", "3", "4"],
    "numeric": ["-1.5", "0.10", "2", "12345678901234567890.5"],
    "numeric(20,4)": ["-1.5", "0.1", "2", "1234567890123456.7891"],
    "double precision": ["-1.5", "0.1", "2", "1e300"],
    "timestamptz": [
        "'2023-12-31 23:00-05'",
        "'2024-01-01 05:00+00'",
        "'2024-01-01 05:00:00.000001+00'",
        "'2025-01-01'",
    ],
    "timestamp": ["'2024-01-01 00:00'", "'2024-01-01 00:00:00.000001'", "'2024-01-02 12:00'", "'2025-01-01'"],
    "date": ["'2024-01-01'", "'2024-02-29'", "'2024-03-01'", "'2025-01-01'"],
    "text": ["'A'", "'Z'", "'a'", "'é'"],
    'text collate "en-x-icu"': ["'A'", "'Z'", "'a'", "'é'"],
    "varchar(10)": ["'10'", "'9'", "'_'", "'a''b'"],
    "uuid": [f"'0000000{i}-9c0b-4ef8-bb6d-6bb9bd380a11'" for i in range(1, 5)],
}


def keyed(url, adbc, key="k", **options):
    options = {"order": "asc", "bookmark_strategy": "every_n(1)"} | options
    return table_tap(url, adbc=adbc, discover={"replication_keys": key}, **options)


def test_a_second_run_begins_at_the_greatest_value(pg, adbc):
    streams = {f"public.t{i}": kind for i, kind in enumerate(KEYS)}
    for i, (kind, (a, b, c, _d)) in enumerate(KEYS.items()):
        pg.execute(f"create table t{i} (id int primary key, k {kind})")
        pg.execute(f"insert into t{i} values (3, {c}), (1, {a}), (2, {b})")
    tap = keyed(pg.url, adbc)
    first = run_tap(tap)
    assert not first.result.errors
    assert {kind: [row["id"] for row in first.records(name)] for name, kind in streams.items()} == {
        kind: [1, 2, 3] for kind in KEYS
    }
    for i, (_a, _b, c, d) in enumerate(KEYS.values()):
        pg.execute(f"insert into t{i} values (5, {d}), (4, {c})")
    second = run_tap(tap, state=first.states[-1])
    third = run_tap(tap, state=second.states[-1])
    assert not second.result.errors and not third.result.errors
    for name, kind in streams.items():
        got = [row["id"] for row in second.records(name)]
        assert sorted(got) == [3, 4, 5] and got[-1] == 5, kind
        assert [row["id"] for row in third.records(name)] == [5], kind


def test_rows_without_a_key_come_once(pg, adbc):
    pg.execute("create table t (id int primary key, k date)", "insert into t values (1, null), (2, '2024-01-01')")
    first = run_tap(keyed(pg.url, adbc))
    assert [row["id"] for row in first.records("public.t")] == [1, 2]
    second = run_tap(keyed(pg.url, adbc), state=first.states[-1])
    assert [row["id"] for row in second.records("public.t")] == [2]


def test_a_bookmark_is_never_part_of_the_statement(pg, adbc):
    """A state is a file that somebody can write into."""
    pg.execute("create table t (id int primary key, k text)", "insert into t values (1, 'a'), (2, 'z')")
    evil = "'); drop table t; select set_config('x', '%s $1 :a"
    state = {"bookmarks": {"public.t": {"k": evil}}}
    out = run_tap(keyed(pg.url, adbc), state=state)
    assert not out.result.errors
    assert [row["id"] for row in out.records("public.t")] == [1, 2]
    assert pg.ask("select count(*) from t") == [(2,)]


def test_the_start_date_holds_for_times_alone(pg, adbc):
    pg.execute("create table a (id bigint primary key, k timestamptz)", "create table b (id bigint primary key)")
    pg.execute("insert into a values (1, '2020-01-01'), (2, '2024-01-01')", "insert into b values (1), (2)")
    tap = table_tap(pg.url, adbc=adbc, discover={"replication_keys": {"public.a": "k", "b": "id"}}, order="asc")
    out = run_tap(tap, {"start_date": "2023-01-01T00:00:00Z"})
    assert not out.result.errors
    assert [row["id"] for row in out.records("public.a")] == [2]
    assert [row["id"] for row in out.records("public.b")] == [1, 2]


def test_lookback_asks_for_rows_before_the_bookmark(pg, adbc):
    """A transaction that commits late has an older time."""
    from datetime import timedelta

    pg.execute("create table t (id int primary key, k timestamptz)", "insert into t values (1, '2024-01-01 00:10+00')")
    tap = keyed(pg.url, adbc, lookback=timedelta(minutes=5))
    first = run_tap(tap)
    pg.execute("insert into t values (2, '2024-01-01 00:06+00'), (3, '2024-01-01 00:04+00')")
    second = run_tap(tap, state=first.states[-1])
    assert [row["id"] for row in second.records("public.t")] == [2, 1]


def test_the_users_catalog_chooses_the_key(pg, adbc):
    pg.execute("create table t (id int primary key, k timestamptz, n int)", "insert into t values (1, '2024-01-01', 9)")
    tap = table_tap(pg.url, adbc=adbc)
    assert run_tap(tap).types.count("ACTIVATE_VERSION") == 2
    root = {"selected": True, "replication-method": "INCREMENTAL", "replication-key": "n"}
    entry = {"tap_stream_id": "public.t", "stream": "public.t", "schema": {}, "metadata": [
        {"breadcrumb": [], "metadata": root}]}  # fmt: skip
    chosen = run_tap(tap, catalog={"streams": [entry]})
    assert not chosen.result.errors
    assert chosen.states[-1] == {"bookmarks": {"public.t": {"n": 9}}}


def test_only_selected_columns_are_asked_for(pg, adbc):
    """What the user may not read need not be readable if nobody asks for it."""
    pg.execute("create table t (id int primary key, a text, b text)", "insert into t values (1, 'a', 'b')")
    pg.execute("create view v as select id, a, 1 / (id - 1) as b from t")
    tap = table_tap(pg.url, adbc=adbc, discover={"tables": "v"})
    out = run_tap(tap, select="public.v.a")
    assert not out.result.errors
    assert out.records("public.v") == [{"a": "a"}]


def test_a_key_that_has_no_order_is_refused(pg):
    pg.execute("create table t (id int primary key, k json)")
    with pytest.raises(Exception, match=r"its replication key 'k' can't be one. It may be: 'id'"):
        run_tap(table_tap(pg.url, discover={"replication_keys": {"public.t": "k"}}))
