"""What the state holds of partitions: its shape, the keys, old flat bookmarks, how big it gets."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
import singer
from parts import entry_of, given, key_of, marks, never_ahead, numbers, partitioned, row, state_of

from burler.errors import StateError, StreamError
from burler.testing import run_tap


def keys_of(run: Any) -> list[str]:
    return list(entry_of(run.states[-1]).get("partitions", {}))


# ---- its shape ----------------------------------------------------------------------------------------


def test_the_shape_of_the_state():
    def rows(stream, partition):
        yield row(partition["account"], 4)
        stream.state["page"] = 2

    run = run_tap(partitioned({"a": [], "b": []}, rows))
    assert run.states[-1] == {
        "bookmarks": {
            "rows": {
                "partitions": {
                    '{"account":"a"}': {"id": 4, "stream_state": {"page": 2}},
                    '{"account":"b"}': {"id": 4, "stream_state": {"page": 2}},
                }
            }
        }
    }


def test_singer_python_reads_it_and_leaves_it_whole():
    run = run_tap(partitioned({"a": [1], "b": [2]}))
    state = singer.parse_message(json.dumps({"type": "STATE", "value": run.states[-1]})).value
    assert singer.get_bookmark(state, "rows", "partitions") == {key_of("a"): {"id": 1}, key_of("b"): {"id": 2}}
    assert singer.get_currently_syncing(state) is None
    written = singer.write_bookmark(state, "other", "id", 5)
    again = run_tap(partitioned({"a": [1, 7], "b": [2]}), state=written)
    assert numbers(again) == [1, 7, 2]
    assert again.states[-1]["bookmarks"]["other"] == {"id": 5}


def test_while_it_runs_the_state_names_the_stream():
    run = run_tap(partitioned({"a": [1], "b": [2]}, bookmark_strategy="every_n(1)"))
    assert [state.get("currently_syncing") for state in run.states] == ["rows", "rows", None]


def test_the_next_run_goes_on_in_each_partition():
    source = {"a": [1, 2, 3], "b": [10, 20]}
    first = run_tap(partitioned(source))
    assert marks(first.states[-1]) == {"a": 3, "b": 20}
    second = run_tap(partitioned({"a": [1, 2, 3, 4], "b": [10, 20, 30]}), state=first.states[-1])
    assert second.records("rows") == [row("a", 3), row("a", 4), row("b", 20), row("b", 30)]
    assert marks(second.states[-1]) == {"a": 4, "b": 30}


def test_a_partition_that_comes_no_more_keeps_its_place_and_a_new_one_begins_at_the_beginning():
    first = run_tap(partitioned({"a": [1, 2], "b": [10, 20]}))
    second = run_tap(partitioned({"b": [10, 20], "c": [5, 6]}), state=first.states[-1])
    assert second.records("rows") == [row("b", 20), row("c", 5), row("c", 6)]
    assert marks(second.states[-1]) == {"a": 2, "b": 20, "c": 6}
    third = run_tap(partitioned({"a": [1, 2, 3]}), state=second.states[-1])
    assert third.records("rows") == [row("a", 2), row("a", 3)]


def test_an_unsorted_partition_that_fails_keeps_the_bookmark_it_had():
    def rows(stream, partition):
        yield row(partition["account"], 9)
        yield row(partition["account"], 7)
        if partition["account"] == "a":
            raise ConnectionError("gone")

    run = run_tap(partitioned({"a": [], "b": []}, rows), state=state_of({"a": 3, "b": 3}))
    assert marks(run.states[-1]) == {"a": 3, "b": 9}


@pytest.mark.parametrize("wrong", [5, "x", [1]])
def test_entries_that_are_no_objects_are_refused_before_anything_is_read(wrong: Any):
    """To take them for none would read everything again, without a word."""
    state = {"bookmarks": {"rows": {"partitions": {key_of("a"): wrong, key_of("b"): {"id": 3}}}}}
    with pytest.raises(StateError, match=r"bookmarks\.rows\.partitions\..* must be an object"):
        run_tap(partitioned({"a": [1], "b": [2, 3]}), state=state)
    with pytest.raises(StateError, match=r"bookmarks\.rows\.partitions must be an object"):
        run_tap(partitioned({"a": [1]}), state={"bookmarks": {"rows": {"partitions": wrong}}})


def test_entries_that_are_null_are_as_good_as_none():
    state = {"bookmarks": {"rows": {"partitions": {key_of("a"): None, key_of("b"): {"id": 3}}}}}
    run = run_tap(partitioned({"a": [1], "b": [2, 3]}), state=state)
    assert not run.result.errors
    assert run.records("rows") == [row("a", 1), row("b", 3)]
    assert marks(run_tap(partitioned({"a": [1]}), state={"bookmarks": {"rows": {"partitions": None}}}).states[-1]) == {
        "a": 1
    }


def test_a_partitions_bookmark_of_another_kind_fails_that_partition_alone():
    state = state_of({"a": "text", "b": 2})
    run = run_tap(partitioned({"a": [1], "b": [2]}, lambda partition: [row(partition["account"], 2)]), state=state)
    assert [one.where for one in run.result.errors["rows"].failures] == [f"partition {key_of('a')}"]
    assert run.records("rows") == [row("a", 2), row("b", 2)] or run.records("rows") == [row("b", 2)]
    assert marks(run.states[-1]) == {"a": "text", "b": 2}


# ---- keys ---------------------------------------------------------------------------------------------


def gives_one(partition: dict[str, Any], key: Any = None) -> Any:
    return run_tap(partitioned(lambda: [partition], lambda: [row("x", 1)], key=key))


@pytest.mark.parametrize(
    ("partition", "key"),
    [
        ({"b": 1, "a": 2}, '{"a":2,"b":1}'),
        ({"account": "Zürich \u2603", "é": "\U0001f600"}, '{"account":"Zürich \u2603","é":"\U0001f600"}'),
        ({"n": 1.0}, '{"n":1}'),
        ({"n": 1.5}, '{"n":1.5}'),
        ({"n": 2**70}, '{"n":1180591620717411303424}'),
        ({"n": True, "m": None}, '{"m":null,"n":true}'),
        ({"n": "1"}, '{"n":"1"}'),
        ({"n": {"y": [1, {"d": 1, "c": 2}], "x": 0}}, '{"n":{"x":0,"y":[1,{"c":2,"d":1}]}}'),
        ({"n": 'a "quoted" \\ one\n'}, '{"n":"a \\"quoted\\" \\\\ one\\n"}'),
    ],
)
def test_the_key_is_the_partition_as_canonical_json(partition: dict[str, Any], key: str):
    run = gives_one(partition)
    assert not run.result.errors
    assert keys_of(run) == [key]
    assert json.loads(key) == partition


def test_the_order_of_a_partitions_fields_makes_no_other_partition():
    first = run_tap(partitioned(lambda: [{"account": "a", "month": 1}], given({"a": [1, 2]})))
    second = run_tap(
        partitioned(lambda: [{"month": 1, "account": "a"}], given({"a": [1, 2, 3]})), state=first.states[-1]
    )
    assert numbers(second) == [2, 3]
    twice = run_tap(partitioned(lambda: [{"account": "a", "m": 1}, {"m": 1, "account": "a"}], given({"a": [1]})))
    assert "twice" in str(twice.result.errors["rows"])


def test_a_number_and_its_text_are_two_partitions():
    run = run_tap(partitioned(lambda: [{"n": 1}, {"n": "1"}, {"n": True}, {"n": 1.5}], lambda: [row("x", 1)]))
    assert not run.result.errors
    assert len(keys_of(run)) == 4


@pytest.mark.parametrize(
    ("key", "wanted"),
    [("account", "a"), ("shard", "7"), (lambda partition: f"{partition['account']}/{partition['shard']}", "a/7")],
)
def test_a_short_key(key: Any, wanted: str):
    partition = {"account": "a", "shard": 7}
    first = run_tap(partitioned(lambda: [partition], given({"a": [1, 2]}), key=key))
    assert entry_of(first.states[-1]) == {"partitions": {wanted: {"id": 2}}}
    again = run_tap(partitioned(lambda: [partition], given({"a": [1, 2, 3]}), key=key), state=first.states[-1])
    assert numbers(again) == [2, 3]


def test_partitions_with_one_short_key_are_refused():
    both = [{"account": "a", "region": "eu"}, {"account": "a", "region": "us"}]
    run = run_tap(partitioned(lambda: both, lambda: [row("a", 1)], key="account"))
    assert "gave the partition a twice" in str(run.result.errors["rows"])


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("missing", "gave a partition without 'missing', its key; it has"),
        ("none", "whose key is None; a key is text"),
        ("flag", "whose key is a boolean; a key is text"),
        ("list", "whose key is list; a key is text"),
        ("empty", "whose key is an empty string; a key is text"),
        ("float", "whose key is a number; a key is text"),
        (lambda partition: 5, "whose key is an integer; a key is text"),
        (lambda partition: partition["nope"], "has a key that failed: KeyError"),
    ],
)
def test_a_short_key_that_is_no_text_ends_the_stream(key: Any, named: str):
    run = gives_one({"none": None, "flag": True, "list": [], "empty": "", "float": 1.5}, key)
    error = run.result.errors["rows"]
    assert type(error) is StreamError
    assert named in str(error)
    assert run.records("rows") == []


def test_a_key_function_can_not_change_the_partition():
    def key(partition):
        return partition.pop("account")

    run = run_tap(partitioned(lambda: [{"account": "a"}], given({"a": [1]}), key=key))
    assert run.records("rows") == [row("a", 1)]


# ---- from before there were partitions ----------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 4])
def test_an_old_flat_bookmark_is_where_each_partition_begins_and_then_goes(workers: int):
    source = {"a": [1, 5, 6], "b": [4, 7], "c": [2]}
    state = {"bookmarks": {"rows": {"id": 5}}}
    run = run_tap(partitioned(source, workers=workers), state=state)
    assert sorted(numbers(run)) == [5, 6, 7]
    assert "id" not in entry_of(run.states[-1])
    assert marks(run.states[-1]) == {"a": 6, "b": 7, "c": 5}
    assert never_ahead(run, source, state)


def test_an_old_flat_bookmark_stays_while_a_partition_has_not_come_to_its_end():
    def rows(stream, partition):
        yield from given({"a": [5], "b": [6], "c": [7]})(stream, partition)
        if partition["account"] == "b":
            raise ConnectionError("gone")

    tap = partitioned({name: [] for name in "abc"}, rows)
    run = run_tap(tap, state={"bookmarks": {"rows": {"id": 5}}})
    assert entry_of(run.states[-1])["id"] == 5
    healed = run_tap(partitioned({"a": [5], "b": [6], "c": [7], "d": [4, 8]}), state=run.states[-1])
    assert "id" not in entry_of(healed.states[-1])
    assert numbers(healed, "b") == [6]
    assert numbers(healed, "d") == [8]


def test_a_flat_bookmark_and_no_partitions_at_all():
    state = {"bookmarks": {"rows": {"id": 5}}}
    assert run_tap(partitioned([]), state=state).states[-1] == state


def test_the_old_streams_own_state_is_not_lost_on_the_way():
    """A position without partitions says nothing of any of them."""
    seen: list[Any] = []
    tap = partitioned({"a": []}, lambda stream: seen.append(dict(stream.state)) or [row("a", 9)])
    run = run_tap(tap, state={"bookmarks": {"rows": {"id": 5, "stream_state": {"page": 3}, "version": 7}}})
    assert seen == [{}]
    assert entry_of(run.states[-1])["version"] == 7


# ---- how big it gets ----------------------------------------------------------------------------------


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if "partition_bookmarks_warning" in one.getMessage()]


def test_one_warning_past_the_configured_number(caplog: pytest.LogCaptureFixture):
    tap = partitioned({str(i): [i] for i in range(5)}, lambda partition: [row(partition["account"], 1)])
    with caplog.at_level(logging.WARNING):
        run_tap(tap, {"partition_bookmarks_warning": 5})
        assert warned(caplog) == []
        run_tap(tap, {"partition_bookmarks_warning": 4})
    assert len(warned(caplog)) == 1
    assert "stream 'rows': the state holds the bookmarks of 5 partitions" in warned(caplog)[0]


@pytest.mark.parametrize("strategy", ["end_of_sync", "every_n(1)", "every_seconds(0.001)", "on_page"])
def test_state_lines_do_not_outweigh_rows_with_1000_partitions(strategy: str):
    source = {f"account-{i}": [i] for i in range(1000)}
    run = run_tap(partitioned(source, bookmark_strategy=strategy))
    assert len(marks(run.states[-1])) == 1000
    size = {"RECORD": 0, "STATE": 0, "SCHEMA": 0}
    for message in run.messages:
        size[message["type"]] += len(json.dumps(message, separators=(",", ":")))
    last = len(json.dumps(run.messages[-1], separators=(",", ":")))
    # The last one always comes, however big it is.
    assert size["STATE"] - last <= size["RECORD"]
    assert never_ahead(run, source)


def test_states_come_on_the_way_even_if_the_strategy_asks_for_none():
    """What finished partitions have reached is saved: a run of many that is killed does not begin anew."""
    source = {f"account-{i}": range(20) for i in range(500)}
    run = run_tap(partitioned(source))
    assert len(run.states) > 4
    assert never_ahead(run, source) > 500


def test_the_author_may_ask_for_a_state_in_a_partition():
    def rows(stream, partition):
        yield row(partition["account"], 1)
        stream.save_bookmark()
        yield row(partition["account"], 2)

    run = run_tap(partitioned({"a": [], "b": []}, rows, bookmark_strategy="every_n(1000)"))
    assert [marks(state) for state in run.states[:2]] == [{"a": 1}, {"a": 2, "b": 1}]
