"""Repeats: rows that a round of a tail brings again, just as they went out before (specs 11.9, 11.13).

Resumption is inclusive, so that each round begins with rows of the round before. Two rows are the same if the same bytes
go out for them: what a source spells otherwise, or changes in a field that nobody selected, is no news; a digit more is.
What is compared is the row as JSON, without the ``time_extracted`` around it; of a stream with a post_transform function
it is the row that the function is given.

Equal rows are counted, since a log may hold two equal events: as many are dropped as came out before, and no more.
"""

from __future__ import annotations

import datetime as dt
import logging
import pickle
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any, Literal

import msgspec

from burler.pipeline.bookmark_values import comparable, key_text, ordered, present_of
from burler.pipeline.shape_bad import BadRows
from burler.pipeline.shape_lines import Output
from burler.pipeline.shape_values import Misfit

logger = logging.getLogger(__name__)

_MANY = 64  # rows at the top of a page, from which on the next page is held
_FEW = 16  # lines that are looked for from the end of a page
_WAITING_BYTES = 4 * 1024 * 1024
_WORTH_IT = 8  # values in a page, from which on it is quicker to look at them together
_PLAIN = frozenset((str, int, float, type(None)))
_BY_THEMSELVES: tuple[set[type], ...] = ({dt.datetime}, {int}, {dt.date})  # types of values that Python orders


class Repeats:
    """What is known of the rows of one stream, or of one of its partitions, from one round to the next.

    Args:
        key: the replication key, whose values come with the rows; None with "all".
        keeps: "top": rows whose key is the greatest so far, which come again where the bookmark is the key's greatest
            value. "all": the last rows of the round before, whatever their keys are.
        most: so many different rows are known; beyond them the oldest are forgotten, and a warning says so.

    Raises:
        ValueError: "top" without a key.
    """

    def __init__(self, key: str | None, *, keeps: Literal["top", "all"], most: int = 100_000) -> None:
        if keeps == "top" and key is None:
            raise ValueError("repeats: rows at the top are told by their key; give one, or keep all")
        self._all, self._most = keeps == "all", most
        self._form: object = None
        self._stream = ""
        self._textual: str | None = None
        self._sorted = self._warned = self._open = self._wide = False
        self._known: Counter[bytes] = Counter()
        self._known_keys: set[Any] = set()
        self._known_rank: Any = None
        self._bad: Counter[bytes] = Counter()
        self._start()

    # ---- rounds ----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """A round begins, or a further try of one. If the one before has not come to its end, nothing is forgotten: what
        was known, and what it brought, may both come again."""
        if self._open:
            came, top = self._noted(), self._top
            self._known = self._trimmed(self._known | came)
            self._known_keys |= top.keys
            if top.rank is not None and not _less(top.rank, self._known_rank):
                self._known_rank = top.rank
            self._bad = self._bad_came if len(self._bad) > self._most else self._bad | self._bad_came
        self._open = True
        self._start()

    def end(self) -> None:
        """The round was whole: what it brought is what may come again. One that brought nothing says nothing."""
        came, top = self._noted(), self._top
        if self._all:
            self._known = came or self._known
        elif top.rank is not None and not _less(top.rank, self._known_rank):
            self._known, self._known_keys, self._known_rank = came, top.keys, top.rank
        if came or self._bad_came:
            self._bad = self._bad_came
        self._open = False
        self._start()

    def serve(self, stream: str, form: object, *, textual: str | None, sorted_rows: bool) -> None:
        """Say whose rows they are, before each page. Rows that went out in another form are no repeats.

        Args:
            form: all that the form of the stream's rows follows from.
            textual: what the schema says of a key that is text (see ``comparable``).
            sorted_rows: the rows rise by the key.
        """
        if form == self._form:
            return
        if self._form is not None:
            self._known, self._known_keys, self._known_rank, self._bad = Counter(), set(), None, Counter()
            self._start()
        self._form, self._stream, self._textual, self._sorted = form, stream, textual, sorted_rows

    def _start(self) -> None:
        """Nothing of a round has come."""
        self._left, self._bad_left = dict(self._known), dict(self._bad)  # how many may still come again
        self._came: Counter[bytes] = Counter()
        self._bad_came: Counter[bytes] = Counter()
        self._top = _Top(lambda rows: self._trimmed(rows, self._most))

    def _noted(self) -> Counter[bytes]:
        return self._trimmed(self._came if self._all else self._top.settled())

    def _trimmed(self, rows: Counter[bytes], room: int = 0) -> Counter[bytes]:
        """The rows; the last ones of them, if there are more than ``most``, and more than ``room`` beyond that."""
        excess = len(rows) - self._most
        if excess <= room:
            return rows
        if not self._warned:
            self._warned = True
            logger.warning(
                "stream '%s': more than %d rows may come again in the next round; the oldest of them are forgotten, so "
                "that some may go out twice",
                self._stream,
                self._most,
            )
        return Counter(dict(islice(rows.items(), excess, None)))

    # ---- pages -----------------------------------------------------------------------------------------

    @property
    def holds(self) -> bool:
        """Whether a page is to be held back until ``sift`` has seen it; else ``passed`` sees it afterwards."""
        return self._all or bool(self._left) or self._wide

    def sift(self, output: Output, keys: list[Any]) -> int:
        """Take the repeats out of a page that was held, and note its rows; how many they were.

        Args:
            keys: the values of the key, one for each line.
        """
        if not output.count:
            return 0
        between = output.suffix + output.prefix  # it holds a line end, which JSON does not
        bodies = bytes(output.buffer[len(output.prefix) : -len(output.suffix)]).split(between)
        page = self.page(bodies, keys)
        self.note(page)
        if page.repeats:
            kept = [body for i, body in enumerate(bodies) if i not in page.repeats]
            output.buffer[:] = output.prefix + between.join(kept) + output.suffix if kept else b""
            output.count = len(kept)
        return len(page.repeats)

    def page(self, bodies: Sequence[bytes], keys: list[Any]) -> Page:
        """Rows, given as JSON, with those of them that are repeats. These count as having come once more."""
        page = Page(bodies, keys)
        if self._all:
            if self._left and not self._left.keys().isdisjoint(page.digests()):
                page.repeats = {i for i, digest in enumerate(page.digests()) if _take(self._left, digest)}
        elif self._left and len(keys) == len(bodies):
            texts = _texts(keys)
            if not self._known_keys.isdisjoint(texts):
                places = [i for i, text in enumerate(texts) if text in self._known_keys]
                page.repeats = {i for i in places if _take(self._left, digest_of(bodies[i]))}
            if self._sorted and self._is_past(keys):
                self._left = {}
        return page

    def _is_past(self, keys: list[Any]) -> bool:
        """Whether the last of sorted rows lies behind all that is known: none of those comes any more."""
        last = next((key for key in reversed(keys) if not _blank(key)), None)
        rank = None if last is None else comparable(last, self._textual)[1]
        return rank is not None and _less(self._known_rank, rank)

    def note(self, page: Page, out: Collection[int] | None = None, taken: int | None = None) -> None:
        """Remember the rows of a page.

        Args:
            out: the places of those that went out, if not all did. Repeats are out.
            taken: so many rows were dealt with, if not all were.
        """
        if self._all:
            digests = page.digests()
            self._came.update(digests if out is None else [digests[i] for i in sorted({*out, *page.repeats})])
            self._came = self._trimmed(self._came, self._most)
        elif len(page.keys) == len(page.bodies):
            places = self._at_top(page.keys[:taken])
            if out is not None:
                places = [i for i in places if i in out or i in page.repeats]
            self._add([page.bodies[i] for i in places], page.keys, places)

    def passed(self, keys: list[Any], count: int, bodies: Callable[[list[int]], Sequence[bytes]]) -> None:
        """Remember rows of a page that was not held.

        Args:
            keys: as in ``sift``; ``count``: how many lines the page had.
            bodies: gives the lines at some places, which rise, as JSON.
        """
        places = self._at_top(keys) if len(keys) == count else []
        if places:
            self._add(bodies(places), keys, places)

    def _add(self, bodies: Sequence[bytes], keys: list[Any], places: list[int]) -> None:
        self._top.add(bodies, set(_texts([keys[i] for i in places])))

    def _at_top(self, keys: list[Any]) -> list[int]:
        """The places of the greatest of the keys, if it is as great as any before it in this round."""
        places = self._last_of(keys) if self._sorted else self._greatest_of(keys)
        rank = comparable(keys[places[0]], self._textual)[1] if places else None
        if rank is None or not self._top.takes(rank):
            return []
        self._wide = len(places) > _MANY
        return places

    def _last_of(self, keys: list[Any]) -> list[int]:
        """The places of the last value of keys that rise."""
        places: list[int] = []
        last = rank = None
        for i in range(len(keys) - 1, -1, -1):
            key = keys[i]
            if _blank(key):
                continue
            if not places:
                last, rank = key, comparable(key, self._textual)[1]
            elif key != last and comparable(key, self._textual)[1] != rank:
                break
            places.append(i)
        places.reverse()
        return places

    def _greatest_of(self, keys: list[Any]) -> list[int]:
        """The places of the greatest of the keys; none where they have no order."""
        present, kinds = present_of(keys)
        try:
            ranks = self._ranks(present, kinds)
            greatest = max(ranks)
        except (TypeError, ValueError):
            return []
        if len(present) < len(keys):
            there = [i for i, key in enumerate(keys) if not _blank(key)]
            return [i for i, rank in zip(there, ranks, strict=True) if rank == greatest]
        if ranks.count(greatest) == 1:
            return [ranks.index(greatest)]
        return [i for i, rank in enumerate(ranks) if rank == greatest]

    def _ranks(self, present: list[Any], kinds: set[type]) -> list[Any]:
        if kinds in _BY_THEMSELVES:
            return present
        quick = ordered(present, kinds, self._textual) if len(present) >= _WORTH_IT else None
        return quick[1] if quick is not None else [comparable(key, self._textual)[1] for key in present]

    # ---- rows that do not fit ----------------------------------------------------------------------------

    def was_bad(self, row: Mapping[str, Any]) -> bool:
        """Note a row that does not fit; whether it is one that did not fit in the round before."""
        try:
            digest = digest_of(pickle.dumps(row, protocol=5))
        except Exception:  # there is no saying what it holds
            return False
        if len(self._bad_came) < self._most:
            self._bad_came[digest] += 1
        return _take(self._bad_left, digest)


class Page:
    """Rows as JSON, with the values of their key, and the places of the ``repeats`` among them."""

    __slots__ = ("_digests", "bodies", "keys", "repeats")

    def __init__(self, bodies: Sequence[bytes], keys: list[Any]) -> None:
        self.bodies, self.keys = bodies, keys
        self.repeats: set[int] = set()
        self._digests: list[bytes] | None = None

    def digests(self) -> list[bytes]:
        """Those of all rows."""
        if self._digests is None:
            self._digests = [blake2b(body, digest_size=16).digest() for body in self.bodies]
        return self._digests


class _Top:
    """The rows of one round that have the greatest key. They are kept as they are, up to some megabytes: mostly rows
    with a greater one follow, and the work of digesting them would be for nothing."""

    __slots__ = ("_bodies", "_digests", "_size", "_trimmed", "keys", "rank")

    def __init__(self, trimmed: Callable[[Counter[bytes]], Counter[bytes]]) -> None:
        self.rank: Any = None
        self._trimmed = trimmed
        self._clear()

    def _clear(self) -> None:
        self.keys: set[Any] = set()
        self._bodies: list[bytes] = []
        self._size = 0
        self._digests: Counter[bytes] = Counter()

    def takes(self, rank: Any) -> bool:
        """Whether rows of such a key belong here. Where it is a greater one, those so far do not."""
        if rank == self.rank:
            return True
        if _less(rank, self.rank):
            return False
        self.rank = rank
        self._clear()
        return True

    def add(self, bodies: Sequence[bytes], keys: set[Any]) -> None:
        """Add rows of the rank that was taken last."""
        self.keys |= keys
        self._bodies += bodies
        self._size += sum(map(len, bodies))
        if self._size > _WAITING_BYTES:
            self.settled()

    def settled(self) -> Counter[bytes]:
        """The digests of all rows."""
        self._digests.update(map(digest_of, self._bodies))
        self._digests = self._trimmed(self._digests)
        self._bodies, self._size = [], 0
        return self._digests


class BadOnce(BadRows):
    """The account of rows that do not fit, in which one that each round brings again counts once, and is told once."""

    repeats: Repeats | None = None

    def skip(self, row: Mapping[str, Any], misfit: Misfit) -> None:
        if self.repeats is None or not self.repeats.was_bad(row):
            super().skip(row, misfit)

    def null(self, row: Mapping[str, Any], misfits: list[Misfit]) -> None:
        if self.repeats is None or not self.repeats.was_bad(row):
            super().null(row, misfits)


class Unheard(BadRows):
    """No account: of rows that are shaped a second time."""

    def skip(self, row: Mapping[str, Any], misfit: Misfit) -> None:
        pass

    def null(self, row: Mapping[str, Any], misfits: list[Misfit]) -> None:
        pass


def digest_of(body: bytes) -> bytes:
    """What a row is told by: 16 bytes."""
    return blake2b(body, digest_size=16).digest()


def bodies_at(lines: bytes | bytearray, output: Output, count: int, places: list[int]) -> list[bytes]:
    """Some of the last lines of a page, as JSON.

    Args:
        lines: those that are there; ``output`` says what stands before and after each row.
        count: how many they are.
        places: which, counted from the first of them; they rise.
    """
    before, behind = len(output.prefix), len(output.suffix)
    if count - places[0] > _FEW:
        cut = bytes(lines).split(output.suffix)
        return [cut[place][before:] for place in places]
    found: list[bytes] = []
    end = len(lines)
    for place in range(count - 1, places[0] - 1, -1):
        begin = lines.rfind(b"\n", 0, end - 1) + 1
        if place in places:
            found.append(bytes(lines[begin + before : end - behind]))
        end = begin
    found.reverse()
    return found


def _texts(keys: list[Any]) -> list[Any]:
    """Values of a key as they stand in a state, which all kinds of pages give alike. What is no value is None."""
    if set(map(type, keys)) <= _PLAIN:
        return keys
    return [None if _blank(key) else _text(key) for key in keys]


def _text(key: Any) -> Any:
    try:
        text = key_text(key)
    except ArithmeticError:  # no number
        return None
    return text if type(text) in _PLAIN else None


def _blank(key: Any) -> bool:
    return key is None or key is msgspec.UNSET


def _take(left: dict[bytes, int], digest: bytes) -> bool:
    """Take one of those that are left, if there is one."""
    count = left.get(digest, 0)
    if count > 1:
        left[digest] = count - 1
    elif count:
        del left[digest]
    return count > 0


def _less(rank: Any, other: Any) -> bool:
    """Whether a rank is less than another one. Those of different kinds have no order, and nothing is less than None."""
    try:
        return other is not None and bool(rank < other)
    except TypeError:
        return False
