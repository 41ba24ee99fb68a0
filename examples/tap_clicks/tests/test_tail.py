"""tap_clicks with --tail, as a process beside a real server: nothing is lost, whoever dies, and nothing is acknowledged
ahead of its STATE."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import tap_clicks
from tap_clicks import ids

FOLDER = Path(tap_clicks.__file__).parent
ROOT = FOLDER.parents[1]
SOON = ("--tail", "--state-message-min-interval-ms", "100")
CLICKS = ("--select", "clicks")


class Adding:
    """Adds clicks, a few at a time, until the block ends."""

    def __init__(self, shop, count=7, pause_seconds=0.002):
        self._shop, self._count, self._pause = shop, count, pause_seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._add, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_error):
        self._over.set()
        self._thread.join()

    def _add(self):
        while not self._over.wait(self._pause):
            self._shop.add(self._count)


def test_batch_then_stream_loses_nothing_and_repeats_nothing(shop, start):
    """Clicks are added before, while and after the tail function takes over from the sync function."""
    before = shop.add(3000)
    with Adding(shop):
        tap = start(*SOON, *CLICKS)
        tap.until(lambda: len(tap.rows()) > len(before), "more has come than was there")
        shop_had = len(shop.ids)
        tap.until(lambda: len(tap.rows()) > shop_had + 100, "the stream has been followed for a while")
    tap.until(shop.somebody_is_blocked, "all has been read, and the tap waits")
    shop.add(1)
    tap.until(lambda: shop.ids[-1] in tap.ids[-1:], "the last click has come")
    assert tap.ids == shop.ids
    assert tap.end(signal.SIGTERM) == 0, tap.said
    assert tap.covered == shop.ids[-1] and tap.ids == shop.ids


def test_killed_again_and_again_it_goes_on_at_its_last_state(shop, start):
    shop.add(2000)
    state, got, again = None, set(), 0
    with Adding(shop):
        for enough in (1, 700):
            tap = start(*SOON, *CLICKS, state=state)
            tap.until(lambda tap=tap, enough=enough: len(tap.rows()) >= enough and tap.state, "some came, with a STATE")
            assert tap.end(signal.SIGKILL) == -signal.SIGKILL
            again += len(got & set(tap.ids))
            got |= set(tap.ids)
            state = tap.state or state
    tap = start(*SOON, *CLICKS, state=state)
    tap.until(lambda: tap.covered == shop.ids[-1], "the end is covered")
    got |= set(tap.ids)
    assert got == set(shop.ids)
    assert tap.end(signal.SIGTERM) == 0
    assert again < len(shop.ids)  # not everything, each time


def test_pending_shrinks_with_each_state_and_is_never_ahead_of_it(shop, start):
    shop.add(50)
    tap = start(*SOON, *CLICKS)
    tap.until(lambda: len(tap.rows()) >= 50, "it reads")
    steps = set()

    def five_steps():
        """What Redis knows is asked for before what the tap has written: so the STATEs can only be later."""
        added, last = list(shop.ids), ids.number(shop.handed_out())
        pending = set(shop.pending())
        acknowledged = [one for one in added if one not in pending and ids.number(one) <= last]
        if acknowledged:
            assert ids.number(acknowledged[-1]) <= ids.number(tap.covered)
            steps.add(acknowledged[-1])
        return len(steps) >= 5

    with Adding(shop, pause_seconds=0.01):
        tap.until(five_steps, "it has acknowledged some, five times")
    tap.until(lambda: tap.covered == shop.ids[-1], "the end is covered")
    tap.until(lambda: not shop.pending(), "nothing is pending")
    assert tap.end(signal.SIGTERM) == 0


def test_pending_is_what_no_state_covers(shop, start):
    """Here a STATE comes every 1,000 clicks, and not by time."""
    tap = start("--tail", "--state-message-min-interval-ms", "600000", *CLICKS)
    tap.until(shop.somebody_is_blocked, "it waits")
    for count in (1300, 900):
        shop.add(count)
        tap.until(lambda: len(tap.rows()) == len(shop.ids), "all have come")
        tap.until(lambda: tap.covered == shop.ids[len(shop.ids) // 1000 * 1000 - 1], "there is a STATE")
        tap.until(lambda: shop.pending() == shop.ids[len(shop.ids) // 1000 * 1000 :], "what it covers is acknowledged")
    assert tap.end(signal.SIGTERM) == 0, tap.said


def test_without_a_state_nothing_is_acknowledged_until_the_end(shop, start):
    shop.add(20)
    tap = start("--tail", "--state-message-min-interval-ms", "600000", *CLICKS)
    tap.until(lambda: len(tap.rows()) == 20, "all have come")
    more = shop.add(5)
    tap.until(lambda: tap.ids[-5:] == more, "so have those of the stream")
    assert tap.state is None and shop.pending() == shop.ids
    assert tap.end(signal.SIGTERM) == 0, tap.said
    assert tap.covered == shop.ids[-1] and shop.pending() == []


def test_only_what_a_file_confirms_is_acknowledged_if_there_is_one(shop, start, tmp_path):
    stored = tmp_path / "stored.json"
    shop.add(10)
    tap = start(*SOON, *CLICKS, acknowledge_state_file=str(stored))
    tap.until(lambda: tap.covered == shop.ids[-1], "there is a STATE")
    first = tap.state
    shop.add(5)
    tap.until(lambda: tap.covered == shop.ids[-1], "there is another one")
    assert shop.pending() == shop.ids
    stored.write_text(json.dumps(first))
    assert tap.end(signal.SIGTERM) == 0, tap.said  # the file is looked at every ten seconds, and at the end
    assert shop.pending() == shop.ids[10:]


def test_killed_before_its_first_state_the_pending_clicks_come_again(shop, start):
    shop.add(20)
    tap = start("--tail", "--state-message-min-interval-ms", "600000", *CLICKS)
    tap.until(lambda: len(tap.rows()) == 20, "all have come")
    assert tap.end(signal.SIGKILL) == -signal.SIGKILL
    assert shop.pending() == shop.ids and tap.state is None
    tap = start(*SOON, *CLICKS)
    tap.until(lambda: tap.ids == shop.ids, "they come again")
    tap.until(lambda: not shop.pending(), "they are acknowledged")


def test_sigterm_while_it_waits_for_clicks(shop, start):
    shop.add(10)
    tap = start("--tail", *CLICKS, block_seconds=600)
    tap.until(lambda: len(tap.rows()) == 10, "all have come")
    tap.until(shop.somebody_is_blocked, "it waits in XREADGROUP")
    began = time.monotonic()
    assert tap.end(signal.SIGTERM) == 0, tap.said
    assert time.monotonic() - began < 5  # it would wait ten minutes
    assert tap.covered == shop.ids[-1] and tap.messages[-1]["type"] == "STATE"


@pytest.mark.parametrize("kill", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_a_server_that_is_started_again_costs_no_click(shop, start, kill):
    shop.add(500)
    tap = start(*SOON, *CLICKS)
    tap.until(lambda: len(tap.rows()) == 500, "all have come")
    tap.until(shop.somebody_is_blocked, "it waits")
    said = len(tap.said)
    shop.stop(kill=kill)
    tap.until(lambda: "WARNING" in tap.said[said:], "it says that the server has gone")
    shop.start()
    shop.add(300)
    tap.until(lambda: set(tap.ids) == set(shop.ids), "the rest comes")
    tap.until(lambda: tap.covered == shop.ids[-1] and not shop.pending(), "all is covered and acknowledged")
    assert tap.end(signal.SIGTERM) == 0, tap.said


def test_a_server_that_comes_late_is_waited_for(shop, start):
    shop.add(5)
    shop.stop()
    tap = start(*SOON, *CLICKS)
    tap.until(lambda: "failure 1" in tap.said, "it has asked in vain")
    shop.start()
    tap.until(lambda: tap.ids == shop.ids, "all have come")
    assert tap.end(signal.SIGTERM) == 0, tap.said


def test_a_click_that_does_not_fit_ends_the_run_after_some_tries(shop, start):
    """What is before it is out and covered, and it stays pending: nothing passes it."""
    shop.add(4)
    tap = start(*SOON, *CLICKS, tail_max_retries=1)
    tap.until(shop.somebody_is_blocked, "it waits")
    with shop.client() as client:
        bad = client.xadd("clicks", {"took_ms": "soon"})
    shop.add(2)
    assert tap.process.wait(30) == 1
    assert "CRITICAL" in tap.said and "took_ms" in tap.said
    assert tap.ids == shop.ids[:4] and tap.covered == shop.ids[3]
    assert bad in shop.pending()


def test_sighup_makes_a_new_connection_and_loses_nothing(shop, start):
    shop.add(10)
    tap = start(*SOON, *CLICKS)
    tap.until(lambda: len(tap.rows()) == 10, "all have come")
    tap.until(shop.somebody_is_blocked, "it waits")
    old = shop.connections()
    with Adding(shop):
        tap.process.send_signal(signal.SIGHUP)
        tap.until(lambda: shop.connections() and not shop.connections() & old, "all its connections are new")
    tap.until(lambda: tap.covered == shop.ids[-1] and not shop.pending(), "all is covered and acknowledged")
    assert tap.ids == shop.ids
    assert tap.end(signal.SIGTERM) == 0, tap.said


class Losing:
    """Stands between tap and server, and once cuts the connection on which a reply holds a certain text, without
    handing the reply on."""

    def __init__(self, port, text):
        self._port, self._text = port, text
        self.lost = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listening.getsockname()[1]}/0"
        self._sockets = [self._listening]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        for one in self._sockets:
            one.close()

    def _accept(self):
        while True:
            try:
                near, _ = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                return
            self._sockets += [near, far]
            threading.Thread(target=self._hand_on, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._hand_on, args=(far, near, True), daemon=True).start()

    def _hand_on(self, source, sink, replies):
        try:
            while data := source.recv(65536):
                if replies and self._text in data and not self.lost.is_set():
                    self.lost.set()
                    break
                sink.sendall(data)
        except OSError:
            pass
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def losing(shop):
    """Makes one, which ends with the test."""
    made = []

    def make(text):
        made.append(Losing(shop.port, text))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_reply_that_is_lost_with_its_connection_comes_again(shop, start, losing):
    """Redis has handed the clicks out, and they never arrived: what comes behind them must not pass them."""
    shop.add(3)
    between = losing(b"/lost-on-the-way")
    tap = start(*SOON, *CLICKS, url=between.url)
    tap.until(lambda: len(tap.rows()) == 3, "all have come")
    tap.until(shop.somebody_is_blocked, "it waits")
    with shop.client() as client:
        shop.ids.append(client.xadd("clicks", {"page": "/lost-on-the-way"}))
    assert between.lost.wait(30)
    shop.add(2)
    tap.until(lambda: tap.covered == shop.ids[-1], "the end is covered")
    assert tap.ids == shop.ids
    assert tap.end(signal.SIGTERM) == 0, tap.said


def test_a_stream_beside_it_that_loses_its_connection_stops_no_acknowledgement(shop, start, losing):
    """The client is made anew then, while the tail function goes on with the old one."""
    shop.add(3)
    between = losing(b"Spring")
    tap = start(*SOON, url=between.url)
    tap.until(lambda: _tables(tap) and len(tap.rows()) == 3, "all have come, the campaigns at the second try")
    assert between.lost.is_set()
    shop.add(3)
    tap.until(lambda: tap.covered == shop.ids[-1] and not shop.pending(), "all is covered and acknowledged")
    assert tap.ids == shop.ids
    assert tap.end(signal.SIGTERM) == 0, tap.said


def test_the_campaigns_are_read_again_while_clicks_flow(shop, start, tmp_path):
    command = [sys.executable, "-m", "burler", "discover", str(FOLDER)]
    asked = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "TAP_CLICKS_URL": shop.url})
    catalog = json.loads(asked.stdout)
    for entry in catalog["streams"]:
        of_stream = next(one["metadata"] for one in entry["metadata"] if one["breadcrumb"] == [])
        of_stream["selected"] = True
        if entry["tap_stream_id"] == "campaigns":
            of_stream["max-full-table-age-seconds"] = 0.3
    (tmp_path / "catalog.json").write_text(json.dumps(catalog))
    with Adding(shop, count=2, pause_seconds=0.02):
        tap = start(*SOON, "--catalog", str(tmp_path / "catalog.json"))
        tap.until(lambda: _tables(tap), "the campaigns have come")
        with shop.client() as client:
            client.hdel("campaigns", "c2")
            client.hset("campaigns", "c9", json.dumps({"name": "New"}))
        tap.until(lambda: {"c1", "c3", "c9"} in _tables(tap), "they have come once more")
        had = len(shop.ids)
        tap.until(lambda: len(tap.rows()) > had, "clicks come meanwhile")
    tap.until(lambda: tap.covered == shop.ids[-1], "the end is covered")
    assert tap.end(signal.SIGTERM) == 0, tap.said
    assert tap.ids == shop.ids
    assert set(map(frozenset, _tables(tap))) == {frozenset({"c1", "c2", "c3"}), frozenset({"c1", "c3", "c9"})}


def _tables(tap):
    """The ids of each table of campaigns that was whole."""
    found, rows = [], {}
    for message in tap.messages:
        if message.get("stream") == "campaigns" and message["type"] == "RECORD":
            rows.setdefault(message["version"], set()).add(message["record"]["id"])
        elif message["type"] == "ACTIVATE_VERSION" and rows.get(message["version"]):
            found.append(rows[message["version"]])
    return found
