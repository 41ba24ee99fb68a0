"""``stream.source_state``: what a source said of itself, when it counts, and when it does not."""

from __future__ import annotations

import time
from typing import Any

import pytest
from taps import FIELDS, ids

import burler
from burler.errors import BurlerError, DeclarationError, NotModified
from burler.testing import bind_stream, run_tap
from support.internals import signals

KIND = "chain/block-height"


def table(fn: Any, **options: Any) -> burler.Tap:
    tap = burler.tap("tap-t")
    tap.sync("t", **{"key_properties": "id", "schema": FIELDS, **options})(fn)
    return tap


def entry_of(run: Any, stream: str = "t") -> Any:
    return run.states[-1].get("bookmarks", {}).get(stream, {}).get("source_state")


def activated(run: Any) -> list[Any]:
    return [m["stream"] for m in run.messages if m["type"] == "ACTIVATE_VERSION"]


def blocks(top: int, asked: list[Any] | None = None) -> Any:
    """A chain of blocks: its height says where it was read to."""

    def rows(stream):
        height = int(stream.source_state.get(KIND, source="chain") or 0)
        if asked is not None:
            asked.append(height)
        if height == top:
            stream.not_modified()
            return
        yield from ids(*range(height + 1, top + 1))
        stream.source_state.set(KIND, str(top), source="chain")

    return rows


@pytest.mark.parametrize("options", [{}, {"replication_key": "id"}, {"versions": False}])
def test_a_kind_of_ones_own(options: dict[str, Any]):
    asked: list[Any] = []
    first = run_tap(table(blocks(3, asked), **options))
    assert entry_of(first) == [{"kind": KIND, "source": "chain", "value": "3", "for": entry_of(first)[0]["for"]}]
    assert len(entry_of(first)[0]["for"]) == 11  # the hash of the schema
    second = run_tap(table(blocks(3, asked), **options), state=first.states[-1])
    assert second.types == ["SCHEMA", "STATE"]
    assert second.states == [first.states[-1]]
    assert asked == [0, 3]


def test_rows_of_a_part_of_a_full_table_belong_to_the_table_as_it_stands():
    first = run_tap(table(blocks(3)))
    version = first.states[-1]["bookmarks"]["t"]["version"]

    def rows(stream):
        stream.not_modified()
        yield from blocks(5)(stream)

    second = run_tap(table(rows), state=first.states[-1])
    assert [(m["record"]["id"], m["version"]) for m in second.messages if m["type"] == "RECORD"] == [
        (4, version),
        (5, version),
    ]
    assert activated(second) == []
    assert second.states[-1]["bookmarks"]["t"]["version"] == version
    assert entry_of(second)[0]["value"] == "5"


def test_another_selection_is_read_in_full():
    first = run_tap(table(blocks(3)))
    asked: list[Any] = []
    name = next(field for field in FIELDS["properties"] if field != "id")
    second = run_tap(table(blocks(3, asked)), state=first.states[-1], select=f"t,!t.{name}")
    assert asked == [0]
    assert [row["id"] for row in second.records("t")] == [1, 2, 3]
    assert activated(second) == ["t"]
    assert entry_of(second)[0]["for"] != entry_of(first)[0]["for"]


def test_a_substream_more_is_read_in_full_and_304_leaves_its_table_alone():
    def tap(asked: list[Any]) -> burler.Tap:
        tap = table(blocks(2, asked))

        @tap.sync("kids", parent="t", key_properties="id", schema=FIELDS)
        def kids(parent):
            yield from ids(parent["id"] * 10)

        return tap

    asked: list[Any] = []
    first = run_tap(tap(asked), select="t")
    second = run_tap(tap(asked), state=first.states[-1])
    assert [row["id"] for row in second.records("kids")] == [10, 20]
    third = run_tap(tap(asked), state=second.states[-1])
    assert asked == [0, 0, 2]
    assert third.types == ["SCHEMA", "SCHEMA", "STATE"]
    assert third.states[-1] == second.states[-1]


def test_what_is_wanted_by_name_is_left_alone_with_304():
    def tap() -> burler.Tap:
        def rows(stream):
            if stream.source_state.get(KIND) == "x":
                stream.not_modified()
                return
            yield "t", ids(1)
            yield "u", ids(2)
            stream.source_state.set(KIND, "x")

        tap = table(rows)
        tap.stream("u", emitted_by="t", schema=FIELDS, key_properties="id")
        return tap

    first = run_tap(tap())
    second = run_tap(tap(), state=first.states[-1])
    assert second.types == ["SCHEMA", "SCHEMA", "STATE"]


@pytest.mark.parametrize("config", [{"ignore_source_state": True}, {}])
def test_what_was_saved_can_be_ignored(config: dict[str, Any]):
    first = run_tap(table(blocks(3)))
    asked: list[Any] = []
    second = run_tap(table(blocks(3, asked)), config, state=first.states[-1])
    assert asked == ([0] if config else [3])
    assert entry_of(second) == entry_of(first)


def test_a_limited_run_shows_rows_whatever_the_source_says():
    first = run_tap(table(blocks(3)))
    second = run_tap(table(blocks(3)), state=first.states[-1], limit=2)
    assert len(second.records("t")) == 2


def test_several_sources_and_unknown_ones_are_kept_in_their_order():
    strange = {"kind": "other/tool", "sourceName": "x", "value": {"not": "text"}, "more": 1}
    old = {"kind": KIND, "source": "a", "value": "0", "for": "something else"}

    def rows(stream):
        assert stream.source_state.get(KIND, source="a") is None
        assert stream.source_state.get("other/tool", source="x") is None
        yield from ids(1)
        stream.source_state.set(KIND, "1", source="a")
        assert stream.source_state.get(KIND, source="a") == "1"
        stream.source_state.set("odf/etag", '"b"', source="b", of="https://b")

    run = run_tap(table(rows), state={"bookmarks": {"t": {"source_state": [strange, old]}}})
    kept = entry_of(run)
    assert kept[0] == strange
    assert [(one["kind"], one.get("source")) for one in kept[1:]] == [(KIND, "a"), ("odf/etag", "b")]
    assert kept[1]["for"] != old["for"]


@pytest.mark.parametrize(
    "saved", [{"kind": KIND, "source": "odf/polling", "value": "7"}, [], None, "x", 5, [[]], [None]]
)
def test_anything_else_in_the_state_counts_as_nothing(saved: Any):
    def rows(stream):
        assert stream.source_state.get(KIND) is None
        yield from ids(1)

    run = run_tap(table(rows), state={"bookmarks": {"t": {"source_state": saved, "version": 5}}})
    assert run.result.exit_code == 0
    assert run.states[-1]["bookmarks"]["t"].get("source_state") == saved


def test_an_entry_of_another_tool_counts_where_it_is_asked_for():
    def rows(stream):
        assert stream.source_state.get("odf/etag", foreign=True) == "file-9"
        assert stream.source_state.get("odf/etag") is None
        assert stream.source_state.get(KIND, foreign=True) is None
        yield from ids(1)

    saved = {"kind": "odf/etag", "sourceName": "odf/polling", "value": "file-9"}
    assert run_tap(table(rows), state={"bookmarks": {"t": {"source_state": saved}}}).result.exit_code == 0


def test_the_schemas_of_other_streams_of_the_run():
    seen: list[Any] = []

    def rows(stream):
        seen.extend([stream.schema_of("t"), stream.schema_of("u"), stream.schema_of("v")])
        yield from ids(1)

    tap = table(rows)
    tap.stream("u", emitted_by="t", schema={"properties": {"a": {"type": "string"}, "b": {"type": "string"}}})
    run_tap(tap, select="t,u,!u.b")
    assert list(seen[1]["properties"]) == ["a"]
    assert (seen[0], seen[2]) == (run_tap(tap, schemas_only=True).messages[0]["schema"], {})


def test_a_single_object_is_a_list_of_one():
    first = run_tap(table(blocks(3)))
    state = first.states[-1]
    state["bookmarks"]["t"]["source_state"] = state["bookmarks"]["t"]["source_state"][0]
    assert run_tap(table(blocks(3)), state=state).records("t") == []


def test_forgotten_entries_are_gone():
    def rows(stream):
        yield from ids(1)
        stream.source_state.forget("chain")

    first = run_tap(table(blocks(3)))
    assert entry_of(run_tap(table(rows), state=first.states[-1])) is None


# ---- never ahead of the rows -------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"replication_key": "id"}, {}])
def test_an_error_behind_it(options: dict[str, Any]):
    """What was set before the error counts where rows are appended; a full table that is not whole is none."""

    def rows(stream):
        yield from ids(1, 2)
        stream.source_state.set(KIND, "2", source="a")
        yield from ids(3)
        stream.source_state.set(KIND, "3", source="b")
        raise ValueError("over")

    run = run_tap(table(rows, **options), {"page_max_rows": 1})
    assert run.result.exit_code == 1
    kept = {one["source"]: one["value"] for one in entry_of(run) or []}
    assert kept in ([{"a": "2"}, {"a": "2", "b": "3"}] if options else [{}])


def test_rows_that_are_missing_hold_it_back():
    tap = table(blocks(3), replication_key="id")

    @tap.sync("kids", parent="t", key_properties="id", schema=FIELDS)
    def kids(parent):
        if parent["id"] == 2:
            raise ValueError("no kids")
        yield from ids(parent["id"] * 10)

    run = run_tap(tap)
    assert run.result.exit_code == 1
    assert entry_of(run) is None


def test_a_state_is_due_where_a_source_has_changed_although_no_row_came():
    def rows(stream):
        yield from ids()
        stream.source_state.set(KIND, "9")

    run = run_tap(table(rows, replication_key="id"), state={"bookmarks": {"t": {"id": 4}}})
    assert [one["bookmarks"]["t"].get("id") for one in run.states] == [4]
    assert entry_of(run)[0]["value"] == "9"


def test_a_stop_before_the_table_is_whole():
    stopper = signals.Stopper()

    def rows(stream):
        yield from ids(1)
        stream.source_state.set(KIND, "1")
        stopper.handle(15, None)
        yield from ids(2)

    run = run_tap(table(rows), {"page_max_rows": 1}, stopper=stopper)
    assert run.states
    assert entry_of(run) is None
    assert activated(run)[1:] == []


def test_a_retry_begins_with_what_was_there():
    tries: list[Any] = []

    def rows(stream):
        tries.append(stream.source_state.get(KIND))
        stream.source_state.set(KIND, "1")
        if len(tries) == 1:
            raise TimeoutError
        yield from ids(1)

    run = run_tap(table(rows, retry_sync_on=TimeoutError))
    assert tries == [None, None]
    assert entry_of(run)[0]["value"] == "1"


# ---- partitions ----------------------------------------------------------------------------------------


def partitioned(**options: Any) -> burler.Tap:
    def rows(stream, partition):
        if stream.source_state.get(KIND) == "x":
            stream.not_modified()
            return
        yield from ids(partition["a"])
        stream.source_state.set(KIND, "x")

    tap = table(rows, **options)
    tap.partitions("t")(lambda: [{"a": 1}, {"a": 2}])
    return tap


def test_each_partition_has_its_own():
    first = run_tap(partitioned(replication_key="id"))
    parts = first.states[-1]["bookmarks"]["t"]["partitions"]
    assert [one["source_state"][0]["value"] for one in parts.values()] == ["x", "x"]
    assert run_tap(partitioned(replication_key="id"), state=first.states[-1]).records("t") == []


def test_a_full_table_in_partitions_can_have_none():
    run = run_tap(partitioned())
    assert run.result.exit_code == 1
    assert "versions=False" in str(run.result.errors["t"].failures[0].error)


# ---- source_state=True ----------------------------------------------------------------------------------


def test_304_ends_the_function_wherever_it_comes_up():
    def inner():
        raise NotModified("304")
        yield

    def lazily(stream):
        stream.not_modified()
        yield inner()

    def by_name(stream):
        stream.not_modified()
        yield "t", inner()

    def at_once(stream):
        stream.not_modified()
        raise NotModified("304")

    old = {"bookmarks": {"t": {"version": 5}}}
    for fn in (lazily, by_name, at_once):
        run = run_tap(table(fn, source_state=True), state=old)
        assert (run.result.exit_code, run.types) == (0, ["SCHEMA", "STATE"])
        assert run.states == [old]


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (
            lambda tap: tap.sync("t", parent="p", source_state=True, schema=FIELDS)(lambda parent: []),
            "Set it on that stream",
        ),
        (lambda tap: tap.sync("q", source_state="yes", schema=FIELDS)(lambda: []), "must be True or False"),
    ],
)
def test_where_it_can_not_be_said(declare: Any, words: str):
    tap = burler.tap("tap-t")
    with pytest.raises(DeclarationError, match=words):
        declare(tap)
        tap.sync("p", schema=FIELDS)(lambda: [])
        tap.seal()


def test_it_is_not_for_partitions():
    with pytest.raises(DeclarationError, match=r"client\.conditional"):
        partitioned(source_state=True).seal()


@pytest.mark.parametrize("wrong", [{"kind": ""}, {"kind": 5}, {"value": {"a": 1}}, {"source": None}])
def test_what_is_no_text_is_refused(wrong: dict[str, Any]):
    given = {"kind": KIND, "value": "x", **wrong}
    with bind_stream(burler.tap("tap-t"), "t") as stream, pytest.raises(BurlerError, match="must be text"):
        stream.source_state.set(**given)


def test_a_full_table_of_which_a_part_has_not_changed_says_so_first():
    def rows(stream):
        yield from ids(1)
        stream.not_modified()

    old = {"bookmarks": {"t": {"version": 5}}}
    run = run_tap(table(rows), state=old)
    assert "before the first row" in str(run.result.errors["t"])
    assert run.states[-1]["bookmarks"] == old["bookmarks"]
    assert run_tap(table(rows, versions=False), state=old).result.errors == {}


def test_what_is_read_of_a_table_that_stands_counts_as_it_comes():
    """It need not wait for an ACTIVATE_VERSION: none comes."""

    def rows(stream):
        stream.not_modified()
        yield from ids(1)
        stream.source_state.set(KIND, "1", source="a")
        stream.save_bookmark()
        yield from ids(2)
        raise ConnectionError("gone")

    run = run_tap(table(rows), state={"bookmarks": {"t": {"version": 5}}})
    assert [one["value"] for one in entry_of(run)] == ["1"]


def test_a_substream_that_has_changed_for_some_parents_only_is_read_again():
    """Its rows are in a version that nothing activates: what the source said must not keep them from coming again."""
    tap = burler.tap("tap-t")
    tap.sync("p", key_properties="id", schema=FIELDS)(lambda: ids(1, 2))

    @tap.sync("t", parent="p", key_properties="id", schema=FIELDS)
    def rows(parent, stream):
        if parent["id"] == 2:
            stream.not_modified()
            return
        yield from ids(10)
        stream.source_state.set(KIND, "1", source="1")

    run = run_tap(tap, state={"bookmarks": {"t": {"version": 5}}})
    assert run.result.errors == {}
    assert activated(run) == ["p", "p"]
    assert entry_of(run) is None


@pytest.mark.parametrize("config", [{}, {"ignore_source_state": True}])
def test_states_stay_small_beside_rows_where_all_partitions_have_changed(config: dict[str, Any]):
    """STATE is spaced, also where what was saved of thousands of sources stops counting."""

    def rows(stream, partition):
        stream.source_state.get(KIND)
        stream.source_state.drop()
        yield {"id": partition["a"]}
        stream.source_state.set(KIND, "y")

    tap = table(rows, replication_key="id")
    tap.partitions("t")(lambda: [{"a": number} for number in range(600)])
    first = run_tap(tap)
    second = run_tap(tap, config, state=first.states[-1])
    assert len(second.states) < 20
    parts = second.states[-1]["bookmarks"]["t"]["partitions"]
    assert [one["source_state"][0]["value"] for one in parts.values()] == ["y"] * 600


def test_an_ignoring_run_forgets_before_its_first_row():
    first = run_tap(table(blocks(3), replication_key="id"))
    second = run_tap(table(blocks(3), replication_key="id"), {"ignore_source_state": True}, state=first.states[-1])
    assert second.types[:3] == ["SCHEMA", "STATE", "RECORD"]
    assert "source_state" not in second.states[0]["bookmarks"]["t"]
    assert entry_of(second) == entry_of(first)


def test_a_source_may_be_called_sourcename():
    """As the later schema of the RFC has it."""
    first = run_tap(table(blocks(3)))
    state = first.states[-1]
    entry = state["bookmarks"]["t"]["source_state"][0]
    entry["sourceName"] = entry.pop("source")
    assert run_tap(table(blocks(3)), state=state).records("t") == []


def test_a_changed_source_makes_a_state_due_while_the_stream_runs():
    """A changed source state makes a STATE due, also where no row came and the strategy asks for none."""

    def rows(stream):
        for number in range(3):
            stream.source_state.set(KIND, str(number))
            yield from ids(number)
            time.sleep(1.1)

    run = run_tap(table(rows, replication_key="id"), {"page_max_rows": 1})
    values = [one["bookmarks"]["t"]["source_state"][0]["value"] for one in run.states if "bookmarks" in one]
    assert len(set(values)) > 1
