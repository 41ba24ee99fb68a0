"""Rows of the boundary that a tail reads again in each round do not go out again."""

from __future__ import annotations

import datetime as dt
import json
import logging
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import burler
from burler.testing import FakeClock, run_tap

SCHEMA = {
    "properties": {
        "id": {"type": "integer"},
        "at": {"type": ["null", "integer"]},
        "text": {"type": ["null", "string"]},
        "n": {"type": ["null", "number"]},
    }
}
KINDS = ["rows", "lists", "bytes", "lines", "arrow", "table", "mixed"]


def tail(tap, rounds=3, **config):
    return run_tap(tap, {"tail": True, "tail_max_rounds": rounds, **config}, clock=FakeClock())


def in_kind(kind, rows):
    """Rows as a sync function may yield them."""
    if kind == "mixed":
        kinds = ["lists", "bytes", "arrow", "lines", "table"]
        return [page for i, row in enumerate(rows) for page in in_kind(kinds[i % len(kinds)], [row])]
    if kind in ("rows", "lists"):
        return rows if kind == "rows" else [rows]
    if kind == "bytes":
        return [json.dumps(rows).encode()]
    if kind == "lines":
        return [json.dumps(row).encode() for row in rows]
    pa = pytest.importorskip("pyarrow")
    if not rows:
        return []
    types = {"id": pa.int64(), "at": pa.int64(), "text": pa.string(), "n": pa.float64(), "more": pa.int64()}
    schema = pa.schema([(name, types[name]) for name in dict.fromkeys(name for row in rows for name in row)])
    made = pa.RecordBatch.from_pylist(rows, schema)
    return [pa.Table.from_batches([made]) if kind == "table" else made]


def source(rounds, *, kind="rows", page=100, order="asc", schema=SCHEMA, **options):
    """A tap whose source shows another set of rows in each round; it gives those at and behind the bookmark."""
    tap = burler.tap("tap-t")
    shown = iter(rounds)
    options = {"key_properties": "id", "replication_key": "at", **options}

    @tap.sync("rows", order=order, schema=schema, **options)
    def rows(stream):
        found = [
            dict(row)
            for row in next(shown)
            if stream.bookmark is None or row["at"] is None or row["at"] >= stream.bookmark
        ]
        for first in range(0, len(found), page):
            yield from in_kind(kind, found[first : first + page])

    return tap


def row(number, at, text="a", **more):
    return {"id": number, "at": at, "text": text, **more}


# ---- what goes out -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["asc", "none"])
def test_boundary_rows_go_out_once(kind, order):
    first = [row(1, 1), row(2, 2), row(3, 2)]
    grown = [*first, row(4, 2), row(5, 3)]
    out = tail(source([first, first, grown, grown], kind=kind, order=order), rounds=4)
    assert out.result.exit_code == 0
    assert out.records("rows") == grown
    assert out.states[-1]["bookmarks"]["rows"]["at"] == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_boundary_row_that_has_changed_goes_out(kind):
    before, now = [row(1, 1), row(2, 2)], [row(1, 1), row(2, 2, "b")]
    out = tail(source([before, now, now, before], kind=kind), rounds=4)
    assert out.records("rows") == [row(1, 1), row(2, 2), row(2, 2, "b"), row(2, 2)]


@pytest.mark.parametrize("kind", KINDS)
def test_equal_events_of_a_log_without_keys_are_all_there(kind):
    event = {"at": 2, "text": "login"}
    shown = [[event, event], [event, event], [event] * 3, [event] * 3]
    out = tail(source(shown, kind=kind, key_properties=()), rounds=4)
    assert out.records("rows") == [event] * 3


@pytest.mark.parametrize("kind", ["rows", "bytes", "arrow"])
def test_a_field_that_is_not_selected_makes_no_news(kind):
    shown = [[row(1, 1, n=float(i))] for i in range(3)]
    tap = source(shown, kind=kind)
    config = {"tail": True, "tail_max_rounds": 3}
    out = run_tap(tap, config, clock=FakeClock(), select="rows.id,rows.at,rows.text")
    assert out.records("rows") == [row(1, 1)]


@pytest.mark.parametrize("kind", ["rows", "bytes", "arrow"])
def test_what_is_dropped_is_counted_and_its_bookmark_holds(kind):
    shown = [[row(1, 1), row(2, 2)], [row(1, 1), row(2, 2), row(3, 2)]]
    out = tail(source(shown, kind=kind), rounds=2)
    assert out.states[-1]["bookmarks"]["rows"]["at"] == 2
    assert out.result.rows == {"rows": 3}


@pytest.mark.parametrize("order", ["asc", "none"])
def test_boundary_rows_in_a_big_page_with_rows_that_do_not_fit(order):
    """Most of such a page is out already when its greatest key is known."""
    rows = [
        row(0, 0, n="x"),
        *(row(i, 1 if order == "asc" else 9, "y" * 30_000) for i in range(1, 4)),
        row(4, 1, n="x"),
    ]
    rows += [row(i, 1, "z" * 1000) for i in range(5, 300)]
    assert (
        len(tail(source([rows] * 3, order=order, page=400, kind="lists"), on_bad_record="skip").records("rows")) == 298
    )


@pytest.mark.parametrize("lookback", [None, 3])
def test_boundary_rows_of_pages_that_go_row_by_row(lookback):
    """Bytes and Arrow with values that do not fit are read as rows."""
    pa = pytest.importorskip("pyarrow")
    good, bad = [row(1, 5, n=None), row(2, 5, n=None), row(3, 5, n=None)], row(4, 5, n="x")
    tap = burler.tap("tap-t")
    pages = [
        pa.RecordBatch.from_pylist([*good[:1], bad]),
        json.dumps([bad, *good[1:2]]).encode(),
        # As much as is not made at once: of it the end is read as rows.
        json.dumps([row(10 + i, 5, "y" * 900_000) for i in range(3)] + [bad, *good[2:]]).encode(),
    ]

    @tap.sync("rows", key_properties="id", replication_key="at", order="asc", lookback=lookback, schema=SCHEMA)
    def rows():
        yield from pages

    out = tail(tap, rounds=3, on_bad_record="skip")
    assert [one["id"] for one in out.records("rows")] == [1, 2, 10, 11, 12, 3]


def test_a_page_that_breaks_in_its_second_part():
    schema = {"properties": {**SCHEMA["properties"], "when": {"type": "string", "format": "date-time"}}}
    when = ["2024-01-01T00:00:00Z"] * 4 + ["2024-02-30T00:00:00Z", "2024-01-02T00:00:00Z"]
    page = json.dumps([row(i, 5, "y" * 900_000, when=one) for i, one in enumerate(when)]).encode()
    tap = burler.tap("tap-t")

    @tap.sync("rows", key_properties="id", replication_key="at", order="asc", schema=schema)
    def rows():
        yield page

    out = tail(tap, rounds=3, on_bad_record="skip")
    assert [one["id"] for one in out.records("rows")] == [0, 1, 2, 3, 5]


def test_rows_that_are_not_in_the_declared_order_after_all():
    rows = [row(1, 1), row(2, 5), row(3, 2)]
    out = tail(source([rows, rows, rows], on_unsorted="end_of_sync"), rounds=3)
    assert out.records("rows") == rows


@pytest.mark.parametrize("policy", ["skip", "null"])
def test_a_boundary_row_that_does_not_fit_does_not_use_up_max_bad_records(policy, caplog):
    shown = [[row(1, 1), row(2, 2, n="x"), row(3, 2)]] * 30
    with caplog.at_level(logging.WARNING):
        out = tail(source(shown), rounds=30, on_bad_record=policy, max_bad_records=2)
    assert out.result.exit_code == 0
    assert [one["id"] for one in out.records("rows")] == ([1, 3] if policy == "skip" else [1, 2, 3])
    assert len([one for one in caplog.messages if "row id=2" in one]) == 1


def test_rows_of_date_times_in_two_spellings():
    schema = {"properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}}
    spelt = ["2024-01-02T00:00:00Z", "2024-01-02T00:00:00+00:00", "2024-01-02T01:00:00.000+01:00"]
    moments = [*spelt, dt.datetime(2024, 1, 2, tzinfo=dt.UTC)]
    tap = burler.tap("tap-t")
    shown = iter(moments)

    @tap.sync("rows", key_properties="id", replication_key="at", order="asc", schema=schema)
    def rows():
        yield {"id": 1, "at": next(shown)}

    out = tail(tap, rounds=4)
    assert len(out.records("rows")) == len({json.dumps(one) for one in out.records("rows")})
    assert len(out.records("rows")) <= 2


# ---- streams whose rows come again for other reasons ----------------------------------------------------------


def test_lookback_rows_go_out_once_and_changed_ones_again():
    rows = [row(i, i) for i in range(1, 8)]
    changed = [one if one["id"] != 5 else row(5, 5, "b") for one in rows]
    out = tail(source([rows, rows, changed, changed], lookback=4), rounds=4)
    assert out.records("rows") == [*rows, row(5, 5, "b")]


def test_children_of_a_boundary_parent_go_out_once():
    tap = burler.tap("tap-t")
    shown = iter([[1, 2], [2], [2, 3], [3]])
    seen = []

    @tap.sync("parents", key_properties="id", replication_key="at", order="asc", schema=SCHEMA)
    def parents():
        yield from [row(i, i) for i in next(shown)]

    @tap.sync("children", parent="parents", key_properties="id", schema=SCHEMA)
    def children(parent):
        seen.append(parent["id"])
        yield row(parent["id"] * 10, None)
        yield row(parent["id"] * 10 + 1, None, str(seen.count(3)))

    out = tail(tap, rounds=4)
    assert seen == [1, 2, 2, 2, 3, 3]
    assert [one["id"] for one in out.records("parents")] == [1, 2, 3]
    assert [(one["id"], one["text"]) for one in out.records("children")] == [
        (10, "a"),
        (11, "0"),
        (20, "a"),
        (21, "0"),
        (30, "a"),
        (31, "1"),
        (31, "2"),
    ]


def test_children_without_keys_are_never_taken_for_those_of_another_parent():
    tap = burler.tap("tap-t")
    shown = iter([[1, 2], [2, 3, 4]])

    @tap.sync("parents", key_properties="id", replication_key="at", order="asc", schema=SCHEMA)
    def parents():
        yield from [row(i, i) for i in next(shown)]

    @tap.sync("notes", parent="parents", schema={"properties": {"text": {"type": "string"}}})
    def notes():
        yield {"text": "ok"}

    assert len(tail(tap, rounds=2).records("notes")) >= 4


def test_partitions_each_have_a_boundary():
    tap = burler.tap("tap-t")
    calls = []

    @tap.partitions("rows")
    def accounts():
        return [{"account": 1}, {"account": 2}]

    @tap.sync(
        "rows",
        key_properties=["account", "id"],
        replication_key="at",
        order="asc",
        schema={"properties": {**SCHEMA["properties"], "account": {"type": "integer"}}},
    )
    def rows(partition, stream):
        calls.append(stream.bookmark)
        account = partition["account"]
        for i in range(1, len(calls) + 1):
            if stream.bookmark is None or i >= stream.bookmark:
                yield {"account": account, **row(i, i)}

    out = tail(tap, rounds=4)
    ids = [(one["account"], one["id"]) for one in out.records("rows")]
    assert sorted(ids) == [(1, i) for i in range(1, 8)] + [(2, i) for i in range(1, 9)]


def test_a_post_transform_function_is_not_asked_for_boundary_rows():
    rows = [row(1, 1), row(2, 2)]
    tap = source([rows] * 4)
    asked = []

    @tap.post_transform("rows")
    def mark(record):
        asked.append(record["id"])
        record["text"] = f"call {len(asked)}"
        return record

    assert [one["text"] for one in tail(tap, rounds=4).records("rows")] == ["call 1", "call 2"]
    assert asked == [1, 2]


def test_rows_that_a_post_transform_function_left_out_are_asked_for_again():
    first = [row(1, 1), row(2, 2), row(3, 2)]
    tap = source([first, first, [*first, row(4, 2)]])
    asked = []

    @tap.post_transform("rows")
    def later(record):
        asked.append(record["id"])
        return None if record["id"] == 2 and len(asked) < 5 else record

    assert [one["id"] for one in tail(tap, rounds=3).records("rows")] == [1, 3, 2, 4]
    assert asked == [1, 2, 3, 2, 2, 4]


def test_a_post_transform_function_that_leaves_out_next_to_boundary_rows():
    first = [row(1, 2), row(2, 2)]
    tap = source([first, [*first, row(3, 2), row(4, 2)]])

    @tap.post_transform("rows")
    def some(record):
        return record if record["id"] != 3 else None

    assert [one["id"] for one in tail(tap, rounds=2).records("rows")] == [1, 2, 4]


@pytest.mark.parametrize("bad", ["raises", "does not fit"])
def test_a_post_transform_function_that_fails_behind_boundary_rows(bad):
    """The rows before go out, with their bookmark; the row and those behind it come in the next round."""
    first = [row(1, 1), row(2, 2)]
    grown = [*first, row(3, 3), row(4, 4), row(5, 5)]
    shown, bookmarks, asked = iter([first, grown, grown, grown]), [], []
    tap = burler.tap("tap-t")

    @tap.sync("rows", key_properties="id", replication_key="at", order="asc", schema=SCHEMA)
    def rows(stream):
        bookmarks.append(stream.bookmark)
        return [dict(one) for one in next(shown) if one["at"] >= (stream.bookmark or 0)]

    @tap.post_transform("rows")
    def fails(record):
        asked.append(record["id"])
        if record["id"] == 4 and asked.count(4) == 1:
            if bad == "raises":
                raise ValueError("no")
            record["at"] = "no number"
        return record

    out = tail(tap, rounds=4)
    assert [one["id"] for one in out.records("rows")] == [1, 2, 3, 4, 5]
    assert asked[:4] == [1, 2, 3, 4]
    assert bookmarks[:4] == [None, 2, 3, 5]
    assert out.states[-1]["bookmarks"]["rows"]["at"] == 5


def test_rows_with_a_bookmark_function():
    rows = [row(1, None), row(2, None)]
    tap = source([rows] * 3, replication_key=None, order="none")

    @tap.bookmark("rows")
    def bookmark(record):
        return record["id"]

    assert tail(tap, rounds=3).records("rows") == rows


@pytest.mark.parametrize("options", [{"replication_method": "FULL_TABLE"}, {"replication_key": None}])
def test_full_tables_come_whole(options):
    rows = [row(1, 1), row(2, 2)]
    tap = burler.tap("tap-t")

    @tap.sync("rows", schema=SCHEMA, max_full_table_age_seconds=1, **{"key_properties": "id", **options})
    def full():
        return rows

    assert tail(tap, rounds=3).records("rows") == rows * 3


def test_a_plain_run_drops_nothing():
    tap = source([[row(1, 1)], [row(1, 1)]])
    first = run_tap(tap)
    assert run_tap(tap, state=first.states[-1]).records("rows") == first.records("rows") == [row(1, 1)]


# ---- rounds that fail --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["asc", "none"])
def test_a_round_that_fails_in_the_middle_loses_nothing(order):
    tap = burler.tap("tap-t")
    rows = [row(i, (i + 1) // 2) for i in range(1, 9)]
    calls = []

    @tap.sync("rows", key_properties="id", replication_key="at", order=order, schema=SCHEMA)
    def some(stream):
        calls.append(stream.bookmark)
        for one in rows[: 2 * len(calls)]:
            if stream.bookmark is None or one["at"] >= stream.bookmark:
                yield one
        if len(calls) % 2 == 0:
            raise ConnectionError("gone")

    ids = [one["id"] for one in tail(tap, rounds=6).records("rows")]
    assert set(ids) == set(range(1, 9))
    if order == "asc":
        assert ids == list(range(1, 9))  # each round goes on at the last row that is out


def test_a_further_try_of_a_round_gives_no_boundary_row_twice():
    tap = burler.tap("tap-t")
    calls = []

    @tap.sync(
        "rows", key_properties="id", replication_key="at", order="asc", schema=SCHEMA, retry_sync_on=ConnectionError
    )
    def some():
        calls.append(1)
        yield row(1, 7)
        yield row(2, 7)
        if len(calls) == 1:
            raise ConnectionError("gone")
        yield row(3, 7)

    assert [one["id"] for one in tail(tap, rounds=2).records("rows")] == [1, 2, 3]


# ---- random sources ------------------------------------------------------------------------------------------------


@given(
    grown=st.lists(st.lists(st.integers(0, 2), max_size=5), min_size=2, max_size=5),
    kind=st.sampled_from(KINDS),
    order=st.sampled_from(["asc", "none"]),
    page=st.integers(1, 4),
    keyed=st.booleans(),
    shuffle=st.randoms(use_true_random=False),
)
def test_all_rounds_together_give_each_row_of_a_growing_source_once(grown, kind, order, page, keyed, shuffle):
    rows: list[dict] = []
    shown, number = [], 0
    for steps in grown:
        for step in sorted(steps):
            number += 1
            at = (rows[-1]["at"] if rows else 0) + step // 2
            rows.append({"id": number, "at": at, "text": "a"} if keyed else {"at": at, "text": "abc"[step]})
        now = list(rows)
        if order == "none":
            shuffle.shuffle(now)
        shown.append(now)
    options = {"key_properties": "id" if keyed else ()}
    out = tail(source(shown, kind=kind, order=order, page=page, **options), rounds=len(shown)).records("rows")
    assert sorted(map(json.dumps, out)) == sorted(map(json.dumps, rows))


@given(
    changes=st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc")), max_size=4), min_size=2, max_size=6
    ),
    kind=st.sampled_from(KINDS),
    page=st.integers(1, 3),
    failing=st.sets(st.integers(0, 5)),
)
def test_a_target_that_keeps_the_last_row_of_a_key_has_what_the_source_has(changes, kind, page, failing):
    """Rows change in place without their replication key moving, forth and back, and rounds fail in between."""
    tap = burler.tap("tap-t")
    table = {i: row(i, 7) for i in range(4)}
    calls = []

    @tap.sync("rows", key_properties="id", replication_key="at", order="asc", schema=SCHEMA)
    def rows():
        number = len(calls)
        calls.append(number)
        for key, text in changes[number] if number < len(changes) else []:
            table[key] = row(key, 7, text)
        found = list(table.values())
        for first in range(0, len(found), page):
            yield from in_kind(kind, found[first : first + page])
            if number in failing and number < len(changes):
                raise ConnectionError("gone")

    out = tail(tap, rounds=len(changes) + 1).records("rows")
    target = {one["id"]: one for one in out}
    assert len(calls) >= len(changes) + 1
    assert target == table
    for before, now in pairwise(out):
        assert before != now


@pytest.mark.parametrize("kind", ["rows", "bytes", "arrow"])
def test_thousands_of_rows_at_the_boundary(kind):
    rows = [row(i, 7 if i > 1000 else i // 200) for i in range(1, 4001)]
    random.Random(7).shuffle(rows)
    rows.sort(key=lambda one: one["at"])
    more = [*rows, row(5000, 7), row(5001, 8)]
    out = tail(source([rows, rows, more, more], kind=kind, page=1500), rounds=4)
    assert out.records("rows") == more


def test_a_row_that_moves_to_another_partition_and_back_goes_out_each_time():
    tap, clock, place = burler.tap("tap-t"), FakeClock(), ["a", "a", "b", "a", "a"]
    tap.partitions("rows", key="in")(lambda: [{"in": "a"}, {"in": "b"}])
    polls = []

    @tap.sync("rows", key_properties="id", replication_key="day", order="asc", schema=MOVING)
    def rows(partition):
        polls.append(1)
        here = place[(len(polls) - 1) // 2]
        yield {"id": 2, "day": 5, "in": partition["in"]}
        if here == partition["in"]:
            yield {"id": 1, "day": 5, "in": here}

    config = {"tail": True, "tail_max_rounds": 5, "new_record_polling_interval_ms": 1000}
    out = run_tap(tap, config, clock=clock)
    assert [row["in"] for row in out.records("rows") if row["id"] == 1] == ["a", "b", "a"]


MOVING = {"properties": {"id": {"type": "integer"}, "day": {"type": "integer"}, "in": {"type": "string"}}}


def test_key_properties_may_have_odd_names():
    tap = burler.tap("tap-t")
    schema = {"properties": {'the "id"': {"type": "integer"}, "day": {"type": "integer"}}}

    @tap.sync("rows", key_properties='the "id"', replication_key="day", schema=schema)
    def rows():
        yield {'the "id"': 1, "day": 5}

    out = run_tap(tap, {"tail": True, "tail_max_rounds": 3}, clock=FakeClock())
    assert len(out.records("rows")) == 1


def test_rows_in_a_new_form_are_news():
    fields, rounds, tap = {"id": {"type": "integer"}}, [], burler.tap("tap-t")

    @tap.schema("rows")
    def schema():
        return {"properties": dict(fields)}

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc")
    def rows():
        rounds.append(1)
        if len(rounds) == 3:
            fields["text"] = {"type": "string"}
        return [{"id": 1}]

    out = tail(tap, rounds=6, tail_interval_ms=60_000, tail_rediscover_seconds=100)
    assert [one["type"] for one in out.messages if one["type"] != "STATE"] == ["SCHEMA", "RECORD"] * 2
