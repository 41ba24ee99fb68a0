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

import logging
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from typing import Any, Literal

from burler.pipeline.repeats_bad import KnownBad
from burler.pipeline.repeats_page import KeyOf, Page, digest_of
from burler.pipeline.repeats_top import Top, blank, greatest_of, last_of, less, texts
from burler.singer.bookmark_values import comparable

logger = logging.getLogger(__name__)

_MANY = 64  # rows at the top of a page, from which on the next page is held


class Repeats:
    """What is known of the rows of one stream, or of one of its partitions, from one round to the next.

    Args:
        key: the replication key, whose values come with the rows; None with "all".
        keeps: "top": rows whose key is the greatest so far, which come again where the bookmark is the key's greatest
            value. "all": the last rows of the round before, whatever their keys are.
        last: what went out last for each key, where several share it: rows may move from one partition to another.
        most: so many different rows are known; beyond them the oldest are forgotten, and a warning says so.

    Attributes:
        bad: the rows that did not fit.

    Raises:
        ValueError: "top" without a key.
    """

    def __init__(
        self,
        key: str | None,
        *,
        keeps: Literal["top", "all"],
        most: int = 100_000,
        last: dict[Any, bytes] | None = None,
    ) -> None:
        if keeps == "top" and key is None:
            raise ValueError("repeats: rows at the top are told by their key; give one, or keep all")
        self._all, self._most = keeps == "all", most
        self._form: object = None
        self._stream = ""
        self._textual: str | None = None
        self._key_of: KeyOf | None = None
        self._sorted = self._warned = self._open = self._wide = False
        self.bad = KnownBad(most)
        self._known: Counter[bytes] = Counter()
        self._known_keys: set[Any] = set()
        self._known_rank: Any = None
        # What went out last, by the key properties; of all partitions of a stream.
        self._shared = last is not None
        self._last: dict[Any, bytes] = {} if last is None else last
        self._left: dict[bytes, int] = {}  # how many of each may still come again in this round
        self._came: Counter[bytes] = Counter()
        self._top = Top()

    # ---- rounds ----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """A round begins, or a further try of one. If the one before has not come to its end, nothing is forgotten:
        what was known, and what it brought, may both come again."""
        if self._open:
            came, top = self._noted(), self._top
            self._known = self._trimmed(self._known | came)
            self._known_keys |= top.keys
            if top.rank is not None and not less(top.rank, self._known_rank):
                self._known_rank = top.rank
        self.bad.begin()
        self._open = True
        self._start()

    def end(self) -> None:
        """The round was whole: what it brought is what may come again. What it has not brought may have changed, or
        gone elsewhere, before it comes once more."""
        came, top = self._noted(), self._top
        if self._all:
            self._known = came
        elif top.rank is not None and not less(top.rank, self._known_rank):
            self._known, self._known_keys, self._known_rank = came, top.keys, top.rank
        else:
            self._known, self._known_keys = Counter(), set()
        if not self._shared:
            self._last = {key: digest for key, digest in self._last.items() if digest in self._known}
        self.bad.end(brought_rows=bool(came))
        self._open = False
        self._start()

    def serve(
        self, stream: str, form: object, *, key_properties: Sequence[str], textual: str | None, sorted_rows: bool
    ) -> None:
        """Say whose rows they are, before each page. Rows that went out in another form are no repeats.

        Args:
            form: all that the form of the stream's rows follows from.
            textual: what the schema says of a key that is text (see ``comparable``).
            sorted_rows: the rows rise by the key.
        """
        if form == self._form:
            return
        if self._form is not None:
            self.forget()
        self._key_of = KeyOf(key_properties) if key_properties else None
        self._form, self._stream, self._textual, self._sorted = form, stream, textual, sorted_rows

    def forget(self) -> None:
        """All rows are wanted once more: of those that came, nobody can say which went out."""
        self._known, self._known_keys, self._known_rank = Counter(), set(), None
        self._last.clear()
        self.bad.forget()
        self._start()

    def _start(self) -> None:
        """Nothing of a round has come."""
        self._left, self._came, self._top = dict(self._known), Counter(), Top()

    def _noted(self) -> Counter[bytes]:
        """What has come in this round and may come again."""
        self._settle()
        return self._trimmed(self._came)

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

    @property
    def sifts(self) -> bool:
        """Whether all lines go through ``sift``, as they come."""
        return self._all

    @property
    def holds(self) -> bool:
        """Whether a page is to be held back until ``sift`` has seen all of it with its keys; else, and if not all lines
        go through it, ``passed`` sees the page afterwards."""
        return not self._all and (bool(self._left) or self._wide)

    def sift(self, lines: bytes | bytearray, prefix: bytes, suffix: bytes, keys: list[Any]) -> tuple[Any, int]:
        """Lines without those that are repeats, and how many these were. All are noted.

        Args:
            prefix, suffix: what stands before and after each row.
            keys: the values of the replication key, one for each line, if not all lines are sifted.
        """
        if not lines:
            return lines, 0
        between = suffix + prefix  # it holds a line end, which JSON does not
        with memoryview(lines) as whole:
            bodies = bytes(whole[len(prefix) : -len(suffix)]).split(between)
        page = self.page(bodies, keys)
        self.note(page)
        if page.repeats:
            kept = [body for i, body in enumerate(bodies) if i not in page.repeats]
            lines = prefix + between.join(kept) + suffix if kept else b""
        return lines, len(page.repeats)

    def page(self, bodies: Sequence[bytes], keys: list[Any], marks: Sequence[bytes] | None = None) -> Page:
        """Rows, given as JSON, with those of them that are repeats. These count as having come once more.

        Args:
            marks: what tells the rows apart, where their JSON does not.
        """
        page = Page(bodies, keys, marks)
        if self._all:
            self._compare(page, page.digests())
        elif self._left and len(keys) == len(bodies):
            known, top = self._known_keys, set(self._greatest(keys))
            digests = [digest_of(bodies[i]) if text in known or i in top else b"" for i, text in enumerate(texts(keys))]
            self._compare(page, digests)
            if self._sorted and self._is_past(keys):
                self._left = {}
        return page

    def _compare(self, page: Page, digests: list[bytes]) -> None:
        """Find the repeats. Rows that can't be any have no digest, but are what goes out for their key."""
        page.compared = True
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

    def _went_out(self, owners: list[Any], digests: list[bytes]) -> None:
        self._last.update(zip(owners, digests, strict=True))
        if len(self._last) > 2 * self._most:
            for owner in list(islice(self._last, len(self._last) - self._most)):
                del self._last[owner]

    def _is_past(self, keys: list[Any]) -> bool:
        """Whether the last of sorted rows lies behind all that is known: none of those comes any more."""
        last = next((key for key in reversed(keys) if not blank(key)), None)
        rank = None if last is None else comparable(last, self._textual)[1]
        return rank is not None and less(self._known_rank, rank)

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
            self._add(page.keys, places, lambda places: [page.bodies[i] for i in places])
            if page.compared:
                self._settle(compared=True)

    def passed(self, keys: list[Any], count: int, bodies: Callable[[list[int]], Sequence[bytes]]) -> None:
        """Remember rows of a page that was not held.

        Args:
            keys: as in ``sift``; ``count``: how many lines the page had.
            bodies: gives the lines at some places, which rise, as JSON.
        """
        if len(keys) == count:
            self._add(keys, self._at_top(keys), bodies)

    def _at_top(self, keys: list[Any]) -> list[int]:
        """The places of the greatest of the keys, if it is as great as any before it in this round."""
        places = self._greatest(keys)
        rank = comparable(keys[places[0]], self._textual)[1] if places else None
        if rank is None or less(rank, self._top.rank):
            return []
        if rank != self._top.rank:
            self._top, self._came = Top(rank), Counter()
        self._wide = len(places) > _MANY
        return places

    def _greatest(self, keys: list[Any]) -> list[int]:
        return last_of(keys, self._textual) if self._sorted else greatest_of(keys, self._textual)

    def _add(self, keys: list[Any], places: list[int], bodies: Callable[[list[int]], Sequence[bytes]]) -> None:
        if places and self._top.add(bodies(places), texts([keys[i] for i in places])):
            self._settle()

    def _settle(self, *, compared: bool = False) -> None:
        """Digest the rows at the top.

        Args:
            compared: what went out last for their keys is known already.
        """
        bodies = self._top.taken()
        if bodies:
            digests = [digest_of(body) for body in bodies]
            if self._key_of is not None and not compared:
                self._went_out(self._key_of(bodies), digests)
            self._came.update(digests)
            self._came = self._trimmed(self._came, self._most)


def _take(left: dict[bytes, int], digest: bytes) -> bool:
    """Take one of those that are left, if there is one."""
    count = left.get(digest, 0)
    if count > 1:
        left[digest] = count - 1
    elif count:
        del left[digest]
    return count > 0
