"""At which value bookmarks are held where a substream's call has failed: that of the parent's row, as it went out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from failing import call_for, everything, family, rows_of
from families import CHILD, PARENT, failures_of

import burler
from burler.testing import run_tap
from support.pairs import pairs

BUFFERS = [1, 2, 100]
SELECTED = [{"breadcrumb": [], "metadata": {"selected": True}}]


def _day(number: int) -> dt.datetime:
    return dt.datetime(2024, 5, number + 1, 12, tzinfo=dt.UTC)


MOMENT = {"type": "string", "format": "date-time"}
KINDS: dict[str, tuple[dict[str, Any], Callable[[int], Any], Any]] = {
    "datetime": (MOMENT, _day, "2024-05-03T12:00:00Z"),
    "datetime elsewhere": (
        MOMENT,
        lambda i: _day(i).astimezone(dt.timezone(dt.timedelta(hours=9))),
        "2024-05-03T12:00:00Z",
    ),
    "text": (MOMENT, lambda i: _day(i).isoformat(), "2024-05-03T12:00:00+00:00"),
    "text elsewhere": (MOMENT, lambda i: f"2024-05-{i + 1:02}T14:00:00+02:00", "2024-05-03T14:00:00+02:00"),
    "date": ({"type": "string", "format": "date"}, lambda i: dt.date(2024, 5, i + 1), "2024-05-03"),
    "decimal": ({"type": "number"}, lambda i: Decimal(i) + Decimal("0.5"), 2.5),
    "number as text": ({"type": "integer"}, str, 2),
    "decimal as text": ({"type": "string", "format": "singer.decimal"}, lambda i: str(i + 8), "10"),
}


@pytest.mark.parametrize(
    ("select", "kind", "order", "buffer"),
    pairs(["parents,children", "children"], list(KINDS), ["asc", "none"], BUFFERS),
)
def test_keys_of_every_kind_are_held(select: str, kind: str, order: str, buffer: int):
    schema, key_of, held = KINDS[kind]
    fails = True

    def tap_of() -> burler.Tap:
        tap = burler.tap("tap-family")
        fields = {"properties": {"id": {"type": "integer"}, "key": schema}}

        @tap.sync("parents", key_properties="id", replication_key="key", order=order, schema=fields)
        def parents(stream):
            seen = [{"id": i, "key": key_of(i)} for i in range(5)]
            begin = {None: 0, held: 2}.get(stream.bookmark, 99)
            yield from seen[begin:]

        @tap.sync("children", parent="parents", schema=CHILD)
        def children(parent):
            if fails and parent["id"] == 2:
                raise LookupError("as planned")
            yield {"id": 1, "parent": parent["id"]}

        return tap

    run = run_tap(tap_of(), {"parent_buffer_rows": buffer, "page_max_rows": 1}, select=select)
    assert list(run.result.errors) == ["children"]
    marks = run.states[-1]["bookmarks"]
    entry = marks["parents"] if "parents" in select else marks["children"]["parent_bookmark"]
    assert entry == {"key": held}, "in the form of all other bookmarks"
    fails = False
    rest = run_tap(tap_of(), select=select, state=run.states[-1])
    assert not rest.result.errors
    assert {row["parent"] for row in run.records("children") + rest.records("children")} == set(range(5))


def test_a_parent_that_the_catalog_does_not_hold_stays_where_it_is():
    """Its schema is not known, so nothing is told of its keys."""
    fails = True
    tap = burler.tap("tap-family")
    schema = {"properties": {"id": {"type": "integer"}, "key": {"type": "integer"}}}
    tap.sync("parents", replication_key="key", order="asc", schema=schema)(
        lambda: ({"id": i, "key": i} for i in range(3))
    )

    @tap.sync("children", parent="parents", schema=CHILD)
    def children(parent):
        if fails and parent["id"] == 1:
            raise LookupError("as planned")
        yield {"id": 1, "parent": parent["id"]}

    alone = {"streams": [{"stream": "children", "tap_stream_id": "children", "schema": CHILD, "metadata": SELECTED}]}
    run = run_tap(tap, catalog=alone)
    assert list(run.result.errors) == ["children"]
    assert run.states[-1] == {}
    fails = False
    rest = run_tap(tap, catalog=alone, state=run.states[-1])
    assert [row["parent"] for row in rest.records("children")] == [0, 1, 2]


@pytest.mark.parametrize("buffer", BUFFERS)
@pytest.mark.parametrize(
    "make",
    [
        lambda record: {**record, "key": record["key"] - 1000},
        lambda record: {**record, "key": record["id"]},
        lambda record: None if record["id"] == 2 else {**record, "key": record["id"]},
        lambda record: {**record, "key": None if record["id"] == 2 else record["id"]},
        lambda record: 1 / 0 if record["id"] == 4 else {**record, "key": record["id"]},
    ],
    ids=["less", "another field", "left out", "no key", "fails later"],
)
def test_what_is_held_is_the_sources_value_not_that_of_a_hook(make: Callable[[Any], Any], buffer: int):
    fails = True
    fields = {"properties": {"id": {"type": "integer"}, "key": {"type": ["null", "integer"]}}}

    def tap_of() -> burler.Tap:
        tap = burler.tap("tap-family")

        @tap.sync("parents", key_properties="id", replication_key="key", order="asc", schema=fields)
        def parents(stream):
            yield from ({"id": i, "key": 1000 + i} for i in range((stream.bookmark or 1000) - 1000, 5))

        tap.post_transform("parents")(lambda record: make(record) if fails else record)

        @tap.sync("children", parent="parents", schema=CHILD)
        def children(parent):
            if fails and parent["id"] == 2:
                raise LookupError("as planned")
            yield {"id": 1, "parent": parent["id"]}

        return tap

    run = run_tap(tap_of(), {"parent_buffer_rows": buffer})
    assert "children" in run.result.errors or "parents" in run.result.errors
    if "parents" not in run.result.errors:
        assert run.states[-1]["bookmarks"]["parents"] == {"key": 1002}
    fails = False
    rest = run_tap(tap_of(), state=run.states[-1])
    assert not rest.result.errors
    assert {row["parent"] for one in (run, rest) for row in one.records("children")} == set(range(5))


def test_a_parent_without_a_value_holds_the_bookmark_where_it_was():
    tap = burler.tap("tap-family")
    schema = {"properties": {"id": {"type": "integer"}, "key": {"type": ["null", "integer"]}}}
    rows = [{"id": i, "key": None if i == 2 else i} for i in range(4)]
    tap.sync("parents", key_properties="id", replication_key="key", order="asc", schema=schema)(lambda: rows)
    tap.sync("children", parent="parents", schema=CHILD)(lambda parent: 1 / 0 if parent["id"] == 2 else [])
    assert "parents" not in run_tap(tap, {"parent_buffer_rows": 1}).states[-1].get("bookmarks", {})
    begun = {"bookmarks": {"parents": {"key": -5}, "children": {"parent_bookmark": {"key": -5}}}}
    assert run_tap(tap, state=begun).states[-1]["bookmarks"]["parents"] == {"key": -5}


# ---- streams that nobody selected ---------------------------------------------------------------------

SELECTIONS = [
    "grandchildren",
    "parents,grandchildren",
    "children,grandchildren",
    "children,siblings",
    "siblings,grandchildren",
    "parents,children,siblings,grandchildren",
]


BROKEN = [
    ("children", {"id": 2}),
    ("grandchildren", {"parent": 3, "id": 1}),
    ("siblings", {"id": 5}),
    ("children", {"id": 0}),
]
FORMS = ["asc", "none", "function", "position", "position and key"]


@pytest.mark.parametrize(("broken", "select", "buffer", "form"), pairs(BROKEN, SELECTIONS, BUFFERS, FORMS), ids=str)
def test_what_runs_unseen_is_held_as_well(broken: tuple[str, dict[str, int]], select: str, buffer: int, form: str):
    """A function whose own rows nobody wants runs for what hangs on it; a failure of it takes that with it."""
    config = {"parent_buffer_rows": buffer}
    stream, fields = broken
    run = run_tap(family(form, call_for(stream, **fields)), config, select=select)
    names = select.split(",")
    called = stream in names or (stream == "children" and "grandchildren" in names)
    assert bool(run.result.errors) == called
    if called:
        assert list(run.result.errors) == [stream]
        assert len(failures_of(run, stream)) == 1
    wanted = {one for one in everything() if one[0] in names}
    for position in [i for i, kind in enumerate(run.types) if kind == "STATE"]:
        rest = run_tap(family(form), config, select=select, state=run.messages[position]["value"])
        assert not rest.result.errors
        assert rows_of(run, position) | rows_of(rest) == wanted


def test_the_bookmark_of_an_exclusive_source_stays_where_it_was_once_too_many_calls_have_failed():
    tap = burler.tap("tap-held")
    options = {"replication_key": "key", "order": "asc", "resume": "exclusive", "bookmark_strategy": "every_n(1)"}
    parents = tap.stream("parents", key_properties="id", schema=PARENT, **options)
    parents.sync(lambda: [{"id": i, "key": i} for i in range(1, 10)])

    @parents.substream("children", schema=CHILD).sync
    def children(parent: dict[str, int]) -> list[dict[str, int]]:
        if parent["id"] in (5, 7):
            raise OSError("gone")
        return [{"id": 1, "parent": parent["id"]}]

    run = run_tap(tap, {"max_failures": 1, "parent_buffer_rows": 1, "page_max_rows": 1})
    marks = [state.get("bookmarks", {}).get("parents", {}).get("key") for state in run.states]
    assert marks == [None, 1, 2, 3, 4, 4, 4]
