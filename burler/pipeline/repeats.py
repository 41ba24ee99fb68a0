"""Repeats: rows that a round of a tail brings again, just as they went out before.

Resumption is inclusive, so that each round begins with rows of the round before. Two rows are the same if the same
bytes go out for them: what a source spells otherwise, or changes in a field that nobody selected, is no news; a digit
more is. What is compared is the row as JSON, without the ``time_extracted`` around it; of a stream with a
post_transform function it is the row that the function is given.

A row is dropped only where that changes nothing for whoever reads: equal rows are counted, since a log may hold two
equal events, and as many are dropped as the round before brought; and of a stream with key properties a row is dropped
only if nothing else went out for its key since.
"""

from __future__ import annotations

import functools
import logging
import pickle
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any, Literal

import msgspec

from burler.singer.bookmark_values import comparable, ordered, present_of

logger = logging.getLogger(__name__)

_encoder = msgspec.json.Encoder(decimal_format="number")

_MOST, _MOST_OF_PARTITION = 100_000, 2_000
_ROUNDS = 16
Recurring = Literal["top", "all"]
"""Which rows may come again in the next round of a tail: those at the bookmark, or any of the last ones."""

_HASHABLE = frozenset((str, int, type(None)))
_WAITING_BYTES = 4 * 1024 * 1024


class Page:
    """Lines of rows, and the places of the ``repeats`` among them.

    Args:
        prefix, suffix: what stands before and after each row.
        marks: what tells the rows apart, where their JSON does not.
    """

    def __init__(self, lines: bytes, prefix: bytes, suffix: bytes, marks: Sequence[bytes] | None = None) -> None:
        self.lines, self._prefix, self._suffix, self._marks = lines, prefix, suffix, marks
        self.repeats: set[int] = set()
        self.compared = False

    @functools.cached_property
    def bodies(self) -> Sequence[bytes]:
        """The rows. Between two of them stands a line end, which JSON does not hold."""
        return self.lines[len(self._prefix) : -len(self._suffix)].split(self._suffix + self._prefix)

    @functools.cached_property
    def digests(self) -> list[bytes]:
        """What each row is told by."""
        marks = self.bodies if self._marks is None else self._marks
        return [blake2b(mark, digest_size=16).digest() for mark in marks]

    def without_repeats(self) -> bytes:
        """The lines of the others."""
        kept = [body for i, body in enumerate(self.bodies) if i not in self.repeats]
        return self._prefix + (self._suffix + self._prefix).join(kept) + self._suffix if kept else b""


class Repeats:
    """What is known of the rows of one stream, or of one of its partitions, from one round to the next.

    Args:
        stream, key_properties: whose rows they are.
        textual: what the schema says of a replication key that is text (see ``comparable``).
        rises: the rows rise by that key.
        by_key: rows whose replication key is the greatest so far may come again; else any row of the round before.
        last: what went out last for each key, where several share it: rows may move from one partition to another.
        most: so many different rows are known; beyond them the oldest are forgotten, and a warning says so.

    Attributes:
        bad: the rows that did not fit.
    """

    def __init__(
        self,
        stream: str,
        key_properties: Sequence[str],
        *,
        textual: str | None,
        rises: bool,
        by_key: bool,
        most: int = _MOST,
        last: dict[Any, bytes] | None = None,
    ) -> None:
        self._stream, self._textual, self._rises = stream, textual, rises
        self._by_key, self._most = by_key, most
        self._key_of = KeyOf(key_properties) if key_properties else None
        self._warned = self._open = False
        self.bad = KnownBad(most)
        self._known: Counter[bytes] = Counter()
        self._known_rank: Any = None
        # What went out last, by the key properties; of all partitions of a stream.
        self._shared = last is not None
        self._last: dict[Any, bytes] = {} if last is None else last
        self._start()

    def _start(self) -> None:
        """Nothing of a round has come."""
        self._left: dict[bytes, int] = dict(self._known)  # how many of each may still come again in this round
        self._came: Counter[bytes] = Counter()
        self._rank: Any = None  # the greatest key of those
        self._waiting: list[tuple[Page, list[int]]] = []  # rows that may come again and have no digests yet

    # ---- rounds ----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """A round begins, or a further try of one. If the one before has not come to its end, nothing is forgotten:
        what was known, and what it brought, may both come again."""
        if self._open:
            self._settle()
            self._known = self._trimmed(self._known | self._came)
            if self._rank is not None and not _less(self._rank, self._known_rank):
                self._known_rank = self._rank
        self.bad.begin()
        self._open = True
        self._start()

    def end(self) -> None:
        """The round was whole: what it brought is what may come again. What it has not brought may have changed, or
        gone elsewhere, before it comes once more."""
        self._settle()
        came = self._trimmed(self._came)
        if not self._by_key:
            self._known = came
        elif self._rank is not None and not _less(self._rank, self._known_rank):
            self._known, self._known_rank = came, self._rank
        else:
            self._known = Counter()
        if not self._shared:
            self._last = {key: digest for key, digest in self._last.items() if digest in self._known}
        self.bad.end(brought_rows=bool(came))
        self._open = False
        self._start()

    def forget(self) -> None:
        """All rows are wanted once more: of those that came, nobody can say which went out."""
        self._known, self._known_rank = Counter(), None
        self._last.clear()
        self.bad.forget()
        self._start()

    def _trimmed(self, rows: Counter[bytes], room: int = 0) -> Counter[bytes]:
        """The rows; the last ones of them, if there are more than ``most``, and more than ``room`` beyond that."""
        excess = len(rows) - self._most
        if excess <= room:
            return rows
        if not self._warned and not self._shared:
            self._warned = True
            logger.warning(
                "stream '%s': more than %d rows may come again in the next round; the oldest of them are forgotten, so "
                "that some may go out twice",
                self._stream,
                self._most,
            )
        return Counter(dict(islice(rows.items(), excess, None)))

    # ---- pages -----------------------------------------------------------------------------------------

    def page_of(self, rows: list[dict[str, Any]]) -> Page | None:
        """Rows as a post_transform function would see them, with the repeats among them; None if it can't be told."""
        try:
            lines = _encoder.encode_lines(rows)
        except (TypeError, ValueError, RecursionError):  # what JSON has no form for will be refused
            return None
        # NaN and null, bytes and text are one in JSON; to the function they are not.
        marks = [repr(row).encode("utf-8", "backslashreplace") for row in rows]
        return self.compare(Page(lines, b"", b"\n", marks))

    def compare(self, page: Page) -> Page:
        """The same page, with its repeats. Where none can come any more, rows are looked at once it is known which may
        come again."""
        if self._by_key and not self._left and not self._shared:
            return page
        page.compared = True
        digests = page.digests
        owners = self._key_of(page.bodies) if self._key_of is not None else None
        if self._left.keys().isdisjoint(digests):
            if owners is not None:
                self._went_out(owners, digests)
        elif owners is None:
            page.repeats = {i for i, digest in enumerate(digests) if _take(self._left, digest)}
        else:
            for i, (owner, digest) in enumerate(zip(owners, digests, strict=True)):
                if self._last.get(owner) == digest and _take(self._left, digest):
                    page.repeats.add(i)
                else:
                    self._last[owner] = digest
        return page

    def _went_out(self, owners: list[Any], digests: list[bytes]) -> None:
        self._last.update(zip(owners, digests, strict=True))
        if len(self._last) > 2 * self._most:
            for owner in list(islice(self._last, len(self._last) - self._most)):
                del self._last[owner]

    def note(
        self, page: Page, keys: list[Any], *, out: Collection[int] | None = None, taken: int | None = None
    ) -> None:
        """A page is dealt with.

        Args:
            keys: the values of the replication key, one for each row.
            out: the places of the rows that went out, if not all did. Repeats are out.
            taken: so many rows were dealt with, if not all were.
        """
        if self._by_key:
            places = self._at_top(keys[:taken])
            if self._rises and self._left and self._rank is not None and _less(self._known_rank, self._rank):
                self._left = {}  # what comes now lies behind all that is known
        else:
            places = list(range(len(page.bodies)))
        if out is not None:
            places = [place for place in places if place in out or place in page.repeats]
        if places:
            self._waiting.append((page, places))
        if not self._by_key or sum(len(one.lines) for one, _ in self._waiting) > _WAITING_BYTES:
            self._settle()

    def _at_top(self, keys: list[Any]) -> list[int]:
        """The places of the greatest of the keys, if it is as great as any before it in this round."""
        part = keys[_begin_of_last(keys, self._textual) :] if self._rises else keys
        present, kinds = present_of(part)
        try:
            quick = ordered(present, kinds, self._textual)
            ranks = quick[1] if quick is not None else [comparable(key, self._textual)[1] for key in present]
            greatest = max(ranks)
        except (TypeError, ValueError):  # they have no order, or there is none
            return []
        rank = comparable(present[ranks.index(greatest)], self._textual)[1]
        if rank is None or _less(rank, self._rank):
            return []
        if rank != self._rank:
            self._rank, self._came, self._waiting = rank, Counter(), []
        first = len(keys) - len(part)
        if len(present) == len(part):
            return [first + i for i, one in enumerate(ranks) if one == greatest]
        there = [first + i for i, key in enumerate(part) if not _blank(key)]
        return [i for i, one in zip(there, ranks, strict=True) if one == greatest]

    def _settle(self) -> None:
        """Digest the rows that may come again."""
        waiting, self._waiting = self._waiting, []
        for page, places in waiting:
            digests = page.digests
            if self._key_of is not None and not page.compared:
                bodies = [page.bodies[i] for i in places]
                self._went_out(self._key_of(bodies), [digests[i] for i in places])
            self._came.update(digests[i] for i in places)
            self._came = self._trimmed(self._came, self._most)


class StreamRepeats:
    """``Repeats`` of one stream through the rounds of a tail: of the stream as a whole (None), or of each partition.
    The arguments are those of each."""

    def __init__(self, stream: str, key_properties: Sequence[str], *, textual: str | None, rises: bool) -> None:
        self._make = functools.partial(Repeats, stream, key_properties, textual=textual, rises=rises)
        self._recurring: Recurring | None = None
        self._known: dict[str | None, Repeats] = {}
        self._last: dict[Any, bytes] = {}
        self._used: dict[str | None, int] = {}  # in which round last
        self._begun: set[str | None] = set()
        self._rounds = 0

    def begin_round(self, recurring: Recurring | None) -> None:
        """Another round; ``recurring`` says which rows may come again. None: none of them."""
        self._recurring = recurring
        self._rounds += 1
        self._begun.clear()
        if self._rounds % _ROUNDS == 0:  # partitions that are there no more
            least = max(self._used.values(), default=0) - _ROUNDS
            for gone in [one for one, used in self._used.items() if one is not None and used < least]:
                del self._used[gone], self._known[gone]

    def of(self, partition: str | None) -> Repeats | None:
        """What is known of a partition, in which this round has begun; None if no rows may come again."""
        if self._recurring is None:
            return None
        found = self._known.get(partition)
        if found is None:
            most, last = (_MOST, None) if partition is None else (_MOST_OF_PARTITION, self._last)
            found = self._known[partition] = self._make(by_key=self._recurring == "top", most=most, last=last)
        self._used[partition] = self._rounds
        if partition not in self._begun:
            found.begin()
            self._begun.add(partition)
        return found

    def again(self, partition: str | None) -> None:
        """A task begins once more: what came out in its first try is known now."""
        self._begun.discard(partition)

    def ended(self, partition: str | None) -> None:
        """A task came whole. One that did not forgets nothing."""
        if partition in self._begun:
            self._known[partition].end()
            self._begun.discard(partition)

    def forget(self) -> None:
        """All rows are wanted once more."""
        for known in (self._known, self._used, self._begun, self._last):
            known.clear()


class KeyOf:
    """Gives the key properties of rows, given as JSON: one value, or a tuple of them."""

    def __init__(self, names: Sequence[str]) -> None:
        fields = [(f"f{i}", Any, None) for i in range(len(names))]
        rename = {f"f{i}": name for i, name in enumerate(names)}
        self._fields = list(rename)
        self._names: Sequence[str] | None = None
        kind: Any = dict[str, Any]
        try:
            kind = msgspec.defstruct("Keys", fields, rename=rename, gc=False)
        except ValueError:  # names with quotes and the like
            self._names = names
        self._decode: Callable[[bytes], list[Any]] = msgspec.json.Decoder(kind, float_hook=str).decode_lines

    def __call__(self, bodies: Sequence[bytes]) -> list[Any]:
        rows = self._decode(b"\n".join(bodies))
        if self._names is not None:
            columns = [[row.get(name) for row in rows] for name in self._names]
        else:
            columns = [[getattr(row, name) for row in rows] for name in self._fields]
        for i, column in enumerate(columns):
            if not set(map(type, column)) <= _HASHABLE:
                columns[i] = [value if type(value) in _HASHABLE else repr(value) for value in column]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def _take(left: dict[bytes, int], digest: bytes) -> bool:
    """Take one of those that are left, if there is one."""
    count = left.get(digest, 0)
    if count > 1:
        left[digest] = count - 1
    elif count:
        del left[digest]
    return count > 0


def _begin_of_last(keys: list[Any], textual: str | None) -> int:
    """Where the last value of keys that rise stands for the first time, in any spelling."""
    at = len(keys)
    while at > 0 and _blank(keys[at - 1]):
        at -= 1
    if at == 0:
        return 0
    last = keys[at - 1]
    rank = comparable(last, textual)[1]
    while at > 0 and (_blank(keys[at - 1]) or keys[at - 1] == last or comparable(keys[at - 1], textual)[1] == rank):
        at -= 1
    return at


def _blank(key: Any) -> bool:
    return key is None or key is msgspec.UNSET


def _less(rank: Any, other: Any) -> bool:
    """Whether a rank is less than another. Those of different kinds have no order, and nothing is less than None."""
    try:
        return other is not None and rank is not None and bool(rank < other)
    except TypeError:
        return False


# ---- rows that do not fit ------------------------------------------------------------------------------------


class KnownBad:
    """Which rows did not fit in the round before, as the source gave them.

    Args:
        most: so many are known.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: Counter[bytes] = Counter()
        self._came: Counter[bytes] = Counter()
        self._left: Counter[bytes] = Counter()

    def begin(self) -> None:
        """A round begins; what came in one that has not come to its end is known, too."""
        if self._came:
            self._known |= self._came
            if len(self._known) > self._most:
                self._known = self._came
        self._start()

    def end(self, *, brought_rows: bool) -> None:
        """The round was whole. Where it brought nothing at all, it says nothing."""
        if brought_rows or self._came:
            self._known = self._came
        self._start()

    def forget(self) -> None:
        """All rows are news."""
        self._known = Counter()
        self._start()

    def _start(self) -> None:
        self._came, self._left = Counter(), Counter(self._known)

    def knows(self, row: Mapping[str, Any]) -> bool:
        """Note a row that does not fit; whether it is one that did not fit before."""
        try:
            digest = blake2b(pickle.dumps(row, protocol=5), digest_size=16).digest()
        except Exception:  # there is no saying what it holds
            return False
        if len(self._came) < self._most:
            self._came[digest] += 1
        self._left[digest] -= 1
        return self._left[digest] >= 0
