"""Taps over the crash tests' source: they sleep, fail and try again, and give their rows in every form there is.

As a program it is one tap: ``CRASH_SEED=7 python crashtaps.py --config config.json``.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import burler
from storm.crashforms import in_form, native
from storm.crashworld import Line, Phase, Row, Source, fails, rank, source_of, value


class Flaky(Exception):
    """The source has a bad moment."""


class Broken(Exception):
    """The source does not give this today."""


@dataclass(frozen=True)
class Often:
    """A bookmark strategy of an author's own."""

    needs_order: bool

    def is_due(self, since: Any) -> bool:
        return bool(since.rows >= 13 or since.pages >= 4 or since.seconds > 0.05)


def tap_of(lines: Iterable[Line], step: Callable[[], None] | None = None) -> burler.Tap:
    """A tap with these lines of streams. Its config: see ``Day``. ``step`` is called at each step of its functions."""
    tap = burler.tap("tap-crash")
    for line in lines:
        Author(line, step).declare(tap)
    return tap


@dataclass(frozen=True)
class Day:
    """What one run meets, from the config."""

    phase: Phase
    run: int
    share: float  # of the functions that break
    nap: float  # seconds, at the most
    unchanged: tuple[str, ...]  # full tables of which the source says that nothing has changed

    @classmethod
    def of(cls, config: Any) -> Day:
        phase = Phase(config.get("grown", 0), config.get("shrunk", False))
        more = (config.get("run", 0), config.get("share", 0.0), config.get("nap", 0.0))
        return cls(phase, *more, tuple(config.get("unchanged", ())))


class Author:
    """Writes the functions of one line."""

    def __init__(self, line: Line, step: Callable[[], None] | None = None) -> None:
        self.line = line
        self.step = step
        self.tries: Counter[Any] = Counter()
        self.seen: dict[int, Row] = {}
        self.lock = threading.Lock()

    def declare(self, tap: burler.Tap) -> None:
        line = self.line
        fields = {name: {"type": "integer"} for name in ("id", "top", "kid", "part", "rev")}
        text = {"type": ["null", "string"]}
        kind = {"type": "string", "format": line.kind} if line.kind.startswith("date") else {"type": line.kind}
        kind = {"type": "string"} if line.kind == "text" else kind
        schemas = {
            "": ("id", "part", "rev"),
            "_beside": ("id", "rev"),
            "_kids": ("top", "id"),
            "_grand": ("top", "kid", "id"),
        }

        def schema(stream: str) -> dict[str, Any]:
            made: dict[str, Any] = {name: fields[name] for name in schemas[stream.removeprefix(line.name)]}
            keyed = not line.table if stream == line.name else line.child_key and stream.endswith("_kids")
            return {"type": "object", "properties": {**made, "text": text, **({"key": kind} if keyed else {})}}

        names = line.streams
        tap.sync(line.name, key_properties="id", schema=schema(line.name), **self._options())(
            self._top_partition if line.partitions else self._top
        )
        if line.partitions:
            key: Any = {"json": None, "field": "account", "function": lambda partition: f"p{partition['shard']}"}
            tap.partitions(line.name, order=line.partitions, key=key[line.partition_key])(self._partitions)
        if line.beside:
            beside = f"{line.name}_beside"
            tap.stream(beside, emitted_by=line.name, key_properties="id", schema=schema(beside))
        retries: dict[str, Any] = {"retry_sync_on": Flaky, "max_retries": 2} if line.child_retry else {}
        if line.depth:
            kids = f"{line.name}_kids"
            more: dict[str, Any] = {"replication_key": "key"} if line.child_key else {}
            more |= {"rollup": True} if line.rollup else {}
            tap.sync(kids, parent=line.name, key_properties=line.keys_of(kids), schema=schema(kids), **retries, **more)(
                self._kids
            )
        if line.depth > 1:
            grand = names[-1]
            tap.sync(
                grand,
                parent=f"{line.name}_kids",
                key_properties=line.keys_of(grand),
                schema=schema(grand),
                **retries,
            )(self._grand)

    def _options(self) -> dict[str, Any]:
        """What is declared of the first stream, beside its schema: nothing that is the default anyway."""
        line = self.line
        options: dict[str, Any] = {"bookmark_strategy": line.strategy}
        if line.strategy == "user":
            options["bookmark_strategy"] = Often(line.order == "asc")
        if line.table:
            options |= {"replication_method": "FULL_TABLE"}
            options |= {"resumable_by": "id"} if line.resumable else {}
            options |= {"versions": False} if line.versions == "off" else {}
        else:
            options |= {"replication_key": "key", "order": line.order}
        if line.late:
            options["on_unsorted"] = "end_of_sync"
        if line.resume == "exclusive":
            options["resume"] = "exclusive"
        if line.lookback:
            seconds_or_days = {"date-time": dt.timedelta(seconds=line.lookback), "date": dt.timedelta(line.lookback)}
            options["lookback"] = seconds_or_days.get(line.kind, line.lookback) if line.seed % 2 else line.lookback
        options |= {"signpost": True} if line.signpost else {}
        options |= {"workers": line.workers} if line.workers > 1 else {}
        if line.retry:
            options |= {"retry_sync_on": (Flaky, KeyError)}
            if line.retry == "setup":
                options["setup_retry"] = self._setup_partition if line.partitions else self._setup
        return options

    # ---- what the source says, as functions of a tap ----

    def _partitions(self, config: Any) -> Iterator[dict[str, Any]]:
        for part in source_of(self.line, Day.of(config).phase).parts:
            yield self.line.partition(part)

    def _top(self, stream: Any, config: Any) -> Iterator[Any]:
        return self._give(stream, Day.of(config), 0)

    def _top_partition(self, stream: Any, config: Any, partition: dict[str, Any]) -> Iterator[Any]:
        assert stream.partition == partition
        return self._give(stream, Day.of(config), partition["shard"])

    def _setup(self, error: Exception, retry: int) -> Any:
        return self._again(error, retry, 0)

    def _setup_partition(self, error: Exception, retry: int, partition: dict[str, Any]) -> Any:
        return self._again(error, retry, partition["shard"])

    def _again(self, error: Exception, retry: int, part: int) -> Any:
        """Where to go on: at the last row given. Only sorted sources know that; and None is an answer, too."""
        assert isinstance(error, Flaky)
        assert 1 <= retry <= 3
        line, last = self.line, self.seen.get(part)
        if last is None or line.table or line.position or line.late or line.order == "none" or retry == 2:
            return None
        n = last.n - (line.resume == "exclusive")
        return value(line.kind, n) if n >= 0 else None

    def _plan(self, level: str, ident: Any, day: Day, count: int) -> tuple[int | None, type[Exception]]:
        """After how many rows which error comes."""
        line = self.line
        rng = random.Random(repr((line.seed, line.name, day.run, level, ident)))
        rng.random()
        if fails(line, day.run, day.share, level, ident):
            return rng.randrange(count + 1), Broken
        retried = line.retry if level == "top" else line.child_retry
        with self.lock:
            self.tries[level, ident] += 1
            tried = self.tries[level, ident]
        if retried and tried <= rng.choice([0, 0, 1, 2]):
            return rng.randrange(count + 1), Flaky
        return None, Flaky

    def _asked(self, stream: Any, source: Source, part: int) -> list[Row]:
        """The rows that the source gives when it is asked for what is new since the bookmark."""
        line, rows = self.line, source.parts[part]
        if line.position:
            return rows[stream.state.get("next", 0) :]
        mark = stream.bookmark
        if mark is None or (line.table and not line.resumable):
            return rows
        if line.table:
            return [row for row in rows if row.data["id"] >= mark]
        since = rank(line.kind, mark)
        return [row for row in rows if (row.n > since if line.resume == "exclusive" else row.n >= since)]

    def _give(self, stream: Any, day: Day, part: int) -> Iterator[Any]:
        line = self.line
        if line.name in day.unchanged:
            stream.not_modified()
            return
        if line.versions == "block":
            with stream.full_table():
                yield from self._rows(stream, day, part)
        else:
            yield from self._rows(stream, day, part)

    def _nap(self, day: Day) -> None:
        if self.step is not None:
            self.step()
        # Chance of its own: how rows come must not depend on who waits.
        if day.nap and random.random() < 0.08:
            time.sleep(day.nap * random.random() ** 3)

    def _rows(self, stream: Any, day: Day, part: int) -> Iterator[Any]:
        line, source = self.line, source_of(self.line, day.phase)
        rows = self._asked(stream, source, part)
        rng = random.Random(repr((line.seed, line.name, day.run, part)))
        at, error = self._plan("top", part, day, len(rows))
        if line.page_first:
            yield []
        i = 0
        while i < len(rows) or i == at:
            many = 1 if rng.random() < 0.5 else rng.randint(1, 40)
            lot = rows[i : i + many if at is None or at < i else min(i + many, at)]
            if i == at:
                self._nap(day)
                raise error(f"{line.name} {part}, after {i} rows")
            if line.beside:
                yield from in_form(stream, rng, [source.beside[row.top] for row in lot], line)
            yield from in_form(stream, rng, lot, line)
            i += len(lot)
            self.seen[part] = lot[-1]
            if line.position:
                stream.state["next"] = lot[-1].place + 1
            if line.strategy == "manual" and (rng.random() < 0.3 or i == len(rows)):
                self._save(stream, rng, lot, rows[i:])
            self._nap(day)

    def _save(self, stream: Any, rng: random.Random, lot: list[Row], rest: list[Row]) -> None:
        """A manual bookmark: of sorted rows the last one, of others what all that is still to come lies behind."""
        line = self.line
        if line.table or line.position:
            stream.save_bookmark()
            return
        sorted_rows = line.order == "asc" and not line.late
        if sorted_rows and line.resume == "inclusive" and rng.random() < 0.5:
            stream.save_bookmark()
            return
        n = min((row.n for row in rest), default=None)
        if n is None:
            n = lot[-1].n if sorted_rows else max(self._most(stream), *(row.n for row in lot))
        elif line.resume == "exclusive":
            n -= 1
        if n >= 0:
            stream.save_bookmark(value(line.kind, n))

    def _most(self, stream: Any) -> int:
        return int(rank(self.line.kind, stream.bookmark)) if stream.bookmark is not None else 0

    def _kids(self, parent: dict[str, Any], stream: Any, config: Any) -> Any:
        line, day, top = self.line, Day.of(config), parent["id"]
        rows = source_of(line, day.phase).kids[top]
        if line.child_key and stream.bookmark is not None:
            since = rank(line.kind, stream.bookmark)
            rows = [row for row in rows if row.n >= since]
        return self._below(stream, day, "kids", top, rows)

    def _grand(self, parent: dict[str, Any], stream: Any, config: Any) -> Any:
        day, ident = Day.of(config), (parent["top"], parent["id"])
        return self._below(stream, day, "grand", ident, source_of(self.line, day.phase).grand[ident])

    def _below(self, stream: Any, day: Day, level: str, ident: Any, rows: list[Row]) -> Any:
        line = self.line
        rng = random.Random(repr((line.seed, line.name, day.run, level, ident)))
        at, error = self._plan(level, ident, day, len(rows))
        self._nap(day)
        if at is None and rng.random() < 0.3:
            return [native(rng, row, line) for row in rows]

        def given() -> Iterator[Any]:
            for i, row in enumerate(rows):
                if i == at:
                    raise error(f"{level} {ident}, after {i} rows")
                yield from in_form(stream, rng, [row], line)
                self._nap(day)
            if at == len(rows):
                raise error(f"{level} {ident}, after all of {at} rows")

        return given()


if __name__ == "__main__":
    from crashlines import lines_of

    tap_of(lines_of(int(os.environ["CRASH_SEED"]))).cli()
