"""What may be set of a client, checked when it is made."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burler.errors import DeclarationError
from burler.http.masking import mask_url
from burler.http.origins import is_web
from burler.numbers import is_count, is_measure

MIB = 1024 * 1024
RETRY_STATUSES = (408, 425, 429, 500, 502, 503, 504)
LONGEST_STEP_SECONDS = 60.0
_LONGEST_TIMEOUT_SECONDS = 1_000_000.0  # eleven days; systems count in milliseconds that must fit into 31 bits

Backoff = Callable[[], Generator[Any, Any, Any]]


def exponential() -> Generator[Any, Any, Any]:
    """The usual waits: up to 1, 2, 4, ... 60 seconds, as backoff.expo gives them."""
    import backoff

    return backoff.expo(max_value=LONGEST_STEP_SECONDS)


@dataclass(frozen=True, slots=True, repr=False)
class Options:
    """The settings of a client; see :class:`burler.http.Client` for what each of them means."""

    base_url: str = ""
    headers: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    timeout_seconds: float | tuple[float, float] = (10.0, 60.0)
    retries: int = 5
    max_wait_seconds: float = 300.0
    backoff_strategy: Backoff = exponential
    retry_statuses: Collection[int] = RETRY_STATUSES
    retry_writes: bool = False
    requests_per_second: float | None = None
    requests_per_minute: float | None = None
    follow_rate_limit_headers: bool = True
    max_response_bytes: int = 256 * MIB
    max_redirects: int = 10
    user_agent: str | None = None
    verify: bool | str | None = None
    cert: str | tuple[str, str] | None = None
    proxies: Mapping[str, str] | None = None
    of_session: bool = True
    """Whether headers, parameters and cookies of the session are sent: not to servers of others, see ``bare``."""

    def __post_init__(self) -> None:
        if self.base_url and not is_web(self.base_url):
            _refuse(f"base_url '{mask_url(self.base_url)}' has no 'https://' before its host")
        for name in ("headers", "params"):
            if not isinstance(getattr(self, name), Mapping):
                _refuse(f"{name} must be a mapping, not {type(getattr(self, name)).__name__}")
        for name, files in (("verify", [self.verify]), ("cert", _several(self.cert))):
            missing = next((one for one in files if isinstance(one, str) and not Path(one).exists()), None)
            if missing is not None:
                _refuse(f"{name}='{missing}' is not there")
        odd = next((name for name in self.headers if not isinstance(name, str | bytes)), None)
        if odd is not None:
            _refuse(f"headers has a name that is no text: {odd!r:.60}")
        check_timeout(self.timeout_seconds)
        for name in ("retries", "max_redirects"):
            if not is_count(getattr(self, name), 0):
                _refuse(f"{name} must be a whole number from 0 on, not {getattr(self, name)!r:.60}")
        if not _is_number(self.max_wait_seconds) or self.max_wait_seconds < 0:
            _refuse(f"max_wait_seconds must be a number from 0 on, not {self.max_wait_seconds!r:.60}")
        for name in ("requests_per_second", "requests_per_minute"):
            limit = getattr(self, name)
            if limit is not None and not (is_measure(limit) and limit > 0):
                _refuse(f"{name} must be a number above 0, not {limit!r}; leave it out for no limit")
        check_bytes("max_response_bytes", self.max_response_bytes)
        statuses: Any = self.retry_statuses
        if not isinstance(statuses, Collection) or not all(is_count(status, 0) for status in statuses):
            _refuse(f"retry_statuses must be a collection of whole numbers, such as (429, 503), not {statuses!r:.60}")
        strategy: Any = self.backoff_strategy
        if not callable(strategy):
            _refuse("backoff_strategy must be a function that gives waits, such as backoff.expo, not what it gave")


def timeouts(given: float | tuple[float, float]) -> tuple[float, float]:
    """Seconds to connect, and between two bytes."""
    return given if isinstance(given, tuple) else (given, given)


def check_timeout(given: Any) -> None:
    """Raise DeclarationError for anything but one or two numbers of seconds, a million at the most: without a limit a
    request may hang for ever."""
    pair = given if isinstance(given, tuple) else (given, given)
    if len(pair) != 2 or not all(_is_number(one) and 0 < one <= _LONGEST_TIMEOUT_SECONDS for one in pair):
        _refuse(f"timeout_seconds must be seconds above 0, or a pair (to connect, between two bytes), not {given!r}")


def check_bytes(name: str, given: Any) -> None:
    """Raise DeclarationError for anything but a number of bytes above 0."""
    if not is_count(given, 1):
        _refuse(f"{name} must be a whole number of bytes above 0, not {given!r:.60}")


def check_pool(size: Any) -> None:
    """Raise DeclarationError for anything but None and a number of connections above 0."""
    if size is not None and not is_count(size, 1):
        _refuse(f"pool_size must be a number of connections above 0, not {size!r:.60}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # not NaN


def _several(given: Any) -> tuple[Any, ...]:
    return given if isinstance(given, tuple) else (given,)


def _refuse(fact: str) -> None:
    raise DeclarationError(f"burler.http.Client: {fact}.")


@functools.cache
def default_user_agent(tap_name: str) -> str:
    """``burler/0.1.0 (tap-contacts)``."""
    import burler

    shown = "".join(letter for letter in tap_name if 32 < ord(letter) < 127 and letter not in "()")
    return f"burler/{burler.__version__}" + (f" ({shown})" if shown else "")
