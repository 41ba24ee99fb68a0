"""Credentials that run out: one renewal at a time, whoever asks for it; all wait for it and use what it gave.

A renewal runs in a thread of its own. So it has a time limit whatever it does, and a run that is told to stop in the
middle of one can wait a moment for it: the reply may hold a refresh token that works only once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from burler.config.secrets import masked
from burler.context import beside, running
from burler.errors import BurlerError, CredentialsError, DeclarationError
from burler.http.client import Auth, Client, fit_for_header
from burler.http.token_store import Token, TokenStore

if TYPE_CHECKING:
    import requests

logger = logging.getLogger(__name__)

REMEMBERED_SECONDS = 30.0  # so long a failed renewal is not tried again: all workers come with the same wish
_LAST_SECONDS = 2.0  # of a token's life: it must last until the request has arrived
GRACE_SECONDS = 5.0  # for a renewal under way, when the run is told to stop
_STEP_SECONDS = 1.0
_RENEWAL = "_burler_renewal"  # on a request that was sent: which token it has

Renew = Callable[[Client | None], Token]
"""Gives a new token; the client is the one that the credentials are for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How tokens are used.

    Attributes:
        what: what renews, for errors: "oauth2_refresh (https://host/token)".
        header, scheme: where the token goes: ``Authorization: Bearer TOKEN``; "" for no word before it.
        period_seconds: a token is renewed when it is older, whatever its lifetime.
        margin_seconds: and so long before it runs out; half of the lifetime at the most.
        on_refusal: whether it is renewed after a 401.
        limit_seconds: for one renewal, retries included.
    """

    what: str
    header: str = "Authorization"
    scheme: str = "Bearer"
    period_seconds: float | None = None
    margin_seconds: float = 60.0
    on_refusal: bool = True
    limit_seconds: float = 120.0


@dataclass(slots=True)
class _Held:
    """The token that is used now."""

    token: Token
    wall: float
    monotonic: float


@dataclass(slots=True)
class _Renewal:
    """A renewal under way."""

    of: int
    done: threading.Event = field(default_factory=threading.Event)
    error: BurlerError | None = None
    thread: threading.Thread | None = None


class RenewedAuth(Auth):
    """A token in a header, renewed when it is due and after a 401.

    Args:
        renew: gives a new token. It runs in one thread at a time, which is none of the tap's.
        store: knows a token of an earlier run perhaps, and keeps new ones.
        now: the clock on the wall, seconds since 1970; ``monotonic`` one that nobody sets. A token is due when one of
            them says so: the first may be set back, the second may stand still while a machine sleeps.
    """

    def __init__(
        self,
        renew: Renew,
        store: TokenStore,
        rules: Rules,
        *,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        cure: str = "",
    ) -> None:
        self._renew = renew
        self._store = store
        self._rules = rules
        self._now = now
        self._monotonic = monotonic
        self.cure = cure
        self._lock = threading.Lock()
        self._count = 0  # renewals so far: what a waiting thread goes by
        self._held: _Held | None = None
        self._under_way: _Renewal | None = None
        self._failed: tuple[BurlerError, float] | None = None
        self._client: Client | None = None

    def __repr__(self) -> str:
        return f"{self._rules.what}: a token, renewed {self._count} times"

    def attach(self, client: Client) -> None:
        """Get to know the client: requests for tokens go through its session, without its credentials."""
        if self._client is None:
            self._client = client

    def apply(self, prepared: requests.PreparedRequest) -> None:
        """Put the token into the header; renew it before, if it is due."""
        with self._lock:
            due, count = self._is_due(), self._count
        if due:
            self._renewed_if_need_be(count)
        with self._lock:
            value, count = self._held.token.value if self._held else None, self._count
        setattr(prepared, _RENEWAL, count)
        if value is not None:
            prepared.headers[self._rules.header] = f"{self._rules.scheme} {value}".strip()

    def refused(self, response: requests.Response) -> bool:
        """Renew the token after a 401, unless another thread has done so since the request was sent."""
        if not self._rules.on_refusal:
            return False
        with self._lock:
            count = getattr(response.request, _RENEWAL, self._count)
            before, renewed = self._held.token.value if self._held else None, count != self._count
        if renewed:
            return True
        self._renewed(count)
        with self._lock:
            # The same token again: the server would say the same again.
            return before is None or self._held is None or self._held.token.value != before

    def _renewed_if_need_be(self, seen: int) -> None:
        """Renew a token that is due. Where that fails, one that has not run out yet serves a little longer: the token
        server may be back by then."""
        try:
            self._renewed(seen)
        except BurlerError as error:
            with self._lock:
                lifetime = self._held.token.lifetime_seconds if self._held is not None else None
                if lifetime is None or self._age() >= lifetime - _LAST_SECONDS:
                    raise
            first_line = str(error).partition("\n")[0]
            logger.warning("%s; the token that there is lasts a little longer", first_line)

    def _age(self) -> float:
        assert self._held is not None
        return max(self._now() - self._held.wall, self._monotonic() - self._held.monotonic)

    def _is_due(self) -> bool:
        if self._held is None and self._count == 0:
            saved = self._store.saved()
            if saved is not None and (saved.lifetime_seconds or 0) > self._rules.margin_seconds:
                self._held = _Held(saved, self._now(), self._monotonic())
        if self._held is None:
            return True
        lifetime, rules = self._held.token.lifetime_seconds, self._rules
        until = rules.period_seconds
        if lifetime is not None:
            left = lifetime - min(rules.margin_seconds, max(lifetime, 0) / 2)
            until = left if until is None else min(until, left)
        return until is not None and self._age() >= until

    def _renewed(self, seen: int) -> None:
        """See to it that there has been a renewal since the ``seen``-th.

        Raises:
            BurlerError: it failed, just now or within the last seconds; the same for all who wait.
        """
        try:
            with self._lock:
                if self._count != seen:
                    return
                if self._failed is not None and self._monotonic() - self._failed[1] < REMEMBERED_SECONDS:
                    raise self._failed[0]
                renewal = self._under_way or self._begin(seen)
                if renewal.thread is threading.current_thread():
                    raise DeclarationError(
                        f"{self._rules.what}: it sends a request with the very client whose token it renews. "
                        "Let the function ask for 'client': it then gets one without credentials."
                    )
            self._wait(renewal)
        except Exception:
            raise
        except BaseException:  # the run is told to stop, anywhere in here
            self.close()
            raise
        if renewal.error is not None:
            raise renewal.error

    def close(self) -> None:
        """The run ends: give a renewal that is under way a moment, since nobody else may ever see what it gets."""
        renewal = self._under_way
        if renewal is not None and renewal.thread is not None and renewal.thread.is_alive():
            renewal.done.wait(GRACE_SECONDS)

    def _begin(self, seen: int) -> _Renewal:
        renewal = _Renewal(seen)
        context = beside(running())
        renewal.thread = threading.Thread(
            target=context.run, args=(self._work, renewal), name="burler-renewal", daemon=True
        )
        self._under_way = renewal  # before it runs: a signal may come between any two lines
        try:
            renewal.thread.start()
        except Exception:  # no more threads
            self._under_way = None
            raise
        return renewal

    def _work(self, renewal: _Renewal) -> None:
        error: BurlerError | None = None
        token: Token | None = None
        try:
            token = self._renew(self._client)
            if token.value is not None:
                fit_for_header(token.value, what=f"{self._rules.what}: the access token")
        except BurlerError as failure:
            error = failure
        except BaseException as failure:  # of the author's own code: SystemExit too
            error = CredentialsError(f"{self._rules.what} failed: {_short(failure)}")
            error.__cause__ = failure
        with self._lock:
            renewal.error = error
            if token is not None and error is None and self._count == renewal.of:
                self._count += 1
                self._held = _Held(token, self._now(), self._monotonic())
                self._failed = None
            elif error is not None and self._under_way is renewal:
                self._failed = error, self._monotonic()
            if self._under_way is renewal:
                self._under_way = None
        run = running()
        if run is not None and error is None:
            run.tally.add("refreshes")
        renewal.done.set()

    def _wait(self, renewal: _Renewal) -> None:
        until = time.monotonic() + self._rules.limit_seconds
        while not renewal.done.wait(max(0.0, min(_STEP_SECONDS, until - time.monotonic()))):
            if time.monotonic() >= until:
                self._give_up(renewal)

    def _give_up(self, renewal: _Renewal) -> None:
        error = CredentialsError(
            f"{self._rules.what} has not come back for {self._rules.limit_seconds:g} seconds. "
            "Does the server answer? limit_seconds= says how long to wait."
        )
        with self._lock:
            if renewal.done.is_set():
                return
            if self._under_way is renewal:  # the next one may try again; what this one still gives counts
                self._under_way = None
                self._failed = error, self._monotonic()
            renewal.error = error
        raise error


def _short(error: BaseException) -> str:
    try:
        lines = masked(str(error)).strip().splitlines()
    except Exception:  # its own __str__ is broken
        lines = []
    text = lines[0][:300] if lines else ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
