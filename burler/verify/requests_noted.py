"""What a ``RequestWatch`` keeps of requests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from burler.verify.requests_asked import Asked
from burler.verify.requests_pages import Paged

GONE = frozenset({404, 410})
PASSING = frozenset({401, 408, 425, 429})
"""Refusals that say nothing against asking again."""


@dataclass(slots=True)
class Endpoint:
    """What was asked of one endpoint by one stream.

    Attributes:
        answered: how many requests were answered well, by replies that somebody read to their ends.
        login: it gives tokens, which run out.
    """

    requests: int = 0
    answered: int = 0
    seconds: float = 0.0
    bytes: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    repeated_url: str = ""
    no_timeout: int = 0
    login: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; ``statuses`` has "lost" for replies that never came."""
        return {
            "requests": self.requests,
            "seconds": round(self.seconds, 6),
            "statuses": dict(self.statuses),
            "repeated": self.repeated,
            "no_timeout": self.no_timeout,
            "bytes": self.bytes,
        }


@dataclass(slots=True, eq=False)
class Going:
    """A request that is under way.

    Attributes:
        digest: what a repetition shares with it; plain: the same without headers.
        part: what a request for the same rows shares with it, of another number of them perhaps. All are digests.
    """

    asked: Asked
    stream: str | None
    endpoint: str
    digest: int | None
    plain: int | None
    paged: Paged | None
    part: int
    tailing: bool
    began: float
    polled: bool
    well: bool = False
    """Whether the head of its reply is that of an answer."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that was not answered well, and not asked again since with more luck.

    Attributes:
        status: None where the reply was lost.
    """

    stream: str | None
    endpoint: str
    status: int | None
    shown: str
    series: int | None
    value: int | None
