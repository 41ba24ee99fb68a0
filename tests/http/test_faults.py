"""A source that fails in every way, with workers: all rows arrive once it recovers, else there is one clear error."""

from __future__ import annotations

import threading
import time

import pytest
from faultserver import MIB, PASSING, ROW_TEXT, SLOW, FaultServer

import burler
from burler.errors import HttpError
from burler.testing import run_tap

SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "stream": {"type": "string"}, "text": {"type": "string"}},
}


class Waits:
    """Notes waits in place of waiting, so that nothing depends on time."""

    def __init__(self):
        self.seconds = []

    def __call__(self, seconds):
        self.seconds.append(seconds)
        time.sleep(0.001)


def client_of(server, **options):
    named = {"timeout_seconds": (30.0, 30.0), "max_response_bytes": 2 * MIB, "retries": 5, "sleep": Waits()}
    return burler.http.Client(server.url, **named | options)


def tap_of(server, *, workers=1, names=None, **options):
    """A tap with a stream ``parts`` of one partition for each stream of the source."""
    tap = burler.tap("tap-faults")
    names = names or list(server.streams)
    made = []

    @tap.client
    def client():
        made.append(client_of(server, **options))
        return made[0]

    @tap.partitions("parts")
    def parts():
        for name in names:
            yield {"name": name}

    @tap.sync("parts", key_properties=["stream", "id"], schema=SCHEMA, workers=workers)
    def rows(client, partition, stream):
        yield from client.pages(f"/rows/{partition['name']}", endpoint="/rows/{name}")
        made.append(stream.tally.to_json())

    return tap, made


def expected(server, names=None):
    return [row for name in names or server.streams for row in server.rows(name)]


def sorted_rows(rows):
    return sorted(rows, key=lambda row: (row["stream"], row["id"]))


@pytest.mark.parametrize("kind", PASSING)
def test_every_fault_passes_and_all_rows_arrive(kind):
    with FaultServer(streams={"a": 250}, kinds=[kind], rate=0.6, in_a_row=2, seed=4) as server:
        # Where it is the time that ends a try, a slow machine may end more of them than the server means to.
        slow = {"timeout_seconds": (30.0, 0.3), "retries": 50} if kind in SLOW else {}
        tap, made = tap_of(server, **slow)
        out = run_tap(tap)
        made[0].close()
        assert not out.result.errors
        assert sorted_rows(out.records("parts")) == expected(server)
        assert server.faults[kind] >= 2, "the seed brings too few faults to show anything"


@pytest.mark.parametrize("seed", range(3))
def test_a_storm_of_faults_with_workers_brings_all_rows_exactly_once(seed):
    kinds = [kind for kind in PASSING if kind not in SLOW]
    names = {f"part-{number}": 300 + 37 * number for number in range(8)}
    with FaultServer(streams=names, kinds=kinds, rate=0.4, seed=seed) as server:
        tap, made = tap_of(server, workers=4)
        out = run_tap(tap)
        made[0].close()
        assert not out.result.errors
        assert sorted_rows(out.records("parts")) == sorted_rows(expected(server))
        assert sum(server.faults.values()) >= 10


def test_the_report_counts_what_was_sent_and_why_it_was_sent_again():
    kinds = ["429", "500", "drop", "html", "loop"]
    with FaultServer(streams={"a": 1500}, kinds=kinds, rate=0.6, seed=1) as server:
        tap, made = tap_of(server)
        assert not run_tap(tap).result.errors
        made[0].close()
        counts = made[1]
        faults, retries = server.faults, counts["retries"]
        assert min(faults[kind] for kind in kinds) > 0, "the seed brings too few faults to show anything"
        assert counts["requests"] == sum(server.requests.values())
        assert retries["429"] == faults["429"]
        assert retries["500"] == faults["500"]
        assert retries["no answer"] == faults["drop"]
        assert retries["bad body"] == faults["html"]
        assert retries.keys() <= {"429", "500", "no answer", "bad body", "redirects"}
        assert counts["bytes"] > 1500 * len(ROW_TEXT)


LASTING = [
    ("500", 500, "500 Internal Server Error"),
    ("429", 429, "429 Too Many Requests"),
    ("drop", None, "closed before the reply was complete"),
    ("reset", None, "closed before the reply was complete"),
    ("silent", None, "nothing came for 1 seconds"),
    ("stalls", 200, "nothing came for 1 seconds"),
    ("half", 200, "broke off"),
    ("half-chunked", 200, "broke off"),
    ("html", 200, "HTML or XML instead of JSON"),
    ("empty", 200, "an empty body"),
    ("bad-json", 200, "breaks off"),
    ("loop", 302, "redirects in a circle"),
    ("huge", 200, "more than 2,097,152 bytes"),
    ("huge-said", 200, "more than 2,097,152 bytes"),
    ("bomb", 200, "more than 2,097,152 bytes"),
    ("bad-gzip", 200, "gzip"),
    ("half-gzip", 200, "gzip breaks off"),
    ("garbage", None, "no HTTP reply"),
]


@pytest.mark.parametrize(("kind", "status", "fact"), LASTING, ids=[case[0] for case in LASTING])
def test_a_fault_that_lasts_is_one_clear_error(kind, status, fact):
    tries = 2 if kind in SLOW else 3
    slow = {"timeout_seconds": (30.0, 1.0)} if kind in SLOW else {}
    with FaultServer(lasting={"things": kind}) as server, client_of(server, retries=tries - 1, **slow) as client:
        with pytest.raises(HttpError) as caught:
            client.json("/rows/things", params={"page": 0})
        error = caught.value
        assert fact in str(error)
        assert f"GET {server.url}/rows/things?page=0: " in str(error)
        assert f"after {tries} tries" in str(error)
        assert len(str(error).splitlines()) <= 3
        assert error.attempts == tries
        assert error.status == status
        assert error.__cause__ is None
        assert server.faults[kind] >= tries


def test_a_source_that_never_recovers_fails_its_stream_and_no_other():
    with FaultServer(streams={"good": 300, "bad": 300}, lasting={"bad": "500"}) as server:
        tap, made = tap_of(server, names=["good"])

        @tap.sync("others", key_properties="id", schema=SCHEMA)
        def others(client):
            yield from client.pages("/rows/bad")

        out = run_tap(tap)
        made[0].close()
        assert out.result.exit_code == 1
        assert list(out.result.errors) == ["others"]
        assert sorted_rows(out.records("parts")) == server.rows("good")
        assert out.records("others") == []
        assert "500 Internal Server Error" in str(out.result.errors["others"])


def test_what_came_before_the_fault_that_lasts_is_out():
    with FaultServer(streams={"a": 300}) as server:
        tap = burler.tap("tap-faults")

        @tap.sync("things", key_properties="id", schema=SCHEMA)
        def things():
            with client_of(server, retries=1) as client:
                for number, page in enumerate(client.pages("/rows/a")):
                    yield page
                    if number == 1:
                        server.lasting["a"] = "503"

        out = run_tap(tap)
        assert "503 Service Unavailable" in str(out.result.errors["things"])
        assert out.records("things") == server.rows("a")[:200]


def test_threads_that_fail_and_recover_share_one_client():
    """The client alone, from many threads: each gets its own rows."""
    names = {f"part-{number}": 200 for number in range(12)}
    found = {}
    with (
        FaultServer(streams=names, kinds=["500", "drop", "half", "429", "bad-json"], rate=0.4) as server,
        client_of(server) as client,
    ):

        def read(name):
            found[name] = list(client.rows(f"/rows/{name}"))

        threads = [threading.Thread(target=read, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == {name: server.rows(name) for name in names}
