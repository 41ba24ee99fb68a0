"""Rows that do not fit, and are brought again by each round of a tail: they count once, and are told once."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from burler.pipeline.shape_bad import BadRows
from burler.pipeline.shape_values import Misfit


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


class BadOnce(BadRows):
    """The account of rows that do not fit, without those that did not fit in the round before (``known``)."""

    known: KnownBad | None = None

    def skip(self, row: Mapping[str, Any], misfit: Misfit) -> None:
        """See ``BadRows``."""
        if self.known is None or not self.known.knows(row):
            super().skip(row, misfit)

    def null(self, row: Mapping[str, Any], misfits: list[Misfit]) -> None:
        """See ``BadRows``."""
        if self.known is None or not self.known.knows(row):
            super().null(row, misfits)


class Unheard(BadRows):
    """No account: of rows that are shaped a second time."""

    def skip(self, row: Mapping[str, Any], misfit: Misfit) -> None:
        """Nothing is noted."""

    def null(self, row: Mapping[str, Any], misfits: list[Misfit]) -> None:
        """Nothing is noted."""
