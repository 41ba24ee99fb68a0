"""A few rows of each stream (--limit, --test), or the SCHEMA lines alone: a look at a tap that spoils nothing."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from taps import FIELDS, ids, make

import burler
from burler.errors import StreamError, UsageError
from burler.testing import TapRun, run_tap
from support.cli import burler as burler_command


def look(tap: burler.Tap, config: dict[str, Any] | None = None, **options: Any) -> tuple[list[dict[str, Any]], Any]:
    run: TapRun = run_tap(tap, config, **options)
    return run.messages, run.result


def rows(messages: list[dict[str, Any]], stream: str) -> list[int]:
    return [m["record"]["id"] for m in messages if m["type"] == "RECORD" and m["stream"] == stream]


def types(messages: list[dict[str, Any]]) -> list[str]:
    return [m["type"] for m in messages]


class Counted:
    """A source that counts what is asked of it, and notes when it is closed."""

    def __init__(self, total: int = 10_000, *, page: int | None = None) -> None:
        self.total, self.page = total, page
        self.given = 0
        self.closed = False

    def __call__(self) -> Iterator[Any]:
        try:
            for i in range(0, self.total, self.page or 1):
                self.given += 1
                yield ids(*range(i, i + self.page)) if self.page else {"id": i}
        finally:
            self.closed = True


@pytest.mark.parametrize("order", ["asc", "none"])
@pytest.mark.parametrize("strategy", ["end_of_sync", "every_n(2)"])
def test_n_rows_of_each_stream_and_no_state(order, strategy):
    one, two = Counted(), Counted(3)
    options = {"order": order, "bookmark_strategy": strategy}
    state = {"bookmarks": {"a": {"id": 0}}, "currently_syncing": "b"}
    messages, result = look(make(a=(one, options), b=(two, options)), limit=5, state=state)
    assert (rows(messages, "a"), rows(messages, "b")) == ([0, 1, 2, 3, 4], [0, 1, 2])
    assert set(types(messages)) == {"SCHEMA", "RECORD"}
    assert result.state == state
    assert result.rows == {"a": 5, "b": 3}
    assert result.exit_code == 0
    assert one.closed and two.closed
    assert one.given == 5


def test_a_page_is_cut():
    source = Counted(page=1000)
    messages, _ = look(make(a=source), limit=5)
    assert rows(messages, "a") == [0, 1, 2, 3, 4]
    assert source.closed and source.given == 1


def test_a_page_of_the_sources_own_making_is_cut():
    """Iterators inside iterators, and a list that a function returns."""
    messages, _ = look(make(a=lambda: (({"id": i} for i in range(n, n + 3)) for n in range(0, 99, 3))), limit=4)
    assert rows(messages, "a") == [0, 1, 2, 3]
    messages, _ = look(make(a=lambda: ids(*range(50))), limit=4)
    assert rows(messages, "a") == [0, 1, 2, 3]


@pytest.mark.parametrize("total", [3, 10])
def test_a_full_table_is_never_activated(total):
    """Neither before, nor after, nor when the function came to its end: rows may have been left out."""
    options = {"replication_key": None, "order": "none"}
    messages, result = look(make(a=(Counted(total), options)), limit=5)
    assert types(messages) == ["SCHEMA"] + ["RECORD"] * min(total, 5)
    assert result.state == {}
    versions = {m["version"] for m in messages if m["type"] == "RECORD"}
    assert len(versions) == 1  # of a version that no target has seen activated


def test_nor_is_a_block_for_a_table_whose_rows_bear_a_version_all_the_same():
    tap = burler.tap("tap-t")

    @tap.sync("a", key_properties="id", replication_key="id", schema=FIELDS)
    def sync(stream):
        with stream.full_table():
            yield from ({"id": i} for i in range(2))
        yield {"id": 2}

    messages, _ = look(tap, limit=10)
    assert types(messages) == ["SCHEMA", "RECORD", "RECORD", "RECORD"]
    assert ["version" in m for m in messages[1:]] == [True, True, False]


def emitting(calls: list[str]) -> burler.Tap:
    def commits():
        try:
            for i in range(1000):
                calls.append(f"a{i}")
                yield {"id": i}
                yield "b", ids(i * 10, i * 10 + 1)
        finally:
            calls.append("closed")

    tap = make(a=commits)
    tap.stream("b", emitted_by="a", key_properties="id", schema=FIELDS)
    return tap


def test_what_belongs_to_the_last_row_comes_with_it():
    calls: list[str] = []
    messages, _ = look(emitting(calls), limit=1)
    assert (rows(messages, "a"), rows(messages, "b")) == ([0], [0])
    calls.clear()
    messages, _ = look(emitting(calls), limit=3)
    assert (rows(messages, "a"), rows(messages, "b")) == ([0, 1, 2], [0, 1, 10])
    assert calls[-1] == "closed" and len(calls) < 8


def test_a_stream_beside_that_gets_too_few_rows_holds_nothing_up():
    source: list[int] = []

    def rare():
        for i in range(100_000):
            source.append(i)
            yield {"id": i}

    tap = make(a=rare)
    tap.stream("b", emitted_by="a", key_properties="id", schema=FIELDS)
    messages, _ = look(tap, limit=5)
    assert rows(messages, "a") == [0, 1, 2, 3, 4]
    assert len(source) < 50


def test_rows_beside_without_end_end_too():
    def flood():
        yield {"id": 1}
        i = 0
        while True:
            i += 1
            yield "b", {"id": i}

    tap = make(a=flood)
    tap.stream("b", emitted_by="a", key_properties="id", schema=FIELDS)
    messages, result = look(tap, limit=2)
    assert (rows(messages, "a"), rows(messages, "b")) == ([1], [1, 2])
    assert result.exit_code == 0


def test_only_the_stream_beside_is_wanted():
    calls: list[str] = []
    messages, _ = look(emitting(calls), limit=5, select="b")
    assert rows(messages, "b") == [0, 1, 10, 11, 20]
    assert rows(messages, "a") == []
    assert calls[-1] == "closed" and len(calls) < 20


def test_a_broken_row_behind_the_limit_does_not_show_and_one_before_it_does():
    def broken():
        yield {"id": 1}
        yield {"id": "no number"}

    messages, result = look(make(a=broken, b=lambda: ids(7)), limit=1)
    assert (rows(messages, "a"), result.exit_code) == ([1], 0)
    messages, result = look(make(a=broken, b=lambda: ids(7)), limit=2)
    assert rows(messages, "b") == [7]
    assert result.exit_code == 1 and isinstance(result.errors["a"], StreamError)
    assert "STATE" not in types(messages)


def test_a_function_that_raises_when_it_is_closed(caplog):
    def stubborn():
        try:
            yield from ids(*range(10))
        finally:
            raise OSError("socket gone")

    messages, result = look(make(a=stubborn), limit=2)
    assert rows(messages, "a") == [0, 1]
    assert result.exit_code == 0
    assert "its function raised when it was closed: OSError: socket gone" in caplog.text


def test_the_bookmark_is_read_and_the_stream_state_is_not_kept():
    seen: list[Any] = []

    def positioned(stream):
        seen.append((stream.bookmark, dict(stream.state)))
        stream.state["page"] = 99
        yield from ids(8, 9, 10)

    state = {"bookmarks": {"a": {"id": 7, "stream_state": {"page": 1}}}}
    _messages, result = look(make(a=positioned), limit=1, state=state)
    assert seen == [(7, {"page": 1})]
    assert result.state == state == {"bookmarks": {"a": {"id": 7, "stream_state": {"page": 1}}}}


def test_the_log_says_so(caplog):
    caplog.set_level(logging.INFO, "burler")
    look(make(a=Counted()), limit=5)
    text = caplog.text
    assert "tap-t: at most 5 rows of each stream, and no STATE" in text
    assert "stream 'a': succeeded, 5 rows of 'a'" in text


@pytest.mark.parametrize("limit", [0, -1, True, 2.0, "5"])
def test_limits_that_are_none(limit):
    with pytest.raises(UsageError, match="limit must be a whole number above 0"):
        look(make(a=Counted()), limit=limit)


LAKE_TAP = """
import burler
tap = burler.tap("tap-t")

@tap.sync("a", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
def a():
    yield from ({"id": i} for i in range(100))
"""


def into_lake(folder, *args):
    """A run into a lake; the lines of its files."""
    (folder / "tap_t.py").write_text(LAKE_TAP)
    assert burler_command("run", "tap_t.py", "--sink", f"lake:{folder / 'lake'}", *args, cwd=folder).code == 0
    files = list((folder / "lake").rglob("a-*.singer.gz"))
    return [json.loads(line) for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]


def test_a_lake_takes_the_rows(tmp_path):
    lines = into_lake(tmp_path, "--limit", "5")
    assert [line["record"]["id"] for line in lines if line["type"] == "RECORD"] == [0, 1, 2, 3, 4]


# ---- SCHEMA lines alone --------------------------------------------------------------------------


def test_schemas_only_calls_no_function():
    def never():
        raise AssertionError("was called")

    tap = make(a=never, b=never)
    tap.client(lambda: never())
    messages, result = look(tap, schemas_only=True, select="a,b,!b.at", state={"bookmarks": {"a": {"id": 3}}})
    assert [(m["type"], m["stream"], list(m["schema"]["properties"])) for m in messages] == [
        ("SCHEMA", "a", ["id", "at"]),
        ("SCHEMA", "b", ["id"]),
    ]
    assert messages[0]["key_properties"] == ["id"] and messages[0]["bookmark_properties"] == ["id"]
    assert (result.exit_code, result.state) == (0, {"bookmarks": {"a": {"id": 3}}})


def test_schemas_of_streams_beside():
    messages, _ = look(emitting([]), schemas_only=True)
    assert [m["stream"] for m in messages] == ["a", "b"]
    assert types(messages) == ["SCHEMA", "SCHEMA"]


def test_substreams_have_their_rows_too():
    tap = burler.tap("tap-p")
    tap.sync("parents", key_properties="id")(lambda: ids(*range(100)))
    tap.schema("parents", FIELDS)
    tap.sync("children", parent="parents", key_properties="id")(
        lambda parent: ids(parent["id"] * 10, parent["id"] * 10 + 1)
    )
    tap.schema("children", FIELDS)
    messages, result = look(tap, limit=3)
    assert (rows(messages, "parents"), rows(messages, "children")) == ([0, 1, 2], [0, 1, 10])
    assert result.exit_code == 0 and set(types(messages)) == {"SCHEMA", "RECORD"}
    messages, _ = look(tap, limit=3, select="children")
    assert rows(messages, "children") == [0, 1, 10]


def test_a_lake_takes_schemas(tmp_path):
    assert into_lake(tmp_path, "--test=schema") == []
