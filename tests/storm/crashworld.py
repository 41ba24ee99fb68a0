"""The source of the crash tests: lines of streams made from a seed, and how they grow. It knows nothing of burler."""

from __future__ import annotations

import datetime as dt
import json
import random
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

KINDS = ("integer", "number", "text", "date", "date-time")
_DAY = dt.date(2024, 1, 1)
_MOMENT = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
_FUTURE = {"date": 27_000, "date-time": 2_400_000_000}  # ranks that lie in 2097 and 2100
_MARKS = ("", "é", '"\\', "\u2028\U0001f600")


def value(kind: str, n: int) -> Any:
    """The n-th value of a kind of key, as it stands in a message."""
    if kind == "number":
        return n / 4
    if kind == "text":
        return f"{n:09}"
    if kind == "date":
        return (_DAY + dt.timedelta(days=n)).isoformat()
    if kind == "date-time":
        return (_MOMENT + dt.timedelta(seconds=n)).isoformat().replace("+00:00", "Z")
    return n


def rank(kind: str, found: Any) -> float:
    """What ``value`` was made of."""
    if kind == "number":
        return float(found) * 4
    if kind == "date":
        return float((dt.date.fromisoformat(str(found)[:10]) - _DAY).days)
    if kind == "date-time":
        moment = found if isinstance(found, dt.datetime) else dt.datetime.fromisoformat(found)
        return (moment - _MOMENT).total_seconds()
    return float(found)


@dataclass(frozen=True)
class Line:
    """A stream with everything below it and beside it, and how it is declared."""

    name: str
    seed: int
    rows: int = 40  # of the first stream, in the beginning, about
    size: int = 30  # characters of the longest text
    table: bool = False  # FULL_TABLE; else INCREMENTAL by "key"
    kind: str = "integer"  # of the key
    order: str = "asc"  # in which rows come, and what is declared
    strategy: str = "every_n(5)"
    resume: str = "inclusive"
    lookback: int = 0  # in units of the key
    late: bool = False  # order "asc" is declared, and one row in each lot comes too late
    signpost: bool = False
    position: bool = False  # it goes on by stream.state
    resumable: bool = False
    versions: str = "auto"  # off, block
    retry: str = ""  # plain, setup
    partitions: str = ""  # none, asc: their order
    partition_key: str = "json"  # field, function
    workers: int = 1
    depth: int = 0  # levels below the first stream
    child_key: bool = False  # the first level below has a replication key and asks only for what is new
    rollup: bool = False
    child_retry: bool = False
    beside: bool = False  # a stream that the first one's function emits
    page_first: bool = False
    forms: tuple[str, ...] = ("row", "list")

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of its streams, the first one first."""
        below = (f"{self.name}_kids", f"{self.name}_grand")[: self.depth]
        return (self.name, *((f"{self.name}_beside",) if self.beside else ()), *below)

    @property
    def parallel(self) -> bool:
        return self.partitions != "" and self.workers > 1

    def keys_of(self, stream: str) -> list[str]:
        """The key properties of one of its streams."""
        return (
            ["top", "kid", "id"]
            if stream.endswith("_grand")
            else (["top", "id"] if stream.endswith("_kids") else ["id"])
        )

    def partition(self, part: int) -> dict[str, Any]:
        """What partition number ``part`` looks like."""
        return {"shard": part, "account": f"a{part}{_MARKS[part % len(_MARKS)]}"}

    def key_of(self, part: int) -> str:
        """Under which key it stands in the state."""
        found = self.partition(part)
        if self.partition_key == "json":
            return json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return found["account"] if self.partition_key == "field" else f"p{part}"


@dataclass(frozen=True)
class Phase:
    """How the source stands: so often it has grown; whether rows of full tables are gone."""

    grown: int = 0
    shrunk: bool = False


@dataclass(frozen=True)
class Row:
    """A row: of the partition ``part``, belonging to row ``top`` of the first stream, its key of rank ``n``.

    ``place`` counts the rows of a partition (of the first stream).
    """

    stream: str
    data: dict[str, Any]
    part: int
    top: int
    n: int
    place: int = 0

    @property
    def uid(self) -> tuple[str, frozenset[Any]]:
        return uid(self.stream, self.data)


def uid(stream: str, record: dict[str, Any]) -> tuple[str, frozenset[Any]]:
    """What makes two rows the same: every value."""
    return stream, frozenset(record.items())


class Source:
    """One line's rows in one phase."""

    def __init__(self, line: Line, phase: Phase) -> None:
        self.line = line
        self.parts: dict[int, list[Row]] = {}
        self.by_top: dict[int, Row] = {}
        self.kids: dict[int, list[Row]] = {}
        self.grand: dict[tuple[int, int], list[Row]] = {}
        self.beside: dict[int, Row] = {}
        self._tops: dict[int, dict[int, tuple[int, int]]] = {}  # partition -> id -> (n, rev), in order
        self._kid_marks: dict[int, list[tuple[int, int]]] = {}  # top id -> (n, rev) of its kids
        for k in range(phase.grown + 1):
            self._grow(k)
        self._finish(phase)

    def rng(self, *what: Any) -> random.Random:
        return random.Random(repr((self.line.seed, self.line.name, *what)))

    # ---- the first stream ----

    def _grow(self, k: int) -> None:
        line, rng = self.line, self.rng("grow", k)
        if not line.partitions:
            self._lot(0, k, rng, line.rows if k == 0 else rng.randrange(line.rows // 2 + 2))
        elif line.partitions == "asc":
            # One sequence, cut into partitions: equal keys may stand on both sides of a cut.
            for i in range(rng.randint(2, 8) if k == 0 else rng.randint(1, 3)):
                last = max(self._tops, default=0)
                part = last if k and i == 0 else last + 1
                self._lot(part, k, rng, rng.choice([0, 1, line.rows // 6, line.rows // 3]))
        else:
            count = rng.randint(1, 12) if k == 0 else len(self._tops) + rng.randint(0, 2)
            for part in range(1, count + 1):
                self._lot(part, k, rng, rng.choice([0, 0, 1, line.rows // 8, line.rows // 3]))
        if line.rollup and k:
            self._late_kids(rng)

    def _lot(self, part: int, k: int, rng: random.Random, count: int) -> None:
        """Rows that a partition gets when the source grows for the k-th time."""
        line, tops = self.line, self._tops.setdefault(part, {})
        together = line.partitions != "none"
        known = [n for one in (self._tops.values() if together else (tops,)) for n, _rev in one.values()]
        last = max(known, default=0)
        if known and k and line.resume == "exclusive":
            last += 1  # what comes later with the same key is lost to such a source, whoever reads it
        before = sum(map(len, self._tops.values()))
        new = [part * 100_000 + k * 10_000 + i for i in range(count)]
        if k and tops and not (line.position or line.table or line.partitions == "asc" or line.late):
            bumped = rng.sample(sorted(tops), min(len(tops), rng.randrange(3)))
            new = sorted([*new, *bumped], key=lambda _id: rng.random())
        lot: list[tuple[int, int]] = []
        for i, one in enumerate(new):
            last += rng.choice([0, 0, 0, 0, 1, 1, 2, 7])
            if line.signpost and i == len(new) // 2 and k == 0:
                last += _FUTURE[line.kind]
            lot.append((one, last))
            kids = self._kid_marks.setdefault(one, [])
            again = one in tops
            for _ in range(rng.choice([0, 1, 1, 2, 4]) if line.depth and before < 400 else 0):
                kids.append((max(0, last - rng.randrange(4)) if k == 0 and not again else last, k))
        if line.late and len(lot) > 2:
            lot.append(lot.pop(0))
        elif line.order == "none":
            rng.shuffle(lot)
        for one, n in lot:
            tops.pop(one, None)
            tops[one] = (n, k)

    def _late_kids(self, rng: random.Random) -> None:
        """New children of old parents whose key does not tell; no older than the newest child."""
        newest = max((n for kids in self._kid_marks.values() for n, _rev in kids), default=0)
        # A source that gives only what lies after the bookmark never gives those at it again.
        least = newest + (self.line.resume == "exclusive")
        held = [one for tops in self._tops.values() for one, (n, _rev) in tops.items() if n >= least]
        for one in rng.sample(held, min(len(held), 2)):
            self._kid_marks[one].append((newest, 99))

    # ---- everything as rows ----

    def _finish(self, phase: Phase) -> None:
        line = self.line
        left_out = self.rng("listed", phase.grown).randrange(25) if line.partitions == "none" else -1
        for part, tops in self._tops.items():
            if part == left_out and phase.grown % 2:
                continue
            marks = list(tops.items())
            if line.order == "none" and not line.position:
                self.rng("shuffle", part, phase.grown).shuffle(marks)
            if line.table and line.resumable:
                marks.sort()
            if line.table and phase.shrunk:
                marks = [mark for mark in marks if mark[0] % 3]
            self.parts[part] = [self._top(part, one, n, rev, i) for i, (one, (n, rev)) in enumerate(marks)]
        for rows in self.parts.values():
            for row in rows:
                self._below(row)

    def _top(self, part: int, one: int, n: int, rev: int, place: int) -> Row:
        line = self.line
        data = {"id": one, "part": part, "rev": rev, "text": self._text(one, line.size)}
        if not line.table:
            data["key"] = value(line.kind, n)
        return Row(line.name, data, part, one, n, place)

    def _below(self, row: Row) -> None:
        line, top = self.line, row.top
        self.by_top[top] = row
        self.kids[top] = []
        if line.beside:
            data = {"id": top, "rev": row.data["rev"], "text": self._text(-top, 20)}
            self.beside[top] = Row(f"{line.name}_beside", data, row.part, top, row.n)
        for c, (n, _rev) in enumerate(self._kid_marks.get(top, ()) if line.depth else ()):
            data = {"top": top, "id": c, "text": self._text(top + c, 40)}
            if line.child_key:
                data["key"] = value(line.kind, n)
            self.kids[top].append(Row(f"{line.name}_kids", data, row.part, top, n))
            self.grand[top, c] = []
            for g in range((top + c) % 3 if line.depth > 1 else 0):
                data = {"top": top, "kid": c, "id": g, "text": self._text(g, 10)}
                self.grand[top, c].append(Row(f"{line.name}_grand", data, row.part, top, n))

    def _text(self, one: int, size: int) -> str:
        rng = self.rng("text", one)
        length = rng.randrange(size + 1) if rng.random() < 0.8 else size
        return _MARKS[one % 4] + "x" * length

    def every(self) -> list[Row]:
        """All rows of all its streams."""
        rows: list[Row] = []
        for tops in self.parts.values():
            for top in tops:
                rows += [top, *([self.beside[top.top]] if self.line.beside else [])]
                for kid in self.kids[top.top]:
                    rows += [kid, *self.grand[top.top, kid.data["id"]]]
        return rows


@lru_cache(maxsize=256)
def source_of(line: Line, phase: Phase) -> Source:
    """The rows of a line; made once."""
    return Source(line, phase)


def fails(line: Line, run: int, share: float, level: str, ident: Any) -> bool:
    """Whether this function (``level`` top, kids or grand), called for this partition or row, breaks in this run."""
    if level == "top" and not line.partitions:
        share /= 4
    return random.Random(repr((line.seed, line.name, run, level, ident))).random() < share
