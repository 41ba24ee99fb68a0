"""The engine: what comes out for which tap, in which order; errors, selection, bookmarks, state."""

from __future__ import annotations

import itertools
import json
import logging
from typing import Any

import pytest

import burler
from burler.errors import BadRecordError, BurlerError, CatalogError, DeclarationError, StreamError, UnsortedStreamError
from burler.runtime.run import discover
from burler.testing import run_tap, without_times

FIELDS = {"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "string"}}}


def make(**streams: Any) -> burler.Tap:
    """A tap of INCREMENTAL streams by ``id``; each value is the sync function or (function, options)."""
    tap = burler.tap("tap-t")
    for name, given in streams.items():
        fn, options = given if isinstance(given, tuple) else (given, {})
        tap.sync(name, **{"key_properties": "id", "replication_key": "id", "order": "asc", **options})(fn)
        tap.schema(name, FIELDS)
    return tap


def ids(*numbers: int) -> list[dict[str, int]]:
    return [{"id": number} for number in numbers]


# ---- order of messages ---------------------------------------------------------------------------


def test_a_run_message_by_message():
    tap = make(a=lambda: ids(1, 2), b=lambda: [])
    assert without_times(run_tap(tap).messages) == [
        {"type": "SCHEMA", "stream": "a", "schema": FIELDS, "key_properties": ["id"], "bookmark_properties": ["id"]},
        {"type": "RECORD", "stream": "a", "record": {"id": 1}},
        {"type": "RECORD", "stream": "a", "record": {"id": 2}},
        {"type": "STATE", "value": {"currently_syncing": "b", "bookmarks": {"a": {"id": 2}}}},
        {"type": "SCHEMA", "stream": "b", "schema": FIELDS, "key_properties": ["id"], "bookmark_properties": ["id"]},
        {"type": "STATE", "value": {"bookmarks": {"a": {"id": 2}}}},
    ]


def test_every_record_says_when_it_was_extracted():
    for message in run_tap(make(a=lambda: ids(1))).messages:
        if message["type"] == "RECORD":
            assert len(message["time_extracted"]) == 27
            assert message["time_extracted"].endswith("Z")


def test_every_n_cuts_pages_where_a_state_is_due():
    def rows():
        yield from ids(*range(1000))

    for n, page in [(7, 1000), (352, 1000), (352, 24), (100, 100), (1, 1000), (999, 350)]:
        tap = make(a=(rows, {"bookmark_strategy": f"every_n({n})"}))
        run = run_tap(tap, {"page_max_rows": page})
        at = [count for kind, count in _runs(run.types) if kind == "RECORD"]
        assert at == [n] * (1000 // n) + ([1000 % n] if 1000 % n else []), (n, page)
        assert [state["bookmarks"]["a"]["id"] for state in run.states[: 1000 // n]] == list(range(n - 1, 1000, n))


def _runs(types: list[str]) -> list[tuple[str, int]]:
    return [(kind, len(list(group))) for kind, group in itertools.groupby(types)]


def test_every_n_counts_the_rows_of_all_streams_of_the_function():
    def rows():
        for i in range(100):
            yield {"id": i}
            yield "b", ids(i, i, i)

    tap = make(a=(rows, {"bookmark_strategy": "every_n(40)"}))
    tap.stream("b", emitted_by="a", key_properties="id", schema=FIELDS)
    run = run_tap(tap)
    between = [count for count in _records_between_states(run.types) if count]
    assert sum(between) == 400
    assert all(40 <= count <= 160 for count in between[:-1])
    assert len(between) >= 3


def _records_between_states(types: list[str]) -> list[int]:
    counts = [0]
    for kind in types:
        if kind == "STATE":
            counts.append(0)
        counts[-1] += kind == "RECORD"
    return counts


def test_end_of_sync_gives_one_state_at_the_end_of_each_stream():
    def rows():
        yield from ids(*range(2500))

    run = run_tap(make(a=(rows, {"order": None}), b=(rows, {"order": None})))
    assert [kind for kind, _ in _runs(run.types)] == ["SCHEMA", "RECORD", "STATE", "SCHEMA", "RECORD", "STATE"]


def test_a_state_that_says_nothing_new_is_not_repeated():
    def rows(stream):
        yield from ids(5, 5, 5, 5)

    run = run_tap(make(a=(rows, {"bookmark_strategy": "every_n(1)"})))
    assert [state.get("bookmarks") for state in run.states] == [{"a": {"id": 5}}] * 2  # then without currently_syncing


def test_states_that_are_big_come_so_seldom_that_rows_outweigh_them():
    """specs 11.29: a strategy says the most often that a STATE comes; the last one always comes."""

    def rows(stream):
        stream.state["filler"] = "x" * 20_000
        for i in range(5000):
            yield {"id": i}

    run = run_tap(make(a=(rows, {"bookmark_strategy": "every_n(10)"})))
    states = [len(json.dumps(state)) for state in run.states]
    records = [len(json.dumps(m)) for m in run.messages if m["type"] == "RECORD"]
    assert 5 < len(states) < 30
    assert sum(states[1:-2]) <= sum(records)  # the last of the stream, and that of the run, come in any case
    assert run.states[-1]["bookmarks"]["a"]["id"] == 4999
    pages = len({m["time_extracted"] for m in run.messages if m["type"] == "RECORD"})
    assert pages <= 520, "pages must not shrink while a STATE is put off"


def test_within_a_page_the_functions_own_rows_come_first():
    def rows():
        yield "b", {"id": 1}
        yield {"id": 1}

    tap = make(a=rows)
    tap.stream("b", emitted_by="a", key_properties="id", schema=FIELDS)
    run = run_tap(tap)
    assert [m["stream"] for m in run.messages if m["type"] == "RECORD"] == ["a", "b"]


# ---- bookmarks -----------------------------------------------------------------------------------


def test_an_exception_after_9000_sorted_rows():
    def rows():
        yield from ids(*range(9000))
        raise RuntimeError("boom")

    run = run_tap(make(a=rows, b=lambda: ids(1)))
    assert [row["id"] for row in run.records("a")] == list(range(9000))
    last = run.types.index("STATE")
    assert run.types[:last].count("RECORD") == 9000
    assert run.states[0]["bookmarks"]["a"] == {"id": 8999}
    assert run.records("b") == ids(1)
    assert run.states[-1] == {"bookmarks": {"a": {"id": 8999}, "b": {"id": 1}}}
    assert list(run.result.errors) == ["a"]
    assert run.result.exit_code == 1


def test_an_exception_in_an_unsorted_stream_leaves_the_bookmark():
    def rows():
        yield from ids(7, 9, 8)
        raise RuntimeError("boom")

    run = run_tap(make(a=(rows, {"order": None})), state={"bookmarks": {"a": {"id": 5}}})
    assert run.records("a") == ids(7, 9, 8)
    assert run.states[-1] == {"bookmarks": {"a": {"id": 5}}}


def test_an_unsorted_stream_moves_at_its_end_and_never_back():
    run = run_tap(make(a=(lambda: ids(3, 9, 4), {"order": None})), state={"bookmarks": {"a": {"id": 2}}})
    assert run.states == [{"bookmarks": {"a": {"id": 9}}}]
    run = run_tap(make(a=(lambda: ids(3), {"order": None})), state={"bookmarks": {"a": {"id": 50}}})
    assert run.states == [{"bookmarks": {"a": {"id": 50}}}]


@pytest.mark.parametrize("start", [None, 5])
def test_broken_order_puts_the_bookmark_back_to_where_the_run_began(start: int | None):
    def rows():
        yield from ids(*range(10, 110))
        yield from ids(3)

    state = {"bookmarks": {"a": {"id": start}}} if start else None
    run = run_tap(make(a=(rows, {"bookmark_strategy": "every_n(10)"})), state=state)
    assert run.states[9]["bookmarks"]["a"]["id"] == 109
    assert run.states[-1].get("bookmarks", {}) == ({"a": {"id": start}} if start else {})
    error = run.result.errors["a"]
    assert isinstance(error, UnsortedStreamError)
    assert "109" in str(error)
    assert "3" in str(error)


def test_bookmark_function_gives_the_value():
    tap = burler.tap("tap-t")

    @tap.sync("a", order="asc", bookmark_strategy="every_n(1)")
    def rows(stream):
        assert stream.bookmark == "2024-01-01T00:00:00Z"
        yield {"id": 1, "at": "2024-01-02T00:00:00Z"}
        yield {"id": 2, "at": "2024-01-03T00:00:00Z"}

    @tap.bookmark("a")
    def of(record, state, stream):
        assert stream.name == "a"
        return record["at"]

    tap.schema("a", FIELDS)
    run = run_tap(tap, state={"bookmarks": {"a": {"bookmark": "2024-01-01T00:00:00Z"}}})
    assert [state["bookmarks"]["a"]["bookmark"][:10] for state in run.states[:2]] == ["2024-01-02", "2024-01-03"]


def test_a_bookmark_function_that_fails_keeps_rows_and_a_safe_bookmark():
    tap = make(a=lambda: ids(1, 2, 3, 4))

    @tap.bookmark("a")
    def of(record):
        return 10 // (3 - record["id"]) and record["id"]

    run = run_tap(tap)
    assert [row["id"] for row in run.records("a")][:2] == [1, 2]
    assert run.states[-1] == {"bookmarks": {"a": {"id": 2}}}
    assert "ZeroDivisionError" in str(run.result.errors["a"])


def test_start_date_is_the_first_bookmark_and_the_state_wins():
    seen = []

    def rows(stream):
        seen.append(stream.bookmark)
        return []

    config = {"start_date": "2024-01-01T00:00:00Z"}
    run_tap(make(a=rows), config)
    run_tap(make(a=rows), config, state={"bookmarks": {"a": {"id": 7}}})
    run_tap(make(a=(rows, {"replication_key": None, "order": None})), config)
    assert seen == ["2024-01-01T00:00:00Z", 7, None]


def test_start_date_alone_is_no_bookmark_in_the_state():
    run = run_tap(make(a=lambda: []), {"start_date": "2024-01-01T00:00:00Z"})
    assert run.states[-1].get("bookmarks", {}) == {}


def test_a_bookmark_in_the_state_of_another_kind_is_one_error_of_that_stream():
    run = run_tap(make(a=lambda: ids(1), b=lambda: ids(1)), state={"bookmarks": {"a": {"id": "x"}}})
    assert isinstance(run.result.errors["a"], StreamError)
    assert run.records("b") == ids(1)
    assert run.states[-1]["bookmarks"]["a"] == {"id": "x"}


# ---- stream.state --------------------------------------------------------------------------------


def test_stream_state_comes_back_and_is_saved():
    def rows(stream):
        assert stream.state == {"page": 3}
        yield {"id": 1}
        stream.state["page"] = 4
        yield {"id": 2}
        stream.state = {"page": 5}

    start = {"bookmarks": {"a": {"stream_state": {"page": 3}}}}
    run = run_tap(make(a=rows), state=start)
    assert run.states[-1]["bookmarks"]["a"] == {"stream_state": {"page": 5}, "id": 2}
    assert start == {"bookmarks": {"a": {"stream_state": {"page": 3}}}}


@pytest.mark.parametrize("value", [object(), {1: object()}, "self"])
def test_stream_state_that_is_no_json(value: Any):
    def rows(stream):
        yield {"id": 1}
        stream.state["x"] = stream.state if value == "self" else value
        yield {"id": 2}

    run = run_tap(make(a=rows, b=lambda: ids(1)))
    assert "stream.state must hold JSON values only" in str(run.result.errors["a"])
    assert "test_engine.py:" in str(run.result.errors["a"])
    assert run.records("a") == ids(1, 2)
    assert "stream_state" not in run.states[0]["bookmarks"]["a"]
    assert run.records("b") == ids(1)


def test_what_an_author_writes_into_the_state_parameter_stays_out_of_the_output():
    def rows(state):
        state.setdefault("bookmarks", {})["a"] = {"id": 1000, "mine": 1}
        yield {"id": 1}

    run = run_tap(make(a=(rows, {"order": None})))
    assert run.states == [{"bookmarks": {"a": {"id": 1}}}]


def test_unknown_keys_of_the_state_are_carried():
    start = {"bookmarks": {"a": {"id": 1, "other": [1]}, "gone": {"x": 1}}, "more": 1}
    run = run_tap(make(a=lambda: ids(2)), state=start)
    assert run.states[-1] == {"bookmarks": {"a": {"id": 2, "other": [1]}, "gone": {"x": 1}}, "more": 1}


# ---- currently_syncing ---------------------------------------------------------------------------


def test_currently_syncing_names_the_stream_then_the_next_then_nothing():
    def rows():
        yield from ids(1, 2)

    options = {"bookmark_strategy": "every_n(1)"}
    run = run_tap(make(a=(rows, options), b=(rows, options)))
    assert [state.get("currently_syncing") for state in run.states] == ["a", "a", "b", "b", "b", None]
    assert "currently_syncing" not in run.states[-1]


def test_a_run_goes_on_with_the_stream_that_the_last_one_was_in():
    streams = {name: (lambda: ids(1)) for name in "abc"}
    order = [
        m["stream"]
        for m in run_tap(make(**streams), state={"currently_syncing": "b"}).messages
        if m["type"] == "SCHEMA"
    ]
    assert order == ["b", "c", "a"]
    assert [
        m["stream"]
        for m in run_tap(make(**streams), state={"currently_syncing": "x"}).messages
        if m["type"] == "SCHEMA"
    ] == ["a", "b", "c"]


# ---- errors of one stream ------------------------------------------------------------------------


def _bad_row():
    yield from ids(1, 2)
    yield {"id": "x"}
    yield {"id": 4}


def _exits():
    yield from ids(1)
    raise SystemExit(3)


def _raises_at_once():
    raise LookupError("at once")


@pytest.mark.parametrize(
    ("fn", "kind", "out"),
    [
        (_bad_row, BadRecordError, [1, 2]),
        (_exits, StreamError, [1]),
        (_raises_at_once, LookupError, []),
        (lambda: iter([{"id": 1}, 7]), StreamError, [1]),
        (lambda: iter([{"id": 1}, "row"]), StreamError, [1]),
        (lambda: 7, StreamError, []),
        (lambda: iter([{"id": 1}, ("nosuch", {"id": 2})]), StreamError, [1]),
    ],
)
def test_a_broken_stream_does_not_stop_the_others(fn: Any, kind: type[Exception], out: list[int]):
    run = run_tap(make(a=lambda: ids(1), bad=fn, z=lambda: ids(9)))
    assert list(run.result.errors) == ["bad"]
    assert isinstance(run.result.errors["bad"], kind)
    assert run.records("bad") == ids(*out)
    assert run.records("z") == ids(9)
    assert run.states[-1]["bookmarks"] == {"a": {"id": 1}, "z": {"id": 9}} | (
        {"bad": {"id": out[-1]}} if out and fn is not None and "nosuch" not in str(run.result.errors["bad"]) else {}
    )
    assert "currently_syncing" not in run.states[-1]


def test_an_unknown_stream_name_says_how_to_declare_it():
    run = run_tap(make(a=lambda: iter([("nosuch", {"id": 2})])))
    assert "tap.stream('nosuch', emitted_by='a'" in str(run.result.errors["a"])


def test_the_generator_is_closed_when_a_row_does_not_fit():
    closed = []

    def rows():
        try:
            yield {"id": "x"}
            yield from itertools.repeat({"id": 1}, 5000)
        finally:
            closed.append(True)

    run_tap(make(a=rows))
    assert closed == [True]


def test_the_generator_is_closed_when_it_raises_over_a_row_that_does_not_fit():
    closed = []

    class Pages:
        def __iter__(self):
            return self

        def __next__(self):
            if getattr(self, "n", 0):
                raise ValueError("boom")
            self.n = 1
            return {"id": "x"}

        def close(self):
            closed.append(True)

    run_tap(make(a=lambda: Pages()))
    assert closed == [True]


def test_an_error_while_closing_is_logged(caplog: pytest.LogCaptureFixture):
    def rows():
        try:
            yield {"id": "x"}
            yield {"id": 1}
        finally:
            raise ValueError("in finally")

    def pages():
        yield from ids(1)
        try:
            yield {"id": "x"}
        finally:
            pass

    run = run_tap(make(a=rows, b=pages), {"page_max_rows": 1})
    assert isinstance(run.result.errors["a"], BadRecordError)
    assert "ValueError: in finally" in caplog.text


# ---- a page of several streams -------------------------------------------------------------------


def _beside(bad_main: bool, bad_beside: bool) -> burler.Tap:
    def rows():
        for i in range(50):
            yield {"id": "x" if bad_main and i == 30 else i}
            yield "b", {"id": "x" if bad_beside and i == 20 else i}

    tap = make(a=(rows, {"bookmark_strategy": "every_n(1000)"}))
    tap.stream("b", emitted_by="a", key_properties="id", schema=FIELDS)
    return tap


def test_a_bad_row_does_not_take_the_rows_of_the_other_stream_with_it():
    run = run_tap(_beside(bad_main=True, bad_beside=False))
    assert {row["id"] for row in run.records("b")} >= set(range(30))


@pytest.mark.parametrize("bad", [{"bad_main": True, "bad_beside": False}, {"bad_main": False, "bad_beside": True}])
@pytest.mark.parametrize("page", [1, 7, 1000])
def test_the_bookmark_never_passes_a_row_that_is_not_out(bad: dict[str, bool], page: int):
    run = run_tap(_beside(**bad), {"page_max_rows": page})
    mark = run.states[-1].get("bookmarks", {}).get("a", {}).get("id")
    assert list(run.result.errors) == ["a"]
    for stream in ("a", "b"):
        assert {row["id"] for row in run.records(stream)} >= set(range(mark or 0)), (stream, mark)


# ---- streams emitted by others -------------------------------------------------------------------


def _pair(calls: list[Any]) -> burler.Tap:
    def rows(stream):
        calls.append((stream.selected(), stream.selected("b")))
        yield {"id": 1}
        yield "b", {"id": 2}
        yield "b", ids(3, 4)

    tap = make(a=rows, c=lambda: ids(9))
    tap.stream("b", emitted_by="a", key_properties="id", schema=FIELDS)
    return tap


@pytest.mark.parametrize(
    ("select", "calls", "records"),
    [
        (None, [(True, True)], {"a": [1], "b": [2, 3, 4], "c": [9]}),
        ("a", [(True, False)], {"a": [1], "b": [], "c": []}),
        ("b", [(False, True)], {"a": [], "b": [2, 3, 4], "c": []}),
        ("c", [], {"a": [], "b": [], "c": [9]}),
        ("a,b", [(True, True)], {"a": [1], "b": [2, 3, 4], "c": []}),
        ("!a", [(False, True)], {"a": [], "b": [2, 3, 4], "c": [9]}),
    ],
)
def test_only_what_is_selected_comes_out(select: str | None, calls: list[Any], records: dict[str, list[int]]):
    seen: list[Any] = []
    run = run_tap(_pair(seen), select=select)
    assert seen == calls
    assert {name: [row["id"] for row in run.records(name)] for name in "abc"} == records
    assert {m["stream"] for m in run.messages if m["type"] == "SCHEMA"} == {n for n, rows in records.items() if rows}


def test_nothing_selected(caplog: pytest.LogCaptureFixture):
    run = run_tap(_pair([]), catalog={"streams": []})
    assert run.types == ["STATE"]
    assert "no stream is selected" in caplog.text


def test_select_of_fields_prunes_schema_and_rows():
    run = run_tap(make(a=lambda: [{"id": 1, "at": "x"}]), select="a.id")
    assert run.messages[0]["schema"]["properties"] == {"id": {"type": "integer"}}
    assert run.records("a") == ids(1)
    run = run_tap(make(a=lambda: [{"id": 1, "at": "x"}]), select="!a.at")
    assert run.records("a") == ids(1)


def test_select_of_what_is_not_there():
    with pytest.raises(CatalogError, match="nosuch"):
        run_tap(make(a=lambda: []), select="nosuch")


# ---- catalogs ------------------------------------------------------------------------------------


def _catalog(tap: burler.Tap, **root: Any) -> dict[str, Any]:
    wire = discover(tap, {}).to_wire()
    for stream in wire["streams"]:
        stream["metadata"][0]["metadata"].update(root)
    return wire


def test_a_catalog_selects():
    tap = make(a=lambda: ids(1))
    assert run_tap(tap, catalog=_catalog(tap)).types == ["STATE"]
    assert run_tap(tap, catalog=_catalog(tap, selected=True)).records("a") == ids(1)


def test_a_selected_stream_that_the_tap_does_not_have(caplog: pytest.LogCaptureFixture):
    tap = make(contacts=lambda: ids(1))
    wire = _catalog(tap, selected=True)
    wire["streams"].append({**wire["streams"][0], "tap_stream_id": "contcts", "stream": "contcts"})
    with pytest.raises(CatalogError, match="Did you mean 'contacts'") as error:
        run_tap(tap, catalog=wire)
    assert error.value.exit_code == 2
    wire["streams"][1]["metadata"] = []
    assert run_tap(tap, catalog=wire).records("contacts") == ids(1)
    assert "contcts" in caplog.text


def test_a_method_that_the_stream_forces_wins_with_a_warning(caplog: pytest.LogCaptureFixture):
    tap = make(a=lambda: ids(1))
    wanted = {"selected": True, "replication-method": "FULL_TABLE", "forced-replication-method": "FULL_TABLE"}
    run = run_tap(tap, catalog=_catalog(tap, **wanted))
    assert run.states[-1]["bookmarks"] == {"a": {"id": 1}}
    assert "asks for FULL_TABLE, but the stream is always INCREMENTAL" in caplog.text


def test_a_replication_key_that_the_stream_can_not_have():
    tap = make(a=lambda: ids(1))
    with pytest.raises(CatalogError, match=r"replication key 'at'.*'id'"):
        run_tap(tap, catalog=_catalog(tap, **{"selected": True, "replication-key": "at"}))
    assert run_tap(tap, catalog=_catalog(tap, **{"selected": True, "replication-key": "id"})).records("a") == ids(1)


def test_a_catalog_without_the_key_property():
    tap = make(a=lambda: ids(1))
    wire = _catalog(tap, selected=True)
    del wire["streams"][0]["schema"]["properties"]["id"]
    with pytest.raises(DeclarationError, match="'id' is not in the schema"):
        run_tap(tap, catalog=wire)


def test_catalog_alias_names_the_messages_and_the_id_names_the_state():
    tap = make(a=lambda: ids(1))
    wire = _catalog(tap, selected=True)
    wire["streams"][0]["stream"] = "alias"
    run = run_tap(tap, catalog=wire)
    assert run.records("alias") == ids(1)
    assert run.states[-1] == {"bookmarks": {"a": {"id": 1}}}


# ---- the client ----------------------------------------------------------------------------------


class Client:
    made = 0
    closed = 0

    def __init__(self) -> None:
        Client.made += 1

    def close(self) -> None:
        Client.closed += 1


def test_the_client_is_made_once_and_closed():
    Client.made = Client.closed = 0
    tap = make(a=lambda client: ids(1), b=lambda client: ids(1))
    tap.client(lambda config: Client())
    run_tap(tap)
    assert (Client.made, Client.closed) == (1, 1)
    no_need = make(a=lambda: ids(1))
    no_need.client(lambda config: Client())
    run_tap(no_need)
    assert (Client.made, Client.closed) == (1, 1)


def test_a_client_that_fails():
    tap = make(a=lambda client: ids(1))

    @tap.client
    def client(config):
        raise ConnectionError("no route")

    with pytest.raises(
        BurlerError, match=r"client function \(.*test_engine.py:\d+\) failed: ConnectionError: no route"
    ):
        run_tap(tap)


def test_a_client_that_fails_to_close_spoils_nothing(caplog: pytest.LogCaptureFixture):
    class Bad:
        def close(self) -> None:
            raise OSError("gone")

    tap = make(a=lambda client: ids(1))
    tap.client(lambda: Bad())
    assert run_tap(tap).result.exit_code == 0
    assert "OSError: gone" in caplog.text


def test_log_lines_of_a_run(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "burler")
    run_tap(make(a=lambda: [{"id": 1, "x": 1}, {"id": 2}]), state={"bookmarks": {"a": {"id": 1}}})
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "tap-t: start, streams: a"
    assert lines[1] == "stream 'a': start (INCREMENTAL, bookmark 1)"
    assert any(line.startswith("stream 'a': succeeded, 2 rows of 'a', 0.") and "bookmark 2" in line for line in lines)
    assert lines[-1].startswith("tap-t: succeeded, ")
    assert any("does not know were dropped: x (1 rows)" in line for line in lines)


def test_fields_that_are_not_selected_stay_out_of_open_objects_too(caplog: pytest.LogCaptureFixture):
    """An open schema lets unknown fields through; known fields that are not wanted are no unknown ones."""
    tap = burler.tap("tap-open")

    @tap.sync("a", key_properties="id")
    def rows():
        yield {"id": 1, "secret": "s", "more": 2, "o": {"keep": 1, "drop": 2, "else": 3}}

    inner = {"type": "object", "properties": {"keep": {"type": "integer"}, "drop": {"type": "integer"}}}
    properties = {"id": {"type": "integer"}, "secret": {"type": "string"}, "o": {**inner, "additionalProperties": True}}
    tap.schema("a", {"type": "object", "additionalProperties": True, "properties": properties})
    run = run_tap(tap, select="a,!a.secret,!a.o.drop")
    assert run.records("a") == [{"id": 1, "o": {"keep": 1, "else": 3}, "more": 2}]
    closed = burler.tap("tap-closed")
    closed.sync("b", key_properties="id")(lambda: iter([{"id": 1, "secret": "s"}]))
    closed.schema("b", {"type": "object", "properties": {"id": {"type": "integer"}, "secret": {"type": "string"}}})
    assert run_tap(closed, select="b,!b.secret").records("b") == [{"id": 1}]
    assert "dropped" not in caplog.text
