"""Repeats: rows that a round of a tail brings again, just as they went out before (specs 11.9, 11.13).

Resumption is inclusive, so that each round begins with rows of the round before. Two rows are the same if the same bytes
go out for them: what a source spells otherwise, or changes in a field that nobody selected, is no news; a digit more is.
What is compared is the row as JSON, without the ``time_extracted`` around it; of a stream with a post_transform function
the row that the function is given.

Equal rows are counted, since a log may hold two equal events: as many are dropped as came out before, and no more.
"""

from __future__ import annotations

import logging
import pickle
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any, Literal

from burler.pipeline.bookmark_values import comparable, key_text, ordered, present_of
from burler.pipeline.shape_bad import BadRows
from burler.pipeline.shape_lines import Output
from burler.pipeline.shape_values import Misfit

logger = logging.getLogger(__name__)

_MANY = 64  # rows of one key value in a page, from which on the next page is looked at as a whole
_FEW = 16  # lines that are looked for from the end of a page
_WAITING_BYTES = 4 * 1024 * 1024
_WORTH_IT = 8  # values in a page, from which on it is quicker to look at them together
_PLAIN = frozenset((str, int, float))


class Repeats:
    """What is known of the rows of one stream, or of one of its partitions, from one round to the next.

    Args:
        key: the replication key, whose values come with the rows; None with "all".
        keeps: "top": rows whose key is the greatest so far, which come again where the bookmark is the key's greatest
            value. "all": the last rows of the round before, whatever their keys are.
        most: so many rows are known; beyond them the oldest are forgotten.

    Raises:
        ValueError: "top" without a key.
    """

    def __init__(self, key: str | None, *, keeps: Literal["top", "all"], most: int = 100_000) -> None:
        if keeps == "top" and key is None:
            raise ValueError("repeats: rows at the top are told by their key; give one, or keep all")
        self.key = key
        self._most = most
        self._all = keeps == "all"
        self._form: object = None
        self._stream = ""
        self._textual: str | None = None
        self._sorted = False
        self._warned = self._open = False
        self._known: Counter[bytes] = Counter()
        self._known_keys: set[Any] = set()
        self._known_rank: Any = None
        self._left: dict[bytes, int] = {}  # of those that are known: how many may still come again in this round
        self._came: Counter[bytes] = Counter()
        self._top = _Top()
        self._wide = False
        self._bad: Counter[bytes] = Counter()
        self._bad_left: dict[bytes, int] = {}
        self._bad_came: Counter[bytes] = Counter()

    # ---- rounds ----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """A round begins, or a further try of one. If the one before has not come to its end, nothing is forgotten: what
        was known, and what it brought, may both come again."""
        if self._open:
            self._settle()
            self._known |= self._came
            self._known_keys |= self._top.keys
            if _over(self._top.rank, self._known_rank):
                self._known_rank = self._top.rank
            self._trim(self._known)
            self._bad |= self._bad_came
        self._open = True
        self._start()

    def end(self) -> None:
        """The round was whole: what it brought is what may come again. One that brought nothing says nothing."""
        self._settle()
        if self._all:
            if self._came:
                self._known = self._came
        elif self._top.rank is not None and not _over(self._known_rank, self._top.rank):
            self._known, self._known_keys, self._known_rank = self._came, self._top.keys, self._top.rank
        if self._came or self._bad_came:
            self._bad = self._bad_came
        self._open = False
        self._start()

    def _start(self) -> None:
        self._left, self._bad_left = dict(self._known), dict(self._bad)
        self._came, self._bad_came = Counter(), Counter()
        self._top = _Top()

    def serve(self, stream: str, form: object, *, textual: str | None, sorted_rows: bool) -> None:
        """Say whose rows they are, before each page. Rows that went out in another form are news.

        Args:
            form: what the form of the stream's rows follows from.
            textual: what the schema says of a key that is text (see ``comparable``).
            sorted_rows: the rows rise by the key.
        """
        if form != self._form:
            if self._form is not None:
                self._known, self._known_keys, self._known_rank = Counter(), set(), None
                self._bad = Counter()
                self._start()
            self._form, self._stream, self._textual, self._sorted = form, stream, textual, sorted_rows

    # ---- pages -----------------------------------------------------------------------------------------

    @property
    def holds(self) -> bool:
        """Whether a page is to be held back until ``sift`` has looked at it; else ``passed`` sees it afterwards."""
        return self._all or bool(self._left) or self._wide

    def sift(self, output: Output, keys: list[Any]) -> int:
        """Take the repeats out of a page that was held, and note the others; how many they were.

        Args:
            keys: the values of the key, one for each line; [] where there are none.
        """
        if not output.count:
            return 0
        before, between = len(output.prefix), output.suffix + output.prefix
        bodies = bytes(memoryview(output.buffer)[before : -len(output.suffix)]).split(between)
        dropped = self.among(bodies, keys)
        self.note(bodies, keys)
        if dropped:
            kept = [body for i, body in enumerate(bodies) if i not in dropped]
            output.buffer[:] = output.prefix + between.join(kept) + output.suffix if kept else b""
            output.count = len(kept)
        return len(dropped)

    def among(self, bodies: Sequence[bytes], keys: list[Any]) -> set[int]:
        """The places of the repeats among rows, given as JSON. They count as having come."""
        if not self._left:
            return set()
        places: Collection[int] = range(len(bodies))
        if not self._all:
            plain = _plain(keys)
            if len(plain) != len(bodies) or self._known_keys.isdisjoint(plain):
                places = ()
            else:
                places = [i for i, key in enumerate(plain) if key in self._known_keys]
            self._look_past(plain)
        return {i for i in places if _take(self._left, _digest(bodies[i]))}

    def _look_past(self, plain: list[Any]) -> None:
        """Sorted rows that have left the boundary behind do not come back to it."""

    def note(self, bodies: Sequence[bytes], keys: list[Any], out: Collection[int] | None = None) -> None:
        """Remember rows, given as JSON: those of them that are ``out``, all by default."""
