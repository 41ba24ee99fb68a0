"""What a user may choose about how rows are read into tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from burler.errors import UsageError

Timestamps = Literal["micros", "text"]
OpenTypes = Literal["text", "variant"]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How the values of a stream become columns, and how many rows may be left out.

    ``max_bad_rows``: rows with a value that its column can't hold exactly; they go to quarantine, and more of them
    fail the export. ``timestamps``: date-times as microseconds in UTC, or as the text that the tap wrote (every digit
    of a second is kept then). ``open_types``: what holds values without a narrower type (open objects, tuples, unions
    that do not widen): JSON text, or Spark's VARIANT. ``as_text``: columns (dotted where they stand in an object) that
    are text although their schemas say numbers: see ``Flagged.as_text``.
    """

    max_bad_rows: int = 0
    timestamps: Timestamps = "micros"
    open_types: OpenTypes = "text"
    as_text: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if isinstance(self.max_bad_rows, bool) or not isinstance(self.max_bad_rows, int) or self.max_bad_rows < 0:
            raise UsageError(f"max_bad_rows is a number of rows, 0 or more, not {self.max_bad_rows!r}")
        _one_of("timestamps", self.timestamps, get_args(Timestamps))
        _one_of("open_types", self.open_types, get_args(OpenTypes))


def _one_of(name: str, given: object, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise UsageError(f"{name} is one of {', '.join(allowed)}, not {given!r}")
