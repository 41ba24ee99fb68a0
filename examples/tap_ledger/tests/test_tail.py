"""tap_ledger as it runs for ever: what arrives, what comes again after a kill, what the slot keeps."""

import json
import os
import signal
import time

import pytest

from support.clocks import until
from tap_ledger.tests.follow import Copy, Writers, no_row_behind_the_state_that_covers_it, place_of

ONLY = ("--select", "entries")


def test_snapshot_and_changes_lose_nothing_while_others_write(books, start):
    with Writers(books):
        until(lambda: len(books.entries()) > 220, "they are at it")
        tap = start(*ONLY)
        tap.until(lambda: len(tap.rows()) > 800, "snapshot and changes have come")
    books.book("the last one")
    tap.until_memo("the last one")
    assert tap.end(signal.SIGTERM) == 0
    assert Copy().take(tap.messages).entries() == books.entries()
    no_row_behind_the_state_that_covers_it(tap.messages)
    assert tap.messages[-1]["type"] == "STATE"
    assert [m["type"] for m in tap.messages].count("ACTIVATE_VERSION") == 2
    deleted = [row for row in tap.rows() if row["_sdc_deleted_at"]]
    assert deleted and set(deleted[0]) == {"id", "_sdc_deleted_at", "_sdc_lsn"}


def killed_while_at_it(tap, before):
    """Its messages up to the kill."""
    tap.until(lambda: len(tap.rows()) > 40 and tap.places and tap.places[-1] > before, "it has got on")
    os.kill(tap.process.pid, signal.SIGKILL)
    tap.process.wait()
    return tap.messages


def test_after_each_kill_it_goes_on_without_a_gap(books, start):
    copy, state = Copy(), None
    with Writers(books):
        for _ in range(2):
            tap, before = start(*ONLY, state=state, every_ms=50), place_of(state or {}) or 0
            copy.take(killed_while_at_it(tap, before))
            assert before == 0 or all(row["_sdc_lsn"] >= before for row in tap.rows())
            no_row_behind_the_state_that_covers_it(tap.messages)
            state = tap.states[-1]
    tap = start(*ONLY, state=state)
    books.book("the last one")
    tap.until_memo("the last one")
    assert tap.end(signal.SIGTERM) == 0
    assert copy.take(tap.messages).entries() == books.entries()
    assert "ACTIVATE_VERSION" not in [m["type"] for m in tap.messages]


def test_a_snapshot_that_was_killed_is_taken_anew_and_nothing_in_between_is_lost(books, start):
    books.do(
        "insert into entries (account_id, amount, memo) select 1, 1, repeat('x', 500) from generate_series(1, 9999)"
    )
    tap = start(*ONLY)
    tap.until(lambda: len(tap.rows()) > 100, "the snapshot is under way")
    os.kill(tap.process.pid, signal.SIGKILL)
    tap.process.wait()
    assert not tap.places
    books.do("delete from entries where id % 2 = 0", "update entries set memo = 'changed' where id % 3 = 0")
    again = start(*ONLY, state=tap.states[-1] if tap.states else None)
    books.book("the last one")
    again.until_memo("the last one")
    again.end(signal.SIGTERM)
    assert Copy().take(tap.messages).take(again.messages).entries() == books.entries()


def test_the_slot_moves_to_what_a_written_state_covers_and_never_further(books, start):
    tap = start(*ONLY)
    tap.until(lambda: len(tap.rows()) == 200, "the snapshot is out")
    made_at, seen = books.confirmed(), set()

    def look():
        confirmed = books.confirmed()
        assert confirmed in (made_at, *tap.places)  # the tap's lines are read behind the slot: they are never older
        seen.add(confirmed)
        return confirmed

    def is_told_while_rows_come():
        books.book("more")
        return look() != made_at and len(seen) > 3

    tap.until(is_told_while_rows_come, "the slot has moved some times")
    tap.until(lambda: look() == tap.places[-1], "the slot stands where the last STATE does")
    books.book("the last one")
    tap.until_memo("the last one")
    assert tap.end(signal.SIGTERM) == 0
    assert look() == tap.places[-1]


def test_without_a_state_the_slot_keeps_all(books, start):
    tap = start(*ONLY, every_ms=3_600_000)
    tap.until(lambda: len(tap.rows()) == 200, "the snapshot is out")
    made_at = books.confirmed()
    books.book("one")
    tap.until_memo("one")
    lsn = tap.rows()[-1]["_sdc_lsn"]
    assert not tap.states
    assert books.confirmed() == made_at < lsn
    assert tap.end(signal.SIGTERM) == 0
    assert len(tap.states) == 1 and tap.places[-1] > lsn
    assert books.confirmed() == tap.places[-1]


def test_while_only_others_write_the_slot_moves_on_all_the_same(books, start):
    tap = start(*ONLY, every_ms=3_600_000)
    tap.until(lambda: len(tap.rows()) == 200, "the snapshot is out")
    made_at = books.confirmed()
    books.do(*["select pg_logical_emit_message(false, 'other', repeat('x', 1000000))"] * 18)
    tap.until(lambda: tap.places and tap.places[-1] > made_at + 16_000_000, "a STATE without a new row has come")
    tap.until(lambda: books.confirmed() == tap.places[-1], "the slot has moved")
    assert len(tap.rows()) == 200


def test_with_a_state_file_the_slot_moves_to_what_the_file_confirms(books, start, tmp_path):
    confirmed = tmp_path / "confirmed.json"
    tap = start(*ONLY, acknowledge_state_file=str(confirmed))
    tap.until(lambda: tap.places, "a STATE has come")
    made_at, stored = books.confirmed(), tap.states[-1]
    books.book("later")
    tap.until_memo("later")
    tap.until(lambda: tap.places[-1] > place_of(stored), "a later STATE has come")
    assert books.confirmed() == made_at
    confirmed.write_text(json.dumps(stored))
    assert tap.end(signal.SIGTERM) == 0
    assert books.confirmed() == place_of(stored) < tap.places[-1]
    again = start(*ONLY, state=stored, acknowledge_state_file=str(confirmed))
    again.until_memo("later")


def test_sigterm_while_idle_ends_with_a_state_at_once(books, start):
    tap = start(every_ms=3_600_000)
    tap.until(lambda: len(tap.rows()) == 200 and len(tap.rows("accounts")) == 20, "all is out")
    began = time.monotonic()
    assert tap.end(signal.SIGTERM) == 0
    assert time.monotonic() - began < 5
    assert [m["type"] for m in tap.messages].count("STATE") == 1
    bookmarks = tap.states[-1]["bookmarks"]
    assert set(bookmarks) == {"entries", "accounts"} and place_of(tap.states[-1])
    assert not books.run(tap.states[-1]).records("entries")


def test_the_server_may_be_restarted(books, start, database_server):
    tap = start()
    tap.until(lambda: len(tap.rows()) == 200 and len(tap.rows("accounts")) == 20, "all is out")
    database_server.stop()
    tap.until(lambda: "stream 'entries'" in tap.said, "it has noticed")
    database_server.start()
    books.book("after the restart")
    books.do("update accounts set name = 'Renamed' where id = 7")
    tap.until_memo("after the restart")
    assert [row["memo"] for row in tap.rows()].count("after the restart") == 1
    tap.until(lambda: books.confirmed() == tap.places[-1], "the slot moves on")
    tap.until(lambda: tap.rows("accounts")[-1]["name"] == "Renamed", "it listens again, and has polled")
    assert tap.end(signal.SIGTERM) == 0
    assert Copy().take(tap.messages).entries() == books.entries()


def test_a_server_that_goes_down_is_not_held_up_by_what_is_not_acknowledged(books, start, database_server):
    tap = start(*ONLY)
    tap.until(lambda: tap.places and books.confirmed() == tap.places[-1], "something is acknowledged")
    books.do("select pg_logical_emit_message(false, 'other', 'nothing of the table')")  # no STATE will cover it
    began = time.monotonic()
    database_server.stop()  # after 20 seconds it would end the hard way
    took = time.monotonic() - began
    database_server.start()
    assert took < 15
    books.book("after the restart")
    tap.until_memo("after the restart")


def test_a_notification_brings_a_row_long_before_the_next_poll(books, start):
    tap = start("--select", "accounts", "--new-record-polling-interval-ms", "3600000")
    tap.until(lambda: len(tap.rows("accounts")) == 20, "the first poll is done")
    listening = "select count(*) from pg_stat_activity where query like 'listen%'"
    tap.until(lambda: books.ask(listening)[0][0], "it listens")
    for name in ("Once", "Twice"):
        books.do(f"update accounts set name = '{name}' where id = 7")
        tap.until(lambda name=name: tap.rows("accounts")[-1]["name"] == name, "the row has come")
    assert len(tap.rows("accounts")) == 22  # what the minute of lookback brings again goes no further
    assert tap.end(signal.SIGTERM) == 0


def test_a_new_column_stops_the_stream_until_the_tap_looks_again(books, start):
    tap = start(*ONLY)
    tap.until(lambda: tap.places, "a STATE has come")
    books.do("alter table entries add column checked_by text", "update entries set checked_by = 'Ann' where id = 1")
    tap.until(lambda: "has a new column 'checked_by'" in tap.said, "it says so")
    assert tap.rows()[-1].get("checked_by") is None and tap.process.poll() is None
    tap.process.send_signal(signal.SIGHUP)
    tap.until(lambda: tap.rows()[-1].get("checked_by") == "Ann", "the row has come")
    last = [m for m in tap.messages if m["type"] == "SCHEMA"][-1]
    assert "checked_by" in last["schema"]["properties"]


@pytest.mark.parametrize("how", ["dropped", "moved"])
def test_a_slot_that_has_forgotten_changes_is_an_error_or_a_new_snapshot(books, start, how):
    first = books.run()
    books.book("between")
    if how == "dropped":
        books.do(f"select pg_drop_replication_slot('{books.slot}')")
    else:
        books.do(f"select pg_replication_slot_advance('{books.slot}', pg_current_wal_lsn())")
    tap = start(*ONLY, "--tail-max-retries", "0", state=first.states[-1])
    assert tap.process.wait(30) == 1
    said = {"dropped": "was dropped: what has changed since", "moved": "somebody acknowledged"}[how]
    assert said in tap.said and "Begin anew, without this stream's state" in tap.said
    assert not tap.rows()
    anew = start(*ONLY, "--tail-max-retries", "0", "--tail-full-table-on-failure", state=first.states[-1])
    anew.until_memo("between")
    books.book("after")
    anew.until_memo("after")
    assert Copy().take(first.messages).take(anew.messages).entries() == books.entries()
