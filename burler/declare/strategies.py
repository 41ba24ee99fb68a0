"""Bookmark strategies: when a STATE is due. Text is parsed once, when the stream is declared.

A strategy says the most often that a STATE comes; the engine puts one off while its line would outweigh the rows since
the last. A strategy of your own is any object with ``is_due(since)``.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

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

    __slots__ = ()
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

    __slots__ = ()
    needs_order = True

    def is_due(self, since: Since) -> bool:
        """After a page."""
        return since.pages > 0


class Manual(_Plain):
    """STATE where the sync function calls ``stream.save_bookmark()``: its author vouches for it. The bookmark moves
    nowhere else."""

    __slots__ = ()
    needs_order = False

    def is_due(self, since: Since) -> bool:
        """Never on its own."""
        return False


def needs_order(strategy: Strategy) -> bool:
    """Whether a strategy asks for sorted rows; one of an author's own need not say."""
    return bool(getattr(strategy, "needs_order", False))


_BY_NAME: dict[str, Strategy] = {
    "end_of_sync": EndOfSync(),
    "end_of_stream": EndOfSync(),
    "on_page": OnPage(),
    "manual": Manual(),
}
KNOWN = "end_of_sync, every_n(count), every_seconds(seconds), on_page, manual"
_MOST_DIGITS = 18  # what a count of 64 bits can hold; as seconds, longer than there are any
# Text, since to make patterns of them takes longer than most imports, and few taps need any.
_COUNT = r"every_(?:n\(([0-9][0-9_]*)\)|([0-9][0-9_]*))"
_SECONDS = r"every_seconds\(([^()]*)\)"
_MEANT_SECONDS = r"every_?([0-9.]+)_?s(?:ec(?:ond)?s?)?|every_(?:s|sec|second)\(([0-9.]+)\)"


def parse_strategy(given: Any, place: str) -> Strategy:
    """``end_of_sync`` (or ``end_of_stream``), ``every_n(352)`` (or ``every_100``), ``every_seconds(30)``, ``on_page``,
    ``manual``, one of the types above, or an object of the author's with ``is_due``.

    Raises:
        DeclarationError: anything else, with the nearest known spelling.
    """
    if isinstance(given, str):
        return _parse_text(given, place)
    if isinstance(given, EveryN):
        if not is_count(given.count, 1):
            raise DeclarationError(f"{place}: bookmark_strategy {given!r:.60}: the count must be 1 or more.")
        return given
    if isinstance(given, EverySeconds):
        _check_seconds(given.seconds, f"{place}: bookmark_strategy {given!r:.60}")
        return given
    if isinstance(given, type) and hasattr(given, "is_due"):
        raise DeclarationError(
            f"{place}: bookmark_strategy is the class {given.__name__}; it needs an object: {given.__name__}(...)."
        )
    if hasattr(given, "is_due"):
        return _of_the_author(given, place)
    hint = "" if given is None or isinstance(given, int | float) else " An object needs a method is_due(since)."
    raise DeclarationError(f"{place}: bookmark_strategy {given!r:.60} is unknown.{hint} Known: {KNOWN}.")


def _parse_text(text: str, place: str) -> Strategy:
    spelled = re.sub(r"[\s_]+", "_", re.sub(r"\s*([()])\s*", r"\1", text.strip()))
    if spelled in _BY_NAME:
        return _BY_NAME[spelled]
    where = f"{place}: bookmark_strategy {text!r:.60}"
    if found := re.fullmatch(_COUNT, spelled):
        digits = (found[1] or found[2]).replace("_", "").lstrip("0")
        if len(digits) > _MOST_DIGITS:
            raise DeclarationError(f"{where}: no run has so many rows; the count has {len(digits)} digits.")
        if not digits:
            raise DeclarationError(f"{where}: the count must be 1 or more.")
        return EveryN(int(digits))
    if found := re.fullmatch(_SECONDS, spelled):
        return EverySeconds(_seconds(found[1], where))
    if found := re.fullmatch(_MEANT_SECONDS, spelled):
        hint = f" Did you mean 'every_seconds({found[1] or found[2]})'?"
    else:
        known = [*_BY_NAME, "every_n(1000)", "every_seconds(30)"]
        hint = did_you_mean(spelled, known)
    raise DeclarationError(f"{where} is unknown.{hint} Known: {KNOWN}.")


def _seconds(text: str, where: str) -> float:
    if len(text) > _MOST_DIGITS + 2:  # a sign and a point
        raise DeclarationError(f"{where}: seconds are a number like 30 or 0.5, not {len(text)} characters.")
    try:
        seconds = float(text)
    except ValueError:
        raise DeclarationError(f"{where}: seconds are a number like 30 or 0.5, not {text!r}.") from None
    _check_seconds(seconds, where)
    return int(seconds) if seconds.is_integer() else seconds


def _check_seconds(seconds: Any, where: str) -> None:
    if not is_measure(seconds) or not 0 < seconds < 10**_MOST_DIGITS:
        shown = f"{seconds:g}" if isinstance(seconds, float) else repr(seconds)[:60]
        raise DeclarationError(f"{where}: the seconds must be more than 0, and finite, not {shown}.")


def _of_the_author(given: Any, place: str) -> Strategy:
    """An object of the author's, once its ``is_due`` can be called with what the engine gives."""
    what = f"{place}: bookmark_strategy {type(given).__name__}"
    cure = "Write def is_due(self, since): return since.rows >= 500"
    if not callable(given.is_due):
        raise DeclarationError(f"{what}: its is_due is no method. {cure}")
    if inspect.iscoroutinefunction(given.is_due) or inspect.isgeneratorfunction(given.is_due):
        raise DeclarationError(f"{what}: its is_due must be a plain method. {cure}")
    try:
        inspect.signature(given.is_due).bind(Since(0, 0.0, 0))
    except TypeError:
        raise DeclarationError(f"{what}: its is_due must take one argument, since. {cure}") from None
    except ValueError:
        pass  # made in C; it shows at its first call
    if not isinstance(getattr(given, "needs_order", False), bool):
        raise DeclarationError(f"{what}: its needs_order must be True or False: an attribute or a property.")
    strategy: Strategy = given
    return strategy
