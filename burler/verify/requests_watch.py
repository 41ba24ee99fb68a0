"""What a tap asks its source: noted while it passes by, judged afterwards (``requests_check``).

    watch = RequestWatch(stream_that_runs)
    client = watch_client(client, watch)      # requests_clients
    ... the run ...
    check_requests(watch, rows, findings, limits)
    watch.undo()

Of a request its endpoint is kept, numbers, and digests: no values of parameters but page numbers, no bodies. A URL that
a finding shows is masked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from burler.context import running
from burler.http.waits import retry_after_seconds
from burler.verify.requests_asked import (
    Asked,
    asks_for_a_schema,
    digest_of,
    endpoint_of,
    is_login,
    is_this_machine,
    number_of,
    shows_credentials,
)
from burler.verify.requests_body import Reading, Told
from burler.verify.requests_lists import Lists
from burler.verify.requests_noted import GONE, Endpoint, Failure, Going
from burler.verify.requests_pages import paged_of

MOST = 100_000
"""So many different requests are known again, of all streams together; pages likewise."""

_MOST_ENDPOINTS = 500
_MOST_FAILED = 10_000
_POLLED_SECONDS = 0.2
_EARLY = 0.9  # clocks tick in steps: who has waited this share of what was asked for has waited
_LOOKED_INTO = ("GET", "POST")


class RequestWatch:
    """Notes requests; several threads may. See the module's docstring.

    Args:
        stream: the name of the stream that runs where a request is made; None outside of one.
        clock: seconds that only go forward.
        now: seconds since 1970, for ``Retry-After`` with a date.

    Attributes:
        unknown: the types of clients whose requests can't be seen.
        unchecked: rules that can't be looked at here, by code, with the reason.
        plain, unverified, early: where credentials went over http, certificates were not looked at, and a 429 was
            asked again too early: (stream, endpoint) and how often, with what shows it.
    """

    def __init__(
        self,
        stream: Callable[[], str | None],
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.stream = stream
        self.unknown: list[str] = []
        self.unchecked: dict[str, str] = {}
        self.endpoints: dict[tuple[str | None, str], Endpoint] = {}
        self.lists = Lists(MOST)
        self.failures: dict[int, Failure] = {}
        self.plain: dict[tuple[str | None, str], list[Any]] = {}
        self.unverified: dict[tuple[str | None, str], list[Any]] = {}
        self.early: dict[tuple[str | None, str], list[Any]] = {}
        self._clock, self._now = clock, now
        self._lock = threading.Lock()
        self._known: dict[int, int] = {}
        self._last: dict[str | None, tuple[int | None, float]] = {}
        self._wanted: dict[int, tuple[float, float]] = {}
        self._undo: list[Callable[[], object]] = []

    # What notes

    def begin(self, asked: Asked) -> Going:
        """A request is about to be sent."""
        run = running()
        stream = self.stream()
        paged, whole = paged_of(asked)
        digest = digest_of(asked, headers=True)
        plain = digest_of(asked, headers=False)
        part = number_of((stream, whole, None if paged is None else paged.value))
        tailing = run is not None and run.tailing
        with self._lock:
            now = self._clock()
            endpoint = self._name(stream, endpoint_of(asked))
            before, ended = self._last.get(stream, (None, 0.0))
            polled = digest is not None and before == digest and now - ended >= _POLLED_SECONDS
            self._last[stream] = (digest, now)
            going = Going(asked, stream, endpoint, digest, plain, paged, part, tailing, now, polled)
            self._count(going, now)
            if not tailing:
                place = number_of((stream, asked.method, asked.parts.netloc, asked.parts.path))
                self.lists.asked(stream, endpoint, asked, paged, number_of((stream, whole)), place)
        return going

    def answered(self, going: Going, status: int, headers: Mapping[str, str]) -> Reading:
        """The head of its reply has come. Gives what is to be fed with the body."""
        with self._lock:
            now = self._clock()
            endpoint = self.endpoints[going.stream, going.endpoint]
            endpoint.seconds += now - going.began
            endpoint.statuses[str(status)] += 1
            self._last[going.stream] = (going.digest, now)
            self._judge(going, status)
            if status in (429, 503) and going.plain is not None:
                seconds = retry_after_seconds(headers, self._now())
                if seconds:
                    self._wanted[going.plain] = (now, seconds)
                    if len(self._wanted) > _MOST_FAILED:
                        self._wanted.clear()
        if going.asked.method == "HEAD" or status in (204, 304):
            headers = {}  # they speak of a body that does not come
        keep = going.well and not going.tailing and going.asked.method in _LOOKED_INTO
        return Reading(headers, url=going.asked.url, keep=keep, tell=lambda told: self._told(going, told))

    def lost(self, going: Going) -> None:
        """No reply came."""
        with self._lock:
            now = self._clock()
            endpoint = self.endpoints[going.stream, going.endpoint]
            endpoint.seconds += now - going.began
            endpoint.statuses["lost"] += 1
            self._last[going.stream] = (going.digest, now)
            self._fail(going, None)

    # What it knows

    def to_json(self) -> dict[str, dict[str, dict[str, Any]]]:
        """The requests by stream ("": of none) and endpoint: ``StreamFacts.requests``."""
        found: dict[str, dict[str, dict[str, Any]]] = {}
        with self._lock:
            for (stream, name), one in self.endpoints.items():
                found.setdefault(stream or "", {})[name] = one.to_json()
        return found

    # What was put round clients

    def to_undo(self, action: Callable[[], object]) -> None:
        """What ``undo`` is to do."""
        self._undo.append(action)

    def undo(self) -> None:
        """Take off what was put round clients: they are as they were."""
        while self._undo:
            self._undo.pop()()

    # Parts; all below hold the lock

    def _name(self, stream: str | None, endpoint: str) -> str:
        """The endpoint; of a tap that names things in its paths in ways of its own there would be no end of them."""
        if (stream, endpoint) not in self.endpoints:
            if sum(whose == stream for whose, _ in self.endpoints) >= _MOST_ENDPOINTS:
                endpoint = f"{endpoint.partition(' ')[0]} (others)"
            self.endpoints.setdefault((stream, endpoint), Endpoint())
        return endpoint

    def _count(self, going: Going, now: float) -> None:
        key, asked = (going.stream, going.endpoint), going.asked
        endpoint = self.endpoints[key]
        endpoint.requests += 1
        parts = asked.parts
        endpoint.login = endpoint.login or is_login(asked)
        endpoint.no_timeout += asked.timeout is False
        if parts.scheme == "https" and not asked.verified and not is_this_machine(parts.hostname or ""):
            self.unverified.setdefault(key, [0, parts.hostname])[0] += 1
        if parts.scheme == "http" and not is_this_machine(parts.hostname or ""):
            what = shows_credentials(asked)
            if what:
                self.plain.setdefault(key, [0, f"{what} to {parts.hostname}"])[0] += 1
        since, seconds = self._wanted.pop(going.plain or 0, (0.0, 0.0))
        if seconds and now < since + seconds * _EARLY:
            self.early.setdefault(key, [0, f"{now - since:.2g} of the {seconds:g} seconds"])[0] += 1

    def _judge(self, going: Going, status: int) -> None:
        going.well = 200 <= status < 300 and status != 202
        if status >= 400 and status not in GONE:
            self._fail(going, status)
        else:
            self.failures.pop(going.part, None)

    def _answered(self, going: Going) -> None:
        """It was answered well, and the answer was heard to its end: whether that was so before."""
        endpoint = self.endpoints[going.stream, going.endpoint]
        endpoint.answered += 1
        if going.digest is None:
            return
        known = number_of((going.stream, going.digest))
        before = self._known.get(known, 0)
        if not before and len(self._known) >= MOST:
            self.unchecked.setdefault("H702", f"only the first {MOST:,} different requests were looked at")
            return
        self._known[known] = before + 1
        if before and not going.polled:
            endpoint.repeated += 1
            endpoint.repeated_url = endpoint.repeated_url or going.asked.shown

    def _fail(self, going: Going, status: int | None) -> None:
        if going.tailing or asks_for_a_schema(going.asked):
            return
        if len(self.failures) >= _MOST_FAILED:
            self.unchecked.setdefault("H706", f"only the first {_MOST_FAILED:,} failures were looked at")
            return
        series = None if going.paged is None else number_of((going.stream, going.paged.series))
        value = None if going.paged is None else going.paged.value
        self.failures[going.part] = Failure(going.stream, going.endpoint, status, going.asked.shown, series, value)

    def _told(self, going: Going, told: Told) -> None:
        with self._lock:
            self.endpoints[going.stream, going.endpoint].bytes += told.size
            if not going.well or going.tailing:
                return
            if told.whole is False:
                self._fail(going, None)
            elif told.whole and not told.failed:  # who asks again for what he has not got does not repeat himself
                self._answered(going)
                self.lists.told(going.stream, going.endpoint, going.asked, going.paged, told)
