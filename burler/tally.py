"""What is counted while a source is read, and METRIC lines."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from typing import Any

import msgspec

from burler.config.secrets import Clean, masked
from burler.measures import Measure

logger = logging.getLogger("burler")

_OUR_TAGS = ("job_type", "status")


class Tally:
    """Counts by name, and by reason where there are several: requests, retries, files. Several threads may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, name: str, reason: str = "", count: int = 1) -> None:
        """Count something that has happened.

        Args:
            name: what, in plural: "requests", "retries", "files".
            reason: why, for what has several reasons: "429", "no answer".
        """
        with self._lock:
            self._counts[name, reason] += count

    def to_json(self) -> dict[str, int | dict[str, int]]:
        """The counts: ``{"requests": 12, "retries": {"429": 2, "no answer": 1}}``, in the order of their names."""
        with self._lock:
            counts = sorted(self._counts.items())
        found: dict[str, int | dict[str, int]] = {}
        for (name, reason), count in counts:
            before = found.get(name)
            if not reason and before is None:
                found[name] = count
            else:
                # A name that was counted with and without a reason keeps both.
                several = before if isinstance(before, dict) else {} if before is None else {"other": before}
                found[name] = {**several, reason: count}
        return found


def metric(measure: Measure, value: float, **tags: Any) -> None:
    """One METRIC line, with the tags that its measure names.

    Secrets are left out of the tags alone, before they are JSON: the rest are words and numbers of ours, which
    programs read.
    """
    if not logger.isEnabledFor(logging.INFO):
        return
    shown = {
        key: masked(tag)
        if isinstance(tag, str) and key not in _OUR_TAGS
        else tag  # a stream may be named like a secret
        for key, tag in tags.items()
    }
    value = round(value, 6) if isinstance(value, float) else value
    point = {"type": measure.kind, "metric": measure.name, "value": value, "tags": shown}
    logger.info(Clean(f"METRIC: {msgspec.json.encode(point).decode()}"))
