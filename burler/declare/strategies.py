"""Bookmark strategies: how often a STATE may come. Text is parsed once, when the stream is declared."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from burler.errors import DeclarationError


@dataclass(frozen=True, slots=True)
class EndOfSync:
    """STATE when the stream is complete (or stopped)."""

    needs_order = False


@dataclass(frozen=True, slots=True)
class EveryN:
    """STATE after every ``count`` rows that the sync function yields, and at its end.

    Safe only where rows rise by the replication key (style 7.3), so it asks for that order unless the
    stream says ``order="none"``; then the key's bookmark moves at the end only, and what is saved on
    the way is ``stream.state``.
    """

    count: int
    needs_order = True


Strategy = EndOfSync | EveryN

_KNOWN = ("end_of_sync", "every_n(count)")
_MOST_DIGITS = 18  # what a count of 64 bits can hold
_EVERY = re.compile(r"every_(?:n\((\d+)\)|(\d+))")


def parse_strategy(text: str | Strategy, *, place: str) -> Strategy:
    """``end_of_sync`` (or ``end_of_stream``), ``every_n(352)`` (or ``every_100``).

    Raises:
        DeclarationError: anything else, with the nearest known spelling.
    """
    if isinstance(text, EndOfSync | EveryN):
        if isinstance(text, EveryN) and text.count < 1:
            raise DeclarationError(f"{place}: bookmark_strategy {text!r}: the count must be 1 or more.")
        return text
    spelled = text.replace(" ", "") if isinstance(text, str) else ""
    if spelled in ("end_of_sync", "end_of_stream"):
        return EndOfSync()
    shown = f"{text!r:.60}"
    found = _EVERY.fullmatch(spelled)
    if found:
        digits = (found[1] or found[2]).lstrip("0")
        if len(digits) > _MOST_DIGITS:
            raise DeclarationError(
                f"{place}: bookmark_strategy {shown}: no run has so many rows; the count has {len(digits)} digits."
            )
        count = int(digits or "0")
        if count < 1:
            raise DeclarationError(f"{place}: bookmark_strategy {text!r}: the count must be 1 or more.")
        return EveryN(count)
    close = difflib.get_close_matches(spelled, ["end_of_sync", "end_of_stream", "every_n(1000)"], n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    raise DeclarationError(f"{place}: bookmark_strategy {shown} is unknown.{hint} Known: {', '.join(_KNOWN)}.")
