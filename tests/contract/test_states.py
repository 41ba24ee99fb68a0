"""A run that begins with a STATE of c550d9f brings what it brought there, and ends with the same STATE."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from contract import commands, taps
from contract.files import CONTRACT, compact, read_lines

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
OWN = ("stream_state", "source_state")
"""What authors and sources put into a state: these are no bookmarks, and keep each character."""


def moments(node: Any) -> Any:
    """A state in which date-time bookmarks are moments: their spelling is the source's own since c550d9f, and was
    burler's there."""
    if isinstance(node, dict):
        return {key: value if key in OWN else moments(value) for key, value in node.items()}
    if isinstance(node, str) and TIME.fullmatch(node):
        return dt.datetime.fromisoformat(node)
    return node


def compared(messages: list[dict[str, Any]], state: dict[str, Any]) -> dict[str, Any]:
    """What must be the same: the rows and versions of each stream in their order, and the STATEs.

    Versions are moments of the clock: those that the state knew stay as they are, new ones are counted.
    """
    known = set(re.findall(r'"version":(\d{13})', compact(state)))
    numbers: dict[str, str] = {}

    def version(value: Any) -> Any:
        return value if str(value) in known else numbers.setdefault(str(value), f"new {len(numbers) + 1}")

    def counted(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: version(value) if key == "version" else counted(value) for key, value in node.items()}
        return node

    streams: dict[str, list[Any]] = {}
    states, schemas = [], {}
    for message in messages:
        if message["type"] == "STATE":
            states.append(counted(moments(message["value"])))
        elif message["type"] == "SCHEMA":
            schemas[message["stream"]] = message
        else:
            more = {"version": version(message["version"])} if "version" in message else {}
            streams.setdefault(message["stream"], []).append({**message, **more})
    return {"streams": streams, "states": states, "schemas": schemas}


def told(states: list[Any]) -> list[Any]:
    """What STATEs say one after the other of bookmarks, and the last one as a whole: which stream of a family a run is
    in on the way is no promise."""
    found: list[Any] = [{}]
    for state in states:
        if state.get("bookmarks", found[-1]) != found[-1]:
            found.append(state["bookmarks"])
    return [*found, *states[-1:]]


def is_among(now: list[Any], then: list[Any]) -> bool:
    """Whether STATEs say what others say, in their order and to the same end; there may be fewer of them."""
    rest = iter(told(then))
    return all(state in rest for state in told(now)) and now[-1:] == then[-1:]


def rows_before(messages: list[dict[str, Any]]) -> dict[str, int]:
    """How many rows are out before the first STATE with some bookmarks."""
    found: dict[str, int] = {}
    rows = 0
    for message in messages:
        rows += message["type"] == "RECORD"
        if message["type"] == "STATE" and message["value"].get("bookmarks"):
            found.setdefault(str(moments(message["value"]["bookmarks"])), rows)
    return found


def test_each_kind_has_its_file():
    assert sorted(path.stem for path in (CONTRACT / "states").iterdir()) == sorted(taps.KINDS)
    assert len(taps.KINDS) >= 60


@pytest.mark.parametrize("name", taps.KINDS)
def test_a_run_goes_on_from_a_state_of_before(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, *runs = read_lines(CONTRACT / "states" / f"{name}.jsonl")
    states = taps.run(name, 1).states
    assert is_among(moments_of(states), moments_of(first["states"])), "the first run: its STATEs"
    for before in runs:
        messages = taps.told(taps.run(name, 2, before["from"]).messages)
        now, then = compared(messages, before["from"]), compared(before["messages"], before["from"])
        assert now["streams"] == then["streams"], before["from"]
        assert is_among(now["states"], then["states"]), before["from"]
        assert not then["schemas"] or now["schemas"] == then["schemas"]
        rows_now, rows_then = rows_before(messages), rows_before(before["messages"])
        early = [said for said, rows in rows_now.items() if rows < rows_then.get(said, 0)]
        assert early == [], f"a STATE comes before its rows: from {before['from']}"


@pytest.mark.parametrize("scope", ["full", "touched"])
def test_a_command_goes_on_from_the_lines_of_before(scope, tmp_path):
    lines = CONTRACT / "states-of-commands" / f"{scope}.jsonl"
    assert commands.count(tmp_path, 13, scope, lines) == read_lines(lines.with_stem(f"{scope}-second"))
    first = commands.count(tmp_path, 9, scope)
    assert [message for message in first if message["type"] == "STATE"] == read_lines(lines)


def moments_of(states: list[dict[str, Any]]) -> list[Any]:
    return [moments(state) for state in states]
