"""What must hold of the messages of a run of the tail storm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from tail_storm_plan import Plan

_decode = msgspec.json.Decoder().decode


class Output:
    """What came through the pipe of one run that began from ``state``: rows and claims, place by place.

    Args:
        torn: whether the last line may be torn; it is left out then.

    Raises:
        AssertionError: a torn line, a strange one, a row that is not what the source holds, a STATE that says more than
            what is out before it.
    """

    def __init__(self, got: bytes, made: Plan, state: Mapping[str, Any] | None, *, torn: bool = False) -> None:
        whole, _end, rest = got.rpartition(b"\n")
        assert torn or not rest, f"a torn line: {rest[-100:]!r}"
        self.torn = bool(rest)
        self.plan = made
        self.state: Mapping[str, Any] = state or {}
        """What its last STATE says; what it began from, as long as there is none."""
        self.began = {place: self.covered(place) for place in made.places}
        self.rows: dict[str, list[int]] = {place: [] for place in made.places}
        self.states = 0
        self.schemas: list[str] = []
        self.uncovered = 0
        """Rows behind the last STATE."""
        self._next = {place: covered + 1 for place, covered in self.began.items()}  # the first that is not out
        self._early: dict[str, set[int]] = {place: set() for place in made.places}  # out, and behind a gap
        for line in whole.split(b"\n") if whole else ():
            self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            message = _decode(line)
        except msgspec.DecodeError as error:
            raise AssertionError(f"a broken line: {error}: {line[:100]!r} ... {line[-60:]!r}") from error
        kind = message["type"]
        if kind == "RECORD":
            self._row(message["stream"], message["record"])
        elif kind == "STATE":
            self.states += 1
            self.uncovered = 0
            self.state = message["value"]
            for place in self.rows:
                covered = self.covered(place)
                assert covered < self._next[place], f"STATE is ahead: {place} {covered}, out up to {self._next[place]}"
        elif kind == "SCHEMA":
            self.schemas.append(message["stream"])
        else:
            raise AssertionError(f"a strange message: {line[:200]!r}")

    def _row(self, stream: str, row: dict[str, Any]) -> None:
        place = f"{stream}-{row['part']}" if "part" in row else stream
        number = row["id"]
        assert row["text"] == f"{number:09}" * max(1, self.plan.size // 9), f"{place} {number}: its text"
        self.rows[place].append(number)
        self.uncovered += 1
        early = self._early[place]
        early.add(number)
        while self._next[place] in early:
            early.discard(self._next[place])
            self._next[place] += 1

    def covered(self, place: str) -> int:
        """Up to which row the state covers a place; -1: none."""
        stream, _, part = place.partition("-")
        entry = (self.state.get("bookmarks") or {}).get(stream) or {}
        if part:
            entry = (entry.get("partitions") or {}).get(part) or {}
        position = entry.get("stream_state", {}).get("done", -1)
        if self.plan.position and stream.startswith("t"):
            return int(position)
        covered = int(entry.get("id", -1))
        # In a sorted stream stream.state is never ahead of the bookmark; in others it may be ahead of its rows' order.
        assert self.plan.order == "none" or position <= covered, f"{place}: state {position}, bookmark {covered}"
        return covered

    def twice(self) -> int:
        """How many rows came more than once."""
        return sum(len(rows) - len(set(rows)) for rows in self.rows.values())

    def check_order(self) -> None:
        """Rows of a sorted place came one by one, none twice but where batch and stream overlap.

        Raises:
            AssertionError: a hole, a row that came again.
        """
        if self.plan.order == "none":
            return
        for place, rows in self.rows.items():
            if self.plan.batch == "overlap" and place != "rows":
                rows = list(dict.fromkeys(rows))
            first = rows[0] if rows else 0
            assert first in (0, self.began[place], self.began[place] + 1), f"{place} begins at {first}"
            assert rows == list(range(first, first + len(rows))), f"{place}: {_first_break(rows)}"

    def check_last_state(self, *, all_covered: bool = True) -> None:
        """No row is behind the last STATE, and where rows are sorted it covers exactly those that are out.

        Raises:
            AssertionError: it does not.
        """
        assert not self.uncovered or not all_covered, f"no STATE behind the last {self.uncovered} rows"
        if self.plan.order == "none":
            return
        for place, rows in self.rows.items():
            greatest = max(rows, default=self.began[place])
            lag = greatest - self.covered(place)
            # A position is said behind its row: the function may have been stopped between the two.
            assert 0 <= lag <= (1 if self.plan.position and place != "rows" else 0), (
                f"{place}: STATE covers {self.covered(place)}, out is {greatest}"
            )


def _first_break(rows: list[int]) -> str:
    at = next(i for i in range(1, len(rows)) if rows[i] != rows[i - 1] + 1)
    return f"{rows[at]} after {rows[at - 1]} ({at} rows before, {len(rows)} in all)"


def missing(outputs: list[Output], rows: Mapping[str, int]) -> dict[str, list[int]]:
    """Which rows of the source are in none of the outputs, place by place."""
    found = {}
    for place, count in rows.items():
        lost = set(range(count)).difference(*(output.rows[place] for output in outputs))
        if lost:
            found[place] = sorted(lost)[:5]
    return found
