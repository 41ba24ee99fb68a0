"""What goes wrong at the helpdesk: always the same for the same seed, whoever asks first."""

from __future__ import annotations

import hashlib
import re
import threading
from dataclasses import dataclass
from typing import Literal

Fault = Literal["", "not found", "error", "slow", "busy"]

_MAY_FAIL = re.compile(r"/(tickets/[^/]+/comments|accounts/[^/]+/tickets)")


@dataclass(frozen=True)
class Faults:
    """Shares, from 0 to 1, of the paths that fail.

    `not_found`, `errors` and `slow` are of the comments of a ticket, which then fail each time they are asked for;
    `broken_accounts` is of the lists of tickets, which answer 500. `busy` is of all paths, which answer 503 the
    first time and are well from then on.
    """

    seed: int = 0
    not_found: float = 0.0
    errors: float = 0.0
    slow: float = 0.0
    slow_seconds: float = 3.0
    broken_accounts: float = 0.0
    busy: float = 0.0

    def lasting(self, path: str) -> Fault:
        """Return what is wrong with a path for good, "" if nothing is."""
        match = _MAY_FAIL.fullmatch(path)
        if match is None:
            return ""
        drawn = self._draw("lasting", path)
        if match[1].startswith("accounts"):
            return "error" if drawn < self.broken_accounts else ""
        kinds: tuple[tuple[Fault, float], ...] = (
            ("not found", self.not_found),
            ("error", self.errors),
            ("slow", self.slow),
        )
        for kind, share in kinds:
            if drawn < share:
                return kind
            drawn -= share
        return ""

    def passing(self, path: str) -> Fault:
        """Return what is wrong with the first reply for a path."""
        return "busy" if self._draw("passing", path) < self.busy else ""

    def _draw(self, what: str, path: str) -> float:
        digest = hashlib.sha256(f"{self.seed} {what} {path}".encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2**64


class Moods:
    """The faults of one server, and which paths have been asked for already."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._asked: set[str] = set()
        self._lock = threading.Lock()

    def of(self, path: str) -> Fault:
        """Return what goes wrong with this request for `path`."""
        with self._lock:
            first = path not in self._asked
            self._asked.add(path)
        return (self.faults.passing(path) if first else "") or self.faults.lasting(path)
