"""What a run gives: files passed on or read, bookmarks, versions, selection."""

import gzip
from pathlib import Path

import psycopg
import pytest
from taking import batched, expanded, messages

from burler.testing import bind_stream, run_tap
from tap_copy import tap
from tap_copy.client import Warehouse


@pytest.fixture
def orders(base):
    """Five orders, the last one of 2024-01-05."""
    base.do(
        "create table orders (id int primary key, name text, updated_at timestamptz)",
        "insert into orders select i, 'order ' || i, timestamptz '2024-01-01 00:00+00' + i * interval '1 day' "
        "from generate_series(0, 4) i",
    )
    base.config["replication_key"] = "updated_at"
    return base


def ids(rows):
    return sorted(row["id"] for row in rows)


def test_batch_passes_the_files_that_copy_wrote(orders):
    run = batched(orders)
    assert run.types == ["SCHEMA", "BATCH", "STATE"]
    (message,) = messages(run, "BATCH")
    (url,) = message["manifest"]
    assert url.startswith(f"file://{orders.folder}/tap-copy--public.orders-")
    text = Path(url.removeprefix("file://")).read_text()
    assert text.splitlines()[:2] == ["id,name,updated_at", "0,order 0,2024-01-01T00:00:00Z"]
    assert message["size"] == 5
    assert ids(expanded(run, "public.orders")) == [0, 1, 2, 3, 4]
    assert orders.files() == [Path(url).name]


def test_without_batch_the_rows_come_as_records_and_no_file_stays(orders):
    run = run_tap(tap, orders.config)
    assert ids(run.records("public.orders")) == [0, 1, 2, 3, 4]
    assert orders.files() == []


@pytest.mark.parametrize("batch", [True, False])
def test_the_next_run_brings_what_is_new(orders, batch):
    config = dict(orders.config)
    if batch:
        config["batch_config"] = {"storage": {"root": str(orders.folder)}}
    first = run_tap(tap, config)
    assert first.states[-1]["bookmarks"]["public.orders"] == {"updated_at": "2024-01-05T00:00:00Z"}
    orders.do(
        "update orders set name = 'changed', updated_at = '2024-02-01 10:00:00.25+02' where id = 1",
        "insert into orders values (5, 'new', '2024-01-31 00:00+00'), (6, 'without', null)",
    )
    second = run_tap(tap, config, state=first.states[-1])
    rows = expanded(second, "public.orders") if batch else second.records("public.orders")
    assert ids(rows) == [1, 4, 5]
    assert second.states[-1]["bookmarks"]["public.orders"] == {"updated_at": "2024-02-01T08:00:00.25Z"}
    third = run_tap(tap, config, state=second.states[-1])
    rows = expanded(third, "public.orders") if batch else third.records("public.orders")
    assert ids(rows) == [1]


@pytest.mark.parametrize("kind", ["int", "bigint", "date", "timestamp"])
def test_bookmarks_of_other_types(base, kind):
    value = "i * 10" if "int" in kind else f"{kind} '2024-01-01' + i * interval '1 day'"
    base.do(f"create table t as select i as id, cast({value} as {kind}) as at from generate_series(1, 3) i")
    first = batched(base, replication_key="at")
    step = "interval '1 s'" if kind == "timestamp" else "1"
    base.do(f"insert into t select 4, max(at) + {step} from t")
    config = {**base.config, "replication_key": "at", "batch_config": {"storage": {"root": str(base.folder)}}}
    second = run_tap(tap, config, state=first.states[-1])
    assert ids(expanded(second, "public.t")) == [3, 4]


def test_rows_that_come_while_it_reads_wait_for_the_next_run(orders):
    warehouse = Warehouse(
        orders.config["database_url"],
        schemas=["public"],
        replication_key="updated_at",
        folder=orders.config["folder"],
        compression="none",
        most_bytes=1,
    )
    orders.do("update orders set name = repeat('x', 1100000)")  # a file for each
    with bind_stream(
        tap,
        "public.orders",
        schema={"properties": {"id": {}, "name": {}, "updated_at": {}}},
        replication_key="updated_at",
        replication_method="INCREMENTAL",
    ) as stream:
        files = warehouse.copy(stream)
        found = [next(files)]
        orders.do("insert into orders values (9, 'late', '2024-12-31 00:00+00')", "delete from orders where id = 2")
        found += files
    assert len(found) == 5 and [one.size for one in found] == [1] * 5
    assert [bool(one.bookmark) for one in found] == [False] * 4 + [True]
    assert found[-1].bookmark == "2024-01-05T00:00:00Z"


def test_big_tables_come_in_several_files_each_with_a_header(base):
    base.do("create table t as select i as id, repeat('x', 1000) as text from generate_series(1, 5000) i")
    run = batched(base, max_file_bytes=2_000_000, compression="gzip")
    found = messages(run, "BATCH")
    assert len(found) == 3
    texts = [gzip.decompress(Path(m["manifest"][0].removeprefix("file://")).read_bytes()) for m in found]
    assert all(text.startswith(b"id,text\n") for text in texts)
    assert [text.count(b"\n") - 1 for text in texts] == [m["size"] for m in found]
    assert sum(m["size"] for m in found) == 5000
    assert ids(expanded(run, "public.t")) == list(range(1, 5001))


def test_full_tables_have_versions(base):
    base.do("create table t as select 1 as id")
    run = batched(base, batch_config={"storage": {"root": str(base.folder)}, "dialect": "sip"})
    assert run.types == ["SCHEMA", "ACTIVATE_VERSION", "BATCH", "ACTIVATE_VERSION", "STATE"]
    versions = {m["version"] for m in run.messages if "version" in m}
    assert len(versions) == 1
    assert run.states[-1]["bookmarks"]["public.t"]["version"] in versions


def test_an_empty_table_is_no_file(base):
    base.do("create table t (id int)")
    run = batched(base)
    assert not messages(run, "BATCH") and run.result.exit_code == 0 and base.files() == []
    assert messages(run, "SCHEMA")


def test_what_is_not_selected_is_not_asked_for_and_the_rest_passes(orders):
    with psycopg.connect(orders.url, autocommit=True) as connection:
        connection.execute(f"revoke select on orders from {orders.reader}")
        connection.execute(f"grant select (id, updated_at) on orders to {orders.reader}")
    run = batched(orders)
    assert list(messages(run, "SCHEMA")[0]["schema"]["properties"]) == ["id", "updated_at"]
    text = Path(messages(run, "BATCH")[0]["manifest"][0].removeprefix("file://")).read_text()
    assert text.startswith("id,updated_at\n0,2024-01-01T00:00:00Z\n")


def test_views_partitions_and_other_schemas(base):
    base.do(
        "create table whole (id int, part int) partition by list (part)",
        "create table part_1 partition of whole for values in (1)",
        "insert into whole values (7, 1)",
        "create view seen as select id * 2 as id from whole",
        "create materialized view kept as select id * 3 as id from whole",
        "create schema other",
        "create table other.t (id int)",
        f"grant usage on schema other to {base.reader}",
        f"grant select on other.t to {base.reader}",
        'create table "Odd ""name""" (id int)',
    )
    run = run_tap(tap, base.config)
    streams = sorted(m["stream"] for m in messages(run, "SCHEMA"))
    assert streams == ['public.Odd "name"', "public.kept", "public.seen", "public.whole"]
    assert run.records("public.seen") == [{"id": 14}] and run.records("public.kept") == [{"id": 21}]
    assert len(messages(run_tap(tap, {**base.config, "schemas": ["other"]}), "SCHEMA", "other.t")) == 1


def test_a_table_that_has_lost_a_column_says_so(orders):
    catalog = {"streams": [{
        "tap_stream_id": "public.orders", "stream": "public.orders",
        "schema": {"properties": {"id": {"type": "integer"}, "gone": {"type": "string"}}},
        "metadata": [{"breadcrumb": [], "metadata": {"selected": True}}],
    }]}  # fmt: skip
    run = run_tap(tap, {**orders.config, "replication_key": None}, catalog=catalog)
    assert run.result.exit_code == 1
    assert "its table has no column 'gone' (any more)" in str(run.result.errors["public.orders"])
