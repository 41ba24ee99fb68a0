"""What a reply says about the source's own limit.

Read are ``X-RateLimit-Remaining`` and ``-Reset`` (also written ``X-Rate-Limit-``), ``RateLimit-Remaining`` and
``-Reset``, and the ``RateLimit`` field of the IETF draft "RateLimit header fields for HTTP" in its older form
(``limit=100, remaining=0, reset=5``) and its newer one (``"default";r=0;t=5``, windows in ``RateLimit-Policy``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from burler import times
from burler.http.waits import first_numbers, http_date, number, sent_at

_PREFIXES = ("X-RateLimit-", "RateLimit-", "X-Rate-Limit-")
_EPOCH_FROM = 1e9  # more seconds than any window has: a time of day
_MILLISECONDS_FROM = 1e11
_PARAMETER = re.compile(r"(?<![a-z])([a-z]+)\s*=\s*\"?([\d.]+)")
_POLICY = re.compile(r"\s*\"?([^\";,]*)\"?\s*((?:;[^,]*)?)(?:,|$)")


def pause_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """How long the source takes no more requests, because none remain; None if some do, or it does not say.

    Args:
        now: the time of day, seconds since 1970.
    """
    found = [seconds for seconds in _pauses(headers, now) if seconds > 0]
    return max(found, default=None)


def reset_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """In how many seconds the source's window ends, for a refusal (429) that says no ``Retry-After``."""
    for prefix in _PREFIXES:
        seconds = _reset(headers, prefix, now)
        if seconds is not None:
            return max(0.0, seconds)
    return pause_seconds(headers, now)


def _pauses(headers: Mapping[str, str], now: float) -> Iterator[float]:
    for prefix in _PREFIXES:
        remaining = list(first_numbers(headers.get(prefix + "Remaining") or ""))
        if remaining and min(remaining) <= 0:
            seconds = _reset(headers, prefix, now)
            if seconds is not None:
                yield seconds
    field = headers.get("RateLimit") or ""
    if ";" in field:
        yield from _policies(field, headers.get("RateLimit-Policy") or "")
    elif field:
        said = _numbers(field)
        if said.get("remaining", 1) <= 0 and "reset" in said:
            yield said["reset"]


def _reset(headers: Mapping[str, str], prefix: str, now: float) -> float | None:
    text = (headers.get(prefix + "Reset") or "").strip()
    value = number(text)
    if value is not None:
        if value < _EPOCH_FROM:
            return value
        return (value / 1000 if value >= _MILLISECONDS_FROM else value) - sent_at(headers, now)
    at = http_date(text) if text else None
    if at is None:
        moment = times.lenient_moment(text)
        if moment is None:
            return None
        at = moment.timestamp()
    return at - sent_at(headers, now)


def _policies(field: str, policies: str) -> Iterator[float]:
    """Seconds of those policies of which nothing remains; without a time, the whole window of the policy."""
    windows = {name: _numbers(text).get("w") for name, text in _POLICY.findall(policies)}
    for name, text in _POLICY.findall(field):
        said = _numbers(text)
        if said.get("r", 1) <= 0:
            seconds = said.get("t", windows.get(name))
            if seconds is not None:
                yield seconds


def _numbers(text: str) -> dict[str, float]:
    """The parameters of a field that are numbers."""
    found = {name: number(value) for name, value in _PARAMETER.findall(text.lower())}
    return {name: value for name, value in found.items() if value is not None}
