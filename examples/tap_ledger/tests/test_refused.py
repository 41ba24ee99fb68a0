"""What tap_ledger refuses, each with its cure: tables, publications, slots and servers that would leave a gap."""

import os
import subprocess

import psycopg
import pytest

import burler
import tap_ledger
from burler.testing import run_tap
from support.clocks import until
from tap_ledger import pgoutput, server
from tap_ledger.client import Ledger
from tap_ledger.tests.follow import error_of

REFUSED = {
    "alter table entries drop constraint entries_pkey": "has no primary key",
    "alter table entries replica identity nothing": "replica identity",
    "drop publication burler_ledger": "CREATE PUBLICATION burler_ledger FOR TABLE public.entries",
    "alter publication burler_ledger set table accounts": "ALTER PUBLICATION burler_ledger ADD TABLE public.entries",
    "alter publication burler_ledger set (publish = 'insert')": "leaves changes of public.entries out",
    "alter publication burler_ledger set table entries where (id > 5)": "leaves changes of public.entries out",
    "alter publication burler_ledger set table entries (id, memo)": "leaves changes of public.entries out",
    "alter role tap noreplication": "ALTER ROLE ... REPLICATION",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_what_can_t_be_followed_is_refused_before_the_first_row(books, statement):
    books.do(statement)
    try:
        out = books.run()
    finally:
        books.do("alter role tap replication")
    assert REFUSED[statement] in error_of(out) and error_of(out).startswith("stream 'entries': ")
    assert not out.records("entries")


def test_a_server_without_a_logical_log_is_refused(tmp_path):
    with server.Server(wal_level="replica") as plain:
        tap_ledger.ledger.make(plain.url(), entries=1)
        out = run_tap(tap_ledger.tap, {"database_url": plain.url("ledger")}, select="entries")
    assert "ALTER SYSTEM SET wal_level = logical" in error_of(out)


def test_a_database_that_is_not_there_is_an_error_without_its_password(books):
    config = {**books.config, "database_url": books.config["database_url"].replace("/books", "/nowhere")}
    client = Ledger(config["database_url"], slot="s", publication="p")
    with pytest.raises(burler.BurlerError, match='database "nowhere" does not exist'):
        next(client.notifications("x", None))


def test_a_table_that_was_made_anew_is_not_taken_for_the_old_one(books):
    first = books.run()
    books.do("create table other (like entries including all)", "drop table entries")
    books.do("alter table other rename to entries")
    books.do("alter publication burler_ledger add table entries", "grant select on entries to tap")
    assert "was dropped and made anew" in error_of(books.run(first.states[-1]))


def test_a_state_of_another_server_is_refused(books):
    state = books.run().states[-1]
    state["bookmarks"]["entries"]["stream_state"]["lsn"] += 1 << 40
    assert "this is another server, or an older copy of it" in error_of(books.run(state))


def test_a_slot_of_somebody_else_is_left_alone(books):
    books.do(f"select pg_create_logical_replication_slot('{books.slot}', 'test_decoding')")
    assert "is not this tap's (plugin test_decoding" in error_of(books.run())


def test_a_slot_in_use_is_an_error_that_names_the_process(books, monkeypatch):
    first = books.run()
    monkeypatch.setattr("tap_ledger.log.PATIENCE_SECONDS", 0.3)
    line = [server.programs() / "pg_recvlogical", "-d", books.url, "-S", books.slot, "--start", "-f", os.devnull]
    line += ["-o", "proto_version=1", "-o", "publication_names=burler_ledger"]
    other = subprocess.Popen(line, stderr=subprocess.DEVNULL)
    try:
        active = f"select active_pid from pg_replication_slots where slot_name = '{books.slot}'"
        pid = until(lambda: books.ask(active)[0][0], "the other one reads")
        books.book("new")
        said = error_of(books.run(first.states[-1]))
    finally:
        other.kill()
        other.wait()
    assert f"is in use by process {pid} of the server" in said and f"pg_terminate_backend({pid})" in said


def test_a_transaction_that_stays_open_is_named(books, monkeypatch):
    monkeypatch.setattr("tap_ledger.slot.LOCK_SECONDS", 0.2)
    with psycopg.connect(books.url) as writer:
        writer.execute("insert into entries (account_id, amount) values (1, 1)")
        said = error_of(books.run())
        pid = writer.info.backend_pid
    assert "a slot can't be made" in said and str(pid) in said
    assert len(books.run().records("entries")) == 201


def test_a_slot_that_the_server_has_emptied_is_an_error_and_made_anew_without_a_state():
    with server.Server(max_slot_wal_keep_size="1MB", max_wal_size="32MB", min_wal_size="32MB") as small:
        tap_ledger.ledger.make(small.url(), entries=10)
        config = {"database_url": small.url("ledger")}
        first = run_tap(tap_ledger.tap, config, select="entries")
        with psycopg.connect(small.url("ledger"), autocommit=True) as connection:
            for _ in range(4):
                connection.execute("select pg_logical_emit_message(false, 'other', repeat('x', 10000000))")
                connection.execute("select pg_switch_wal()")
                connection.execute("checkpoint")
            lost = connection.execute("select wal_status from pg_replication_slots").fetchone()
            assert lost == ("lost",)
        said = error_of(run_tap(tap_ledger.tap, config, state=first.states[-1], select="entries"))
        assert "max_slot_wal_keep_size" in said and "Begin anew" in said
        anew = run_tap(tap_ledger.tap, config, select="entries")
        assert len(anew.records("entries")) == 10 and not anew.result.errors


def test_a_message_of_a_kind_that_nobody_knows_is_an_error():
    with pytest.raises(burler.BurlerError, match="kind b'S'"):
        pgoutput.decode(b"S\0\0\0\1")
    assert pgoutput.decode(b"O" + bytes(9)) is None
