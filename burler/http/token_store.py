"""Where a renewed token is kept: in memory, and in the config of the tap, which goes back into its file."""

from __future__ import annotations

import datetime
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from burler import times
from burler.config.secrets import hide, raw_secrets
from burler.config.writeback import has_file, is_apart, newer_in_file, save_now
from burler.errors import CredentialsError, DeclarationError
from burler.http.client import fit_for_header

logger = logging.getLogger(__name__)

Config = dict[str, Any]
_LOOK_SECONDS = 0.2
_YEAR_SECONDS = 366 * 86400.0


@dataclass(frozen=True, slots=True)
class Token:
    """What a renewal gave.

    Attributes:
        value: goes into the header; None where the author's own code puts it into requests.
        lifetime_seconds: from now on; None where nobody says.
        refresh_token: the next one, where there is one.
    """

    value: str | None = field(repr=False)
    lifetime_seconds: float | None = None
    refresh_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class TokenKeys:
    """The names of the keys in the config; None for what is not kept there."""

    access_token: str | None = "access_token"
    refresh_token: str | None = "refresh_token"
    expires_at: str | None = "expires_at"


class TokenStore:
    """The tokens of one Auth.

    Args:
        config: the tap's config, or an object inside of it; None keeps tokens in memory only.
        refresh_token: the first one, where the config holds none.
    """

    def __init__(
        self, config: Config | None, keys: TokenKeys, now: Callable[[], float], *, refresh_token: str | None = None
    ) -> None:
        if config is not None and not isinstance(config, dict):
            raise DeclarationError(
                f"config= must be the config that the client function gets, not a {type(config).__name__}: what is "
                "written into a copy can't be saved."
            )
        self.config = config
        self._keys = keys
        self._now = now
        self._refresh_token = refresh_token
        self._lock = threading.Lock()

    @property
    def refresh_token(self) -> str | None:
        """The one to use next: the config's, since it is changed there."""
        held = self._held(self._keys.refresh_token)
        return held if isinstance(held, str) and held else self._refresh_token

    def saved(self) -> Token | None:
        """The access token of the config, if that also says how long it lasts. One of unknown age is not trusted: some
        sources give wrong answers for it, in place of a 401."""
        value, until = self._held(self._keys.access_token), _seconds(self._held(self._keys.expires_at))
        if not isinstance(value, str) or not value or until is None:
            return None
        try:
            fit_for_header(value, what="")
        except DeclarationError:
            return None
        hide(value)
        return Token(value, until - self._now())

    def keep(self, token: Token) -> None:
        """Put new tokens into the config, and the config into its file, before any of them is used: the old refresh
        token may be worth nothing by now."""
        with self._lock:
            self._refresh_token = token.refresh_token or self._refresh_token
            if self.config is None:
                return
            changes: dict[str, Any] = {}
            if token.refresh_token and self._keys.refresh_token is not None:
                changes[self._keys.refresh_token] = token.refresh_token
            if token.value is not None and self._keys.access_token is not None:
                changes[self._keys.access_token] = token.value
                if self._keys.expires_at is not None and token.lifetime_seconds is not None:
                    changes[self._keys.expires_at] = self._expires_at(token.lifetime_seconds)
                elif self._keys.expires_at is not None:
                    self.config.pop(self._keys.expires_at, None)  # it spoke of the old one
            self.config.update(changes)  # in one step: another thread may be saving the config just now
        save_now(self.config)
        if token.refresh_token and is_apart(self.config):
            logger.critical(
                "a new refresh token is NOT SAVED: config= was given a copy of the tap's config, which no file belongs "
                "to. Give it the dict that the client function gets, or an object inside of it"
            )

    def keep_own(self) -> Token:
        """Save what the author's refresh function has itself put into the config, and give it."""
        if self.config is None:
            return Token(None)
        for secret in raw_secrets(self.config):
            hide(secret)
        save_now(self.config)
        value = self._held(self._keys.access_token)
        left = _seconds(self._held(self._keys.expires_at))
        return Token(value if isinstance(value, str) and value else None, None if left is None else left - self._now())

    def take_over(self) -> bool:
        """Take over the tokens that another process has meanwhile put into the config file: a refresh token that was
        used up there is refused here, and some sources then end the whole login. True if there were any."""
        if self.config is None:
            return False
        names = [
            name
            for name in (self._keys.refresh_token, self._keys.access_token, self._keys.expires_at)
            if name is not None
        ]
        found = newer_in_file(self.config, names)
        changed = {name: value for name, value in found.items() if self.config.get(name) != value}
        for name in (self._keys.refresh_token, self._keys.access_token):
            if isinstance(changed.get(name or ""), str):
                hide(changed[name or ""])
        self.config.update(changed)
        return bool(changed)

    def taken_over_soon(self, seconds: float) -> bool:
        """The same, for a while: a process that has just got new tokens saves them within moments."""
        until = time.monotonic() + seconds
        while not self.take_over():
            if self.config is None or not has_file(self.config) or time.monotonic() >= until:
                return False
            time.sleep(_LOOK_SECONDS)
        return True

    def _held(self, key: str | None) -> Any:
        return None if key is None or self.config is None else self.config.get(key)

    def _expires_at(self, lifetime_seconds: float) -> str | int:
        """RFC 3339 in UTC; seconds since 1970 where the config has a number there already."""
        until = math.floor(self._now() + lifetime_seconds)
        if isinstance(self._held(self._keys.expires_at), int | float):
            return until
        return datetime.datetime.fromtimestamp(until, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def token_of(given: Any, *, what: str) -> Token:
    """A token out of what a token server or an author's refresh function gave: a text, or an object with
    ``access_token``, perhaps with ``expires_in`` (seconds) and ``refresh_token``. Its secrets are hidden from then on.

    Raises:
        CredentialsError: it is neither, or the token is empty or can't be sent.
    """
    if isinstance(given, Mapping):
        for secret in raw_secrets(given):
            hide(secret)
        value, lifetime, refresh = given.get("access_token"), given.get("expires_in"), given.get("refresh_token")
    else:
        value, lifetime, refresh = given, None, None
    if isinstance(value, str) and value:
        hide(value)
    try:
        token = fit_for_header(value, what=f"{what}: the access token")
    except DeclarationError as error:
        cure = "It must give a text, or an object with 'access_token'."
        raise CredentialsError(f"{error}".replace("Is it in the config?", cure)) from None
    return Token(token, _lifetime(lifetime), refresh if isinstance(refresh, str) and refresh else None)


def _lifetime(given: Any) -> float | None:
    """``expires_in``, which some servers send as a text; nothing of it that is no time, or none that can be."""
    try:
        seconds = float(given) if not isinstance(given, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        return None
    return min(seconds, 100 * _YEAR_SECONDS) if seconds > 0 else None


def _seconds(given: Any) -> float | None:
    """A time of the config, RFC 3339 or seconds since 1970, as the latter."""
    try:
        if isinstance(given, str):
            found = times.lenient(given)[0].timestamp()
        elif isinstance(given, int | float) and not isinstance(given, bool):
            found = float(given)
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None
