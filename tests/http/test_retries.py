"""When a request is sent again, how long is waited, and when not."""

from __future__ import annotations

import functools
import itertools
import threading
from email.utils import formatdate

import backoff
import pytest
from clocks import START, Clock

from burler.errors import HttpError, NoAnswerError
from burler.http import Client
from support.servers import serving


class Replies:
    """Replies one after the other; the last one stays."""

    def __init__(self, *replies):
        self.replies = list(replies)

    def __call__(self, asked):
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def asked_with(replies, method="GET", *, options=None, **asked):
    """(the reply's status or the error, the waits, how often the server was asked)."""
    clock = Clock()
    with serving(Replies(*replies)) as server, Client(server.url, **clock.options, **(options or {})) as client:
        try:
            outcome = client.request(method, "/a", **asked).status_code
        except HttpError as error:
            outcome = error
        return outcome, clock.waits, len(server.asked)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_asked_for_again(status):
    outcome, waits, count = asked_with([status, status, 200])
    assert (outcome, count, len(waits)) == (200, 3, 2)
    assert 0 <= waits[0] <= 1
    assert 0 <= waits[1] <= 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 422, 501, 505])
def test_what_does_not_pass_is_an_error_at_once(status):
    outcome, waits, count = asked_with([status])
    assert (outcome.status, outcome.attempts, waits, count) == (status, 1, [], 1)


@pytest.mark.parametrize(
    ("method", "options", "asked", "again"),
    [
        ("GET", {}, {}, True),
        ("HEAD", {}, {}, True),
        ("PUT", {}, {"data": b"x"}, True),
        ("DELETE", {}, {}, True),
        ("POST", {}, {"json": {}}, False),
        ("PATCH", {}, {"json": {}}, False),
        ("POST", {}, {"json": {}, "retry": True}, True),
        ("POST", {"retry_writes": True}, {"json": {}}, True),
        ("POST", {"retry_writes": True}, {"json": {}, "retry": False}, False),
        ("GET", {}, {"retry": False}, False),
        ("PUT", {}, {"data": iter([b"x"])}, False),  # an iterator can be sent once only
    ],
)
def test_which_requests_are_sent_again(method, options, asked, again):
    outcome, _waits, count = asked_with([503, 200], method, options=options, **asked)
    assert count == (2 if again else 1)
    assert outcome == 200 if again else outcome.status == 503


def test_a_post_whose_reply_is_lost_is_not_sent_again_and_the_error_says_why():
    clock = Clock()
    with serving(lambda asked: 1 / 0) as server, Client(server.url, **clock.options) as client:
        with pytest.raises(NoAnswerError) as caught:
            client.post("/orders", json={"n": 1})
        assert len(server.asked) == 1
    assert "could do its work twice. If it may be repeated, say retry=True." in str(caught.value)


def test_retries_end():
    outcome, waits, count = asked_with([503], options={"retries": 3})
    assert (outcome.attempts, count, len(waits)) == (4, 4, 3)
    assert "503 Service Unavailable, after 4 tries" in str(outcome)


def test_no_retries():
    outcome, waits, count = asked_with([503], options={"retries": 0})
    assert (outcome.attempts, count, waits) == (1, 1, [])
    assert str(outcome).splitlines()[0].endswith(": 503 Service Unavailable.")


def test_statuses_that_are_retried_can_be_chosen():
    assert asked_with([404, 200], options={"retry_statuses": [404]})[0] == 200
    assert asked_with([503, 200], options={"retry_statuses": [404]})[0].status == 503


def test_statuses_that_are_allowed_are_not_retried():
    assert asked_with([503, 200], allow_statuses=(503,)) == (503, [], 1)


# Retry-After


@pytest.mark.parametrize("status", [429, 503, 500])
def test_retry_after_in_seconds_is_waited_for(status):
    outcome, waits, _count = asked_with([(status, {"Retry-After": "17"}, b""), 200])
    assert (outcome, waits) == (200, [17.0])


def test_retry_after_as_a_date_counts_from_the_date_of_the_reply():
    """The source's clock is two hours ahead of ours."""
    there = START + 7200
    headers = {"Retry-After": formatdate(there + 30, usegmt=True), "Date": formatdate(there, usegmt=True)}
    assert asked_with([(429, headers, b""), 200])[1] == [30.0]


def test_forms_of_retry_after(monkeypatch):
    """What asks for less than the client's own wait, or can't be read, is answered with that: a second here."""
    monkeypatch.setattr("random.uniform", lambda least, most: most)
    forms = {
        "120": 120,
        " 5 ": 5,
        "1.5": 1.5,
        "0": 1,
        "-3": 1,
        formatdate(START + 60, usegmt=True): 60,
        "Tue, 14 Nov 2023 22:14:20": 60,
        "Tuesday, 14-Nov-23 22:14:20 GMT": 60,
        formatdate(START - 60, usegmt=True): 1,
        "soon": 1,
        "": 1,
        "inf": 1,
        "nan": 1,
        "Tue, 99 Nov 2023 22:14:20 GMT": 1,
    }
    # The Date of the reply is the client's own time: a server of this machine would say today.
    headers = {text: {"Retry-After": text, "Date": formatdate(START, usegmt=True)} for text in forms}
    waited = {text: asked_with([(503, headers[text], b""), 200])[1] for text in forms}
    assert waited == {text: [float(seconds)] for text, seconds in forms.items()}


def test_a_wait_that_is_too_long_is_an_error_that_says_how_long():
    outcome, waits, count = asked_with([(429, {"Retry-After": "3600"}, b""), 200])
    assert (waits, count) == ([], 1)
    assert "429 Too Many Requests; it asks to wait 3600 seconds, max_wait_seconds=300 leaves 300." in str(outcome)
    assert "max_wait_seconds" in str(outcome).splitlines()[-1]


def test_waits_are_counted_together():
    outcome, waits, count = asked_with([(429, {"Retry-After": "200"}, b"")])
    assert (waits, count) == ([200.0], 2)
    assert "leaves 100" in str(outcome)


def test_the_waits_of_backoff_end_with_the_patience():
    outcome, waits, _count = asked_with(
        [503],
        options={"retries": 1000, "max_wait_seconds": 20, "backoff_strategy": lambda: itertools.repeat(7)},
    )
    assert outcome.status == 503
    assert sum(waits) == pytest.approx(20)


def test_a_retry_after_of_no_time_does_not_make_a_hot_loop(monkeypatch):
    monkeypatch.setattr("random.uniform", lambda least, most: most)
    assert asked_with([(503, {"Retry-After": "0"}, b""), 200])[1] == [1.0]


def test_a_retry_after_is_the_least_that_is_waited(monkeypatch):
    monkeypatch.setattr("random.uniform", lambda least, most: most)
    options = {"backoff_strategy": lambda: itertools.repeat(10)}
    assert asked_with([(503, {"Retry-After": "2"}, b""), 200], options=options)[1] == [10.0]
    assert asked_with([(503, {"Retry-After": "20"}, b""), 200], options=options)[1] == [20.0]


def test_a_sleep_that_does_not_sleep_is_enough_for_tests():
    """Time stands still, and no wait is asked for twice."""
    waits = []
    replies = Replies((429, {"Retry-After": "17"}, b""), 200)
    with serving(replies) as server, Client(server.url, sleep=waits.append, monotonic=lambda: 0.0) as client:
        assert client.get("/a").status_code == 200
    assert waits == [17.0]


def test_a_429_without_retry_after_waits_for_the_window_it_names(monkeypatch):
    monkeypatch.setattr("random.uniform", lambda least, most: most)
    headers = {"X-RateLimit-Reset": "42", "X-RateLimit-Remaining": "5"}
    assert asked_with([(429, headers, b""), 200])[1] == [42.0]
    assert asked_with([(429, headers, b""), 200], options={"follow_rate_limit_headers": False})[1] == [1.0]


def test_a_429_holds_up_whoever_asks_as_well():
    clock, nested = Clock(), []

    def sleep(seconds):
        nested.append(seconds)
        if len(nested) == 1:  # while the first waits, before any time has passed
            client.get("/other")
        clock.sleep(seconds)

    with (
        serving(Replies((429, {"Retry-After": "9"}, b""), 200)) as server,
        Client(server.url, **{**clock.options, "sleep": sleep}) as client,
    ):
        client.get("/limited")
    assert server.paths == ["/limited", "/other", "/limited"]
    assert clock.waits[0] == 9.0


# backoff


def own():
    yield 0.5
    yield 1.5


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (backoff.expo, [1, 2, 4, 8]),
        (functools.partial(backoff.expo, factor=3, max_value=10), [3, 6, 10, 10]),
        (backoff.fibo, [1, 1, 2, 3]),
        (functools.partial(backoff.constant, 5), [5, 5, 5, 5]),
        (functools.partial(backoff.constant, [1, 9]), [1, 9]),
        (functools.partial(backoff.runtime, value=lambda outcome: 3), [3, 3, 3, 3]),
        (own, [0.5, 1.5]),
        (lambda: itertools.count(2), [2, 3, 4, 5]),
        (lambda: iter([-1]), []),
    ],
)
def test_strategies_of_backoff_and_of_ones_own(strategy, expected, monkeypatch):
    monkeypatch.setattr("random.uniform", lambda least, most: most)
    assert asked_with([503], options={"retries": 4, "backoff_strategy": strategy})[1] == expected


def test_waits_have_full_jitter():
    options = {"retries": 150, "max_wait_seconds": 1e9, "backoff_strategy": lambda: itertools.repeat(10)}
    found = asked_with([503], options=options)[1]
    assert len(found) == 150
    assert all(0 <= wait <= 10 for wait in found)
    assert min(found) < 2
    assert max(found) > 8


def test_a_strategy_that_ends_ends_the_retries():
    outcome, waits, count = asked_with([503], options={"backoff_strategy": own})
    assert (outcome.attempts, count, len(waits)) == (3, 3, 2)


def test_the_usual_waits_stop_growing(monkeypatch):
    monkeypatch.setattr("random.uniform", lambda least, most: most)
    assert asked_with([503], options={"retries": 8, "max_wait_seconds": 1000})[1] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_signal_ends_a_wait():
    """What a signal's handler raises in ``sleep`` comes out at once, and the client works on in other threads."""

    class Stopped(BaseException):
        pass

    def sleep(seconds):
        raise Stopped

    seconds = itertools.count()  # each look at the clock is a second later: no limit makes anybody wait
    with (
        serving(Replies(503, 200)) as server,
        Client(server.url, sleep=sleep, monotonic=lambda: next(seconds), requests_per_second=1000) as client,
    ):
        with pytest.raises(Stopped):
            client.get("/a")
        done = []
        thread = threading.Thread(target=lambda: done.append(client.get("/a").status_code))
        thread.start()
        thread.join(10)
        assert done == [200], "a lock is still held"


def test_other_threads_wait_in_steps():
    clock = Clock()
    with (
        serving(Replies((503, {"Retry-After": "3"}, b""), 200)) as server,
        Client(server.url, **clock.options) as client,
    ):
        thread = threading.Thread(target=lambda: client.get("/a"))
        thread.start()
        thread.join()
    assert clock.waits == [1.0, 1.0, 1.0]


def test_many_retries_are_not_told_one_by_one(caplog):
    clock = Clock()
    with serving(lambda asked: 503) as server:
        options = {"retries": 80, "max_wait_seconds": 1e9, "backoff_strategy": lambda: itertools.repeat(0)}
        with Client(server.url, **options, **clock.options) as client, pytest.raises(HttpError, match="81 tries"):
            client.get("/a")
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(told) == 51
    assert told[0].startswith(f"GET {server.url}/a: 503 Service Unavailable; retry 1 of 80 in 0.0 s")
    assert "not told one by one" in told[50]
