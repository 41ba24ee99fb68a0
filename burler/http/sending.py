"""One request with all its tries: the hot path.

wait for the limits -> prepare -> credentials -> send -> read the body -> METRIC, counts
    401: renewed credentials, once      redirect: the next target      failed: wait, and once more
"""

from __future__ import annotations

import contextlib
import http.client
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from burler.clock import Clock
from burler.context import running
from burler.http import failed as fails
from burler.http.body import BrokenBody, TooBig, read_body
from burler.http.failed import Failed
from burler.http.limit_headers import pause_seconds, reset_seconds
from burler.http.limits import Limiter, TooLong
from burler.http.masking import mask_path, mask_url
from burler.http.options import Options, timeouts
from burler.http.origins import Origin, joined, names_in_query, shown_path
from burler.http.prepared import BadRedirect, Target, is_secret_header, origin_as_sent, prepare, redirected, target_of
from burler.http.request import IDEMPOTENT, Request
from burler.http.waits import Waits, retry_after_seconds
from burler.http.wire import is_ours
from burler.log_settings import log_settings
from burler.measures import HTTP_REQUEST_DURATION
from burler.tally import metric

if TYPE_CHECKING:
    import requests

logger = logging.getLogger(__name__)

Reader = Callable[["requests.Response"], int]
"""Reads the body of a reply with a good status; gives its length."""

Check = Callable[["requests.Response"], None]
"""Looks at a reply that would be an answer; ValueError says what is wrong with it. The error may have ``reason``, under
which the retry is counted, ``retry_after_seconds``, as long as the source wants us to wait, and ``cure``."""

_TOLD = 50  # retries of a client, one by one
_PART = "206 Partial Content: it is a part, and all was asked for"
_NO_API = "Look whether base_url and the path lead to the API, and not to a page for people."


class Sender:
    """Sends the requests of a client; several threads use it at once."""

    def __init__(self, session: requests.Session, options: Options, auth: Any, limiter: Limiter, clock: Clock) -> None:
        self.session = session
        self.options = options
        self.auth = auth
        self.limiter = limiter
        self.clock = clock
        self._told = 0
        self._settings: dict[tuple[str, ...], Mapping[str, Any]] = {}

    def send(self, request: Request, check: Check | None = None, *, read: Reader | None = None) -> requests.Response:
        """The reply, its body read.

        Args:
            check: called with each reply that would be an answer; what it raises as ValueError makes the reply a bad
                one, which is asked for again as a lost one is.
            read: reads bodies in place of ``read_body``, after each try from the beginning.

        Raises:
            HttpError: there is no answer, for good.
        """
        return _Sending(self, request, check, read).run()

    def bare(self) -> Sender:
        """One on the same connections for a server of others, such as a token server: it gets no credentials, headers,
        parameters and cookies of the client or its session, and has limits of its own. (The client's may be waited for
        by all workers, and these for a token.)"""
        options = replace(
            self.options, base_url="", headers={}, params={}, requests_per_second=None, requests_per_minute=None,
            of_session=False,
        )  # fmt: skip
        return Sender(self.session, options, None, Limiter(None, None), self.clock)

    def settings(self, url: str) -> Mapping[str, Any]:
        """How requests is to reach a URL: proxies (also those of the environment), certificates.

        To look through the environment costs more than all else that is done for a request, so it is done once for
        each server; not with a session of the author's, who may change it.
        """
        options, session = self.options, self.session
        server = tuple(urlsplit(url)[:2])
        settings = self._settings.get(server)
        if settings is None:
            verify = session.verify if options.verify is None else options.verify
            settings = session.merge_environment_settings(
                url, dict(options.proxies or {}), True, verify, options.cert or session.cert
            )
            if is_ours(session):
                self._settings[server] = settings
        return settings

    def tell(self, outcome: Failed, number: int, seconds: float) -> None:
        """A warning for each of the first retries, so that a run that takes long says why."""
        self._told += 1
        level = logging.WARNING if self._told <= _TOLD else logging.DEBUG
        shown = (outcome.method, outcome.url, outcome.fact, number, self.options.retries, seconds)
        logger.log(level, "%s %s: %s; retry %d of %d in %.1f s", *shown)
        if self._told == _TOLD:
            logger.warning("%s: further retries are not told one by one", mask_url(self.options.base_url) or "HTTP")


class _Sending:
    """What is sent for one request of an author's, try after try."""

    def __init__(self, sender: Sender, request: Request, check: Check | None, read: Reader | None) -> None:
        self.sender = sender
        self.options = sender.options
        self.request = request
        self.check = check
        self.read = read
        self.run_of_stream = running()
        self.timeout = timeouts(request.timeout_seconds or self.options.timeout_seconds)
        self.most_bytes = request.max_response_bytes or self.options.max_response_bytes
        self.attempts = 0
        self.waited_seconds = 0.0
        self.passed = float("-inf")  # pauses up to here have been waited for
        self.origin: Origin | None = None  # whom the last try asked
        self.renewed = False
        self.waits = Waits(self.options.backoff_strategy)

    def run(self) -> requests.Response:
        """Try until there is an answer."""
        while True:
            self.attempts += 1
            outcome = self._try()
            if not isinstance(outcome, Failed):
                return outcome
            seconds = self._patience(outcome)
            self._count("retries", outcome.reason)
            self.sender.tell(outcome, self.attempts, seconds)
            self.sender.clock.pause(seconds)
            self.waited_seconds += seconds

    def _patience(self, outcome: Failed) -> float:
        """Seconds to wait before the next try.

        Raises:
            HttpError: there is none.
        """
        options = self.options
        if not outcome.passing:
            raise outcome.error(self.attempts)
        if not self._may_repeat():
            raise outcome.error(self.attempts, cure=outcome.not_repeated() if self.request.retry is None else "")
        asked = self._asked_seconds(outcome)
        left = options.max_wait_seconds - self.waited_seconds
        if self.attempts > options.retries:
            raise outcome.error(self.attempts)
        if asked is not None and asked > left:
            more = f"; it asks to wait {asked:g} seconds, max_wait_seconds={options.max_wait_seconds:g} leaves {left:g}"
            raise outcome.error(self.attempts, more, "Run again later, or give the client a greater max_wait_seconds.")
        seconds = self.waits.next(outcome.response)
        if seconds is None or left <= 0:
            raise outcome.error(self.attempts)
        if asked and outcome.status in (403, 429) and options.follow_rate_limit_headers:
            # The other threads need not ask to hear the same.
            why = f"it replied {outcome.status}"
            self.passed = self.sender.limiter.pause(asked, why, self.sender.clock, self.origin)
        return max(asked or 0.0, min(seconds, left))

    def _may_repeat(self) -> bool:
        request = self.request
        if not target_of(request, self.options).repeatable:
            return False
        if request.retry is not None:
            return request.retry
        return request.method in IDEMPOTENT or self.options.retry_writes

    def _asked_seconds(self, outcome: Failed) -> float | None:
        """How long the source itself asks to wait."""
        if outcome.wait_seconds is not None:
            return outcome.wait_seconds
        if outcome.response is None:
            return None
        now = self.sender.clock.time()
        asked = retry_after_seconds(outcome.response.headers, now)
        if asked is None and outcome.status in (403, 429) and self.options.follow_rate_limit_headers:
            asked = reset_seconds(outcome.response.headers, now)
        return asked

    def _try(self) -> requests.Response | Failed:
        """One try: a request, the redirects behind it, and once more with new credentials."""
        target: Target | None = target_of(self.request, self.options)
        history: list[requests.Response] = []
        while target is not None:
            reply = self._exchange(target)
            if isinstance(reply, Failed):
                return replace(reply, fact=reply.fact + _led(history))
            reply.history = list(history)
            if reply.status_code in self.request.allow_statuses:
                return self._checked(reply)
            if self._renews(reply, target):
                continue
            try:
                following = redirected(target, reply)
            except BadRedirect as bad:
                return fails.of_reply(reply, bad.args[0], "redirects", bad.args[1], passing=False)
            if following is None:
                return self._judged(reply)
            history.append(reply)
            if len(history) > self.options.max_redirects:
                return fails.too_many_redirects(reply, history, self.options.max_redirects)
            target = following
        raise AssertionError

    def _exchange(self, target: Target) -> requests.Response | Failed:
        """Send, and read the reply's body.

        Raises:
            HttpError: the source takes no more requests for longer than we may wait.
        """
        import requests

        sender, clock = self.sender, self.sender.clock
        try:
            prepared, origin = prepare(target, self.options, sender.session, self._home(), self._tap_name())
        except (ValueError, requests.RequestException) as error:  # a URL or a header that is none
            return fails.unsendable(error, target.method, target.url, prepared=False)
        self.origin = origin
        self._wait_for_limits(target)
        if not is_ours(sender.session):
            prepared.register_hook("response", self._read_redirect)  # type: ignore[no-untyped-call]
        if sender.auth is not None and origin == self._home():  # no "try": what goes wrong in an author's code is his
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
            self._count("requests")
            reply = self.sender.session.send(
                prepared, timeout=self.timeout, allow_redirects=False, **self.sender.settings(url)
            )
            if self.read is not None and 200 <= reply.status_code < 300:
                size = self.read(reply)
            else:
                size = read_body(reply, self.most_bytes)
            outcome = reply
            self._count("bytes", count=size)
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

    def _home(self) -> Origin:
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

    def _count(self, name: str, reason: str = "", count: int = 1) -> None:
        """Count something for the stream that runs."""
        if self.run_of_stream is not None:
            self.run_of_stream.tally.add(name, reason, count)

    def _renews(self, reply: requests.Response, target: Target) -> bool:
        """Whether a 401 is asked again with new credentials: once a request."""
        auth = self.sender.auth
        if reply.status_code != 401 or self.renewed or auth is None or not target.repeatable:
            return False
        if origin_as_sent(reply.url) != self._home():
            return False
        self.renewed = bool(auth.refused(reply))
        return self.renewed

    def _judged(self, reply: requests.Response) -> requests.Response | Failed:
        if not 200 <= reply.status_code < 300:
            abroad = self._abroad(reply)
            failed = fails.of_status(reply, self.options.retry_statuses, abroad or _led(reply.history))
            cure = getattr(self.sender.auth, "cure", "") if reply.status_code == 401 else ""
            if abroad:
                cure = "If that is the source's address, give it as base_url."
            elif reply.status_code in (401, 403) and not self._showed_who(reply):
                cure = fails.none_sent(reply.status_code, has_some=self.sender.auth is not None)
            if reply.status_code == 403 and self._limited(reply):
                return replace(failed, passing=True, cure=fails.LIMITED)
            return replace(failed, cure=cure or failed.cure)
        if reply.status_code == 206 and "Range" not in reply.request.headers and not _is_of_rows(reply):
            return fails.of_reply(reply, _PART, "bad body", fails.SOURCE_FAILS)
        return self._checked(reply)

    def _limited(self, reply: requests.Response) -> bool:
        """Whether a 403 is no refusal but a limit that was reached: some sources say it so."""
        now = self.sender.clock.time()
        follows = self.options.follow_rate_limit_headers
        return follows and (
            retry_after_seconds(reply.headers, now) is not None or pause_seconds(reply.headers, now) is not None
        )

    def _checked(self, reply: requests.Response) -> requests.Response | Failed:
        if self.check is not None:
            try:
                self.check(reply)
            except (ValueError, msgspec.MsgspecError) as error:  # older ones of msgspec are no ValueErrors
                reason, cure = str(getattr(error, "reason", "") or "bad body"), getattr(error, "cure", _NO_API)
                failed = fails.of_reply(reply, str(error), reason, cure)
                return replace(failed, wait_seconds=getattr(error, "retry_after_seconds", None))
        return reply

    def _showed_who(self, reply: requests.Response) -> bool:
        """Whether something in a request looks like credentials; a body may be the form of a login."""
        if self.options.cert or self.sender.session.cert or self.request.data or self.request.json:
            return True
        if self.sender.auth is not None and origin_as_sent(reply.url) == self._home():
            return True
        names = [*reply.request.headers, *names_in_query(reply.request.url or "")]
        return any(is_secret_header(name) for name in names)

    def _abroad(self, reply: requests.Response) -> str:
        """Why credentials may be missing: they are not sent to where a redirect led."""
        if reply.status_code in (401, 403) and reply.history and self.sender.auth is not None:
            there = origin_as_sent(reply.url)
            if there != origin_as_sent(self.options.base_url):
                return f", where a redirect from {mask_url(self.options.base_url)} led, without the credentials"
        return ""


def _led(history: Sequence[requests.Response]) -> str:
    """How a request came to an address that nobody wrote."""
    return f", where a redirect from {mask_url(history[0].url)} led" if history else ""


def _is_of_rows(reply: requests.Response) -> bool:
    """Whether a 206 is a page of a list, not a part of a body: some servers answer so, and say which rows they are."""
    unit = reply.headers.get("Content-Range", "bytes").strip().lower()
    return not unit.startswith("bytes")
