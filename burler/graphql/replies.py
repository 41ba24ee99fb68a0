"""What a reply of a GraphQL server says beside its rows: errors, and whether to wait or to ask for less."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from burler.config.secrets import MASKED, masked, surely_secret
from burler.http.masking import mask_text
from burler.log_settings import describe, log_settings, near

THROTTLED = frozenset(
    {
        "THROTTLED", "RATE_LIMITED", "RATELIMITED", "RATE_LIMIT", "RATE_LIMIT_EXCEEDED", "TOO_MANY_REQUESTS",
        "COMPLEXITY_BUDGET_EXHAUSTED", "SERVICE_UNAVAILABLE", "429",
    }
)  # fmt: skip
TOO_COMPLEX = frozenset(
    {
        "MAX_COST_EXCEEDED", "MAX_COMPLEXITY", "MAX_COMPLEXITY_EXCEEDED", "QUERY_TOO_COMPLEX", "TOO_COMPLEX",
        "COMPLEXITY_LIMIT_EXCEEDED", "QUERY_COMPLEXITY", "GRAPHQL_MAX_COMPLEXITY", "MAX_NODE_LIMIT_EXCEEDED",
        "QUERY_COST_EXCEEDED", "COST_LIMIT_EXCEEDED",
    }
)  # fmt: skip
_MOST_SHOWN = 3
_MESSAGE = 300


class Envelope(msgspec.Struct):
    """A reply, read whole."""

    data: Any = None
    errors: Any = None
    extensions: Any = None


_decoder = msgspec.json.Decoder(Envelope, float_hook=Decimal)


def read_whole(content: bytes) -> Envelope:
    """A reply as Python's values; numbers with a fraction are Decimals.

    Raises:
        ValueError: no JSON, or no object.
    """
    try:
        return _decoder.decode(content)
    except (msgspec.DecodeError, RecursionError, ArithmeticError) as error:
        if isinstance(error, msgspec.ValidationError):
            raise ValueError(f"no GraphQL reply: {error}{glimpse(content)}") from None
        try:  # Half of a surrogate pair, NaN: what some servers write
            found = json.loads(content.decode(), parse_float=Decimal)
        except (ValueError, RecursionError):
            raise ValueError(f"not JSON: {error}{glimpse(content)}") from None
        if not isinstance(found, dict):
            raise ValueError(f"no GraphQL reply{glimpse(content)}") from None
        return Envelope(found.get("data"), found.get("errors"), found.get("extensions"))


def glimpse(content: bytes) -> str:
    """The first characters of a reply, for errors, where values are shown; secrets masked."""
    return near(mask_text(content[:2000].decode(errors="replace")), 80)


def shown(value: Any) -> str:
    """A value of a reply, for errors; its kind where values are not shown. Secrets are masked."""
    return masked(repr(value)[:2000])[:60] if log_settings.values else describe(value)


def first_line(error: BaseException) -> str:
    """The fact of an error, without its cure."""
    return str(error).partition("\n")[0].rstrip(".")


def errors_of(found: Any) -> list[dict[str, Any]]:
    """The errors of a reply as a list of objects, whatever a server writes there; secrets masked."""
    if not found:
        return []
    listed = found if isinstance(found, list) else [found]
    return [_clean(one) if isinstance(one, dict) else {"message": masked(str(one))} for one in listed]


def _clean(value: Any) -> Any:
    """What a server says of an error, without secrets: it may repeat a header or a variable."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, list):
        return [_clean(one) for one in value]
    if isinstance(value, dict):
        return {
            key: MASKED if isinstance(one, str) and surely_secret(str(key)) else _clean(one)
            for key, one in value.items()
        }
    return value


def codes_of(error: Mapping[str, Any]) -> set[str]:
    """The words by which servers say what kind of error one is, in capitals: ``extensions.code`` mostly."""
    extensions = error.get("extensions")
    inner = extensions if isinstance(extensions, Mapping) else {}
    found = (inner.get("code"), inner.get("errorCode"), inner.get("type"), error.get("type"), error.get("code"))
    return {str(code).upper() for code in found if isinstance(code, str | int) and not isinstance(code, bool)}


def has_code(errors: Sequence[Mapping[str, Any]], codes: Collection[str], *, text: str = "") -> bool:
    """Whether one of the errors is of these kinds, or says nothing but ``text``."""
    for error in errors:
        said = codes_of(error)
        if said & set(codes) or (not said and text and str(error.get("message", "")).strip().lower() == text):
            return True
    return False


def wait_seconds(extensions: Any, errors: Sequence[Mapping[str, Any]]) -> float | None:
    """How long a server that throttles asks to wait: until its bucket has filled up again, or as it says."""
    for error in errors:
        inner = error.get("extensions")
        for name in ("retryAfter", "retry_after", "retryAfterSeconds"):
            seconds = inner.get(name) if isinstance(inner, Mapping) else None
            if isinstance(seconds, int | float | Decimal) and not isinstance(seconds, bool) and 0 <= seconds < 86400:
                return float(seconds)
    cost = extensions.get("cost") if isinstance(extensions, Mapping) else None
    status = cost.get("throttleStatus") if isinstance(cost, Mapping) else None
    if not isinstance(cost, Mapping) or not isinstance(status, Mapping):
        return None
    try:
        short = float(cost["requestedQueryCost"]) - float(status["currentlyAvailable"])
        rate = float(status["restoreRate"])
    except (KeyError, TypeError, ValueError):
        return None
    return max(0.0, short / rate) if rate > 0 else None


def told(errors: Sequence[Mapping[str, Any]], text: str = "") -> str:
    """Errors as a person reads them: the first few, each with its place and code.

    Args:
        text: the query that was sent, whose lines errors name.
    """
    lines = text.splitlines()
    parts = []
    for error in errors[:_MOST_SHOWN]:
        said = mask_text(str(error.get("message") or "an error without a message"))[:_MESSAGE].replace("\n", " ")
        path = error.get("path")
        at = f" at {'.'.join(str(part) for part in path)}" if isinstance(path, list) and path else ""
        locations = error.get("locations")
        first = locations[0] if isinstance(locations, list) and locations else None
        number = first.get("line") if isinstance(first, Mapping) else None
        known = isinstance(number, int) and 0 < number <= len(lines) and not at
        line = f" near '{lines[number - 1].strip()[:60]}'" if known and number is not None else ""
        code = f" [{', '.join(sorted(codes_of(error)))}]" if codes_of(error) else ""
        parts.append(f"{said}{at}{line}{code}")
    more = f"; and {len(errors) - _MOST_SHOWN} more" if len(errors) > _MOST_SHOWN else ""
    return "; ".join(parts) + more
