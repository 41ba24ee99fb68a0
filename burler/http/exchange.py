"""One request over the wire: its turn, its headers and credentials, its reply; measured and counted."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from burler.context import running
from burler.http import failed as fails
from burler.http.body import BrokenBody, TooBig, read_body
from burler.http.failed import Failed
from burler.http.limit_headers import pause_seconds
from burler.http.limits import TooLong
from burler.http.masking import mask_path
from burler.http.options import timeouts
from burler.http.origins import Origin, joined, shown_path
from burler.http.prepared import Target, origin_as_sent, prepare
from burler.http.request import Request
from burler.http.wire import is_ours
from burler.log_settings import log_settings
from burler.measures import HTTP_REQUEST_DURATION
from burler.tally import metric

if TYPE_CHECKING:
    import requests

    from burler.http.sending import Sender

Reader = Callable[["requests.Response"], int]
"""Reads the body of a reply with a good status; gives its length."""


class Exchange:
    """What is sent for one request of an author's, try after try."""

    def __init__(self, sender: Sender, request: Request, read: Reader | None) -> None:
        self.sender = sender
        self.options = sender.options
        self.request = request
        self.read = read
        self.run_of_stream = running()
        self.timeout = timeouts(request.timeout_seconds or self.options.timeout_seconds)
        self.most_bytes = request.max_response_bytes or self.options.max_response_bytes
        self.attempts = 0
        self.waited_seconds = 0.0
        self.passed = float("-inf")  # pauses up to here have been waited for
        self.origin: Origin | None = None  # whom the last try asked

    def exchange(self, target: Target) -> requests.Response | Failed:
        """Send, and read the reply's body.

        Raises:
            HttpError: the source takes no more requests for longer than we may wait.
        """
        import requests

        sender, clock = self.sender, self.sender.clock
        try:
            prepared, origin = prepare(target, self.options, sender.session, self.home(), self._tap_name())
        except (ValueError, requests.RequestException) as error:  # a URL or a header that is none
            return fails.unsendable(error, target.method, target.url, prepared=False)
        self.origin = origin
        self._wait_for_limits(target)
        if not is_ours(sender.session):
            prepared.register_hook("response", self._read_redirect)  # type: ignore[no-untyped-call]
        if sender.auth is not None and origin == self.home():  # no "try": what goes wrong in an author's code is his
            sender.auth.apply(prepared)
            prepared.prepare_content_length(prepared.body)
        began = clock.monotonic()
        reply, outcome = self._sent(prepared, target)
        self._measure(target, reply, clock.monotonic() - began, good=outcome is reply)
        if reply is not None and self.options.follow_rate_limit_headers:
            pause = pause_seconds(reply.headers, clock.time())
            if pause is not None:
                sender.limiter.pause(pause, "no request remains, say its rate limit headers", clock, origin)
        return outcome

    def _sent(
        self, prepared: requests.PreparedRequest, target: Target
    ) -> tuple[requests.Response | None, requests.Response | Failed]:
        """The reply, where one came, and what to make of it: the same, or what went wrong."""
        import requests
        import urllib3

        reply: requests.Response | None = None
        outcome: requests.Response | Failed
        url = prepared.url or target.url
        try:
            self.count("requests")
            reply = self.sender.session.send(
                prepared, timeout=self.timeout, allow_redirects=False, **self.sender.settings(url)
            )
            if self.read is not None and 200 <= reply.status_code < 300:
                size = self.read(reply)
            else:
                size = read_body(reply, self.most_bytes)
            outcome = reply
            self.count("bytes", count=size)
        except TooBig as error:
            cure = "Ask for less at once, or give the client a greater max_response_bytes."
            outcome = fails.of_reply(reply, str(error), "too big", cure)  # type: ignore[arg-type]
        except BrokenBody as error:
            outcome = fails.of_reply(reply, str(error), "no answer", fails.SOURCE_FAILS)  # type: ignore[arg-type]
        except requests.exceptions.InvalidHeader as error:  # ours were looked at before: it is the reply's
            outcome = fails.of_exception(error, target.method, url, self.timeout, None)
        except ValueError as error:  # also some of requests' and urllib3's
            outcome = fails.unsendable(error, target.method, url, prepared=True)
        except (requests.RequestException, urllib3.exceptions.HTTPError, http.client.HTTPException, OSError) as error:
            status = None if reply is None else reply.status_code
            outcome = fails.of_exception(error, target.method, url, self.timeout, status)
        return reply, outcome

    def _read_redirect(self, reply: requests.Response, **_options: Any) -> None:
        """requests reads the bodies of redirects whole, to say where they lead; nobody needs them."""
        if reply.is_redirect:
            with contextlib.suppress(Exception):
                read_body(reply, self.most_bytes)

    def home(self) -> Origin:
        """Who may see credentials."""
        return origin_as_sent(self.options.base_url or joined("", self.request.path))

    def _tap_name(self) -> str:
        tap = getattr(self.run_of_stream, "tap", None)
        return str(getattr(tap, "name", "") or "")

    def _wait_for_limits(self, target: Target) -> None:
        left = self.options.max_wait_seconds - self.waited_seconds
        try:
            self.waited_seconds += self.sender.limiter.wait(self.sender.clock, left, self.passed, self.origin)
        except TooLong as error:
            raise fails.no_more_requests(
                target.method,
                target.url,
                error.seconds,
                error.why,
                self.options.max_wait_seconds,
                left,
                self.attempts - 1,
            ) from None

    def _measure(self, target: Target, reply: requests.Response | None, seconds: float, *, good: bool) -> None:
        if not log_settings.requests or (self.run_of_stream is not None and self.run_of_stream.tailing):
            return  # in a tail, a line a request for ever: the counts of the tally say it
        path = self.request.endpoint or mask_path(shown_path(target.url, self.options.base_url))
        tags: dict[str, Any] = {"endpoint": path}
        if reply is not None:
            tags["http_status_code"] = reply.status_code
        succeeded = good and reply is not None and reply.status_code < 400
        metric(HTTP_REQUEST_DURATION, seconds, **tags, status="succeeded" if succeeded else "failed")

    def count(self, name: str, reason: str = "", count: int = 1) -> None:
        """Count something for the stream that runs."""
        if self.run_of_stream is not None:
            self.run_of_stream.tally.add(name, reason, count)
