"""How often a source is asked: by the author's limits, and by what the source says."""

from __future__ import annotations

import threading

import pytest
from clocks import START, Clock

from burler.errors import HttpError
from burler.http import Client
from support.internals import http_limits, http_origins, http_waits, limit_headers
from support.servers import serving


def times_of(limiter, count, threads=1):
    """When each of so many requests began, in seconds from the first."""
    clock = Clock()
    began = []

    def ask():
        for _ in range(count // threads):
            limiter.wait(client_clock, 0)
            began.append(clock.monotonic())

    client_clock = http_waits.Clock(**clock.options)
    ask()
    return [round(at - began[0], 6) for at in began]


def test_no_limit():
    assert times_of(http_limits.Limiter(), 3) == [0, 0, 0]


def test_per_second_spaces_requests_evenly():
    assert times_of(http_limits.Limiter(per_second=4), 6) == [0, 0.25, 0.5, 0.75, 1, 1.25]
    assert times_of(http_limits.Limiter(per_second=0.5), 3) == [0, 2, 4]


def test_per_minute_lets_them_come_but_never_more_in_any_minute():
    assert times_of(http_limits.Limiter(per_minute=3), 8) == [0, 0, 0, 60, 60, 60, 120, 120]
    assert times_of(http_limits.Limiter(per_minute=0.5), 3) == [0, 120, 240]


def test_a_part_of_a_request_a_minute_is_none_that_is_left_out():
    """1.5 a minute is one each 40 seconds, not one each minute."""
    clock, began = Clock(), []

    def page(_asked):
        began.append(clock.monotonic())
        return 200, {}, b"[]"

    with serving(page) as server, Client(server.url, requests_per_minute=1.5, **clock.options) as client:
        for _ in range(4):
            client.get("/a")
    assert [round(at - began[0], 6) for at in began] == [0, 40, 80, 120]
    assert times_of(http_limits.Limiter(per_minute=90.5), 2) == [0, round(60 / 90.5, 6)]
    assert times_of(http_limits.Limiter(per_minute=3.0), 4) == [0, 0, 0, 60]


def test_both_limits_hold():
    assert times_of(http_limits.Limiter(per_second=1, per_minute=3), 5) == [0, 1, 2, 60, 61]


def test_a_limit_is_one_for_all_threads():
    """Real threads: each takes its own turn, none takes that of another."""
    limiter = http_limits.Limiter(per_second=10)
    turns = []
    lock = threading.Lock()

    def ask():
        for _ in range(25):
            waits = []
            limiter.wait(http_waits.Clock(sleep=waits.append, now=lambda: 0.0, monotonic=lambda: 0.0), 0)
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
    limiter = http_limits.Limiter(per_second=1)
    own = http_waits.Clock(**clock.options)
    limiter.wait(own, 100)
    paused = []

    def sleep(seconds):
        if not paused:  # while this one waits for its turn, another thread hears of a limit
            paused.append(limiter.pause(20, "because", own))
        clock.sleep(seconds)

    limiter.wait(http_waits.Clock(sleep, clock.now, clock.monotonic), 100)
    assert clock.passed == 20


class Together:
    """Threads that wait on one clock, which goes on to the next moment at which one of them has waited enough."""

    def __init__(self) -> None:
        self.time = 0.0
        self.began: list[tuple[float, str]] = []
        self._until: dict[int, float] = {}
        self._count = 0
        self._changed = threading.Condition()
        self._events: list = []

    def at(self, time, call):
        """Call something at a time."""
        self._events.append((time, call))

    def run(self, limiter, times, name=str):
        """So many waits for ``limiter`` in each of several threads."""
        clock = http_waits.Clock(self._sleep, lambda: self.time, lambda: self.time)

        def ask(thread):
            for _ in range(times[thread]):
                limiter.wait(clock, 1e9)
                self.began.append((self.time, name(thread)))
            with self._changed:
                self._count -= 1
                self._go_on()

        self._count = len(times)
        threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(len(times))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
        return [round(time, 6) for time, _name in sorted(self.began)]

    def _sleep(self, seconds):
        with self._changed:
            me, until = threading.get_ident(), self.time + seconds
            self._until[me] = until
            self._go_on()
            assert self._changed.wait_for(lambda: self.time >= until - 1e-9, 30)
            del self._until[me]

    def _go_on(self):
        """Under the lock: all threads wait for a later moment, so that comes."""
        while self._count and len(self._until) == self._count and min(self._until.values()) > self.time:
            due = min([min(self._until.values()), *(time for time, _call in self._events)])
            self.time = max(self.time, due)
            for event in [event for event in self._events if event[0] <= self.time]:
                self._events.remove(event)
                event[1]()
            self._changed.notify_all()


def most_within(seconds, times):
    """The most of them in any window of so many seconds."""
    return max(sum(begin <= other < begin + seconds - 1e-6 for other in times) for begin in times)


def test_turns_that_were_waited_for_when_a_pause_came_do_not_begin_all_at_once():
    together, limiter = Together(), http_limits.Limiter(per_second=2)
    own = http_waits.Clock(None, None, lambda: together.time)
    together.at(0.2, lambda: limiter.pause(6, "because", own))
    assert together.run(limiter, [1] * 10) == pytest.approx([0, *(6.2 + number / 2 for number in range(9))])


@pytest.mark.parametrize("pause", [5, 100])
def test_a_minute_behind_a_pause_has_no_more_than_any_other(pause):
    together, limiter = Together(), http_limits.Limiter(per_minute=10)
    own = http_waits.Clock(None, None, lambda: together.time)
    together.at(1, lambda: limiter.pause(pause, "because", own))
    began = together.run(limiter, [2] * 20)
    assert len(began) == 40
    assert most_within(60, began) == 10
    assert began[10] == max(60, 1 + pause)


def test_whoever_waits_keeps_the_place_when_pauses_come():
    """A source that says after each reply that nothing remains: one thread can't always be overtaken by the other."""
    together, limiter = Together(), http_limits.Limiter(per_second=0.1)
    own = http_waits.Clock(None, None, lambda: together.time)
    for time in range(1, 200, 3):
        together.at(time, lambda: limiter.pause(1, "because", own))
    together.run(limiter, [5, 5, 5])
    names = [name for _time, name in sorted(together.began)]
    assert all(len(set(names[at : at + 3])) == 3 for at in (1, 4, 7))  # the first may go before the others have come


def test_a_turn_that_nobody_waits_for_any_more_holds_up_nobody():
    """The run was told to stop while a thread waited."""
    clock, limiter = Clock(), http_limits.Limiter(per_minute=1)
    own = http_waits.Clock(**clock.options)
    limiter.wait(own, 0)

    def stop(seconds):
        raise KeyboardInterrupt

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            limiter.wait(http_waits.Clock(stop, clock.now, clock.monotonic), 0)
    limiter.wait(own, 0)
    assert clock.passed == 60


def test_each_server_has_limits_of_its_own():
    clock, limiter = Clock(), http_limits.Limiter(per_second=0.1)
    own = http_waits.Clock(**clock.options)
    one, other = ("https", "x.io", 443), ("https", "y.io", 443)
    limiter.pause(50, "because", own, one)
    assert limiter.wait(own, 0, origin=other) == 0
    assert limiter.wait(own, 100, origin=one) == 50
    assert clock.passed == 50


def test_servers_that_were_asked_once_are_forgotten():
    """A thousand redirects may lead to a thousand of them."""
    clock, limiter = Clock(), http_limits.Limiter(per_minute=5)
    own = http_waits.Clock(**clock.options)
    limiter.pause(10_000, "because", own, ("https", "slow.example", 443))
    for number in range(1000):
        limiter.wait(own, 0, origin=("https", f"{number}.example", 443))
        clock.sleep(1)
    assert len(limiter._books) <= 160
    assert limiter.wait(own, 10_000, origin=("https", "slow.example", 443)) == 9000


def test_a_shorter_pause_does_not_end_a_longer_one():
    clock = Clock()
    limiter, own = http_limits.Limiter(), http_waits.Clock(**clock.options)
    limiter.pause(20, "long", own)
    limiter.pause(5, "short", own)
    assert limiter.wait(own, 100) == 20
    assert limiter.wait(own, 100) == 0


def test_a_pause_that_is_too_long_is_said():
    own = http_waits.Clock(**Clock().options)
    limiter = http_limits.Limiter()
    limiter.pause(20, "because", own)
    with pytest.raises(http_limits.TooLong, match="because") as caught:
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
    assert limit_headers.pause_seconds(headers, START) == seconds


def test_a_time_of_day_counts_by_the_sources_own_clock():
    """It is ten minutes ahead of ours."""
    headers = {
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": str(int(START) + 630),
        "Date": "Tue, 14 Nov 2023 22:23:20 GMT",
    }
    assert limit_headers.pause_seconds(headers, START) == 30


def test_when_a_window_ends_is_known_of_refusals_as_well():
    assert limit_headers.reset_seconds({"X-RateLimit-Reset": "30"}, START) == 30
    assert limit_headers.reset_seconds({"RateLimit": '"a";r=0;t=9'}, START) == 9
    assert limit_headers.reset_seconds({}, START) is None


def limited(asked):
    return 200, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "40"}, b""


def test_the_client_waits_where_nothing_remains():
    clock = Clock()
    with serving(limited) as server, Client(server.url, **clock.options) as client:
        client.get("/a")
        assert clock.waits == []
        client.get("/a")
        assert clock.waits == [40.0]


def test_what_another_server_says_of_its_limits_is_not_about_the_source():
    """A server for files that a redirect leads to; a token server is the same."""
    clock = Clock()
    with (
        serving(limited) as other,
        serving(lambda asked: (302, {"Location": f"{other.url}/f"}, b"") if asked.path == "/f" else []) as home,
        Client(home.url, **clock.options) as client,
    ):
        client.get("/f")
        client.get("/x")
        assert clock.waits == []
        client.get("/f")
    assert clock.waits == [40.0]


def test_a_429_of_another_server_is_not_about_the_source():
    clock, waited = Clock(), []

    def sleep(seconds):  # while this request waits, another thread asks the source
        waited.append(client._sender.limiter.wait(client._sender.clock, 0, origin=http_origins.origin_of(home.url)))
        clock.sleep(seconds)

    replies = iter([(429, {"Retry-After": "7"}, b""), 200])
    with (
        serving(lambda asked: next(replies)) as other,
        serving(lambda asked: (302, {"Location": f"{other.url}/f"}, b"")) as home,
        Client(home.url, **{**clock.options, "sleep": sleep}) as client,
    ):
        client.get("/f")
    assert (waited, clock.waits) == ([0], [7.0])


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
            pytest.raises(HttpError, match="this address may not ask") as refused,
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
