"""How often a source is asked: by the author's limits, and by what the source says."""

from __future__ import annotations

import threading

import pytest
from clocks import START, Clock
from pageserver import serving

from burler.errors import HttpError
from burler.http import Client
from burler.http.limit_headers import pause_seconds, reset_seconds
from burler.http.limits import Limiter, TooLong
from burler.http.waits import Clock as ClientClock


def times_of(limiter, count, threads=1):
    """When each of so many requests began, in seconds from the first."""
    clock = Clock()
    began = []

    def ask():
        for _ in range(count // threads):
            limiter.wait(client_clock, 0)
            began.append(clock.monotonic())

    client_clock = ClientClock(**clock.options)
    ask()
    return [round(at - began[0], 6) for at in began]


def test_no_limit():
    assert times_of(Limiter(), 3) == [0, 0, 0]


def test_per_second_spaces_requests_evenly():
    assert times_of(Limiter(per_second=4), 6) == [0, 0.25, 0.5, 0.75, 1, 1.25]
    assert times_of(Limiter(per_second=0.5), 3) == [0, 2, 4]


def test_per_minute_lets_them_come_but_never_more_in_any_minute():
    assert times_of(Limiter(per_minute=3), 8) == [0, 0, 0, 60, 60, 60, 120, 120]
    assert times_of(Limiter(per_minute=0.5), 3) == [0, 120, 240]


def test_both_limits_hold():
    assert times_of(Limiter(per_second=1, per_minute=3), 5) == [0, 1, 2, 60, 61]


def test_a_limit_is_one_for_all_threads():
    """Real threads: each takes its own turn, none takes that of another."""
    limiter = Limiter(per_second=10)
    turns = []
    lock = threading.Lock()

    def ask():
        for _ in range(25):
            waits = []
            limiter.wait(ClientClock(sleep=waits.append, now=lambda: 0.0, monotonic=lambda: 0.0), 0)
            with lock:
                turns.append(round(sum(waits), 6))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(turns) == [round(number / 10, 6) for number in range(200)]


def test_a_pause_holds_up_whoever_comes_and_whoever_waits_already():
    clock = Clock()
    limiter = Limiter(per_second=1)
    own = ClientClock(**clock.options)
    limiter.wait(own, 100)
    paused = []

    def sleep(seconds):
        if not paused:  # while this one waits for its turn, another thread hears of a limit
            paused.append(limiter.pause(20, "because", own))
        clock.sleep(seconds)

    limiter.wait(ClientClock(sleep, clock.now, clock.monotonic), 100)
    assert clock.passed == 20


def test_a_shorter_pause_does_not_end_a_longer_one():
    clock = Clock()
    limiter, own = Limiter(), ClientClock(**clock.options)
    limiter.pause(20, "long", own)
    limiter.pause(5, "short", own)
    assert limiter.wait(own, 100) == 20
    assert limiter.wait(own, 100) == 0


def test_a_pause_that_is_too_long_is_said():
    own = ClientClock(**Clock().options)
    limiter = Limiter()
    limiter.pause(20, "because", own)
    with pytest.raises(TooLong, match="because") as caught:
        limiter.wait(own, 19)
    assert caught.value.seconds == 20


# What sources say


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "30"}, None),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "30"}, 30),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(START) + 90)}, 90),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(START + 90) * 1000)}, 90),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "2023-11-14T22:13:25Z"}, 5),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "2023-11-14 22:13:25"}, 5),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "Tue, 14 Nov 2023 22:13:25 GMT"}, 5),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(START) - 5)}, None),
        ({"X-RateLimit-Remaining": "0"}, None),
        ({"X-RateLimit-Remaining": "none", "X-RateLimit-Reset": "30"}, None),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "soon"}, None),
        ({"X-RateLimit-Remaining": "nan", "X-RateLimit-Reset": "inf"}, None),
        ({"X-RateLimit-Remaining": "-2", "X-RateLimit-Reset": "3"}, 3),
        ({"X-Rate-Limit-Remaining": "0", "X-Rate-Limit-Reset": "7"}, 7),
        ({"RateLimit-Remaining": "0", "RateLimit-Reset": "7"}, 7),
        ({"RateLimit-Remaining": "0, 50", "RateLimit-Reset": "7"}, 7),
        ({"RateLimit": "limit=100, remaining=0, reset=12"}, 12),
        ({"RateLimit": "limit=100, remaining=3, reset=12"}, None),
        ({"RateLimit": "100"}, None),
        ({"RateLimit": '"default";r=0;t=12'}, 12),
        ({"RateLimit": '"default";r=5;t=12'}, None),
        ({"RateLimit": '"burst";r=4;t=2, "day";r=0;t=40'}, 40),
        ({"RateLimit": '"burst";r=0', "RateLimit-Policy": '"burst";q=10;w=15, "day";q=1000;w=86400'}, 15),
        ({"RateLimit": '"burst";r=0'}, None),
        ({"RateLimit": '"a";r=;t=1.2.3'}, None),
        ({"RateLimit": '"a";r=0;t=1.2.3'}, None),
    ],
)
def test_what_rate_limit_headers_say(headers, seconds):
    assert pause_seconds(headers, START) == seconds


def test_a_time_of_day_counts_by_the_sources_own_clock():
    """It is ten minutes ahead of ours."""
    headers = {
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": str(int(START) + 630),
        "Date": "Tue, 14 Nov 2023 22:23:20 GMT",
    }
    assert pause_seconds(headers, START) == 30


def test_when_a_window_ends_is_known_of_refusals_as_well():
    assert reset_seconds({"X-RateLimit-Reset": "30"}, START) == 30
    assert reset_seconds({"RateLimit": '"a";r=0;t=9'}, START) == 9
    assert reset_seconds({}, START) is None


def limited(asked):
    return 200, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "40"}, b""


def test_the_client_waits_where_nothing_remains():
    clock = Clock()
    with serving(limited) as server, Client(server.url, **clock.options) as client:
        client.get("/a")
        assert clock.waits == []
        client.get("/a")
        assert clock.waits == [40.0]


def test_the_headers_can_be_left_alone():
    clock = Clock()
    with (
        serving(limited) as server,
        Client(server.url, follow_rate_limit_headers=False, **clock.options) as client,
    ):
        client.get("/a")
        client.get("/a")
    assert clock.waits == []


def test_a_window_that_is_longer_than_the_patience_is_an_error_that_says_so():
    clock = Clock()
    with serving(limited) as server, Client(server.url, max_wait_seconds=30, **clock.options) as client:
        client.get("/a")
        with pytest.raises(HttpError) as caught:
            client.get("/b")
        assert len(server.asked) == 1
    assert str(caught.value).startswith(f"GET {server.url}/b: the source takes no more requests for 40 seconds")
    assert "follow_rate_limit_headers=False" in str(caught.value)
    assert clock.waits == []
    assert len(str(caught.value).splitlines()) <= 3


def test_the_authors_limit_holds_for_retries_too():
    replies = iter([503, 200])
    clock = Clock()
    with (
        serving(lambda asked: next(replies)) as server,
        Client(server.url, requests_per_second=0.01, backoff_strategy=lambda: iter([1]), **clock.options) as client,
    ):
        client.get("/a")
    assert clock.passed == pytest.approx(100)


@pytest.mark.parametrize(
    "headers",
    [{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "40"}, {"Retry-After": "40"}],
    ids=["remaining", "retry-after"],
)
def test_a_limit_that_is_said_with_403_is_waited_for(headers):
    replies = iter([(403, headers, b"rate limit exceeded"), 200])
    clock = Clock()
    with serving(lambda asked: next(replies)) as server, Client(server.url, **clock.options) as client:
        assert client.get("/a").status_code == 200
    assert clock.waits == [40.0]


def test_a_limit_with_403_that_lasts_is_no_question_of_rights():
    clock = Clock()
    with serving(lambda asked: (403, {"Retry-After": "4"}, b"")) as server:
        with Client(server.url, retries=1, **clock.options) as client, pytest.raises(HttpError) as caught:
            client.get("/a")
        with (
            Client(server.url, retries=1, follow_rate_limit_headers=False, **clock.options) as client,
            pytest.raises(HttpError, match="may not read this") as refused,
        ):
            client.get("/a")
    assert "Ask less often" in str(caught.value)
    assert (caught.value.attempts, refused.value.attempts) == (2, 1)


def test_a_pause_of_the_source_is_waited_for_once_and_counted_once():
    """A 429 that also says how much remains: the wait of its own request and the pause for all are one."""
    replies = iter([(429, {"Retry-After": "100", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "100"}, b""), 200])
    clock = Clock()
    with (
        serving(lambda asked: next(replies)) as server,
        Client(server.url, max_wait_seconds=100, **clock.options) as client,
    ):
        client.get("/a")
    assert clock.waits == [100.0]
