"""When a request is tried again: what the source asks for, and what backoff gives."""

from __future__ import annotations

import datetime
import email.utils
import math
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any


class Waits:
    """The waits of one request, one after the other: full jitter on what the strategy gives."""

    def __init__(self, strategy: Callable[[], Any]) -> None:
        self._strategy = strategy
        self._waits: Any = None

    def next(self, outcome: Any) -> float | None:
        """Seconds before the next try; None if the strategy has no more.

        Args:
            outcome: the reply or the exception, for strategies such as ``backoff.runtime`` that look at it.
        """
        try:
            if self._waits is None:
                self._waits = self._strategy()
                value = next(self._waits)
                if value is None:  # generators of backoff give one None before their first wait
                    value = self._send(outcome)
            else:
                value = self._send(outcome)
        except StopIteration:
            return None
        return random.uniform(0, max(0.0, float(value)))

    def _send(self, outcome: Any) -> Any:
        send = getattr(self._waits, "send", None)
        return next(self._waits) if send is None else send(outcome)


def retry_after_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """How long a reply asks to wait: ``Retry-After`` as seconds, or as a date counted from the reply's own ``Date``
    (so that clocks that differ do no harm). None if it does not say, or says nothing that can be read."""
    text = (headers.get("Retry-After") or "").strip()
    if not text:
        return None
    seconds = number(text)
    if seconds is None:
        at = http_date(text)
        if at is None:
            return None
        seconds = at - sent_at(headers, now)
    return max(0.0, seconds)


def sent_at(headers: Mapping[str, str], now: float) -> float:
    """The source's clock when it replied, as seconds since 1970; ours if it does not say."""
    at = http_date(headers.get("Date") or "")
    return now if at is None else at


def http_date(text: str) -> float | None:
    """Seconds since 1970 of a date as HTTP writes it; None if it is none."""
    try:
        found = email.utils.parsedate_to_datetime(text)
        if found.tzinfo is None:
            found = found.replace(tzinfo=datetime.UTC)
        return found.timestamp()
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def number(text: str) -> float | None:
    """A finite number; None if it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def first_numbers(text: str) -> Iterator[float]:
    """The numbers of a list with commas."""
    for part in text.split(","):
        value = number(part.strip())
        if value is not None:
            yield value
