"""How often a source is asked: by the author's limits, and by what the source says."""

from __future__ import annotations

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate

import pytest
import urllib3
from clocks import START, Clock

from burler.errors import HttpError
from burler.http import Client
from support.servers import serving, session_of


def times_of(count, **limits):
    """When each of so many requests began, in seconds from the first."""
    clock, began = Clock(), []
    with (
        serving(lambda asked: began.append(clock.monotonic()) or []) as server,
        Client(server.url, **limits, **clock.options) as client,
    ):
        for _ in range(count):
            client.get("/a")
    return [round(at - began[0], 6) for at in began]


@pytest.mark.parametrize(
    ("limits", "times"),
    [
        ({}, [0, 0, 0]),
        ({"requests_per_second": 4}, [0, 0.25, 0.5, 0.75, 1, 1.25]),
        ({"requests_per_second": 0.5}, [0, 2, 4]),
        ({"requests_per_minute": 3}, [0, 0, 0, 60, 60, 60, 120, 120]),
        ({"requests_per_minute": 3.0}, [0, 0, 0, 60]),
        ({"requests_per_minute": 0.5}, [0, 120, 240]),
        # A part of a request a minute is none that is left out: one each 40 seconds, not one each minute.
        ({"requests_per_minute": 1.5}, [0, 40, 80, 120]),
        ({"requests_per_minute": 90.5}, [0, round(60 / 90.5, 6)]),
        ({"requests_per_second": 1, "requests_per_minute": 3}, [0, 1, 2, 60, 61]),
    ],
)
def test_limits_of_the_author(limits, times):
    assert times_of(len(times), **limits) == times


class Together:
    """Threads that wait on one clock, which goes on to the next moment at which one of them has waited enough."""

    def __init__(self) -> None:
        self.time = 0.0
        self.began: list[tuple[float, str]] = []
        self._until: dict[int, float] = {}
        self._count = 0
        self._changed = threading.Condition()

    def run(self, times, reply=lambda count: [], **limits):
        """So many requests in each of several threads; gives when they began. ``reply`` gets how many came so far."""

        def answer(asked):
            self.began.append((round(self.time, 6), asked.path))
            return reply(len(self.began))

        def ask(thread):
            for _ in range(times[thread]):
                client.get(f"/{thread}")
            with self._changed:
                self._count -= 1
                self._go_on()

        self._count = len(times)
        clock = {"sleep": self._sleep, "now": lambda: START + self.time, "monotonic": lambda: self.time}
        with serving(answer) as server, Client(server.url, max_wait_seconds=1e6, **limits, **clock) as client:
            threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(len(times))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
                assert not thread.is_alive()
        return [time for time, _path in self.began]

    def others_wait(self):
        """All but one wait for a later moment."""
        with self._changed:
            assert self._changed.wait_for(
                lambda: sum(until > self.time for until in self._until.values()) == self._count - 1, 30
            )

    def _sleep(self, seconds):
        with self._changed:
            me, until = threading.get_ident(), self.time + seconds
            self._until[me] = until
            self._changed.notify_all()
            self._go_on()
            assert self._changed.wait_for(lambda: self.time >= until - 1e-9, 30)
            del self._until[me]

    def _go_on(self):
        """Under the lock: all threads wait for a later moment, so that comes."""
        if self._count and len(self._until) == self._count and min(self._until.values()) > self.time:
            self.time = min(self._until.values())
        self._changed.notify_all()


def most_within(seconds, times):
    """The most of them in any window of so many seconds."""
    return max(sum(begin <= other < begin + seconds - 1e-6 for other in times) for begin in times)


def paused(seconds):
    return 200, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(seconds)}, b""


def test_a_limit_is_one_for_all_threads():
    began = Together().run([5] * 8, requests_per_second=10)
    assert began == pytest.approx([number / 10 for number in range(40)])


def test_turns_that_were_waited_for_when_a_pause_came_do_not_begin_all_at_once():
    together = Together()

    def reply(count):
        if count > 1:
            return []
        together.others_wait()
        return paused(6)

    began = together.run([1] * 10, reply, requests_per_second=2)
    assert began == pytest.approx([0, *(6 + number / 2 for number in range(9))])


@pytest.mark.parametrize("pause", [5, 100])
def test_a_minute_behind_a_pause_has_no_more_than_any_other(pause):
    began = Together().run([2] * 20, lambda count: paused(pause) if count == 10 else [], requests_per_minute=10)
    assert len(began) == 40
    assert most_within(60, began) == 10
    assert began[10] == max(60, pause)


def test_whoever_waits_keeps_the_place_when_pauses_come():
    """A source that says after each reply that nothing remains: one thread can't always be overtaken by the other."""
    together = Together()

    def reply(_count):
        together.others_wait()  # who has not come back from a pause yet has no place
        return paused(15)

    together.run([5, 5, 5], reply, requests_per_second=0.1)
    names = [path for _time, path in together.began]
    assert names == names[:3] * 5
    assert len(set(names)) == 3


def test_a_turn_that_nobody_waits_for_any_more_holds_up_nobody():
    """The run was told to stop while a thread waited."""
    clock, stopped = Clock(), []

    def sleep(seconds):
        if len(stopped) < 3:
            stopped.append(seconds)
            raise KeyboardInterrupt
        clock.sleep(seconds)

    options = {**clock.options, "sleep": sleep, "requests_per_minute": 1}
    with serving(lambda asked: []) as server, Client(server.url, **options) as client:
        client.get("/a")
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                client.get("/b")
        client.get("/c")
    assert server.paths == ["/a", "/c"]
    assert clock.passed == 60


def test_a_shorter_pause_does_not_end_a_longer_one():
    clock, came, heard = Clock(), threading.Event(), threading.Event()

    def answer(asked):
        if asked.path == "/short":
            came.set()
            assert heard.wait(10)
            return paused(5)
        return paused(20) if asked.path == "/long" else []

    with serving(answer) as server, Client(server.url, **clock.options) as client, ThreadPoolExecutor(1) as pool:
        short = pool.submit(client.get, "/short")
        assert came.wait(10)
        client.get("/long")
        heard.set()
        short.result()
        for _ in range(2):
            client.get("/a")
    assert clock.waits == [20.0]


def test_servers_of_which_many_were_asked_keep_their_pauses():
    """A thousand redirects may lead to a thousand of them."""
    clock = Clock()

    def answer(request):
        headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9000"} if "slow" in request.url else {}
        return urllib3.HTTPResponse(io.BytesIO(b"[]"), headers, 200, preload_content=False)

    options = {**clock.options, "requests_per_minute": 5, "max_wait_seconds": 1e5}
    with Client(session=session_of(answer), **options) as client:
        client.get("https://slow.example/a")
        for number in range(250):
            client.get(f"https://{number}.example/a")
            clock.sleep(1)
        clock.waits.clear()
        client.get("https://slow.example/b")
    assert clock.waits == [8750.0]


# What sources say


SAID = [
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
    # A time of day counts by the source's own clock, which is ten minutes ahead of ours.
    (
        {
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": str(int(START) + 630),
            "Date": "Tue, 14 Nov 2023 22:23:20 GMT",
        },
        30,
    ),
]


def test_what_rate_limit_headers_say():
    """A client that is asked twice waits so long in between."""
    found = []
    with serving(lambda asked: (200, {"Date": formatdate(START, usegmt=True), **said}, b"[]")) as server:
        for said, _seconds in SAID:
            clock = Clock()
            with Client(server.url, **clock.options) as client:
                client.get("/a")
                client.get("/a")
            found.append((said, sum(clock.waits) or None))
    assert found == SAID


def test_when_a_window_ends_is_known_of_refusals_as_well():
    for said, seconds in (({"X-RateLimit-Reset": "30"}, 30), ({"RateLimit": '"a";r=0;t=9'}, 9)):
        clock, replies = Clock(), iter([(429, said, b""), 200])
        with serving(lambda asked: next(replies)) as server, Client(server.url, **clock.options) as client:  # noqa: B023
            client.get("/a")
        assert clock.waits == [seconds]


def limited(asked):
    return paused(40)


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
    clock = Clock()

    def sleep(seconds):  # while this request waits, the source is asked for something else
        client.get("/x")
        clock.sleep(seconds)

    replies = iter([(429, {"Retry-After": "7"}, b""), 200])
    with (
        serving(lambda asked: next(replies)) as other,
        serving(lambda asked: (302, {"Location": f"{other.url}/f"}, b"") if asked.path == "/f" else []) as home,
        Client(home.url, **{**clock.options, "sleep": sleep}) as client,
    ):
        client.get("/f")
    assert (clock.waits, home.paths) == ([7.0], ["/f", "/x", "/f"])


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
