"""What must hold of the messages of a run of the batch storm, and of the files in its folder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from batch_storm_files import rows_of
from batch_storm_plan import Plan
from batch_storm_rows import is_as_it_was, place_of
from batch_storm_store import Store


class Ledger:
    """What has come through in the runs of a story, and what must still come.

    ``state``: the one to go on from. ``safe``: rows of each place that were out before a STATE that was gone on from.
    """

    def __init__(self, made: Plan) -> None:
        self.plan = made
        self.state: dict[str, Any] = {}
        self.safe: dict[str, set[int]] = {place: set() for place in made.places}
        self.named: set[str] = set()
        self.orphans: set[str] = set()
        self.figures: Counter[str] = Counter()

    def take(self, lines: list[bytes], store: Store, cut: float) -> Output:
        """The whole lines of a run; of them a reader has taken only a part if ``cut`` is less than 1.

        Raises:
            AssertionError: see ``Output``.
        """
        output = Output(self.plan, self.state, store)
        for line in lines:
            output.take(json.loads(line))
        self.named |= output.named
        taken = int(len(lines) * cut)
        kept = output if cut == 1 else Output(self.plan, self.state, store)
        if kept is not output:
            for line in lines[:taken]:
                kept.take(json.loads(line))
        self.state = dict(kept.state)
        for place, rows in kept.covered_rows.items():
            self.safe[place] |= rows
        self.figures["batches"] += len(output.named)
        self.figures["states"] += output.states
        self.figures["rows"] += sum(len(rows) for rows in output.out.values())
        return output

    def finish(self, last: Output) -> None:
        """Nothing is missing: the rows of all messages up to each STATE that was gone on from, and those of the last
        run.

        Raises:
            AssertionError: something is.
        """
        for place, count in self.plan.places.items():
            out = last.out[place] if place == "table" else last.out[place] | self.safe[place]
            lost = set(range(count)) - out
            assert not lost, f"{place}: {len(lost)} rows are lost: {sorted(lost)[:5]}; {self.state}"

    def check_files(self, store: Store, ending: str, most_orphans: int, *, after_kill: bool = False) -> None:
        """Of the files that there are, after a run that ended like this.

        Raises:
            AssertionError: one whose message did not come, or a temporary one that was left.
        """
        there = store.urls()
        temporary = {url for url in there if url.rpartition("/")[2].startswith(".")}
        if not after_kill:
            assert not temporary, f"left: {sorted(temporary)}"
        orphans = there - temporary - self.named - self.orphans
        self.orphans |= orphans
        self.figures[f"files without a message: {ending}"] += len(orphans)
        self.figures["temporary files of killed runs"] += len(temporary)
        assert len(orphans) <= most_orphans, f"{len(orphans)} files without a message: {sorted(orphans)[:3]}"


class Output:
    """The messages of one run that began from ``state``.

    Raises:
        AssertionError: a row that is torn, or not the source's; a RECORD; a BATCH before its SCHEMA; a STATE that says
            more than what is in files of messages before it; ACTIVATE_VERSION amid the rows of its version.
    """

    def __init__(self, made: Plan, state: Mapping[str, Any], store: Store) -> None:
        self.plan, self.state, self._store = made, state, store
        self.out: dict[str, set[int]] = {place: set() for place in made.places}
        self.covered_rows: dict[str, set[int]] = {place: set() for place in made.places}
        """Rows that were out when the last STATE came."""
        self.named: set[str] = set()
        self.states = 0
        self.behind = 0
        """BATCHes behind the last STATE, but for those of the full table."""
        self.began = {place: covered(state, place) for place in made.places}
        self._schemas: set[str] = set()
        self._of_version: Counter[int | None] = Counter()

    def take(self, message: dict[str, Any]) -> None:
        """The next message."""
        kind = message["type"]
        if kind == "SCHEMA":
            self._schemas.add(message["stream"])
        elif kind == "BATCH":
            self._batch(message)
        elif kind == "STATE":
            self._state(message["value"])
        elif kind == "ACTIVATE_VERSION":
            self._activated(message["version"])
        else:
            raise AssertionError(f"a strange message: {message}")

    def _batch(self, message: dict[str, Any]) -> None:
        stream = message["stream"]
        assert stream in self._schemas, f"BATCH of '{stream}' before its SCHEMA"
        rows = rows_of(message, self.plan.format, self.plan.compression, self._store.read)
        assert len(rows) <= self.plan.batch_size, f"{len(rows)} rows in a file"
        for row in rows:
            assert is_as_it_was(stream, row, self.plan.size), f"not the source's: {row!r:.300}"
            self.out[place_of(stream, row)].add(int(row["id"]))
        self.named |= set(message["manifest"])
        if stream == "table":  # a part of it changes no state
            self._of_version[message.get("version")] += len(rows)
        else:
            self.behind += 1

    def _activated(self, version: int) -> None:
        rows = self._of_version[version]
        known = ((self.state.get("bookmarks") or {}).get("table") or {}).get("version")
        if rows or known is not None:  # else it says what the very first version is
            assert rows == self.plan.places["table"], f"ACTIVATE_VERSION after {rows} rows of its version"

    def _state(self, value: dict[str, Any]) -> None:
        for place in self.out:
            if place == "table":
                continue
            last = covered(value, place)
            needed = set(range(self.began[place] + 1, last + 1))
            missing = needed - self.out[place]
            assert not missing, f"STATE is ahead: {place} {last}, not out: {sorted(missing)[:3]}"
        self.state = value
        self.states += 1
        self.behind = 0
        self.covered_rows = {place: set(rows) for place, rows in self.out.items()}

    def check_end(self) -> None:
        """After an end in peace: no file is behind the last STATE, and the STATE lags behind no row that is out.

        Raises:
            AssertionError: one is.
        """
        assert not self.behind, f"{self.behind} files behind the last STATE"
        for place, rows in self.out.items():
            if place != "table" and rows:
                last, most = covered(self.state, place), max(rows)
                assert last == most or (place == "log" and last == most - 1), f"{place}: {last} of {most} in the STATE"


def covered(state: Mapping[str, Any], place: str) -> int:
    """Up to which row a state covers a place; -1: none."""
    stream, _, part = place.partition("-")
    entry = (state.get("bookmarks") or {}).get(stream) or {}
    if part:
        entry = (entry.get("partitions") or {}).get(part) or {}
    if stream == "log":
        return int((entry.get("stream_state") or {}).get("done", -1))
    return int(entry.get("id", -1))
