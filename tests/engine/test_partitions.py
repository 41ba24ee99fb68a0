"""Partitions: the sync function runs once for each dict that the partitions function gives."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import msgspec
import pytest
from parts import FIELDS, given, key_of, numbers, partitioned, row

import burler
from burler.errors import BurlerError, PartialError, StreamError
from burler.testing import run_tap

# ---- what a function gets -------------------------------------------------------------------------


def test_the_function_runs_once_for_each_partition_in_the_order_given():
    tap = partitioned({"b": [3, 4], "a": [1, 2]})
    run = run_tap(tap)
    assert run.records("rows") == [row("b", 3), row("b", 4), row("a", 1), row("a", 2)]
    assert run.types.count("SCHEMA") == 1
    assert run.result.rows == {"rows": 4}


def test_what_a_function_is_told_of_its_partition():
    told: list[Any] = []
    tap = partitioned([])

    @tap.partitions("more", key="account")
    def accounts(client, config, state, catalog, stream):
        told.append((client, config["x"], state, catalog.entries["more"].tap_stream_id, stream.name, stream.bookmark))
        return [{"account": "a", "shard": 1}, {"account": "b", "shard": 2}]

    @tap.client
    def client():
        return "the client"

    @tap.sync("more", replication_key="id", schema=FIELDS)
    def more(stream, partition):
        told.append((partition, stream.partition, stream.bookmark, tap.get_bookmark(), dict(stream.state)))
        yield row(partition["account"], 9)
        stream.state["seen"] = partition["shard"]

    state = {"bookmarks": {"more": {"id": 3, "partitions": {"b": {"id": 7, "stream_state": {"at": 1}}}}}}
    run = run_tap(tap, {"x": 5}, state=state, select="more")
    assert not run.result.errors
    assert told == [
        ("the client", 5, {**state, "currently_syncing": "more"}, "more", "more", 3),
        ({"account": "a", "shard": 1}, {"account": "a", "shard": 1}, 3, 3, {}),
        ({"account": "b", "shard": 2}, {"account": "b", "shard": 2}, 7, 7, {"at": 1}),
    ]
    assert run.states[-1]["bookmarks"]["more"]["partitions"] == {
        "a": {"id": 9, "stream_state": {"seen": 1}},
        "b": {"id": 9, "stream_state": {"at": 1, "seen": 2}},
    }


def test_a_stream_without_partitions_is_told_of_none():
    seen = []
    tap = burler.tap("tap-t")
    tap.sync("rows", schema=FIELDS)(lambda stream: seen.append(stream.partition) or [])
    run_tap(tap)
    assert seen == [None]


def test_start_date_is_where_a_partition_without_a_bookmark_begins():
    seen = []
    tap = partitioned({"a": []}, lambda stream: seen.append(stream.bookmark) or [], replication_key="text")
    run = run_tap(tap, {"start_date": "2024-01-01T00:00:00Z"})
    assert seen == ["2024-01-01T00:00:00Z"]
    assert run.states[-1].get("bookmarks", {}) == {}


def test_a_functions_own_changes_to_the_partition_reach_no_key_and_no_other_call():
    first = {"account": "a"}

    def rows(partition):
        yield row("a", 1)
        partition["account"] = "changed"

    tap = partitioned(lambda: [first], rows)
    run = run_tap(tap)
    assert list(run.states[-1]["bookmarks"]["rows"]["partitions"]) == ['{"account":"a"}']


@pytest.mark.parametrize("workers", [1, 2])
def test_a_dict_that_the_partitions_function_fills_again_and_again(workers: int):
    together = threading.Barrier(workers, timeout=10)

    def accounts():
        one: dict[str, str] = {}
        for name in "ab":
            one["account"] = name
            yield one

    def rows(partition):
        together.wait()
        yield row(partition["account"], 1)

    run = run_tap(partitioned(accounts, rows, workers=workers))
    assert sorted(map(str, run.records("rows"))) == sorted(map(str, [row("a", 1), row("b", 1)]))


# ---- empty ones, none at all ---------------------------------------------------------------------------


def test_an_empty_partition_has_no_bookmark_and_stops_nothing():
    run = run_tap(partitioned({"a": [1], "b": [], "c": [2]}))
    assert numbers(run) == [1, 2]
    assert set(run.states[-1]["bookmarks"]["rows"]["partitions"]) == {'{"account":"a"}', '{"account":"c"}'}


@pytest.mark.parametrize("nothing", [lambda: [], lambda: iter(()), lambda: (x for x in ())])
def test_no_partitions_are_no_rows_and_no_error(nothing: Any):
    state = {"bookmarks": {"rows": {"partitions": {'{"account":"a"}': {"id": 4}}}}}
    run = run_tap(partitioned(nothing, lambda partition: [row("a", 1)]), state=state)
    assert run.types == ["SCHEMA", "STATE"]
    assert run.states == [state]
    assert not run.result.errors


# ---- wrong ones -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gives", "named"),
    [
        (lambda: {}.get("x"), "gave None"),
        (lambda: {"account": "a"}, "gave one dict; put it into a list, or yield it"),
        (lambda: "ab", "gave a string"),
        (lambda: 5, "gave an integer"),
        (lambda: ["a"], "gave a string; a partition is a dict such as"),
        (lambda: [None], "gave None; a partition is a dict"),
        (lambda: [{}], "gave an empty dict"),
        (lambda: [{"account": object()}], "gave a partition that is no JSON"),
        (lambda: [{"account": float("nan")}], "gave a partition that is no JSON"),
        (lambda: [{"account": "\ud800"}], "gave a partition that is no JSON"),
        (lambda: [{5: "a"}], "gave a partition that is no JSON"),
        (lambda: [("rows", {"account": "a"})], "a partition is a dict"),
    ],
)
def test_what_is_no_partition_ends_the_stream_with_one_clear_error(gives: Any, named: str):
    tap = partitioned(gives, lambda partition: [row("a", 1)])
    tap.sync("other", schema=FIELDS)(lambda: [row("o", 1)])
    run = run_tap(tap)
    error = run.result.errors["rows"]
    assert type(error) is StreamError
    assert f"{named}" in str(error)
    assert "test_partitions.py:" in str(error)
    assert run.records("rows") == []
    assert run.records("other") == [row("o", 1)]
    assert run.result.exit_code == 1


@pytest.mark.parametrize("workers", [1, 3])
def test_a_partitions_function_that_fails_in_the_middle_keeps_what_came_before(workers: int):
    def accounts():
        yield {"account": "a"}
        yield {"account": "b"}
        raise ConnectionError("the list broke off")

    tap = partitioned(accounts, given({"a": [1, 2], "b": [3]}), workers=workers)
    run = run_tap(tap, state={"bookmarks": {"rows": {"id": 1}}})
    assert sorted(numbers(run)) == [1, 2, 3]
    error = run.result.errors["rows"]
    assert "its partitions function" in str(error)
    assert "the list broke off" in str(error)
    assert isinstance(error.__cause__, ConnectionError)
    entry = run.states[-1]["bookmarks"]["rows"]
    assert entry == {"id": 1, "partitions": {'{"account":"a"}': {"id": 2}, '{"account":"b"}': {"id": 3}}}


def test_a_partitions_function_that_exits_ends_its_stream_alone():
    def accounts():
        raise SystemExit(3)

    tap = partitioned(accounts, lambda partition: [])
    tap.sync("other", schema=FIELDS)(lambda: [row("o", 1)])
    run = run_tap(tap)
    assert "rows" in run.result.errors
    assert run.records("other") == [row("o", 1)]


def test_a_partition_that_comes_twice_ends_the_stream():
    run = run_tap(
        partitioned(lambda: [{"account": "a"}, {"account": "b"}, {"account": "a"}], given({"a": [1], "b": [2]}))
    )
    assert numbers(run) == [1, 2]
    assert 'gave the partition {"account":"a"} twice; each has one bookmark' in str(run.result.errors["rows"])


# ---- errors of some ---------------------------------------------------------------------------------


def test_a_failing_partition_stops_no_other_and_is_named():
    def rows(partition):
        yield row(partition["account"], 1)
        if partition["account"] in "bd":
            raise PermissionError("403")
        yield row(partition["account"], 2)

    run = run_tap(partitioned({name: [] for name in "abcde"}, rows))
    assert [numbers(run, name) for name in "abcde"] == [[1, 2], [1], [1, 2], [1], [1, 2]]
    error = run.result.errors["rows"]
    assert isinstance(error, PartialError)
    assert [(one.stream, one.where) for one in error.failures] == [
        ("rows", 'partition {"account":"b"}'),
        ("rows", 'partition {"account":"d"}'),
    ]
    assert all("403" in str(one.error) for one in error.failures)
    assert run.result.exit_code == 1
    entries = run.states[-1]["bookmarks"]["rows"]["partitions"]
    assert set(entries) == {'{"account":"a"}', '{"account":"c"}', '{"account":"e"}'}


def test_more_failures_than_allowed_end_the_stream():
    def rows(partition):
        raise PermissionError("403")

    tap = partitioned({str(i): [] for i in range(50)}, rows)
    tap.sync("other", schema=FIELDS)(lambda: [row("o", 1)])
    run = run_tap(tap, {"max_failures": 3})
    error = run.result.errors["rows"]
    assert "more than 3 of its parts have failed (max_failures)" in str(error)
    assert 'partition {"account":"0"}' in str(error)
    assert run.records("other") == [row("o", 1)]


def test_a_row_that_does_not_fit_ends_its_partition_alone():
    """And what its function did after that row, or at its end, is in no state: rows behind the bad one are missing."""

    def rows(stream, partition):
        yield row(partition["account"], 7)
        stream.state["at"] = 1
        if partition["account"] == "b":
            yield {"account": 5}
        yield row(partition["account"], 9)
        stream.state["at"] = 2

    run = run_tap(partitioned({"a": [], "b": [], "c": []}, rows))
    assert run.records("rows") == [row("a", 7), row("a", 9), row("b", 7), row("c", 7), row("c", 9)]
    assert [one.where for one in run.result.errors["rows"].failures] == ['partition {"account":"b"}']
    done = {"id": 9, "stream_state": {"at": 2}}
    assert run.states[-1]["bookmarks"]["rows"]["partitions"] == {
        '{"account":"a"}': done,
        '{"account":"c"}': done,
    }


# ---- many small ones ------------------------------------------------------------------------------

MANY = {f"p{number:02}": [3 * number + 1, 3 * number + 2, 3 * number + 3] for number in range(40)}


@pytest.mark.parametrize("order", ["none", "asc"])
@pytest.mark.parametrize("bad", [(7, 0), (7, 1), (7, 2), (0, 0), (39, 2)])
def test_a_row_that_does_not_fit_ends_its_partition_and_no_other_that_came_with_it(order: str, bad: tuple[int, int]):
    def rows(partition):
        for place, value in enumerate(MANY[partition["account"]]):
            is_bad = partition["account"] == f"p{bad[0]:02}" and place == bad[1]
            yield {**row(partition["account"], value), **({"text": 5.5} if is_bad else {})}

    tap = burler.tap("tap-t")
    tap.partitions("rows", key="account", order=order)(lambda: [{"account": name} for name in MANY])
    tap.sync("rows", replication_key="id", schema=FIELDS, order="asc")(rows)
    run = run_tap(tap)
    out = [one for name, values in MANY.items() for one in (row(name, value) for value in values)]
    first = 3 * bad[0] + bad[1]
    assert run.records("rows") == out[:first] + out[3 * bad[0] + 3 :]
    error = run.result.errors["rows"]
    assert isinstance(error, PartialError)
    assert [one.where for one in error.failures] == [f"partition p{bad[0]:02}"]
    entry = run.states[-1]["bookmarks"].get("rows", {})
    entries = entry.get("partitions", {})
    if order == "asc":  # those before it have collapsed into the stream's
        assert entry.get("id") == (first or None)
    else:
        assert entries.get(f"p{bad[0]:02}", {}).get("id") == (first if bad[1] else None)
    behind = [name for name in MANY if name > f"p{bad[0]:02}"]
    assert all(entries[name] == {"id": MANY[name][-1]} for name in behind)


def test_one_and_the_same_row_may_come_in_several_partitions():
    same = row("a", 1)
    tap = partitioned(MANY, lambda: [same])
    assert run_tap(tap).records("rows") == [same] * len(MANY)


def test_a_value_that_raises_ends_its_partition_and_no_other_that_came_with_it():
    class Lazy:
        """As proxies of objects that are looked up late, and have gone."""

        @property
        def __class__(self) -> Any:
            raise ReferenceError("it has gone")

    tap = burler.tap("tap-t")
    tap.partitions("rows", key="account")(lambda: [{"account": name} for name in MANY])

    @tap.sync("rows", replication_key="id", schema=FIELDS)
    def rows(partition):
        for value in MANY[partition["account"]]:
            yield {**row(partition["account"], value), **({"text": Lazy()} if value == 17 else {})}

    run = run_tap(tap)
    out = [row(name, value) for name, values in MANY.items() if name != "p05" for value in values]
    assert [one for one in run.records("rows") if one["account"] != "p05"] == out
    assert [one.where for one in run.result.errors["rows"].failures] == ["partition p05"]
    assert set(run.states[-1]["bookmarks"]["rows"]["partitions"]) >= MANY.keys() - {"p05"}


def test_one_dict_that_each_partition_fills_anew_is_a_row_of_each():
    filled: dict[str, Any] = {}

    def rows(partition):
        filled.update(row(partition["account"], MANY[partition["account"]][0]))
        yield filled

    tap = partitioned(MANY, rows)
    assert run_tap(tap).records("rows") == [row(name, values[0]) for name, values in MANY.items()]


def test_a_hook_is_told_of_the_partition_whose_row_it_sees():
    tap = partitioned(MANY, lambda partition: [row(partition["account"], MANY[partition["account"]][0])])

    @tap.post_transform("rows")
    def named(record, partition):
        return {**record, "text": partition["account"]}

    assert [one["text"] for one in run_tap(tap).records("rows")] == list(MANY)


def test_one_dict_that_comes_twice_in_a_small_partition_ends_it():
    def rows(partition):
        one = row(partition["account"], MANY[partition["account"]][0])
        yield from [one, one] if partition["account"] == "p07" else [one]

    run = run_tap(partitioned(MANY, rows))
    assert run.records("rows") == [row(name, values[0]) for name, values in MANY.items() if name != "p07"]
    error = run.result.errors["rows"]
    assert isinstance(error, PartialError)
    assert ["one and the same dict more than once" in str(one.error) for one in error.failures] == [True]


def test_rows_behind_a_bad_one_of_a_small_partition_stay_behind_although_its_function_goes_on():
    def rows(partition, stream):
        one = row(partition["account"], 1)
        if partition["account"] in ("p07", "p21"):
            yield {**one, "text": 5.5}
            with contextlib.suppress(BurlerError):
                stream.save_bookmark()  # writes that row, and says what is wrong with it
        yield one

    run = run_tap(partitioned(MANY, rows))
    good = [name for name in MANY if name not in ("p07", "p21")]
    assert run.records("rows") == [row(name, 1) for name in good]
    assert [one.where for one in run.result.errors["rows"].failures] == [
        f"partition {key_of(name)}" for name in ("p07", "p21")
    ]
    assert run.states[-1]["bookmarks"]["rows"]["partitions"] == {key_of(name): {"id": 1} for name in good}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("given", ["rows", "bytes", "by name"])
def test_a_partition_whose_last_row_does_not_fit_has_failed_once(given: str, workers: int):
    def rows(partition, stream):
        bad = partition["account"] in ("p07", "p21")
        one = {**row(partition["account"], 1), **({"text": ["a"]} if bad else {})}
        if given == "by name":
            stream.emit_record(one)
        else:
            yield one if given == "rows" else msgspec.json.encode([one])

    tap = burler.tap("tap-t")
    tap.partitions("rows", key="account")(lambda: [{"account": name} for name in MANY])
    tap.sync("rows", replication_key="id", schema=FIELDS, workers=workers)(rows)
    run = run_tap(tap, {"max_failures": 2})
    error = run.result.errors["rows"]
    assert isinstance(error, PartialError)
    assert sorted(one.where for one in error.failures) == ["partition p07", "partition p21"]
    assert len(run.records("rows")) == len(MANY) - 2
