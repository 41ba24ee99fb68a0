"""Bookmark: from the replication key's values to the value that a STATE may carry.

Rows sorted by the key: the greatest value out is safe at any row, since resumption is inclusive. A source
that gives only what is strictly after the bookmark may have more rows of the greatest value: there a value is safe once
a strictly greater one followed. Rows in no order: the bookmark moves when the stream is complete. It never goes back,
but for an author who vouches for a value of his own, and where a declared order turns out to be none.
"""

from __future__ import annotations

import datetime as dt
import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from operator import lt
from typing import Any, NamedTuple

import msgspec

from burler import times
from burler.errors import StreamError, UnsortedStreamError
from burler.singer.bookmark_values import (
    DATE,
    DATE_TIME,
    TEXT,
    comparable,
    in_page,
    key_text,
    lower_text,
    ordered,
    present_of,
)

logger = logging.getLogger(__name__)
_UNSET: Any = msgspec.UNSET
_WORTH_IT = 3  # values in a page, from which on it is quicker to look at them together


class Mark(NamedTuple):
    """A value and what it is ordered by; a rank of None stands before all others."""

    value: Any
    rank: Any

    def over(self, other: Mark) -> bool:
        """Whether it is greater."""
        return self.rank is not None and (other.rank is None or self.rank > other.rank)

    def raised(self, other: Mark) -> Mark:
        """The greater of two; of two spellings of one value the one that sorts lower as text (see ``greater``)."""
        if other.rank == self.rank:
            return Mark(lower_text(self.value, other.value), self.rank)
        return other if other.over(self) else self


NOWHERE = Mark(None, None)


class KeyRange:
    """The least and the greatest value of a key.

    Args:
        textual: see ``comparable``.

    Attributes:
        is_mixed: there were values of two kinds, or one that has no place in an order.
    """

    __slots__ = ("_kind", "_textual", "greatest", "is_mixed", "least")

    def __init__(self, textual: str | None = None) -> None:
        self._textual = textual
        self._kind: str | None = None
        self.least = self.greatest = NOWHERE
        self.is_mixed = False

    def add(self, values: list[Any]) -> None:
        """Take in the values of a page; None says nothing."""
        present, types = present_of(values)
        quick = ordered(present, types, self._textual) if present else None
        if quick is not None:
            ranks = quick[1]
            present = [present[ranks.index(min(ranks))], present[ranks.index(max(ranks))]]
        for value in present:
            kind, rank = comparable(value, self._textual)
            if rank is None or kind != (self._kind or kind):
                self.is_mixed = True
                return
            self._kind, mark = kind, Mark(value, rank)
            self.greatest = self.greatest.raised(mark)
            if self.least.rank is None or self.least.over(mark):
                self.least = mark


def alike(kind: str, other: str) -> bool:
    """Whether values of two kinds can be compared: a text may look like a date."""
    return kind == other or {kind, other} == {DATE, TEXT}


class Kinds:
    """What the values of one key are, as they show it: ``kind`` is None before the first one.

    Args:
        textual: see ``comparable``.
    """

    def __init__(self, stream: str, key: str, textual: str | None) -> None:
        self.kind: str | None = None
        self._stream, self._key, self._textual = stream, key, textual
        self._by_look = False  # dates that may turn out to be text
        self._begun: Any = None

    def begin(self, value: Any) -> Mark:
        """The bookmark that a run begins with; None where there is none.

        Raises:
            StreamError: it is no bookmark.
        """
        if value is None:
            return NOWHERE
        kind, rank = comparable(value, self._textual)
        if rank is None:
            raise self.refused(
                f"the bookmark that it begins with is no bookmark: '{self._key}' is {kind} ({_shown(value)}). Correct "
                "the state (or start_date), or take the key out of it to begin anew."
            )
        self.adopt(kind, value)
        self._begun = value
        return Mark(value, rank)

    def mark(self, value: Any) -> Mark:
        """A value with its rank.

        Raises:
            StreamError: see ``rank``.
        """
        return Mark(value, self.rank(value))

    def rank(self, value: Any) -> Any:
        """Something to compare a value by.

        Raises:
            StreamError: a value that has no place in an order, or is of another kind than those before it.
        """
        kind, rank = comparable(value, self._textual)
        if rank is None:
            raise self.refused(
                f"'{self._key}' is {kind} ({_shown(value)}); a bookmark must be a date-time with a zone, a date, text "
                "or a finite number."
            )
        if kind != self.kind:
            self.adopt(kind, value)
        elif self._by_look and not isinstance(value, str):
            self._by_look = False
        return rank

    def adopt(self, kind: str, value: Any) -> None:
        """Take a kind that is not the one so far.

        Raises:
            StreamError: it can't be mixed with that.
        """
        looks = isinstance(value, str) and self._textual is None
        if self.kind is None:
            self.kind, self._by_look = kind, looks and kind == DATE
        elif looks and ((kind == TEXT and self._by_look) or (kind, self.kind) == (DATE, TEXT)):
            self.kind, self._by_look = TEXT, False
        else:
            begun = (
                "" if self._begun is None else f" (the run began at {_shown(self._begun)}: is the state this tap's?)"
            )
            raise self.refused(
                f"'{self._key}' is {kind} ({_shown(value)}) where it was {self.kind} before{begun}; a bookmark needs "
                "values of one kind."
            )

    def refused(self, fact: str) -> StreamError:
        """An error of the stream."""
        return StreamError(self._stream, f"stream '{self._stream}': {fact}")


def _shown(value: Any) -> str:
    return value.isoformat() if isinstance(value, dt.date) else f"{value!r:.60}"


class BookmarkTracker:
    """Follows one stream's replication key through a run.

    Args:
        stream: its name, and ``key`` that of the replication key, for messages.
        initial: the bookmark that the run begins with, as it stands in the state; None if there is none.
        sorted_rows: rows rise by the key; this is checked.
        exclusive: the source gives rows strictly after a bookmark only.
        on_unsorted: "error", or "end_of_sync": go on as if no order were declared when the order breaks.
        manual: the bookmark moves by ``save`` alone.
        signpost: when the stream's sync began; the bookmark never passes it.
        textual: what the schema says of a text ("date-time", "date", "decimal"), else None: a text is what it looks
            like. A key whose texts look like dates at first and then show others is text.

    Attributes:
        without_value: rows that had no value.
        newer: rows whose value was greater than the initial one; all that had one where there is no initial one. The
            rows of a retry count once more.

    Raises:
        StreamError: an initial value that is no bookmark.
    """

    def __init__(
        self,
        stream: str,
        key: str,
        *,
        initial: Any,
        sorted_rows: bool,
        exclusive: bool = False,
        on_unsorted: str = "error",
        manual: bool = False,
        signpost: dt.datetime | None = None,
        textual: str | None = None,
    ) -> None:
        self._stream, self._key, self._textual = stream, key, textual
        self._sorted, self._exclusive, self._manual = sorted_rows, exclusive, manual
        self._on_unsorted, self._signpost = on_unsorted, signpost
        self.without_value = 0
        self.newer = 0
        self._kinds = Kinds(stream, key, textual)
        self._complete = self._broken = self._stays = False
        self._initial = self._kinds.begin(initial)
        self._greatest = self._saved = self._initial
        self._below = self._initial  # of sorted rows: the greatest value with a strictly greater one behind it
        self._last = NOWHERE
        self._hold = NOWHERE
        self._hold_kind: str | None = None
        self._under_hold = self._initial  # of an exclusive source: the greatest value below the hold

    # ---- rows ------------------------------------------------------------------------------------------

    def observe(self, values: list[Any]) -> None:
        """Take in the key's values of a page, in row order. A value of None or none at all says nothing.

        Raises:
            UnsortedStreamError: the order is declared and a value is smaller than one before it in this
                run. From then on the bookmark is the one the run began with: rows between may be missing.
            StreamError: values of different kinds, which have no order, or such as a signpost has no place among.
        """
        present, types = present_of(values)
        self.without_value += len(values) - len(present)
        if not present:
            return
        ranks, known = self._ranks(present, types)
        self._check_signpost(present[0])
        if self._sorted and (self._falls(present[0], ranks[0] if known else None) or ranks != sorted(ranks)):
            self._order_broke(present)
        given = _given(values, present)
        top = self._mark(ranks[-1] if self._sorted else max(ranks), ranks, present, given)
        self._count(ranks, types, top, known=known)
        if self._exclusive:
            self._note_below(ranks, present, given, top)
        self._greatest = self._greatest.raised(top)
        if self._sorted:
            self._last = self._last.raised(top)

    def _falls(self, value: Any, rank: Any) -> bool:
        """Whether the first value of a page is smaller than the last one before it."""
        if self._last.rank is None:
            return False
        return self._last.over(Mark(value, rank) if rank is not None else self._kinds.mark(value))

    def _ranks(self, present: list[Any], types: set[type]) -> tuple[list[Any], bool]:
        """What the values of a page are ordered by among themselves, and whether that holds for those of other pages,
        too."""
        quick = ordered(present, types, self._textual) if len(present) >= _WORTH_IT else None
        if quick is None:
            return [self._kinds.rank(value) for value in present], True
        kind, ranks = quick
        if self._kinds.kind is None:
            self._kinds.adopt(kind, present[0])
        elif kind != self._kinds.kind:
            example = (one for one in present if comparable(one, self._textual)[0] == kind)
            self._kinds.adopt(kind, next(example, present[0]))
        return ranks, types == {str}

    def _count(self, ranks: list[Any], types: set[type], top: Mark, *, known: bool) -> None:
        """Add to ``newer``. Only a page that the initial bookmark lies in needs a look at its values."""
        if self._initial.rank is None or (self._sorted and self._last.over(self._initial)):
            self.newer += len(ranks)
        elif top.over(self._initial):
            begin = self._initial.rank if known else in_page(self._initial.rank, types)
            if self._sorted:
                self.newer += len(ranks) - bisect_right(ranks, begin)
            elif begin < min(ranks):
                self.newer += len(ranks)
            else:
                self.newer += sum(map(partial(lt, begin), ranks))

    def _mark(self, rank: Any, ranks: list[Any], present: list[Any], given: list[Any]) -> Mark:
        """The value of that rank, as the source wrote it: of several spellings of it the one that sorts lowest."""
        at = bisect_left(ranks, rank) if self._sorted else ranks.index(rank)
        mark = self._kinds.mark(present[at])
        if self._kinds.kind != DATE_TIME or type(given[at]) is not str:
            return mark
        if not self._sorted and self._greatest.over(mark):
            return mark
        if self._sorted:
            equal = given[at : bisect_right(ranks, rank, at)]
        elif ranks.count(rank) == 1:
            equal = [given[at]]
        else:
            equal = [given[i] for i, one in enumerate(ranks) if one == rank]
        return Mark(_lowest({text for text in equal if type(text) is str}, mark.value), mark.rank)

    def _note_below(self, ranks: list[Any], present: list[Any], given: list[Any], top: Mark) -> None:
        if self._sorted:
            at = bisect_left(ranks, ranks[-1]) - 1
            below = self._last.raised(self._mark(ranks[at], ranks, present, given)) if at >= 0 else self._last
            if top.over(below):
                self._below = self._below.raised(below)
        self._check_hold()
        if self._hold.rank is not None:
            for value, text in zip(present, given, strict=True):
                mark = self._kinds.mark(_lowest({text} if type(text) is str else (), value))
                if self._hold.over(mark):
                    self._under_hold = self._under_hold.raised(mark)

    def _order_broke(self, present: list[Any]) -> None:
        before, now = next((a, b) for a, b in pairwise([self._last, *map(self._kinds.mark, present)]) if a.over(b))
        fact = f"'{self._key}' went from {key_text(before.value)!r:.60} back to {key_text(now.value)!r:.60}"
        if self._on_unsorted == "end_of_sync":
            logger.warning(
                "stream '%s': order 'asc' is declared, but %s. It goes on; its bookmark stays where this run began, "
                "and moves when the stream is complete",
                self._stream,
                fact,
            )
            self._sorted = False
            return
        self._broken = True
        raise UnsortedStreamError(
            self._stream,
            f"stream '{self._stream}': order 'asc' is declared, but {fact}. The bookmark stays where this run began.\n"
            f"  Ask the source for rows that rise by '{self._key}', leave out what asks for that (order, every_n, "
            "every_seconds, on_page, resumable_by), or say on_unsorted='end_of_sync'.",
        )

    # ---- the run ---------------------------------------------------------------------------------------

    def complete(self) -> None:
        """All rows of this run are out."""
        self._complete = True

    def reached(self) -> None:
        """The rows up to here are whole: all that a source had. What follows may begin before their end (some of it has
        come already), and rises from there."""
        self._last = NOWHERE
        held = self._stays or self._broken or self._hold.rank is not None
        if not held and not self._manual:
            self._initial = self._initial.raised(self._greatest)

    def restart(self) -> None:
        """The rows come once more, from the beginning: a retry. What was safe stays safe."""
        self._last = NOWHERE

    def hold(self, value: Any) -> None:
        """Something is missing of the rows with this value: the bookmark must not pass it, and the next run must bring
        them again. The least of all holds counts; one below the initial bookmark keeps it there.

        An inclusive source brings them again from a bookmark that equals the value. Of an exclusive one the bookmark
        stays below the value, unless it was safe already.

        Args:
            value: None, or one that can't be compared with the others: the bookmark stays where the run began.
        """
        kind, rank = comparable(value, self._textual)
        if rank is None or not alike(kind, self._hold_kind or kind):
            self._stays = True
            return
        self._hold_kind = kind
        self._check_hold()
        if not self._stays and (self._hold.rank is None or rank < self._hold.rank):
            held = Mark(value, rank)
            safe = self._now()
            known = [one for one in (self._under_hold, self._below, self._greatest) if held.over(one)]
            self._under_hold = self._initial
            for one in (*known, *((safe,) if safe.rank == rank else ())):
                if one.over(self._under_hold):
                    self._under_hold = one
            self._hold = held

    def _check_hold(self) -> None:
        """A hold may come before the first row, as a row that is not shaped yet has it: of another kind, it can't be
        compared."""
        kind = self._kinds.kind
        if kind is not None and not alike(self._hold_kind or kind, kind):
            self._stays, self._hold = True, NOWHERE

    def save(self, value: Any = _UNSET) -> None:
        """The author vouches for a bookmark: the greatest value out, or ``value``, which may be smaller than what was
        saved before.

        Raises:
            StreamError: a value that is no bookmark, or of another kind than the key's.
        """
        if value is not _UNSET:
            self._saved = self._kinds.mark(value)
            self._check_signpost(value)
        else:
            self._saved = self._greatest

    # ---- what it says ------------------------------------------------------------------------------------

    @property
    def safe(self) -> Any:
        """The bookmark that a STATE written now may carry; None if there is none."""
        return key_text(self._now().value)

    @property
    def goes_on(self) -> bool:
        """Whether rows that are missing behind the last one do no harm: the next run goes on behind it, or it is for
        the author to say where."""
        return self._sorted or self._manual

    @property
    def greatest(self) -> Any:
        """The greatest value seen, or the initial one where that is greater, as it would stand in the state."""
        return key_text(self._greatest.value)

    def _now(self) -> Mark:
        """How far it may go now."""
        if self._broken:
            return self._initial
        self._check_hold()
        mark = self._unheld()
        floor = self._initial if mark.over(self._initial) else mark
        if self._stays:
            mark = floor
        elif self._hold.rank is not None and not self._hold.over(mark):
            held = self._under_hold if self._exclusive else self._hold
            mark = held if mark.over(held) else mark
        post = self._post()
        if mark.over(post) and post.rank is not None:
            mark = post
        return floor if floor.over(mark) else mark

    def _unheld(self) -> Mark:
        """How far it may go if nothing is missing."""
        if self._manual:
            return self._saved
        if self._complete:
            return self._greatest
        if not self._sorted:
            return self._initial
        return self._below if self._exclusive else self._greatest

    def _post(self) -> Mark:
        """The signpost, as a value of the key: of days the one on which the sync began, which an exclusive source must
        give once more, since it was not over."""
        if self._signpost is None or self._kinds.kind not in (DATE_TIME, DATE):
            return NOWHERE
        if self._kinds.kind == DATE:
            day = self._signpost.astimezone(dt.UTC).date() - dt.timedelta(days=1 if self._exclusive else 0)
            return self._kinds.mark(day.isoformat())
        like = self._greatest.value
        shown, moment = key_text(like), self._signpost
        if shown is not None:  # what changes within a unit of the source's clock may be stamped with its beginning
            thousandths = isinstance(like, dt.datetime) and like.microsecond % 1000 == 0
            unit = 1_000_000 if "." not in shown else 1000 if thousandths else 1
            moment = moment.replace(microsecond=moment.microsecond // unit * unit)
        return self._kinds.mark(times.spelled_like(times.rfc3339(moment) or "", shown))

    def _check_signpost(self, value: Any) -> None:
        if self._signpost is not None and self._kinds.kind not in (DATE_TIME, DATE):
            raise self._kinds.refused(
                f"'{self._key}' is {self._kinds.kind} ({value!r:.60}); signpost=True needs date-times or dates. "
                "Leave it out."
            )


def _given(values: list[Any], present: list[Any]) -> list[Any]:
    """What the source wrote, for each of the values that are there."""
    given = getattr(values, "given", values)
    if given is values:
        return present
    if present is values:
        return given
    return [one for one, value in zip(given, values, strict=True) if value is not None and value is not _UNSET]


def _lowest(texts: Iterable[str], otherwise: Any) -> Any:
    """The spelling of a date-time that sorts lowest as text; ``otherwise``, if none of them is one."""
    for text in sorted(texts):
        if times.strict(text) is not None:
            return text
    return otherwise
