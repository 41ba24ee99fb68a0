"""Filters let into the extraction: where it starts, and which partitions it asks for.

Spark keeps every filter and applies it again, so that what is let in may only leave out rows that it would drop.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from burler import times


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What filters say of an extraction.

    Attributes:
        start: no row before this moment is wanted, by the replication key; RFC 3339 in UTC. None: nothing is said.
        among: field -> the values that are wanted.
    """

    start: str | None = None
    among: Mapping[str, frozenset[Any]] = field(default_factory=dict)

    def wants(self, partition: Mapping[str, Any] | None) -> bool:
        """Whether a partition may hold rows that are wanted: its keys of a field's name hold that field's value. Values
        of other types than the filter's are not compared: "2024" may well be 2024."""
        for name, values in self.among.items():
            own = (partition or {}).get(name)
            if type(own) in (str, int) and values and all(type(one) is type(own) and one != own for one in values):
                return False
        return True

    def later(self, start: Any) -> str | None:
        """The moment to start from, if it is later than the one that a config says."""
        if self.start is None or (isinstance(start, str) and _moment(start) >= _moment(self.start)):
            return None
        return self.start


def narrowed(filters: Iterable[Any], replication_key: str | None) -> Narrowed:
    """What the filters say, as far as it is of use.

    Args:
        filters: pyspark's; by their names, since those of a version that lacks one must not fail.
    """
    start: dt.datetime | None = None
    among: dict[str, frozenset[Any]] = {}
    for one in filters:
        path: tuple[str, ...] = tuple(getattr(one, "attribute", ()))
        kind = type(one).__name__
        if len(path) != 1:
            continue
        name = path[0]
        if kind in ("EqualTo", "In"):
            values = frozenset(one.value if kind == "In" else (one.value,))
            among[name] = among[name] & values if name in among else values
        if name == replication_key and kind in ("GreaterThan", "GreaterThanOrEqual", "EqualTo"):
            moment = _as_moment(one.value)
            if moment is not None and (start is None or moment > start):
                start = moment
    return Narrowed(None if start is None else times.format_time(start), among)


def _as_moment(value: Any) -> dt.datetime | None:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC)
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    return None


def _moment(text: str) -> dt.datetime:
    """A start date of a config; one that can't be read counts as the latest, so that nothing is changed."""
    return times.lenient_moment(text) or dt.datetime.max.replace(tzinfo=dt.UTC)
