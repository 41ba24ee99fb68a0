"""A family of three levels in which calls fail as told, for the tests of failures; and what it must have given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from families import INTEGER

import burler
from burler.testing import TapRun, run_tap

COUNT = 6  # parents; each has two children, each of those two grandchildren
BROKEN = "bad"  # stands where an integer belongs

Uid = tuple[str, tuple[int, ...]]
Fails = Callable[[str, Mapping[str, Any]], Any]
"""Told the substream and the parent's row before its first row: it raises, or gives what the first row's field
``bad`` is to hold."""

ROW = {
    "type": "object",
    "properties": {**dict.fromkeys(("id", "key", "parent", "child"), INTEGER), "bad": {"type": ["null", "integer"]}},
}

FORMS = ("asc", "none", "function", "children", "position", "position and key", "every row")
"""How the first stream says where it stands: by a key that rises or not, by a function of the row, by one that wants
to know what came below it, by ``stream.state`` of its own, by both, by a key and a STATE at each row."""


def healthy(_stream: str, _parent: Mapping[str, Any]) -> None:
    """Nothing fails."""


def call_for(stream: str, **fields: int) -> Fails:
    """The call of a substream for one parent raises."""

    def fails(name: str, parent: Mapping[str, Any]) -> None:
        if name == stream and fields.items() <= parent.items():
            raise LookupError(f"no {stream} of {fields}")

    return fails


def bad_row_for(stream: str, **fields: int) -> Fails:
    """The first row of a substream for one parent does not fit its schema."""

    def fails(name: str, parent: Mapping[str, Any]) -> Any:
        return BROKEN if name == stream and fields.items() <= parent.items() else None

    return fails


def family(form: str = "asc", fails: Fails = healthy, *, count: int = COUNT, keyed: bool = False) -> burler.Tap:
    """A tap of ``parents``, ``children``, ``grandchildren``, and ``siblings`` of the children.

    Args:
        keyed: substreams have replication keys of their own (which nobody filters by).
    """
    tap = burler.tap("tap-family")
    own = "position" in form
    options: dict[str, Any] = {"replication_key": "key"} if form not in ("function", "position") else {}
    if form not in ("none", "function", "position"):
        options["order"] = "asc"
    if form == "every row":
        options["bookmark_strategy"] = "every_n(1)"

    @tap.sync("parents", key_properties="id", schema=ROW, **options)
    def parents(stream):
        begin = stream.state.get("next", 0) if own else (stream.bookmark or 0)
        rows = [{"id": i, "key": i} for i in range(begin, count)]
        for row in sorted(rows, key=lambda row: -row["key"]) if form == "none" else rows:
            yield row
            if own:
                stream.state["next"] = row["id"] + 1

    if form == "function":
        tap.bookmark("parents")(lambda record: record["key"])
    elif form == "children":
        tap.bookmark("parents")(lambda record, children: record["key"])
    more: dict[str, Any] = {"replication_key": "key"} if keyed else {}

    def substream(name: str, parent: str, rows: Callable[[Any], Iterator[dict[str, Any]]]) -> None:
        def sync(parent: Any) -> Iterator[dict[str, Any]]:
            bad = fails(name, parent)
            for row in rows(parent):
                yield {**row, "bad": bad} if bad is not None else row
                bad = None

        tap.sync(name, parent=parent, schema=ROW, **more)(sync)

    substream("children", "parents", lambda row: ({"id": k, "parent": row["id"], "key": k} for k in (0, 1)))
    substream("siblings", "parents", lambda row: iter([{"id": 0, "parent": row["id"], "key": 0}]))
    substream(
        "grandchildren",
        "children",
        lambda row: ({"id": k, "parent": row["parent"], "child": row["id"], "key": k} for k in (0, 1)),
    )
    return tap


def everything(count: int = COUNT) -> set[Uid]:
    """All rows of the family."""
    rows: set[Uid] = set()
    for i in range(count):
        rows |= {("parents", (i,)), ("siblings", (i, 0))}
        rows |= {("children", (i, k)) for k in (0, 1)}
        rows |= {("grandchildren", (i, k, g)) for k in (0, 1) for g in (0, 1)}
    return rows


def uid_of(stream: str, row: Mapping[str, Any]) -> Uid:
    """What a row is, wherever it comes from."""
    names = {"parents": ("id",), "grandchildren": ("parent", "child", "id")}.get(stream, ("parent", "id"))
    return stream, tuple(row[name] for name in names)


def rows_of(run: TapRun, upto: int | None = None) -> set[Uid]:
    """The rows that are out before a message."""
    return {uid_of(m["stream"], m["record"]) for m in run.messages[:upto] if m["type"] == "RECORD"}


def assert_going_on_brings_all(run: TapRun, form: str, **options: Any) -> None:
    """From each STATE of a run a healthy one goes on, and brings what was not out before that STATE."""
    positions = [i for i, kind in enumerate(run.types) if kind == "STATE"]
    assert positions
    for position in positions:
        state = run.messages[position]["value"]
        rest = run_tap(family(form, **options), state=state)
        assert not rest.result.errors
        missing = everything(options.get("count", COUNT)) - rows_of(run, position) - rows_of(rest)
        assert not missing, (state, sorted(missing))
