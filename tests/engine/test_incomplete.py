"""A source says that there is more than was read (``stream.may_be_incomplete``): what needs all rows has to wait."""

from __future__ import annotations

import logging

import pytest

import burler
from burler.testing import FakeClock, run_tap

ID = {"properties": {"id": {"type": "integer"}, "of": {"type": "integer"}, "at": {"type": "integer"}}}
WHY = "GET /orders: 2 of 5 rows came"


def told(caplog, stream="orders"):
    """What is said to be held back."""
    before = f"stream '{stream}': may be incomplete ({WHY}). "
    return [one.getMessage()[len(before) :] for one in caplog.records if one.getMessage().startswith(before)]


def orders_of(rows, *, cut=True, **options):
    tap = burler.tap("tap-shop")

    @tap.sync("orders", key_properties="id", schema=ID, **options)
    def orders(stream):
        yield from rows
        if cut:
            stream.may_be_incomplete(WHY)

    return tap


TWO = [{"id": 2, "at": 2}, {"id": 1, "at": 1}]


# Full tables


def test_a_full_table_that_may_be_cut_is_not_activated(caplog):
    whole = run_tap(orders_of(TWO, cut=False))
    out = run_tap(orders_of(TWO), state=whole.states[-1])
    assert out.types == ["SCHEMA", "RECORD", "RECORD", "STATE"]
    assert out.states[-1] == whole.states[-1] and out.result.exit_code == 0
    assert told(caplog) == [
        "No ACTIVATE_VERSION of orders follows, so that targets drop none for those that did not come."
    ]


def test_no_row_of_a_first_run_that_was_cut_is_dropped_by_the_second():
    """Before the rows of the first version of all stands its ACTIVATE_VERSION. The second run must not begin so, too:
    other rows may come in it."""
    first = run_tap(orders_of(TWO))
    assert first.types == ["SCHEMA", "ACTIVATE_VERSION", "RECORD", "RECORD", "STATE"]
    second = run_tap(orders_of([{"id": 7, "at": 7}]), state=first.states[-1])
    assert second.types == ["SCHEMA", "RECORD", "STATE"]
    versions = [one["version"] for one in first.messages + second.messages if "version" in one]
    assert versions[0] == versions[1] == versions[2] < versions[3]
    third = run_tap(orders_of(TWO, cut=False), state=second.states[-1])
    assert third.types[-2:] == ["ACTIVATE_VERSION", "STATE"]


def test_a_block_that_may_be_cut_is_no_whole_table(caplog):
    for cut in (False, True):
        tap = burler.tap("tap-shop")

        @tap.sync("orders", key_properties="id", replication_key="at", schema=ID)
        def orders(stream, cut=cut):
            with stream.full_table():
                yield {"id": 1, "at": 1}
                if cut:
                    stream.may_be_incomplete(WHY)

        out = run_tap(tap, state={"bookmarks": {"orders": {"version": 1}}})
        assert out.types.count("ACTIVATE_VERSION") == (0 if cut else 1)
    assert told(caplog)[0].startswith("No ACTIVATE_VERSION of orders follows")


def test_a_table_that_was_interrupted_and_then_cut_begins_anew():
    out = run_tap(orders_of([{"id": 1, "at": 1}, {"id": 2, "at": 2}], resumable_by="at"))
    assert out.types[-2:] == ["RECORD", "STATE"]
    assert list(out.states[-1]["bookmarks"]["orders"]) == ["version"]


# Bookmarks


def test_a_bookmark_that_moves_at_the_end_stays(caplog):
    begun = {"bookmarks": {"orders": {"at": 0}}}
    assert run_tap(orders_of(TWO, cut=False, replication_key="at"), state=begun).states[-1] != begun
    out = run_tap(orders_of(TWO, replication_key="at"), state=begun)
    assert len(out.records("orders")) == 2 and out.states in ([], [begun])
    assert told(caplog) == ["Its bookmark stays at 0: the next run reads the same again."]
    assert run_tap(orders_of(TWO, replication_key="at")).result.state == {}


def test_rows_that_rise_go_on_as_usual(caplog):
    rising = [{"id": 1, "at": 1}, {"id": 2, "at": 2}]
    out = run_tap(orders_of(rising, replication_key="at", order="asc"))
    assert out.states[-1] == {"bookmarks": {"orders": {"at": 2}}}
    assert told(caplog) == []


def test_what_an_author_vouches_for_holds():
    tap = burler.tap("tap-shop")

    @tap.sync("orders", key_properties="id", replication_key="at", bookmark_strategy="manual", schema=ID)
    def orders(stream):
        yield {"id": 1, "at": 1}
        stream.save_bookmark(1)
        stream.may_be_incomplete(WHY)

    assert run_tap(tap).states[-1] == {"bookmarks": {"orders": {"at": 1}}}


def test_a_position_and_what_the_source_said_of_itself_are_not_kept(caplog):
    for cut in (False, True):
        tap = burler.tap("tap-shop")

        @tap.sync("orders", key_properties="id", replication_method="LOG_BASED", schema=ID)
        def orders(stream, cut=cut):
            yield {"id": 1}
            if cut:
                stream.may_be_incomplete(WHY)
            stream.state = {"since": "today"}
            stream.source_state.set("odf/etag", '"a"')

        state = run_tap(tap).result.state
        assert ("stream_state" in str(state)) is not cut
        assert ("odf/etag" in str(state)) is not cut
    assert told(caplog) == ["What its function puts into stream.state at the end is not saved."]


def test_what_the_source_said_of_itself_is_not_kept_where_rows_rise_either():
    """The bookmark moves, since the next run goes on behind it: to that, "nothing has changed" must be no answer."""
    tap = burler.tap("tap-shop")

    @tap.sync("orders", key_properties="id", replication_key="at", order="asc", schema=ID)
    def orders(stream):
        yield [{"id": 1, "at": 1}, {"id": 2, "at": 2}]
        stream.may_be_incomplete(WHY)
        stream.source_state.set("odf/etag", '"a"')

    state = run_tap(tap).result.state
    assert state["bookmarks"]["orders"]["at"] == 2
    assert "odf/etag" not in str(state)


def test_a_further_try_that_is_whole_counts():
    tap, tries = burler.tap("tap-shop"), []

    @tap.sync("orders", key_properties="id", replication_key="at", retry_sync_on=RuntimeError, schema=ID)
    def orders(stream):
        tries.append(1)
        yield from TWO
        if len(tries) == 1:
            stream.may_be_incomplete(WHY)
            raise RuntimeError("once more")

    assert run_tap(tap).states[-1] == {"bookmarks": {"orders": {"at": 2}}}


# Families and partitions


def family(*, cut, parents=None, **options):
    """Three orders, and a line for each. ``cut``: streams that may be cut, of lines those of the second order."""
    tap = burler.tap("tap-shop")

    @tap.sync("orders", key_properties="id", schema=ID, **options)
    def orders(stream):
        yield from parents or [{"id": n, "at": n} for n in (1, 2, 3)]
        if "orders" in cut:
            stream.may_be_incomplete(WHY)

    @tap.sync("lines", parent="orders", key_properties="id", schema=ID)
    def lines(stream, parent):
        yield {"id": 10 * parent["id"], "of": parent["id"]}
        if "lines" in cut and parent["id"] == 2:
            stream.may_be_incomplete(WHY)

    return tap


def activated(out):
    """The streams whose tables were said to be whole, behind their rows."""
    at = max(number for number, kind in enumerate(out.types) if kind == "RECORD")
    return [one["stream"] for one in out.messages[at:] if one["type"] == "ACTIVATE_VERSION"]


def test_substreams_of_a_table_that_may_be_cut_are_none_either(caplog):
    assert activated(run_tap(family(cut=()))) == ["orders", "lines"]
    assert activated(run_tap(family(cut=("orders",)))) == []
    assert told(caplog) == [
        "No ACTIVATE_VERSION of orders, lines follows, so that targets drop none for those that did not come."
    ]


def test_a_substream_that_may_be_cut_leaves_its_parent_whole(caplog):
    out = run_tap(family(cut=("lines",)))
    assert activated(out) == ["orders"] and len(out.records("lines")) == 3
    assert told(caplog, "lines") == [
        "No ACTIVATE_VERSION of lines follows, so that targets drop none for those that did not come."
    ]


@pytest.mark.parametrize("order", ["asc", "none"])
def test_the_parent_s_bookmark_waits_for_children_that_may_be_missing(caplog, order):
    out = run_tap(family(cut=("lines",), replication_key="at", order=order))
    assert out.result.state["bookmarks"]["orders"] == {"at": 2}
    assert told(caplog, "lines") == ["The bookmark of 'orders' does not pass the rows for which it may be."]


def partitioned(*, cut, **options):
    tap = burler.tap("tap-shop")

    @tap.sync("orders", key_properties="id", schema=ID, **options)
    def orders(stream, partition):
        yield {"id": partition["of"], "at": partition["of"]}
        if partition["of"] in cut:
            stream.may_be_incomplete(WHY)

    @tap.partitions("orders", **({"order": "asc"} if options.get("order") else {}))
    def accounts(stream):
        yield from ({"of": number} for number in (1, 2, 3))
        if "accounts" in cut:
            stream.may_be_incomplete(WHY)

    return tap


@pytest.mark.parametrize("cut", [(2,), ("accounts",)])
def test_a_partition_or_a_list_of_them_that_may_be_cut_makes_no_table(cut, caplog):
    assert activated(run_tap(partitioned(cut=()))) == ["orders"]
    out = run_tap(partitioned(cut=cut))
    assert activated(out) == [] and out.result.exit_code == 0
    assert told(caplog) == [
        "No ACTIVATE_VERSION of orders follows, so that targets drop none for those that did not come."
    ]


def test_each_partition_keeps_a_bookmark_of_its_own(caplog):
    state = run_tap(partitioned(cut=(2,), replication_key="at")).result.state
    assert sorted(state["bookmarks"]["orders"]["partitions"]) == ['{"of":1}', '{"of":3}']
    said = "Its bookmark stays where it was in partitions that may be: the next run reads the same again."
    assert told(caplog) == [said]


def test_partitions_that_rise_do_not_pass_one_that_may_be_cut():
    tap = burler.tap("tap-shop")

    @tap.sync("orders", key_properties="id", replication_key="at", schema=ID)
    def orders(stream, partition):
        yield {"id": partition["of"], "at": partition["of"]}
        if partition["of"] == 2:
            stream.may_be_incomplete(WHY)

    tap.partitions("orders", order="asc")(lambda: [{"of": 1}, {"of": 2}, {"of": 3}])
    assert run_tap(tap).result.state["bookmarks"]["orders"]["at"] == 1


# In a tail


def test_each_round_of_a_tail_begins_anew(caplog):
    tap, rounds, clock = burler.tap("tap-shop"), [], FakeClock()

    @tap.sync("orders", key_properties="id", replication_key="at", schema=ID)
    def orders(stream):
        rounds.append(stream.bookmark)
        yield from TWO
        if len(rounds) < 3:
            stream.may_be_incomplete(WHY)

    settings = {"tail": True, "tail_max_rounds": 4, "new_record_polling_interval_ms": 1000}
    run_tap(tap, settings, clock=clock)
    assert rounds == [None, None, None, 2]
    assert len(told(caplog)) == 1


def test_nobody_is_warned_of_what_holds_nothing_back(caplog):
    run_tap(orders_of(TWO, versions=False))
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []
