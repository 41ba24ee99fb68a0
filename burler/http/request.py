"""What is asked for: one frozen object from the author's call to the wire."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})


@dataclass(frozen=True, slots=True, repr=False)
class Request:
    """One request, as the author says it.

    Attributes:
        path: what stands behind ``base_url``, or a whole URL.
        params: of the query; None leaves one out, lists repeat it, times become ISO 8601, booleans ``true``/``false``.
        headers: beside the client's; None takes one of the client's away.
        json: a body that is written as JSON; Decimals keep their digits.
        data: a body as bytes, text, or a form's fields.
        endpoint: the path with names for its changing parts (``/contacts/{id}/notes``), for METRIC lines.
        retry: whether it may be sent again; None: GET, HEAD, PUT and DELETE may, POST and PATCH may not.
        timeout_seconds, max_response_bytes: None stands for the client's.
        allow_statuses: statuses beside 200 to 299 that are no error.
    """

    method: str
    path: str
    params: Mapping[str, Any] | None = None
    headers: Mapping[str, Any] | None = None
    json: Any = None
    data: Any = None
    endpoint: str | None = None
    retry: bool | None = None
    timeout_seconds: float | tuple[float, float] | None = None
    max_response_bytes: int | None = None
    allow_statuses: Collection[int] = ()

    def replace(self, **changes: Any) -> Request:
        """The same request with some fields changed."""
        return dataclasses.replace(self, **changes)

    def __repr__(self) -> str:
        from burler.http.masking import mask_url

        return f"<Request {self.method} {mask_url(self.path)}>"


def as_text(value: Any) -> str:
    """A value as it stands in a query or a header: times in ISO 8601 (UTC as ``Z``), ``true`` and ``false``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime | datetime.time | datetime.date):
        text = value.isoformat()
        return text[:-6] + "Z" if text.endswith("+00:00") else text
    if isinstance(value, bytes):
        return value.decode()
    return str(value)


def query_pairs(params: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """The pairs of a query; see :class:`Request`."""
    pairs: list[tuple[str, str]] = []
    for name, value in (params or {}).items():
        several = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
        pairs += [(str(name), as_text(one)) for one in (value if several else [value]) if one is not None]
    return pairs
