"""What a STATE claims, told from the source alone: the rows that a run which begins with it would not be given.

``Ledger`` reads what came through the pipe, run by run, and holds every STATE against the rows before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from storm.crashworld import Line, Phase, Row, Source, rank, source_of, uid

Uid = tuple[str, frozenset[Any]]


class Resumed:
    """A run of a line that begins with a state: what its functions ask the source for."""

    def __init__(self, line: Line, phase: Phase, state: Mapping[str, Any]) -> None:
        self.line, self.phase = line, phase
        self.source: Source = source_of(line, phase)
        bookmarks = state.get("bookmarks") or {}
        self.entry = bookmarks.get(line.name) or {}
        self.below = [bookmarks.get(name) or {} for name in line.streams if name not in (line.name, *self._beside())]
        self._starts: dict[int, Any] = {}

    def _beside(self) -> tuple[str, ...]:
        return (f"{self.line.name}_beside",)

    def gives(self, row: Row) -> bool:
        """Whether the run would be given this row."""
        line = self.line
        if row.part not in self._starts:
            self._starts[row.part] = self._start(row.part), self._kids_start(row.part)
        start, kids_start = self._starts[row.part]
        top = self.source.by_top[row.top]
        if start is not None:
            if line.position:
                given = top.place >= start
            elif line.table:
                given = top.data["id"] >= start
            else:
                given = top.n > start if line.resume == "exclusive" else top.n >= start
            if not given:
                return False
        if kids_start is None or row.stream in (line.name, *self._beside()):
            return True
        return row.n >= kids_start

    def bookmark(self, part: int) -> float:
        """The rank of a partition's bookmark; less than any if there is none."""
        start = self._start(part)
        return -1.0 if start is None else float(start) + self._lookback

    @property
    def _lookback(self) -> int:
        return self.line.lookback * (4 if self.line.kind == "number" else 1)

    def _start(self, part: int) -> Any:
        line = self.line
        own = self._own(self.entry, part)
        if line.position:
            return own.get("stream_state", {}).get("next")
        if line.table:
            table = self.entry.get("full_table") or {}
            return table.get("id") if set(line.streams) <= {line.name, *table.get("covers", ())} else None
        found = own.get("key", self.entry.get("key"))
        if found is None or self._covers_too_little(part):
            return None
        starts = [self._rank(found)]
        if line.rollup:
            below = self._own(self.below[0], part).get("key", self.below[0].get("key"))
            if below is None:
                return None
            starts.append(self._rank(below))
        starts += [self._rank(entry["parent_bookmark"]["key"]) for entry in self.below if not line.partitions]
        return min(starts) - self._lookback

    def _covers_too_little(self, part: int) -> bool:
        """Whether some stream of the line has not had what lies before the bookmark, and it can't be told what it
        has had: then it is read from the beginning."""
        line, own = self.line, self._own(self.entry, part)
        if line.partitions:
            said = own if "key" in own else self.entry
            return line.depth > 0 and not set(line.streams) <= set(said.get("covers", [line.name]))
        return any("key" not in entry.get("parent_bookmark", {}) for entry in self.below)

    def _kids_start(self, part: int) -> Any:
        """The children's own bookmark; they don't see it in a run that makes up for something."""
        if not self.line.child_key or self._covers_too_little(part):
            return None
        covered = [entry.get("parent_bookmark", {}).get("key") for entry in self.below]
        if not self.line.partitions and any(one != self.entry.get("key") for one in covered):
            return None
        found = self._own(self.below[0], part).get("key", self.below[0].get("key"))
        return None if found is None else self._rank(found)

    def _own(self, entry: Mapping[str, Any], part: int) -> Mapping[str, Any]:
        if not self.line.partitions:
            return entry
        return (entry.get("partitions") or {}).get(self.line.key_of(part)) or {}

    def _rank(self, found: Any) -> float:
        return rank(self.line.kind, found)

    def late(self) -> set[Uid]:
        """Rows that break the declared order, with what belongs to them: a STATE written before the first of them
        is seen knows nothing of it."""
        found = set()
        for rows in self.source.parts.values() if self.line.late else ():
            most = -1
            for row in rows:
                if row.n < most:
                    found |= {one.uid for one in self._with_all_below(row)}
                most = max(most, row.n)
        return found

    def _with_all_below(self, row: Row) -> list[Row]:
        return [one for one in self.source.every() if one.top == row.top]


@dataclass
class Target:
    """A target's tables: rows by key, as versions and ACTIVATE_VERSION leave them."""

    rows: dict[tuple[str, Any], tuple[dict[str, Any], int | None]] = field(default_factory=dict)

    def take(self, stream: str, keys: Iterable[str], record: dict[str, Any], version: int | None) -> None:
        self.rows[stream, tuple(record[key] for key in keys)] = (record, version)

    def activate(self, stream: str, version: int) -> None:
        for key in [key for key, (_row, one) in self.rows.items() if key[0] == stream and one != version]:
            del self.rows[key]

    def table(self, stream: str) -> set[Uid]:
        return {uid(stream, row) for (name, _key), (row, _version) in self.rows.items() if name == stream}


class Ledger:
    """All that came through the pipe, over several runs of one tap."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.lines = list(lines)
        self.line_of = {stream: line for line in self.lines for stream in line.streams}
        self.state: dict[str, Any] = {}
        self.scope = "full"
        self.out: set[Uid] = set()  # before the last STATE of each run, and all of this one
        self.delivered: set[Uid] = set()
        self.excused: set[Uid] = set()
        self.target = Target()
        self.whole: set[str] = set()  # full tables of which the target has had a whole version
        self.figures: Counter[str] = Counter()
        self._waiting: dict[str, list[Row]] = {}

    def run(self, messages: list[dict[str, Any]], phase: Phase, *, all_selected: bool = True) -> None:
        """Hold one run against the source; from here on ``state`` is its last STATE.

        Args:
            all_selected: all streams were; else what a run had to ask for can't be told from the state alone.

        Raises:
            AssertionError: a row that the source does not have, or not for this run; a STATE that is ahead of the rows.
        """
        begun = {line.name: Resumed(line, phase, self.state) for line in self.lines}
        # A run that knows of no version, since the STATE that named it was lost, begins as the first one did.
        known_versions = {name for name, entry in (self.state.get("bookmarks") or {}).items() if "version" in entry}
        self.whole &= known_versions
        known = {row.uid: row for one in begun.values() for row in one.source.every()}
        late = {name: one.late() for name, one in begun.items()}
        came: Counter[Uid] = Counter()
        schemas: set[str] = set()
        self._waiting = {
            name: [row for row in one.source.every() if row.uid not in self.out] for name, one in begun.items()
        }
        at_state = set(self.out)
        for message in messages:
            kind = message["type"]
            if kind == "SCHEMA":
                schemas.add(message["stream"])
            elif kind == "RECORD":
                stream, record = message["stream"], message["record"]
                assert stream in schemas, f"RECORD of {stream} before its SCHEMA"
                row = known.get(uid(stream, record))
                assert row is not None, f"not in the source: {stream} {str(record)[:200]}"
                asked = not all_selected or self._asks(begun[self.line_of[stream].name], row)
                assert asked, f"was not asked for: {_short(row)}; {self.state}"
                self._row(row, message, came)
            elif kind == "ACTIVATE_VERSION":
                self._activate(message, begun)
            elif kind == "STATE":
                self.state = merged(self.state, message["value"]) if self.scope == "touched" else message["value"]
                self._check_state(phase, {name: found for name, found in late.items() if not found <= came.keys()})
                at_state = set(self.out)
                self.figures["states"] += 1
        self.figures["came again after a state"] += len(self.out) - len(at_state)
        self.out = at_state

    def _asks(self, begun: Resumed, row: Row) -> bool:
        """Whether a run asks for a row."""
        return begun.gives(row)

    def _row(self, row: Row, message: dict[str, Any], came: Counter[Uid]) -> None:
        line = self.line_of[row.stream]
        came[row.uid] += 1
        if came[row.uid] > 1:
            assert line.retry or line.child_retry, f"twice in one run: {_short(row)}"
            self.figures["twice by a retry"] += 1
        elif row.uid in self.delivered:
            self.figures["twice by another run"] += 1
        self.figures["rows"] += 1
        self.out.add(row.uid)
        self.delivered.add(row.uid)
        self.target.take(row.stream, line.keys_of(row.stream), message["record"], message.get("version"))

    def _activate(self, message: dict[str, Any], begun: Mapping[str, Resumed]) -> None:
        """Once a target has had a whole table, no ACTIVATE_VERSION may leave it with less than one."""
        stream, version = message["stream"], message["version"]
        line = self.line_of[stream]
        self.target.activate(stream, version)
        table = {row.uid for row in begun[line.name].source.every() if row.stream == stream}
        is_whole = table <= self.target.table(stream)
        assert is_whole or stream not in self.whole, f"ACTIVATE_VERSION of {stream} drops rows that are there"
        if is_whole and table:
            self.whole.add(stream)

    def _check_state(self, phase: Phase, unbroken: Mapping[str, set[Uid]]) -> None:
        for line in self.lines:
            waiting = self._waiting[line.name] = [row for row in self._waiting[line.name] if row.uid not in self.out]
            if not waiting:
                continue
            resumed = Resumed(line, phase, self.state)
            for row in waiting:
                if row.uid in self.excused or resumed.gives(row):
                    continue
                if row.uid in unbroken.get(line.name, ()):
                    self.excused.add(row.uid)  # the order was a lie, and nothing had shown it yet
                    continue
                raise AssertionError(f"a STATE is ahead of {_short(row)}: {self.state}")

    def missing(self, phase: Phase) -> list[Row]:
        """Rows of the source that are not out, after a run that came to its end."""
        rows = [row for line in self.lines for row in source_of(line, phase).every()]
        return [row for row in rows if row.uid not in self.out and row.uid not in self.excused]

    def check_tables(self, phase: Phase) -> None:
        """After a run that came to its end a target has each full table as the source has it."""
        for line in self.lines:
            if not line.table or line.versions == "off":
                continue
            rows = source_of(line, phase).every()
            for stream in line.streams:
                there = self.target.table(stream)
                table = {row.uid for row in rows if row.stream == stream}
                assert there == table, f"{stream}: {len(there - table)} too many, {len(table - there)} missing"


def merged(state: Mapping[str, Any], change: Mapping[str, Any], level: int = 0) -> dict[str, Any]:
    """A state with what a STATE of ``state_scope: touched`` changes; null takes a key away."""
    result = dict(state)
    for key, new in change.items():
        inner = level == 1 or (level == 0 and key == "bookmarks") or (level == 2 and key == "partitions")
        if new is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key) or {}, new, level + 1) if inner and isinstance(new, dict) else new
    return result


def _short(row: Row) -> str:
    data = {key: found if key != "text" else f"{len(found)} characters" for key, found in row.data.items()}
    return f"{row.stream} {data} (partition {row.part}, of {row.top}, n={row.n}, place {row.place})"
