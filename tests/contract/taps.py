"""Taps of many kinds, each on a source that is the same each time: what their STATEs look like is held by the contract.

A kind is a function that declares a tap: ``build(run)``, where ``run`` is 1 or 2, since the source of the second run is
a later one. It runs on the commit that made the contract files and on the present tree, so it uses public names alone.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import responses

import burler
import burler.files
from burler import patterns
from burler.singer import merge_states
from burler.testing import FakeClock, TapRun, run_tap


@dataclass(frozen=True)
class Kind:
    """A tap, and how it is run."""

    build: Callable[[int], burler.Tap]
    config: dict[str, Any] = field(default_factory=dict)
    later: dict[str, Any] | None = None
    """The config of the second run, where it is another one."""
    select: tuple[str | None, str | None] = (None, None)
    around: Callable[[int], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    """What stands around a run: a server's answers."""
    foreign: dict[str, Any] | None = None
    """What stands in the state that the first run begins with."""


KINDS: dict[str, Kind] = {}


def kind(**options: Any) -> Callable[[Callable[[int], burler.Tap]], Callable[[int], burler.Tap]]:
    """A decorator: the function is a kind."""

    def add(build: Callable[[int], burler.Tap]) -> Callable[[int], burler.Tap]:
        KINDS[build.__name__] = Kind(build, **options)
        return build

    return add


def run(name: str, number: int, state: dict[str, Any] | None = None) -> TapRun:
    """Run a kind in the current folder, which its source may use: the first run, or the second one from a state."""
    chosen = KINDS[name]
    config = chosen.config if number == 1 or chosen.later is None else chosen.later
    config = {"page_max_age_seconds": 3600, "parent_buffer_seconds": 3600, **config}  # slow machines do the same
    clock = FakeClock(dt.datetime(2026, 1, number, tzinfo=dt.UTC))
    with chosen.around(number):
        tap = chosen.build(number)
        state = chosen.foreign if number == 1 else state
        return run_tap(tap, config, state=state, select=chosen.select[number - 1], clock=clock)


def starts(name: str, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The states that a second run may begin with, of the STATEs of the first one: at most five, the last one always.

    With ``state_scope: touched`` a state is all lines up to one, put together.
    """
    states: list[dict[str, Any]] = []
    for i, line in enumerate(lines):
        state = merge_states(lines[: i + 1]) if KINDS[name].config.get("state_scope") == "touched" else line
        if state not in states:
            states.append(state)
    return states if len(states) <= 5 else [*states[:2], states[len(states) // 2], *states[-2:]]


def told(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages without their times, and with a word in place of a long text."""

    def short(node: Any) -> Any:
        if isinstance(node, list):
            return [short(item) for item in node]
        if isinstance(node, dict):
            return {key: short(value) for key, value in node.items()}
        return f"{len(node)} characters" if isinstance(node, str) and len(node) > 1000 else node

    return [{key: short(value) for key, value in message.items() if key != "time_extracted"} for message in messages]


# ---- what the sources have in common ---------------------------------------------------------------

ID = {"type": "integer"}
TEXT = {"type": "string"}
TIME = {"type": "string", "format": "date-time"}
DATE = {"type": "string", "format": "date"}


def has(**fields: Any) -> dict[str, Any]:
    """The schema of an object."""
    return {"type": "object", "properties": fields}


def comparable(value: Any) -> Any:
    """A value as the source compares it: times by their moment, texts of decimals as numbers."""
    if isinstance(value, str) and value[4:5] == "-" and "T" in value:
        return dt.datetime.fromisoformat(value)
    return value


def since(rows: list[dict[str, Any]], key: str, bookmark: Any, number: Callable[[Any], Any] = comparable) -> list[Any]:
    """The rows at or after a bookmark, as a server gives them that is asked from there on."""
    return [dict(row) for row in rows if bookmark is None or number(row[key]) >= number(bookmark)]


def broken(rows: Any, behind: int, when: bool) -> Iterator[Any]:
    """The rows; after so many of them the connection breaks."""
    for i, row in enumerate(rows):
        if when and i == behind:
            raise ConnectionError("gone away")
        yield row


def plain(rows: Callable[[int], list[dict[str, Any]]], key: str, schema: dict[str, Any], **options: Any) -> burler.Tap:
    """A tap of one stream, its rows sorted as they are given."""
    tap = burler.tap("tap-contract")
    number = options.pop("number", comparable)

    @tap.sync("rows", key_properties="id", replication_key=key, schema=schema, **options)
    def sync(stream):
        return since(rows, key, stream.bookmark, number)

    return tap


def counted(values: list[Any], key: str) -> list[dict[str, Any]]:
    return [{"id": i + 1, key: value} for i, value in enumerate(values)]


NUMBERS = [1, 2, 3, 5, 8, 8, 13, 21]


# ---- bookmarks ------------------------------------------------------------------------------------


@kind()
def int_at_the_end(run):
    return plain(counted(NUMBERS[: 3 * run], "at"), "at", has(id=ID, at=ID))


@kind()
def int_sorted(run):
    return plain(counted(NUMBERS[: 4 * run], "at"), "at", has(id=ID, at=ID), bookmark_strategy="every_n(2)")


@kind()
def int_on_page(run):
    tap = burler.tap("tap-contract")

    @tap.sync("rows", key_properties="id", replication_key="id", bookmark_strategy="on_page", schema=has(id=ID))
    def sync(stream):
        for first in range(1, 5 * run, 3):
            yield since([{"id": first + i} for i in range(3)], "id", stream.bookmark)

    return tap


@kind()
def int_unsorted(run):
    return plain(counted([5, 1, 9, 3, 11, 4][: 3 * run], "at"), "at", has(id=ID, at=ID))


@kind()
def int_exclusive(run):
    tap = burler.tap("tap-contract")

    @tap.sync(
        "rows", key_properties="id", replication_key="at", resume="exclusive", order="asc", schema=has(id=ID, at=ID)
    )
    def sync(stream):
        return [row for row in counted(NUMBERS[: 4 * run], "at") if row["at"] > (stream.bookmark or 0)]

    return tap


@kind()
def int_lookback(run):
    return plain(counted(NUMBERS[: 4 * run], "at"), "at", has(id=ID, at=ID), lookback=3, order="asc")


@kind()
def int_beyond_a_float(run):
    return plain(counted([2**53 + 1, 2**53 + 2, 2**62][: run + 1], "at"), "at", has(id=ID, at=ID), order="asc")


@kind()
def texts(run):
    return plain(counted(["a", "aß", "b", "z", "ä", "€"][: 3 * run], "at"), "at", has(id=ID, at=TEXT), order="asc")


@kind()
def dates(run):
    days = [f"2024-02-{day}" for day in (27, 28, 29)] + ["2024-03-01", "2024-03-01"]
    return plain(counted(days[: 3 * run], "at"), "at", has(id=ID, at=DATE), bookmark_strategy="every_n(1)")


@kind()
def date_objects(run):
    tap = burler.tap("tap-contract")

    @tap.sync("rows", key_properties="id", replication_key="at", order="asc", schema=has(id=ID, at=DATE))
    def sync(stream):
        first = dt.date.fromisoformat(stream.bookmark) if stream.bookmark else dt.date.min
        days = [dt.date(2024, 2, 28) + dt.timedelta(days=n) for n in range(3 * run)]
        return [row for row in counted(days, "at") if row["at"] >= first]

    return tap


@kind()
def times(run):
    moments = [f"2024-05-01T10:00:0{n}Z" for n in range(8)]
    return plain(counted(moments[: 4 * run], "at"), "at", has(id=ID, at=TIME), bookmark_strategy="every_n(2)")


@kind()
def times_with_milliseconds(run):
    moments = [f"2024-05-01T10:00:0{n}.{m}Z" for n in range(4) for m in ("000", "120")]
    return plain(counted(moments[: 4 * run], "at"), "at", has(id=ID, at=TIME), bookmark_strategy="every_n(2)")


@kind()
def times_with_offsets(run):
    clocks = ("09:00:00+02:00", "08:00:00Z", "13:30:00+05:30", "09:00:00+00:00", "04:30:00-05:00", "10:00:00.5-00:00")
    moments = [f"2024-05-01T{clock}" for clock in clocks]
    return plain(counted(moments[: 3 * run], "at"), "at", has(id=ID, at=TIME), order="asc")


@kind()
def times_unsorted(run):
    moments = [
        "2024-05-03T00:00:00.5Z",
        "2024-05-01T00:00:00Z",
        "2024-05-03T02:00:00.500000+02:00",
        "2024-05-04T00:00:00Z",
    ]
    return plain(counted(moments[: 2 * run], "at"), "at", has(id=ID, at=TIME))


@kind()
def time_objects(run):
    tap = burler.tap("tap-contract")
    zone = dt.timezone(dt.timedelta(hours=2))

    @tap.sync("rows", key_properties="id", replication_key="at", order="asc", schema=has(id=ID, at=TIME))
    def sync(stream):
        first = dt.datetime.fromisoformat(stream.bookmark or "0001-01-01T00:00:00Z")
        moments = [dt.datetime(2024, 5, 1, 10, 0, 0, 1000 * n, tzinfo=zone) for n in range(3 * run)]
        return [row for row in counted(moments, "at") if row["at"] >= first]

    return tap


@kind()
def times_lookback(run):
    moments = [f"2024-05-01T10:0{n}:00Z" for n in range(8)]
    lookback = dt.timedelta(minutes=2)
    return plain(counted(moments[: 4 * run], "at"), "at", has(id=ID, at=TIME), lookback=lookback, order="asc")


@kind()
def times_signpost(run):
    """The clock of the runs stands at the first and the second of January 2026."""
    moments = ["2025-12-31T00:00:00Z", "2026-01-01T12:00:00Z", "2026-01-05T00:00:00Z"]
    return plain(counted(moments[: 1 + run], "at"), "at", has(id=ID, at=TIME), signpost=True)


@kind(config={"start_date": "2024-05-01T10:00:02Z"})
def times_from_start_date(run):
    moments = [f"2024-05-01T10:00:0{n}Z" for n in range(6)]
    return plain(counted(moments[: 3 * run], "at"), "at", has(id=ID, at=TIME), order="asc")


@kind(config={"start_date": "2024-05-01T10:00:02Z"})
def times_none_yet(run):
    rows = [] if run == 1 else counted(["2024-05-01T10:00:03Z"], "at")
    return plain(rows, "at", has(id=ID, at=TIME), order="asc")


@kind()
def decimal_texts(run):
    schema = has(id=ID, at={"type": "string", "format": "singer.decimal"})
    values = ["0.10", "9.5", "10.25", "10.250", "123456789012345678901234567890.5"]
    return plain(counted(values[: 3 * run], "at"), "at", schema, order="asc", number=Decimal)


@kind()
def decimals(run):
    schema = has(id=ID, at={"type": "number", "multipleOf": 0.01})
    values = [Decimal("0.10"), Decimal("1.01"), Decimal("1234567890123456.78"), Decimal("99999999999999999.99")]
    return plain(counted(values[: 2 * run], "at"), "at", schema, order="asc", number=Decimal)


@kind()
def floats(run):
    return plain(counted([0.1, 0.25, 1e15, 1.5e300][: 2 * run], "at"), "at", has(id=ID, at={"type": "number"}))


@kind()
def nulls_among_keys(run):
    tap = burler.tap("tap-contract")

    @tap.sync("rows", key_properties="id", replication_key="at", schema=has(id=ID, at={"type": ["null", "integer"]}))
    def sync(stream):
        rows = counted([3, None, 1, 7, None, 5][: 3 * run], "at")
        return [row for row in rows if row["at"] is None or row["at"] >= (stream.bookmark or 0)]

    return tap


@kind()
def bookmark_function(run):
    tap = burler.tap("tap-contract")
    schema = has(id=ID, meta=has(seq=ID))

    @tap.sync("rows", key_properties="id", order="asc", schema=schema)
    def sync(stream):
        return [{"id": n, "meta": {"seq": 10 * n}} for n in range(1, 4 * run) if 10 * n >= (stream.bookmark or 0)]

    @tap.bookmark("rows")
    def by_sequence(record):
        return record["meta"]["seq"]

    return tap


@kind()
def saved_by_hand(run):
    tap = burler.tap("tap-contract")

    @tap.sync("rows", key_properties="id", replication_key="id", bookmark_strategy="manual", schema=has(id=ID))
    def sync(stream):
        for low in range(stream.bookmark or 0, 6 * run, 3):
            yield [{"id": number} for number in (low + 2, low, low + 1)]
            stream.save_bookmark(low + 3)

    return tap


@kind()
def post_transformed(run):
    tap = plain(counted(NUMBERS[: 4 * run], "at"), "at", has(id=ID, at=ID), order="asc")

    @tap.post_transform("rows")
    def doubled(record):
        return {**record, "id": 2 * record["id"]}

    return tap


@kind()
def pages_of_json(run):
    tap = burler.tap("tap-contract")

    @tap.sync(
        "rows", key_properties="id", replication_key="at", bookmark_strategy="on_page", schema=has(id=ID, at=TIME)
    )
    def sync(stream):
        for day in range(1, 1 + 2 * run):
            rows = [{"id": day * 10 + hour, "at": f"2024-05-{day:02}T0{hour}:00:00.000Z"} for hour in range(3)]
            if rows := since(rows, "at", stream.bookmark):
                yield json.dumps(rows).encode()

    return tap


@kind()
def arrow_tables(run):
    tap = burler.tap("tap-contract")

    @tap.sync(
        "rows", key_properties="id", replication_key="at", bookmark_strategy="on_page", schema=has(id=ID, at=TIME)
    )
    def sync(stream):
        first = dt.datetime.fromisoformat(stream.bookmark or "0001-01-01T00:00:00Z")
        for day in range(1, 1 + 2 * run):
            moments = [dt.datetime(2024, 5, day, hour, 0, 0, 250, tzinfo=dt.UTC) for hour in range(3)]
            moments = [moment for moment in moments if moment >= first]
            ids = pa.array([day * 10 + n for n in range(len(moments))], pa.int64())
            yield pa.table({"id": ids, "at": pa.array(moments, pa.timestamp("us", "UTC"))})

    return tap


@kind()
def a_class(run):
    tap = burler.tap("tap-contract")

    @tap.stream
    class Rows(burler.Stream):
        key_properties = "id"
        replication_key = "at"
        order = "asc"
        schema = has(id=ID, at=TIME)

        def sync(self, stream):
            return since(counted([f"2024-05-0{n}T00:00:00Z" for n in range(1, 4 * run)], "at"), "at", stream.bookmark)

    return tap


# ---- what goes wrong, and several streams ---------------------------------------------------------


@kind()
def interrupted(run):
    tap = burler.tap("tap-contract")

    @tap.sync("rows", key_properties="id", replication_key="id", bookmark_strategy="every_n(2)", schema=has(id=ID))
    def sync(stream):
        return broken(since([{"id": n} for n in range(1, 8)], "id", stream.bookmark), 5, run == 1)

    return tap


@kind()
def interrupted_unsorted(run):
    tap = burler.tap("tap-contract")

    @tap.sync("rows", key_properties="id", replication_key="id", schema=has(id=ID))
    def sync(stream):
        return broken(since([{"id": n} for n in (5, 3, 7, 1)], "id", stream.bookmark), 3, run == 1)

    return tap


@kind()
def order_that_breaks(run):
    tap = burler.tap("tap-contract")
    order = (1, 2, 5, 4) if run == 1 else (1, 2, 4, 5, 6)

    @tap.sync("rows", key_properties="id", replication_key="id", bookmark_strategy="every_n(1)", schema=has(id=ID))
    def sync(stream):
        return since([{"id": n} for n in order], "id", stream.bookmark)

    return tap


@kind()
def order_that_may_break(run):
    tap = burler.tap("tap-contract")
    options = {"bookmark_strategy": "every_n(1)", "on_unsorted": "end_of_sync"}

    @tap.sync("rows", key_properties="id", replication_key="id", schema=has(id=ID), **options)
    def sync(stream):
        return since([{"id": n} for n in (1, 2, 5, 4, 6, 7)[: 4 * run]], "id", stream.bookmark)

    return tap


@kind()
def row_that_does_not_fit(run):
    tap = burler.tap("tap-contract")

    @tap.sync(
        "rows", key_properties="id", replication_key="id", bookmark_strategy="every_n(2)", schema=has(id=ID, a=ID)
    )
    def sync(stream):
        return since([{"id": n, "a": "x" if (n, run) == (4, 1) else n} for n in range(1, 7)], "id", stream.bookmark)

    return tap


@kind(config={"on_bad_record": "skip"})
def rows_left_out(run):
    rows = [{"id": n, "at": n, "a": "x" if n == 2 else n} for n in range(1, 3 * run)]
    return plain(rows, "at", has(id=ID, at=ID, a=ID), order="asc")


def three(run: int) -> burler.Tap:
    tap = burler.tap("tap-contract")
    for name in ("first", "second", "third"):

        def sync(stream, name=name):
            rows = since([{"id": n} for n in range(1, 3 * run)], "id", stream.bookmark)
            return broken(rows, 1, run == 1 and name == "second")

        tap.stream(
            name, key_properties="id", replication_key="id", bookmark_strategy="every_n(1)", schema=has(id=ID)
        ).sync(sync)
    return tap


kind()(three)
KINDS["three_without_currently_syncing"] = Kind(three, config={"currently_syncing": False})
KINDS["three_touched"] = Kind(three, config={"state_scope": "touched"})
KINDS["three_of_which_two_are_selected"] = Kind(three, select=("first,second", None))
KINDS["three_among_strangers"] = Kind(
    three,
    foreign={
        "bookmarks": {"gone": {"at": "2019-01-01T00:00:00.000Z"}, "first": {"id": 2, "note": "mine"}},
        "currently_syncing": "gone",
        "custom": {"kept": [1, 2]},
    },
)


# ---- full tables ----------------------------------------------------------------------------------


def table(run: int, interrupts: bool = False, **options: Any) -> burler.Tap:
    tap = burler.tap("tap-contract")

    @tap.sync("rows", key_properties="id", schema=has(id=ID), **options)
    def sync():
        return broken([{"id": n} for n in range(3 + run)], 2, interrupts and run == 1)

    return tap


@kind()
def full_table(run):
    return table(run)


@kind()
def full_table_interrupted(run):
    return table(run, True)


@kind()
def full_table_without_versions(run):
    return table(run, versions=False)


@kind(config={"full_table_versions": False})
def full_table_versions_off(run):
    return table(run)


def resumed(run: int, values: list[Any], schema: dict[str, Any]) -> burler.Tap:
    tap = burler.tap("tap-contract")

    @tap.sync("rows", key_properties="id", resumable_by="at", bookmark_strategy="every_n(2)", schema=schema)
    def sync(stream):
        return broken(since(counted(values, "at"), "at", stream.bookmark), 5, run == 1)

    return tap


@kind()
def resumed_by_int(run):
    return resumed(run, NUMBERS, has(id=ID, at=ID))


@kind()
def resumed_by_text(run):
    return resumed(run, list("abcdefg"), has(id=ID, at=TEXT))


@kind()
def resumed_by_date(run):
    return resumed(run, [f"2024-05-0{n}" for n in range(1, 8)], has(id=ID, at=DATE))


@kind()
def resumed_by_time(run):
    return resumed(run, [f"2024-05-0{n}T10:00:00.000Z" for n in range(1, 8)], has(id=ID, at=TIME))


def snapshot(run: int, interrupts: bool) -> burler.Tap:
    tap = burler.tap("tap-contract")

    @tap.sync("rows", key_properties="id", replication_key="id", schema=has(id=ID))
    def sync(stream):
        if stream.bookmark is None:
            with stream.full_table():
                yield from broken([{"id": n} for n in (1, 2, 3)], 2, interrupts and run == 1)
        yield from since([{"id": n} for n in range(4, 4 + 2 * run)], "id", stream.bookmark)

    return tap


@kind()
def block(run):
    return snapshot(run, False)


@kind()
def block_interrupted(run):
    return snapshot(run, True)


@kind()
def not_modified_by_hand(run):
    tap = burler.tap("tap-contract")

    @tap.sync("rows", key_properties="id", schema=has(id=ID))
    def sync(stream):
        if stream.state.get("etag") == "v1":
            stream.not_modified()
            return
        yield {"id": 1}
        stream.state["etag"] = "v1"

    return tap


@kind()
def log_based(run):
    tap = burler.tap("tap-contract")
    options = {"replication_method": burler.LOG_BASED, "bookmark_strategy": "every_n(2)"}

    @tap.sync("rows", replication_key="id", schema=has(id=ID), **options)
    def sync(stream):
        yield from ({"id": number} for number in range(stream.bookmark or 0, 5 * run))

    @tap.acknowledge("rows")
    def acknowledge(bookmark):
        assert bookmark is not None

    return tap


# ---- substreams and streams that others emit ------------------------------------------------------

TICKET = has(id=ID, at=TIME)
COMMENT = has(ticket=ID, n=ID)


def desk(run: int, fails: bool = False, **of_comments: Any) -> burler.Tap:
    tap = burler.tap("tap-contract")

    @tap.sync("tickets", key_properties="id", replication_key="at", bookmark_strategy="every_n(2)", schema=TICKET)
    def tickets(stream):
        days = [{"id": day, "at": f"2024-05-0{day}T00:00:00Z"} for day in range(1, 3 + 2 * run)]
        return since(days, "at", stream.bookmark)

    @tap.sync("comments", parent="tickets", key_properties=["ticket", "n"], schema=COMMENT, **of_comments)
    def comments(parent):
        if fails and run == 1 and parent["id"] == 2:
            raise FileNotFoundError("404")
        yield from ({"ticket": parent["id"], "n": n} for n in (1, 2))

    return tap


few = {"parent_buffer_rows": 1}


@kind(config=few)
def substream(run):
    return desk(run)


@kind()
def substream_read_ahead(run):
    return desk(run)


@kind(config=few)
def substream_that_fails(run):
    return desk(run, True)


@kind(config=few)
def substream_with_a_key(run):
    return desk(run, replication_key="n")


KINDS["substream_selected_later"] = Kind(desk, config=few, select=("tickets", None))
KINDS["substream_deselected_later"] = Kind(desk, config=few, select=(None, "tickets"))
KINDS["substream_alone"] = Kind(desk, config=few, select=("comments", "comments"))
KINDS["substream_alone_then_both"] = Kind(desk, config=few, select=("comments", None))
KINDS["substream_touched"] = Kind(desk, config={**few, "state_scope": "touched"})


@kind(config=few, select=("tickets,comments", None))
def substreams_of_substreams(run):
    tap = desk(run)

    @tap.sync("likes", parent="comments", key_properties="like", schema=has(like=ID))
    def likes(parent):
        yield {"like": 10 * parent["ticket"] + parent["n"]}

    return tap


@kind(config=few)
def substream_rolled_up(run):
    tap = burler.tap("tap-contract")

    @tap.sync("tickets", key_properties="id", replication_key="id", order="asc", schema=has(id=ID))
    def tickets(stream):
        yield from ({"id": number} for number in range(stream.bookmark or 0, 10))

    options = {"replication_key": "n", "rollup": True, "lookback": 2}

    @tap.sync("comments", parent="tickets", key_properties=["ticket", "n"], schema=COMMENT, **options)
    def comments(parent):
        if parent["id"] < 6 * run:
            yield {"ticket": parent["id"], "n": parent["id"]}

    return tap


@kind(config=few)
def bookmark_of_children(run):
    tap = burler.tap("tap-contract")
    tap.stream("tickets", key_properties="id", schema=has(id=ID)).sync(lambda: [{"id": n} for n in range(1, 3 * run)])
    tap.stream("comments", parent="tickets", replication_key="n", schema=COMMENT).sync(
        lambda parent: [{"ticket": parent["id"], "n": parent["id"] * 10}]
    )

    @tap.bookmark("tickets")
    def bookmark(children):
        return children["comments"].greatest

    return tap


def emitting(run: int) -> burler.Tap:
    tap = burler.tap("tap-contract")
    tap.stream("comments", emitted_by="tickets", key_properties=["ticket", "n"], schema=COMMENT)

    @tap.sync("tickets", key_properties="id", replication_key="id", bookmark_strategy="every_n(2)", schema=has(id=ID))
    def tickets(stream):
        for number in range(stream.bookmark or 1, 3 * run):
            yield "comments", [{"ticket": number, "n": 1}]
            yield {"id": number}

    return tap


kind()(emitting)
KINDS["emitting_selected_later"] = Kind(emitting, select=("tickets", None))


def emitting_with_a_place(run: int) -> burler.Tap:
    tap = burler.tap("tap-contract")
    tap.stream("comments", emitted_by="tickets", key_properties=["ticket", "n"], schema=COMMENT)

    @tap.sync("tickets", key_properties="id", replication_method=burler.LOG_BASED, schema=has(id=ID))
    def tickets(stream):
        def fetch(cursor):
            at = int(cursor or 0)
            if at == 4 and run == 1:
                raise ConnectionError("gone")
            return [{"id": at}, {"id": at + 1}], str(at + 2) if at < 6 else None

        for page in patterns.cursor_pages(stream, fetch):
            rows = list(page) if isinstance(page, list) else [page]
            stream.emit_records([{"ticket": row["id"], "n": 1} for row in rows], stream="comments")
            yield rows

    return tap


kind()(emitting_with_a_place)
KINDS["emitting_with_a_place_selected_later"] = Kind(emitting_with_a_place, select=("tickets", None))


# ---- partitions -----------------------------------------------------------------------------------

DAYS = {"a": [1, 2, 3, 6], "b": [4, 5, 6, 7], "c": [2, 3, 9]}


def accounts(run: int, fails: bool = False, partitioned: bool = True, **options: Any) -> burler.Tap:
    tap = burler.tap("tap-contract")
    if partitioned:
        tap.partitions("rows", **options)(lambda: [{"account": name} for name in DAYS])

    schema = has(account=TEXT, id=ID, at=TIME)

    @tap.sync(
        "rows", key_properties=["account", "id"], replication_key="at", bookmark_strategy="every_n(2)", schema=schema
    )
    def sync(stream):
        names = [stream.partition["account"]] if partitioned else list(DAYS)
        rows = [{"account": name, "id": day, "at": f"2024-05-0{day}T00:00:00Z"} for name in names for day in DAYS[name]]
        rows = since(rows if run == 2 or not partitioned else rows[:-1], "at", stream.bookmark)
        rows.sort(key=lambda row: row["at"])
        yield from broken(rows, 1, fails and run == 1 and names == ["b"])

    return tap


@kind()
def partitions(run):
    return accounts(run)


@kind()
def partitions_with_a_key(run):
    return accounts(run, key="account")


@kind()
def partitions_of_which_one_fails(run):
    return accounts(run, True)


@kind()
def partitions_from_a_flat_state(run):
    return accounts(run, partitioned=run == 2, key="account") if run == 2 else accounts(run, partitioned=False)


KINDS["partitions_touched"] = Kind(accounts, config={"state_scope": "touched"})


@kind(config={"start_date": "2024-05-03T00:00:00Z"})
def partitions_from_start_date(run):
    return accounts(run, key="account")


def by_months(run: int, fails: bool = False, **options: Any) -> burler.Tap:
    tap = burler.tap("tap-contract")

    @tap.partitions("rows", order="asc")
    def months(stream):
        first = int((stream.bookmark or "2024-01")[5:7])
        return [{"month": f"2024-{month:02}"} for month in range(first, 3 + run)]

    @tap.sync("rows", key_properties="at", replication_key="at", schema=has(at=TIME), **options)
    def sync(stream, partition):
        rows = since([{"at": f"{partition['month']}-{day:02}T00:00:00Z"} for day in (1, 15, 28)], "at", stream.bookmark)
        yield from broken(rows, 1, fails and run == 1 and partition["month"] == "2024-02")

    return tap


@kind()
def months(run):
    return by_months(run)


@kind()
def months_sorted(run):
    return by_months(run, bookmark_strategy="every_n(1)")


@kind()
def months_of_which_one_fails(run):
    return by_months(run, True, bookmark_strategy="every_n(1)")


@kind()
def shards(run):
    tap = burler.tap("tap-contract")
    tap.partitions("rows")(lambda: [{"shard": number} for number in range(2)])

    @tap.sync("rows", key_properties="id", schema=has(id=ID))
    def sync(partition):
        yield from ({"id": number} for number in range(4 + run) if number % 2 == partition["shard"])

    return tap


@kind()
def shards_of_which_one_fails(run):
    tap = burler.tap("tap-contract")
    tap.partitions("rows")(lambda: [{"shard": number} for number in range(2)])

    @tap.sync("rows", key_properties="id", schema=has(id=ID))
    def sync(partition):
        rows = [{"id": number} for number in range(4) if number % 2 == partition["shard"]]
        return broken(rows, 1, run == 1 and partition["shard"] == 1)

    return tap


@kind()
def partitions_with_places(run):
    tap = burler.tap("tap-contract")
    tap.partitions("rows", key="account")(lambda: [{"account": name} for name in "ab"])

    @tap.sync(
        "rows", key_properties=["account", "id"], replication_method=burler.LOG_BASED, schema=has(account=TEXT, id=ID)
    )
    def sync(stream, partition):
        for number in range(stream.state.get("next", 0), 3 * run):
            yield {"account": partition["account"], "id": number}
            stream.state["next"] = number + 1

    return tap


def projects(run: int) -> burler.Tap:
    tap = burler.tap("tap-contract")
    tap.partitions("tickets", key="account")(lambda: [{"account": name} for name in ("a", "b")])
    schema = has(account=TEXT, id=ID)

    @tap.sync("tickets", key_properties=["account", "id"], replication_key="id", order="asc", schema=schema)
    def tickets(stream, partition):
        return since([{"account": partition["account"], "id": n} for n in range(1, 2 + run)], "id", stream.bookmark)

    @tap.sync("comments", parent="tickets", key_properties=["ticket", "n"], schema=COMMENT)
    def comments(parent):
        yield {"ticket": parent["id"], "n": 1}

    return tap


KINDS["partitions_with_substreams"] = Kind(projects, config=few)
KINDS["partitions_with_a_substream_selected_later"] = Kind(projects, config=few, select=("tickets", None))
KINDS["partitions_with_a_substream_alone"] = Kind(projects, config=few, select=("comments", None))


# ---- stream.state, source states, files -----------------------------------------------------------


@kind()
def place(run):
    tap = burler.tap("tap-contract")

    @tap.sync("rows", key_properties="id", replication_method=burler.LOG_BASED, schema=has(id=ID))
    def sync(stream):
        for number in range(stream.state.get("offset", 0), 4 * run):
            yield {"id": number}
            stream.state = {"offset": number + 1, "more": {"texts": ["ä"], "none": None}}
            stream.save_bookmark()

    return tap


@kind()
def place_beside_a_bookmark(run):
    tap = burler.tap("tap-contract")

    @tap.sync("rows", key_properties="id", replication_key="id", bookmark_strategy="every_n(2)", schema=has(id=ID))
    def sync(stream):
        for number in range(stream.bookmark or 0, 4 * run):
            yield {"id": number}
            stream.state["seen"] = number

    return tap


URL = "https://source.example"
RATES = [{"currency": "EUR", "rate": 1}, {"currency": "PEN", "rate": 4}]
RATE = has(currency=TEXT, rate={"type": "number"})


def answers(entity: tuple[str, str], asked: str, changed: bool = False) -> Any:
    """A server that knows what it has said; asked again it says that nothing has changed, unless something has."""

    @contextlib.contextmanager
    def around(run: int) -> Iterator[None]:
        with responses.RequestsMock(assert_all_requests_are_fired=False) as http:
            if run == 1 or changed:
                rows = RATES if run == 1 else [*RATES, {"currency": "CHF", "rate": 2}]
                value = entity[1] if run == 1 else entity[1].replace("1", "2")
                http.get(f"{URL}/rates", json=rows, headers={entity[0]: value})
                http.get(f"{URL}/more", json=rows[:1], headers={entity[0]: value})
            else:
                same = responses.matchers.header_matcher({asked: entity[1]})
                http.get(f"{URL}/rates", status=304, match=[same])
                http.get(f"{URL}/more", status=304, match=[same])
                http.get(f"{URL}/rates", json=RATES, headers={entity[0]: entity[1]})
                http.get(f"{URL}/more", json=RATES[:1], headers={entity[0]: entity[1]})
            yield

    return around


def bank(run: int) -> burler.Tap:
    tap = burler.tap("tap-contract")
    tap.client(lambda: burler.http.Client(URL, max_wait_seconds=0.1))

    @tap.sync("rates", key_properties="currency", source_state=True, schema=RATE)
    def rates(client):
        yield client.get("/rates").content

    return tap


ETAG = ("ETag", '"v1"'), "If-None-Match"
KINDS["etag"] = Kind(bank, around=answers(*ETAG))
KINDS["etag_that_changed"] = Kind(bank, around=answers(*ETAG, changed=True))
KINDS["etag_ignored"] = Kind(bank, around=answers(*ETAG), later={"ignore_source_state": True})
KINDS["last_modified"] = Kind(
    bank, around=answers(("Last-Modified", "Wed, 01 May 2024 10:00:01 GMT"), "If-Modified-Since")
)
KINDS["etag_of_another_selection"] = Kind(bank, around=answers(*ETAG), select=("rates,!rates.rate", None))


@kind(around=answers(*ETAG))
def etags_of_several(run):
    tap = burler.tap("tap-contract")
    tap.client(lambda: burler.http.Client(URL, max_wait_seconds=0.1))

    @tap.sync("rates", key_properties="currency", replication_key="rate", schema=RATE)
    def rates(client):
        for path in ("rates", "more"):
            yield from client.conditional(f"/{path}", source=path)

    return tap


@kind()
def height_of_a_chain(run):
    tap = burler.tap("tap-contract")

    @tap.sync("blocks", key_properties="number", replication_key="number", schema=has(number=ID))
    def blocks(stream):
        seen = int(stream.source_state.get("chain/block-height", source="main") or 0)
        for number in range(seen + 1, 4 * run):
            yield {"number": number}
        stream.source_state.set("chain/block-height", str(4 * run - 1), source="main")

    return tap


def write_orders(run: int) -> None:
    """Files of the current folder: a second one comes, and the first one stays as it is."""
    Path("in").mkdir(exist_ok=True)
    for number in range(1, run + 1):
        path = Path(f"in/orders-{number:02}.csv")
        text = "id,total,at\n" + "".join(f"{10 * number + n},{n}.50,2024-05-0{n}T00:00:00Z\n" for n in (1, 2))
        path.write_text(text)
        os.utime(path, (1714521600 + number, 1714521600 + number))


ORDER = has(id=ID, total={"type": "number"}, at=TIME)


def orders(run: int, **options: Any) -> burler.Tap:
    write_orders(run)
    tap = burler.tap("tap-contract")

    @tap.sync("orders", key_properties="id", schema=ORDER, **options)
    def sync(stream):
        yield from burler.files.read("in/orders-*.csv", stream=stream)

    return tap


@kind()
def files_of_a_full_table(run):
    return orders(run)


@kind()
def files_without_versions(run):
    return orders(run, versions=False)


@kind()
def files_with_a_bookmark(run):
    return orders(run, replication_key="at")


# ---- patterns -------------------------------------------------------------------------------------

SHOP = [{"id": number, "at": f"2024-05-{number:02}T08:00:00Z"} for number in (1, 3, 2, 20, 5, 23)]
WEEK = dt.timedelta(days=7)


def shop(body: Callable[[Any, int], Any], **options: Any) -> Callable[[int], burler.Tap]:
    """A kind whose function is a pattern; the shop is asked for what lies between two times."""

    def build(run: int) -> burler.Tap:
        tap = burler.tap("tap-contract")

        @tap.sync("orders", key_properties="id", schema=has(id=ID, at=TIME), **options)
        def sync(stream):
            yield from body(stream, run)

        return tap

    return build


def between(run: int, start: str, end: str) -> list[dict[str, Any]]:
    return [dict(row) for row in SHOP[: 3 + 3 * (run - 1)] if start <= row["at"] < end]


def today(run: int) -> Callable[[], dt.datetime]:
    return lambda: dt.datetime(2024, 5, 15 + 10 * (run - 1), tzinfo=dt.UTC)


def in_windows(length: Any, **more: Any) -> Callable[[Any, int], Any]:
    def body(stream: Any, run: int) -> Iterator[Any]:
        for window in patterns.windows(stream, length, start="2024-05-01", now=today(run), **more):
            yield between(run, window.start, window.end)

    return body


by_hand = {"replication_key": "at", "bookmark_strategy": "manual"}
KINDS["windows"] = Kind(shop(in_windows(WEEK), **by_hand))
KINDS["windows_of_days_in_berlin"] = Kind(shop(in_windows("week", dates=True, zone="Europe/Berlin"), **by_hand))
KINDS["windows_that_overlap"] = Kind(
    shop(in_windows(WEEK, overlap=dt.timedelta(hours=1), delay=dt.timedelta(minutes=5)), **by_hand)
)
KINDS["windows_in_the_state"] = Kind(shop(in_windows("month", keep="state"), replication_key="at"))
KINDS["windows_that_shrink"] = Kind(
    shop(
        lambda stream, run: patterns.read_windows(
            stream,
            lambda window: between(run, window.start, window.end),
            dt.timedelta(days=16),
            start="2024-05-01",
            now=today(run),
            most_rows=2,
        ),
        **by_hand,
    )
)


def in_ranges(stream: Any, run: int) -> Iterator[Any]:
    rows = [{"id": n, "at": "2024-05-01T00:00:00Z"} for n in (3, 9, 12, 27, 40)[: 2 + run]]
    for ids in patterns.id_ranges(stream, 10, last=lambda: max(row["id"] for row in rows)):
        yield [dict(row) for row in rows if ids.first <= row["id"] <= ids.last]


KINDS["id_ranges"] = Kind(shop(in_ranges, replication_key="id", bookmark_strategy="manual"))
log = {"replication_method": burler.LOG_BASED}


def by_cursor(stream: Any, run: int) -> Any:
    pages = {None: ([1, 2], "b"), "b": ([3, 4], "c"), "c": ([5], None)}

    def fetch(cursor: Any) -> Any:
        numbers, following = pages[cursor]
        if (cursor, run) == ("c", 1):
            raise ConnectionError("gone")
        return [{"id": number, "at": "2024-05-01T00:00:00Z"} for number in numbers], following

    return patterns.cursor_pages(stream, fetch)


def by_token(stream: Any, run: int) -> Any:
    rows = SHOP[: 3 * run]

    def fetch(token: Any) -> Any:
        at = int(token or 0)
        return [dict(row) for row in rows[at : at + 2]], str(min(at + 2, len(rows))), at + 2 < len(rows)

    return patterns.cursor_pages(stream, fetch, resume_at_end=True)


KINDS["cursors"] = Kind(shop(by_cursor, **log))
KINDS["cursors_with_a_bookmark"] = Kind(shop(by_cursor, replication_key="id", order="asc"))
KINDS["tokens"] = Kind(shop(by_token, **log))
KINDS["changed_only"] = Kind(
    shop(
        lambda stream, run: patterns.changed_only(
            stream,
            [
                {**row, "at": row["at"].replace("T08", "T09")} if (i, run) == (1, 2) else row
                for i, row in enumerate(SHOP[: 3 + run])
            ],
        ),
        **log,
    )
)
KINDS["asked_for_everything"] = Kind(
    shop(
        lambda stream, run: patterns.full_request_incremental_emit(stream, between(run, "2024", "2025")),
        replication_key="at",
    )
)


@kind()
def windows_as_partitions(run):
    tap = burler.tap("tap-contract")

    @tap.partitions("orders", order="asc", key="from")
    def parts(stream):
        for window in patterns.windows(stream, WEEK, start="2024-05-01", keep=None, now=today(run)):
            yield {"from": window.start, "to": window.end}

    @tap.sync("orders", key_properties="id", replication_key="at", schema=has(id=ID, at=TIME))
    def sync(partition):
        yield between(run, partition["from"], partition["to"])

    return tap


# ---- databases ------------------------------------------------------------------------------------


def database(run: int, rows: Callable[[Any, Any], Any], wide: int = 1) -> burler.Tap:
    path = Path("shop.db")
    path.unlink(missing_ok=True)
    shop = sqlite3.connect(path)
    shop.executescript("""
        create table orders (id integer primary key, total decimal(10, 2), updated_at datetime not null);
        create table lines (shop text, number integer, name text not null, primary key (shop, number));
        create table countries (code text primary key, updated_at text);
    """)
    for n in range(1, 3 + 2 * run):
        shop.execute("insert into orders values (?, ?, ?)", (n, n / 4, f"2024-05-0{n} 10:00:00"))
        shop.execute("insert into countries values (?, ?)", ("ABCDEFG"[n], str(n)))
    for n in range(1, 13):
        for name in ("ann", "bob"):
            shop.execute("insert into lines values (?, ?, ?)", (name, n, wide * "x"))
    shop.commit()
    shop.close()
    tap = burler.tap("tap-contract")
    tap.client(lambda: burler.sql.Database("sqlite:///shop.db"))

    @tap.discover
    def discover(client):
        return client.discover(tables="*", replication_keys={"orders": "updated_at"})

    tap.sync("*", order="asc", resumable_by="*", bookmark_strategy="every_n(2)")(rows)
    return tap


@kind()
def tables(run):
    return database(run, lambda client, stream: client.pages(stream))


@kind(select=("lines", "lines,!lines.name"))
def table_with_a_composite_key(run):
    """It breaks off on the way, once two pages of rows were out."""

    def rows(client, stream):
        for i, page in enumerate(client.pages(stream)):
            if run == 1 and i == 2:
                raise ConnectionError("gone away")
            yield page

    return database(run, rows, 400_000)


@kind(select=("countries", "countries"))
def table_with_a_text_key(run):
    def rows(client, stream):
        return broken(
            client.rows("select * from countries where code >= :at order by code", {"at": stream.bookmark or ""}),
            3,
            run == 1,
        )

    return database(run, rows)


# ---- runs that go on ------------------------------------------------------------------------------

tail = {"tail": True, "tail_max_rounds": 3}


@kind(config=tail, later={})
def tail_polled_then_a_plain_run(run):
    return growing(run)


@kind(config={}, later=tail)
def tail_after_a_plain_run(run):
    return growing(run)


@kind(config={**tail, "state_scope": "touched"}, later=tail)
def tail_touched(run):
    return growing(run)


def growing(run: int) -> burler.Tap:
    tap = burler.tap("tap-contract")
    for name in ("news", "mails"):
        grown = [{"id": n} for n in range(1, 3 * run)]

        def sync(stream, grown=grown):
            grown.append({"id": len(grown) + 1})
            return since(grown, "id", stream.bookmark)

        tap.stream(name, key_properties="id", replication_key="id", order="asc", schema=has(id=ID)).sync(sync)
    return tap


@kind(config=tail)
def tail_function(run):
    tap = burler.tap("tap-contract")

    @tap.sync("events", key_properties="id", replication_key="id", order="asc", schema=has(id=ID))
    def past(stream):
        return since([{"id": n} for n in range(1, 3 * run)], "id", stream.bookmark)

    @tap.tail("events")
    def events(stream):
        yield from since([{"id": n} for n in range(1, 3 * run + 3)], "id", stream.bookmark)

    return tap


@kind(config={"tail": True, "tail_max_rounds": 1})
def tail_function_with_a_place(run):
    tap = burler.tap("tap-contract")

    @tap.tail("events", key_properties="id", schema=has(id=ID))
    def events(stream):
        for number in range((stream.state or {}).get("offset", 0), 4 * run):
            yield {"id": number}
            stream.state = {"offset": number + 1}

    @tap.ack("events")
    def acknowledge(state):
        assert state["offset"]

    return tap


@kind(config={**tail, "max_full_table_age_seconds": 60})
def tail_of_full_tables(run):
    return table(run)


@kind(config=tail)
def tail_of_partitions(run):
    return accounts(run, key="account")


@kind(config={**tail, "parent_buffer_rows": 1})
def tail_of_substreams(run):
    return desk(run)
