"""Everything is asked for; rows that are new or have changed go out, as digests in the state have it."""

from __future__ import annotations

import datetime as dt
import json
import logging
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sources import FIELDS, lost_from_any_state, running, tap_of

import burler
from burler.errors import StreamError
from burler.patterns import changed_only
from burler.testing import run_tap

PLAIN = {"replication_key": None, "bookmark_strategy": None, "replication_method": "LOG_BASED"}


class Runs:
    """Runs one after the other that hand their state on."""

    def __init__(self, **options):
        self.state = {}
        self.options = options

    def __call__(self, rows, *, key="id", **more):
        given = {"manual": False, "replication_key": None, "key_properties": ("id",), **self.options}
        stream = running(state=self.state, **given)
        found = list(changed_only(stream, iter(rows), key, **more))
        self.state = json.loads(json.dumps(stream.state))
        return [row for item in found for row in (item if isinstance(item, list) else [item])]


def test_new_and_changed_rows_come():
    run = Runs()
    first = [{"id": 1, "code": "a"}, {"id": 2, "code": "b"}]
    assert run(first) == first
    assert run(first) == []
    assert run([{"code": "a", "id": 1}, {"id": 2, "code": "c"}, {"id": 3}]) == [{"id": 2, "code": "c"}, {"id": 3}]


def test_a_row_that_was_gone_for_a_while_comes_again():
    run = Runs()
    run([{"id": 1}, {"id": 2}])
    assert run([{"id": 2}]) == []
    assert run([{"id": 1}, {"id": 2}]) == [{"id": 1}]


def test_a_change_back_is_a_change():
    run = Runs()
    rows = [[{"id": 1, "code": code}] for code in "aba"]
    assert [run(row) for row in rows] == rows


def test_fields_to_ignore_count_for_nothing():
    run = Runs()
    run([{"id": 1, "fetched": 1}], ignore=["fetched"])
    assert run([{"id": 1, "fetched": 2}], ignore=["fetched"]) == []
    assert run([{"id": 1, "fetched": 2}]) == [{"id": 1, "fetched": 2}]


def test_keys_are_those_of_the_stream_or_those_given():
    run = Runs(key_properties=("id", "code"))
    rows = [{"id": 1, "code": "a"}, {"id": 1, "code": "b"}]
    run(rows, key=None)
    assert run(rows, key=None) == []
    assert len(json.loads(json.dumps(run.state))["digests"]) == 44
    with pytest.raises(StreamError, match=r"changed_only.. needs key_properties"):
        changed_only(running(), [])


@given(st.lists(st.lists(st.tuples(st.integers(1, 2), st.sampled_from("abc")), max_size=6), max_size=6))
def test_of_rows_that_share_a_key_a_target_ends_with_the_last(listings):
    run, target = Runs(), {}
    for listing in listings:
        target |= {row["id"]: row["code"] for row in run([{"id": key, "code": code} for key, code in listing])}
        assert {key: target[key] for key, _code in listing} == dict(listing)


def test_rows_without_a_key_always_come():
    run = Runs()
    rows = [{"id": None}, {"code": "a"}]
    assert run(rows) == run(rows) == rows
    assert run(rows[:1]) == run(rows[:1]) == rows[:1]


def test_lists_come_out_as_lists():
    stream = running(key_properties=("id",), manual=False)
    assert list(changed_only(stream, [[{"id": 1}, {"id": 2}], [], [{"id": 3}]])) == [
        [{"id": 1}, {"id": 2}],
        [{"id": 3}],
    ]


def test_values_of_drivers_have_digests():
    run = Runs()
    rows = [
        {"id": Decimal("1.10"), "at": dt.datetime(2024, 5, 1, tzinfo=dt.UTC), "raw": b"x", "nested": {"b": 1, "a": [2]}}
    ]
    assert run(rows) == rows
    assert run([{"nested": {"a": [2], "b": 1}, **rows[0]}]) == []
    with pytest.raises(StreamError, match="values that have a form in JSON"):
        run([{"id": 1, "odd": object()}])


def test_too_many_rows_are_an_error_that_says_what_they_would_cost():
    with pytest.raises(
        StreamError, match=r"more than 3 rows \(most=\), whose digests would be 0.0 MB of each STATE.\n"
    ):
        Runs()([{"id": i} for i in range(4)], most=3)
    assert len(Runs()([{"id": i} for i in range(3)], most=3)) == 3


@pytest.mark.parametrize("broken", ["%%%", "AAAA", 5, {"a": 1}, "ä"])
def test_digests_that_cant_be_read_make_all_rows_come(broken, caplog):
    run = Runs()
    run.state = {"digests": broken}
    assert run([{"id": 1}]) == [{"id": 1}]
    assert "stream_state.digests holds no digests; all rows come" in caplog.text
    assert run([{"id": 1}]) == []


def test_the_digests_of_a_row_take_22_bytes():
    run = Runs()
    run([{"id": i} for i in range(3000)])
    assert len(run.state["digests"]) <= 22 * 3000


def test_of_a_full_table_all_rows_come_since_targets_drop_the_others(caplog):
    rows = [{"id": 1}, {"id": 2}]
    tap = tap_of(lambda stream: changed_only(stream, rows), replication_key=None, bookmark_strategy=None)
    out = run_tap(tap)
    assert "For changes alone declare replication_method='LOG_BASED'" in caplog.text
    assert "stream_state" not in str(out.states)
    assert run_tap(tap, state=out.states[-1]).records("rows") == rows


def test_a_substream_is_refused(caplog):
    caplog.set_level(logging.CRITICAL)
    tap = burler.tap("tap-families")
    tap.sync("parents", key_properties="id", replication_key="id", schema=FIELDS)(lambda: [{"id": 1}])
    tap.sync("children", parent="parents", key_properties="id", schema=FIELDS)(lambda stream: changed_only(stream, []))
    error = run_tap(tap).result.errors["children"].failures[0].error
    assert "changed_only() is not for substreams" in str(error)


def test_a_stream_that_is_selected_later_gets_its_past():
    def rows(stream):
        for row in changed_only(stream, iter([{"id": 1}, {"id": 2}])):
            yield row
            yield "beside", dict(row)

    tap = tap_of(rows, **PLAIN)
    tap.stream("beside", emitted_by="rows", key_properties="id", schema=FIELDS)
    out = run_tap(tap, select="rows")
    both = run_tap(tap, state=out.states[-1])
    assert len(both.records("beside")) == 2
    again = run_tap(tap, state=both.states[-1])
    assert again.records("rows") == again.records("beside") == []


# ---- in a run ------------------------------------------------------------------------------------------


def row(number, change):
    return {"id": number, "code": str(change)}


@settings(deadline=None, max_examples=60)
@given(st.lists(st.dictionaries(st.integers(0, 8), st.integers(0, 2), min_size=1), min_size=1, max_size=5), st.data())
def test_a_target_always_has_what_the_source_had_whatever_is_killed_in_between(tables, data):
    target, state = {}, {}
    for table in tables:
        fails_at = data.draw(st.none() | st.integers(0, len(table)))
        for fails in [fails_at, None] if fails_at is not None else [None]:

            def source(stream, table=table, fails=fails):
                def rows():
                    for i, (number, change) in enumerate(table.items()):
                        if i == fails:
                            raise ConnectionError("gone")
                        yield row(number, change)

                yield from changed_only(stream, rows())

            out = run_tap(tap_of(source, **PLAIN), state=state)
            assert bool(out.result.errors) == (fails is not None and fails < len(table))
            target |= {one["id"]: one["code"] for one in out.records("rows")}
            state = out.states[-1]
        assert {number: target[number] for number in table} == {number: str(change) for number, change in table.items()}


@pytest.mark.parametrize("fails_at", [None, 0, 3, 9])
def test_no_row_is_lost_whenever_the_run_is_killed(fails_at):
    def tap(fails_at=None):
        def rows():
            for i in range(10):
                if i == fails_at:
                    raise ConnectionError("gone")
                yield row(i, 0)

        return tap_of(lambda stream: changed_only(stream, rows()), **PLAIN)

    assert lost_from_any_state(tap(fails_at), tap(), set(range(10))) == set()
