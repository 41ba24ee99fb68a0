"""A lake on S3 with many at once: threads, writers, processes."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
from s3_lakes import PATH, content, s3_lake

from burler.lake import Store, load, probe
from support.internals import manifest


@pytest.fixture
def store(s3_server: Any) -> Store:
    """One that has been probed."""
    store = s3_lake(s3_server)
    assert probe(store)
    return store


def together(count: int, act: Callable[[int], None]) -> None:
    errors: list[BaseException] = []

    def run(me: int) -> None:
        try:
            act(me)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(me,)) for me in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_of_four_racing_creators_one_wins(s3_server: Any) -> None:
    stores = [s3_lake(s3_server) for _ in range(4)]
    for store in stores:
        assert probe(store)
    rounds, start = 4, threading.Barrier(4)
    won: list[tuple[int, int]] = []

    def create(me: int) -> None:
        for number in range(rounds):
            start.wait(60)
            try:
                stores[me].create(f"raw/{number}", b"%d" % me)
            except FileExistsError:
                continue
            won.append((number, me))

    together(4, create)
    assert sorted(number for number, _ in won) == list(range(rounds))
    for number, me in won:
        assert content(stores[0], f"raw/{number}") == b"%d" % me


def test_of_racing_changes_none_is_lost(s3_server: Any) -> None:
    stores = [s3_lake(s3_server) for _ in range(4)]

    def register(me: int) -> None:
        for number in range(3):
            line = b'{"schema":{"x":"%d.%d"},"stream":"s","type":"SCHEMA"}' % (me, number)
            manifest.register(stores[me], "t", "s", schema_line=line)

    together(4, register)
    found = load(stores[0], "t", "s")
    assert (len(found.versions), found.sequence) == (12, 12)


def test_a_store_can_be_sent_to_another_process(s3_server: Any, store: Store) -> None:
    store.create(PATH, b"1")
    again = pickle.loads(pickle.dumps(store))
    assert again.url == store.url and content(again) == b"1"
    before = len(s3_server.requests)
    assert probe(again) and len(s3_server.requests) == before  # what is known of the store goes with it


def _read_and_write(store: Store, answers: Any) -> None:
    store.create("raw/child", b"2")
    answers.send(content(store))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_connects_anew(s3_server: Any, store: Store) -> None:
    store.create(PATH, b"1")
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_read_and_write, args=(store, there))
    child.start()
    there.close()
    try:
        assert here.poll(60) and here.recv() == b"1"
    finally:
        child.kill()
        child.join()
    assert content(store, "raw/child") == b"2" and content(store) == b"1"
