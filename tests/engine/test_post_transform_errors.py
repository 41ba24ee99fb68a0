"""What goes wrong in a post_transform function, and the hooks of streams beside and below."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hooked import FIELDS, bookmark, ids, tap_of

import burler
from burler.errors import BadRecordError, StreamError
from burler.testing import run_tap

# ---- what goes wrong ----------------------------------------------------------------------------------


def at_row(bad: int, action: Callable[[dict[str, Any]], Any]) -> Callable[..., Any]:
    def hook(record):
        return action(record) if record["id"] == bad else record

    return hook


def _fails(record: dict[str, Any]) -> Any:
    raise LookupError("no such thing")


def _exits(record: dict[str, Any]) -> Any:
    raise SystemExit(0)


def _yields(record: dict[str, Any]) -> Iterator[Any]:
    yield record


@pytest.mark.parametrize(
    ("action", "says"),
    [
        (_fails, "LookupError: no such thing"),
        (lambda record: 5, "not an integer"),
        (lambda record: [record], "list"),
        (lambda record: "row", "not a string"),
        (lambda record: True, "not a boolean"),
        (_yields, "generator"),
        (lambda record: ("rows", record), "(a string, dict)"),
        (lambda record: next(iter(())), "StopIteration"),
    ],
)
@pytest.mark.parametrize("page", [1, 2, 1000])
@pytest.mark.parametrize("strategy", ["end_of_sync", "every_n(1)", "every_n(3)"])
def test_a_hook_that_fails_stops_its_stream_behind_the_rows_before(
    action: Callable[..., Any], says: str, page: int, strategy: str
):
    tap = tap_of(at_row(4, action), ids(1, 2, 3, 4, 5, 6), bookmark_strategy=strategy)
    tap.sync("other", key_properties="id", schema=FIELDS)(lambda: ids(1))
    run = run_tap(tap, {"page_max_rows": page})
    assert list(run.result.errors) == ["rows"]
    error = run.result.errors["rows"]
    assert isinstance(error, StreamError)
    assert "stream 'rows': its post_transform function" in str(error)
    assert "test_post_transform_errors.py:" in str(error)
    assert says in str(error)
    assert len(str(error).splitlines()) <= 3
    assert run.records("rows") == ids(1, 2, 3)
    assert bookmark(run) == 3
    assert run.records("other") == ids(1)


@pytest.mark.parametrize("page", [1, 2, 1000])
def test_a_hook_that_breaks_a_type_gets_an_error_with_the_row_and_the_field(page: int):
    tap = tap_of(at_row(4, lambda record: {**record, "amount": "much"}), ids(1, 2, 3, 4, 5))
    run = run_tap(tap, {"page_max_rows": page})
    error = run.result.errors["rows"]
    assert isinstance(error, BadRecordError)
    assert "stream 'rows', row id=4: field 'amount' is a string; the" in str(error)
    assert run.records("rows") == ids(1, 2, 3)
    assert bookmark(run) == 3


def test_the_cure_for_a_row_that_the_hook_broke_names_the_hook():
    run = run_tap(tap_of(at_row(4, lambda record: {**record, "amount": "much"}), ids(4)))
    assert "post_transform" in str(run.result.errors["rows"])


def test_a_row_that_the_function_broke_never_gets_to_the_hook():
    seen = []
    rows = [*ids(1, 2), {"id": 3, "amount": "much"}, *ids(4)]
    run = run_tap(tap_of(lambda record: seen.append(record["id"]) or record, rows))
    assert seen == [1, 2]
    assert "row id=3: field 'amount'" in str(run.result.errors["rows"])
    assert "post_transform" not in str(run.result.errors["rows"])
    assert run.records("rows") == ids(1, 2)
    assert bookmark(run) == 2


def test_with_rows_left_out_before_the_one_that_breaks_the_bookmark_is_right():
    def hook(record):
        return {1: record, 2: None, 3: None, 4: {"id": "x"}}.get(record["id"], record)

    run = run_tap(tap_of(hook, ids(1, 2, 3, 4, 5)))
    assert run.records("rows") == ids(1)
    assert bookmark(run) == 3


@pytest.mark.parametrize("value", ["gone", None])
def test_a_key_property_that_the_hook_takes_away_is_an_error(value: str | None):
    def hook(record):
        if value is None:
            return {**record, "id": None}
        del record["id"]
        return record

    run = run_tap(tap_of(hook, ids(1)))
    assert "field 'id'" in str(run.result.errors["rows"])
    assert run.records("rows") == []


def test_an_error_of_the_hook_comes_before_one_of_a_later_row():
    run = run_tap(tap_of(at_row(2, _fails), [*ids(1, 2, 3), {"id": "x"}]))
    assert "LookupError" in str(run.result.errors["rows"])
    assert run.records("rows") == ids(1)


def test_a_full_table_whose_hook_fails_activates_nothing():
    tap = tap_of(at_row(2, _fails), ids(1, 2), replication_key=None, order=None)
    run = run_tap(tap, state={"bookmarks": {"rows": {"version": 5}}})
    assert "ACTIVATE_VERSION" not in run.types
    assert run.states[-1]["bookmarks"] == {"rows": {"version": 5}}


def test_a_hook_that_exits_ends_its_stream_and_not_the_process():
    tap = tap_of(at_row(2, _exits), ids(1, 2, 3))
    tap.sync("other", key_properties="id", schema=FIELDS)(lambda: ids(1))
    run = run_tap(tap)
    assert "SystemExit" in str(run.result.errors["rows"])
    assert run.records("rows") == ids(1)
    assert run.records("other") == ids(1)


def test_a_hook_may_make_the_key():
    """Sources without one get it so: a hash of the row, or a name and a number in one."""
    schema = {"type": "object", "properties": {"key": {"type": "string"}, "n": {"type": "integer"}}}
    options = {"schema": schema, "key_properties": "key", "replication_key": "n"}
    tap = tap_of(lambda record: {"key": f"k{record['n']}", **record}, [{"n": 1}, {"n": 2}], **options)
    assert run_tap(tap).records("rows") == [{"key": "k1", "n": 1}, {"key": "k2", "n": 2}]


def test_rows_in_a_run_with_a_limit_are_counted_as_they_go_out():
    from burler.testing import MemorySink
    from support.runs import run_into

    tap = tap_of(lambda record: record if record["id"] > 2 else None, lambda: iter(ids(*range(1, 50))))
    sink = MemorySink()
    run_into(tap, {}, sink, limit=3)
    assert [m["record"]["id"] for m in sink.messages if m["type"] == "RECORD"] == [3, 4, 5]


# ---- streams beside and below -------------------------------------------------------------------------


def test_each_stream_of_a_function_has_its_own_hook():
    tap = burler.tap("tap-hook")

    @tap.sync("main", key_properties="id", schema=FIELDS)
    def main():
        for i in range(3):
            yield {"id": i}
            yield "beside", {"id": i}

    tap.stream("beside", emitted_by="main", key_properties="id", schema=FIELDS)
    tap.stream("below", parent="main", key_properties="id", schema=FIELDS).sync(lambda parent: [{"id": parent["id"]}])
    tap.post_transform("beside")(lambda record: None if record["id"] == 1 else {**record, "text": "beside"})
    tap.post_transform("below")(lambda record: {**record, "text": "below"})
    for page in (1, 1000):
        run = run_tap(tap, {"page_max_rows": page})
        assert run.records("main") == ids(0, 1, 2)
        assert run.records("beside") == [{"id": 0, "text": "beside"}, {"id": 2, "text": "beside"}]
        assert run.records("below") == [{"id": i, "text": "below"} for i in range(3)]


def test_children_are_called_for_rows_that_the_hook_of_their_parent_leaves_out_or_changes():
    """The hook judges what goes out; the children belong to the source's row."""
    tap = burler.tap("tap-hook")
    parents = tap.stream("parents", key_properties="id", schema=FIELDS)
    parents.sync(lambda: ids(1, 2))
    parents.post_transform(lambda record: None if record["id"] == 1 else {"id": 20})
    parents.substream("children", schema=FIELDS).sync(lambda parent: [{"id": parent["id"]}])
    run = run_tap(tap)
    assert run.records("parents") == ids(20)
    assert run.records("children") == ids(1, 2)


def test_the_hook_of_a_substream_sees_the_substreams_bookmark_and_name():
    tap = burler.tap("tap-hook")
    seen = []
    parents = tap.stream("parents", key_properties="id", replication_key="id", schema=FIELDS)
    parents.sync(lambda: ids(1))
    parents.post_transform(lambda record, stream: seen.append((stream.name, tap.get_bookmark())) or record)
    children = parents.substream("children", key_properties="id", replication_key="id", schema=FIELDS)
    children.sync(lambda parent: ids(1))
    children.post_transform(lambda record, stream: seen.append((stream.name, tap.get_bookmark())) or record)
    run_tap(tap, state={"bookmarks": {"parents": {"id": 10}, "children": {"id": 20, "parent_bookmark": {"id": 10}}}})
    assert seen == [("parents", 10), ("children", 20)]


def test_the_hook_of_an_emitted_stream_sees_that_stream():
    tap = burler.tap("tap-hook")
    seen = []
    tap.sync("main", key_properties="id", replication_key="id", schema=FIELDS)(lambda: [("beside", {"id": 1, "n": 1})])
    other = {"type": "object", "properties": {"id": {"type": "integer"}, "n": {"type": "integer"}}}
    beside = tap.stream("beside", emitted_by="main", key_properties=["id", "n"], schema=other)

    @beside.post_transform
    def hook(record, stream):
        seen.append((stream.name, tap.key_properties, list(stream.schema["properties"])))
        return record

    assert not run_tap(tap).result.errors
    assert seen == [("beside", ("id", "n"), ["id", "n"])]


def test_a_hook_that_fails_in_a_page_of_several_streams_moves_no_bookmark_past_what_is_out():
    tap = burler.tap("tap-hook")

    @tap.sync("main", key_properties="id", replication_key="id", bookmark_strategy="every_n(5)", schema=FIELDS)
    def main(stream):
        for i in range(stream.bookmark or 0, 30):
            yield {"id": i}
            yield "beside", {"id": i}

    tap.stream("beside", emitted_by="main", key_properties="id", schema=FIELDS)
    broken = [True]

    @tap.post_transform("beside")
    def hook(record):
        if broken[0] and record["id"] == 17:
            raise RuntimeError("boom")
        return record

    for page in (1, 7, 1000):
        broken[0] = True
        run = run_tap(tap, {"page_max_rows": page})
        mark = run.states[-1].get("bookmarks", {}).get("main", {}).get("id", 0)
        assert mark <= 17
        broken[0] = False
        rest = run_tap(tap, {"page_max_rows": page}, state=run.states[-1])
        for name in ("main", "beside"):
            assert {row["id"] for row in run.records(name) + rest.records(name)} == set(range(30))


def test_a_hook_may_use_a_client_that_belongs_to_one_thread():
    """Many clients do (sqlite3 refuses others); rows that wait while the source is slow go out all the same."""
    tap = burler.tap("tap-hook")

    @tap.client
    def client():
        connection = sqlite3.connect(":memory:")
        connection.execute("create table names (id, name)")
        connection.executemany("insert into names values (?, ?)", [(i, f"n{i}") for i in range(5)])
        return connection

    @tap.sync("rows", key_properties="id", schema=FIELDS)
    def rows(client):
        for (number,) in list(client.execute("select id from names")):
            yield {"id": number}
            time.sleep(0.05)

    @tap.post_transform("rows")
    def hook(record, client):
        (name,) = client.execute("select name from names where id = ?", (record["id"],)).fetchone()
        return {**record, "text": name}

    run = run_tap(tap, {"page_max_age_seconds": 0.01})
    assert not run.result.errors
    assert run.records("rows") == [{"id": i, "text": f"n{i}"} for i in range(5)]
