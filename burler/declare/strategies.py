"""Bookmark strategies: when a STATE is due. Text is parsed once, when the stream is declared.

A strategy says the most often that a STATE comes; the engine puts one off while its line would outweigh the rows since
the last. A strategy of your own is any object with ``is_due(since)``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from burler.call import takes_one
from burler.errors import DeclarationError
from burler.numbers import is_count, is_measure
from burler.suggest import did_you_mean


class Since(NamedTuple):
    """What a stream has given since its last STATE, or since it began.

    Attributes:
        rows: rows that are out.
        seconds: by a clock that nobody sets back.
        pages: what its function yielded as pages (lists, bytes, Arrow); of single rows, what was gathered.
    """

    rows: int
    seconds: float
    pages: int


class Strategy(Protocol):
    """When a STATE is due. It is asked after each page, so it should be quick.

    ``needs_order`` may be left out, which means False. True says that rows rise by the replication key unless the
    author says ``order="none"``; then a bookmark on the way is safe.
    """

    @property
    def needs_order(self) -> bool:
        """Whether the stream's order is "asc" where its author says nothing of it."""
        return False

    def is_due(self, since: Since) -> bool:
        """Whether a STATE is due after so much."""
        ...


@dataclass(frozen=True, slots=True)
class _Plain:
    """Strategies without fields are frozen data by inheritance: to make each one anew would slow down the import."""


class EndOfSync(_Plain):
    """STATE when the stream is complete (or stopped)."""

    needs_order = False

    def is_due(self, since: Since) -> bool:
        """Never on the way."""
        return False


@dataclass(frozen=True, slots=True)
class EveryN:
    """STATE after every ``count`` rows that the sync function yields, and at its end.

    Safe only where rows rise by the replication key, so it asks for that order unless the
    stream says ``order="none"``; then the key's bookmark moves at the end only, and what is saved on
    the way is ``stream.state``.
    """

    count: int
    needs_order = True

    def is_due(self, since: Since) -> bool:
        """After so many rows."""
        return since.rows >= self.count


@dataclass(frozen=True, slots=True)
class EverySeconds:
    """STATE after so many seconds in which rows came, and at the end. It asks for sorted rows as ``EveryN`` does."""

    seconds: float
    needs_order = True

    def is_due(self, since: Since) -> bool:
        """After so many seconds, if there is a row to speak of."""
        return since.rows > 0 and since.seconds >= self.seconds


class OnPage(_Plain):
    """STATE after each page that the sync function yields, and at its end. It asks for sorted rows."""

    needs_order = True

    def is_due(self, since: Since) -> bool:
        """After a page."""
        return since.pages > 0


class Manual(_Plain):
    """STATE where the sync function calls ``stream.save_bookmark()``: its author vouches for it. The bookmark moves
    nowhere else."""

    needs_order = False

    def is_due(self, since: Since) -> bool:
        """Never on its own."""
        return False


def needs_order(strategy: Strategy) -> bool:
    """Whether a strategy asks for sorted rows; one of an author's own need not say."""
    return bool(getattr(strategy, "needs_order", False))


_BY_NAME: dict[str, Strategy] = {"end_of_sync": EndOfSync(), "on_page": OnPage(), "manual": Manual()}
_BY_NAME["end_of_stream"] = _BY_NAME["end_of_sync"]
KNOWN = "end_of_sync, every_n(count), every_seconds(seconds), on_page, manual"
_MOST_SECONDS = 10**18  # longer than there are any
# Text, since to make patterns of them takes longer than most imports, and few taps need any.
_COUNT = r"every_(?:n\(([0-9][0-9_]{0,24})\)|([0-9][0-9_]{0,24}))"
_SECONDS = r"every_seconds\(([^()]*)\)"
_MEANT_SECONDS = r"every_?([0-9.]+)_?s(?:ec(?:ond)?s?)?|every_(?:s|sec|second)\(([0-9.]+)\)"


def parse_strategy(given: Any, where: str) -> Strategy:
    """``end_of_sync`` (or ``end_of_stream``), ``every_n(352)`` (or ``every_100``), ``every_seconds(30)``, ``on_page``,
    ``manual``, one of the types above, or an object of the author's with ``is_due``.

    Raises:
        DeclarationError: anything else, with the nearest known spelling.
    """
    what = f"{where}: bookmark_strategy {given!r:.60}"
    strategy: Strategy = _parse_text(given, what) if isinstance(given, str) else given
    if not hasattr(strategy, "is_due"):
        hint = "" if given is None or isinstance(given, int | float) else " An object needs a method is_due(since)."
        raise DeclarationError(f"{what} is unknown.{hint} Known: {KNOWN}.")
    if isinstance(strategy, type):
        raise DeclarationError(f"{what} is a class; it needs an object: {strategy.__name__}(...).")
    if isinstance(strategy, EveryN) and not is_count(strategy.count, 1):
        raise DeclarationError(f"{what}: the count must be 1 or more.")
    seconds = strategy.seconds if isinstance(strategy, EverySeconds) else 1
    if not is_measure(seconds) or not 0 < seconds < _MOST_SECONDS:
        shown = f"{seconds:g}" if isinstance(seconds, float) else repr(seconds)[:60]
        raise DeclarationError(f"{what}: the seconds must be more than 0, and finite, not {shown}.")
    if not isinstance(given, str) and not takes_one(strategy.is_due):
        raise DeclarationError(
            f"{what}: its is_due must be a plain method with one argument. Write def is_due(self, since): return "
            "since.rows >= 500"
        )
    if not isinstance(getattr(strategy, "needs_order", False), bool):
        raise DeclarationError(f"{what}: its needs_order must be True or False: an attribute or a property.")
    return strategy


def _parse_text(text: str, what: str) -> Strategy:
    spelled = re.sub(r"[\s_]+", "_", re.sub(r"\s*([()])\s*", r"\1", text.strip()))
    if spelled in _BY_NAME:
        return _BY_NAME[spelled]
    if found := re.fullmatch(_COUNT, spelled):
        return EveryN(int((found[1] or found[2]).replace("_", "")))
    if found := re.fullmatch(_SECONDS, spelled):
        try:
            seconds = float(found[1])
        except ValueError:
            raise DeclarationError(f"{what}: seconds are a number like 30 or 0.5, not {found[1]!r:.60}.") from None
        return EverySeconds(int(seconds) if 0 < seconds < _MOST_SECONDS and seconds.is_integer() else seconds)
    hint = did_you_mean(spelled, [*_BY_NAME, "every_n(1000)", "every_seconds(30)"])
    if found := re.fullmatch(_MEANT_SECONDS, spelled):
        hint = f" Did you mean 'every_seconds({found[1] or found[2]})'?"
    raise DeclarationError(f"{what} is unknown.{hint} Known: {KNOWN}.")
