"""Which rows came, in their order, as a number each: in memory up to a bound, then in a temporary file.

A row is a 64-bit number: a whole number that is its key by itself, else Python's hash of the key (of text that is
SipHash with a key of the process; two different keys in ten million meet with a chance of 1 to 400,000). A row takes
24 bytes, with its line and its place by the replication key. To find equal ones the log is gone through as many times
as it takes to hold no more than ``most`` of them at once, each time with those that one remainder names.
"""

from __future__ import annotations

import math
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import IO, Any, NamedTuple

from burler.errors import StorageError

_CHUNK = 65_536


class Part(NamedTuple):
    """Some rows: their numbers, lines and marks."""

    rows: array[int]
    lines: array[int]
    marks: array[float]


_LEAST, _GREATEST = -(2**62), 2**62
_EMPTY = 2**63 - 1  # of empty text, whose hash is 0


def numbers_of(keys: Sequence[Any]) -> list[int]:
    """A number for each key (a value, or a tuple of several); it does not depend on the keys beside it."""
    kinds = set(map(type, keys))
    if kinds == {int} and min(keys) > _LEAST and max(keys) < _GREATEST:
        return list(keys)
    if kinds == {str}:
        numbers = list(map(hash, keys))
        return [one or _EMPTY for one in numbers] if 0 in numbers else numbers
    return list(map(_number, keys))


def _number(key: Any) -> int:
    if type(key) is int and _LEAST < key < _GREATEST:
        return key
    if type(key) is str:
        return hash(key) or _EMPTY
    try:
        return hash((0, repr(key)))  # repr: hash((-1, 1)) equals hash((-2, 1)), hash(True) hash(1), and 1.5 is no "1.5"
    except (RecursionError, ValueError):  # nested too deeply; a number of thousands of digits
        return 0


class RowLog:
    """The rows of a stream, in order.

    Args:
        most: so many rows are held in memory.
        least: and no fewer, whatever ``most`` says: each of the file's parts is to be worth a read.
    """

    def __init__(self, most: int, *, least: int = _CHUNK) -> None:
        self._most = max(most, least)
        self._part = Part(array("q"), array("q"), array("d"))
        self._file: IO[bytes] | None = None
        self.count = 0

    def add(self, numbers: Sequence[int], lines: Iterable[int], marks: Iterable[float] | None = None) -> None:
        """Some more rows, the numbers of their lines, and where each stands by its replication key (NaN: unknown)."""
        self._part.rows.extend(numbers)
        self._part.lines.extend(lines)
        self._part.marks.extend(repeat(math.nan, len(numbers)) if marks is None else marks)
        self.count += len(numbers)
        if len(self._part.rows) >= self._most:
            self._spill()

    def _spill(self) -> None:
        try:
            self._write()
        except OSError as error:
            raise StorageError(
                f"the rows that are compared can't be written to a temporary file in {tempfile.gettempdir()}: "
                f"{error.strerror}. Name another folder by TMPDIR, or hold more of them in memory (keys-in-memory)."
            ) from None

    def _write(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="burler-verify-")  # noqa: SIM115 - closed by close()
        self._file.seek(0, 2)
        for start in range(0, len(self._part.rows), _CHUNK):
            part = [column[start : start + _CHUNK] for column in self._part]
            self._file.write(len(part[0]).to_bytes(8, "little") + b"".join(column.tobytes() for column in part))
        for column in self._part:
            del column[:]

    def parts(self, start: int = 0) -> Iterator[Part]:
        """All rows from the one at ``start`` on, part by part."""
        for part in self._all():
            size = len(part.rows)
            if start < size:
                yield Part(part.rows[start:], part.lines[start:], part.marks[start:]) if start else part
            start = max(0, start - size)

    def _all(self) -> Iterator[Part]:
        if self._file is not None:
            self._file.seek(0)
            while head := self._file.read(8):
                part = Part(array("q"), array("q"), array("d"))
                for column in part:
                    column.frombytes(self._file.read(8 * int.from_bytes(head, "little")))
                yield part
        yield self._part

    def span(self) -> float:
        """How far the rows' places by the replication key lie apart; 0 where none is known."""
        least, greatest = math.inf, -math.inf
        for part in self.parts():
            known = [mark for mark in part.marks if not math.isnan(mark)]
            least, greatest = min([least, *known]), max([greatest, *known])
        return max(0.0, greatest - least)

    def close(self) -> None:
        """Give the temporary file back."""
        if self._file is not None:
            self._file.close()

    def _passes(self, count: int) -> int:
        return max(1, -(-count // self._most))

    def repeated(self, start: int = 0) -> Iterator[tuple[int, int]]:
        """Lines of rows that came before: (line of the first, line of the other), from the row at ``start`` on."""
        passes = self._passes(self.count - start)
        for this in range(passes):
            first: dict[int, int] = {}
            for part in self.parts(start):
                for row, line in zip(part.rows, part.lines, strict=True):
                    if passes > 1 and row % passes != this:
                        continue
                    if row in first:
                        yield first[row], line
                    else:
                        first[row] = line

    def again(self) -> int:
        """How many rows had come before, at the same place by the replication key (where that is known); 0 where they
        are no more than half of all, wherever they stood."""
        passes = self._passes(self.count)
        different = 0
        for this in range(passes):
            known: set[int] = set()
            for part in self.parts():
                known.update(part.rows if passes == 1 else (row for row in part.rows if row % passes == this))
            different += len(known)
        if 2 * different >= self.count:
            return 0
        different = 0
        for this in range(passes):
            seen: set[tuple[int, float | None]] = set()
            for part in self.parts():
                marks = [None if math.isnan(mark) else mark for mark in part.marks]
                rows = zip(part.rows, marks, strict=True)
                seen.update(rows if passes == 1 else (one for one in rows if one[0] % passes == this))
            different += len(seen)
        return self.count - different

    def at(self, mark: float, most: int) -> set[int]:
        """Rows that stand at a place by the replication key, ``most`` of them."""
        found: set[int] = set()
        for part in self.parts():
            found.update(row for row, one in zip(part.rows, part.marks, strict=True) if one == mark)
            if len(found) >= most:
                break
        return found

    def has_any(self, rows: set[int]) -> bool:
        """Whether one of these rows came."""
        return any(not rows.isdisjoint(part.rows) for part in self.parts())

    def missing_in(
        self, other: RowLog, start: int = 0, *, numbers: list[int] | None = None
    ) -> Iterator[tuple[int, float]]:
        """Lines and marks of rows from ``start`` on that ``other`` does not have.

        Args:
            numbers: takes the rows' numbers.
        """
        passes = self._passes(other.count)
        for this in range(passes):
            there: set[int] = set()
            for part in other.parts():
                there.update(part.rows if passes == 1 else (row for row in part.rows if row % passes == this))
            for part in self.parts(start):
                for row, line, mark in zip(*part, strict=True):
                    if row not in there and (passes == 1 or row % passes == this):
                        if numbers is not None:
                            numbers.append(row)
                        yield line, mark

    def found_before(self, end: int, marks: Mapping[int, float]) -> set[int]:
        """Those of some rows (by number, with their marks) that had come, with the same mark, before the one at
        ``end``."""
        found: set[int] = set()
        for part in self._all():
            for row, mark in zip(part.rows[:end], part.marks[:end], strict=True):
                other = marks.get(row)
                if other is not None and (mark == other or (math.isnan(mark) and math.isnan(other))):
                    found.add(row)
            end -= len(part.rows)
            if end <= 0:
                break
        return found
