"""A lake in a temporary folder, a clock that the test turns, and short names for what tests do all the time."""

from __future__ import annotations

import datetime as dt
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the helpers beside these tests, by name
sys.path.insert(1, str(Path(__file__).parent.parent / "storage"))  # and those of others
sys.path.insert(2, str(Path(__file__).parent.parent / "batch"))

from burler.lake import LakeWriter, RollSettings, Snapshot, Store, load, open_store, read_lines
from burler.singer.messages import Records, Schema, State, record_prefix_suffix
from support.internals import clocks
from support.objects import s3_endpoint, s3_server

__all__ = ["s3_endpoint", "s3_server"]

WRITER_KEYWORDS = ("writer_id", "compression", "encoding", "locks", "tail", "should_stop", "clock")

NOON = dt.datetime(2024, 1, 2, 12, 0, 0, tzinfo=dt.UTC)


@dataclass
class HandClock(clocks.Clock):
    """Time that stands still until the test moves it."""

    moment: dt.datetime = NOON
    seconds: float = 1000.0

    def now(self) -> dt.datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.seconds

    def forward(self, seconds: float) -> None:
        self.seconds += seconds
        self.moment += dt.timedelta(seconds=seconds)

    def sleep(self, seconds: float) -> None:
        self.forward(seconds)

    def uniform(self, low: float, high: float) -> float:
        return high


@dataclass
class Lake:
    """One lake and one tap in it."""

    path: Path
    store: Store
    clock: HandClock
    tap_id: str = "tap-x"
    states: list[Any] = field(default_factory=list)

    def writer(self, **settings: Any) -> LakeWriter:
        keywords = {key: settings.pop(key) for key in WRITER_KEYWORDS if key in settings}
        roll = RollSettings(**settings) if settings else None
        return LakeWriter(
            self.store,
            self.tap_id,
            emit_state=lambda state: self.states.append(state.value),
            settings=roll,
            **{"clock": self.clock, **keywords},
        )

    def impatient(self) -> HandClock:
        """The clock of a writer for which time flies: it waits for a lock without taking time."""
        return HandClock()

    def schema(self, stream: str = "users", **fields: Any) -> Schema:
        properties = {"id": {"type": "integer"}, **fields}
        return Schema(stream, {"type": "object", "properties": properties}, ("id",))

    def page(self, stream: str, *rows: Any, at: dt.datetime = NOON, version: int | None = None) -> Records:
        """A page of rows; an int is short for a row with that id."""
        prefix, suffix = record_prefix_suffix(stream, at, version)
        dicts = [{"id": row} if isinstance(row, int) else row for row in rows]
        lines = b"".join(prefix + json.dumps(row, separators=(",", ":")).encode() + suffix for row in dicts)
        return Records(stream, lines, len(dicts), at, version)

    def state(self, value: Any) -> State:
        return State({"at": value})

    def load(self, stream: str = "users") -> Snapshot:
        return load(self.store, self.tap_id, stream)

    def messages(self, stream: str = "users") -> list[dict[str, Any]]:
        """Every message that a reader of the manifest sees, SCHEMA lines included."""
        return [json.loads(line) for file in self.load(stream).files for line in read_lines(self.store, file.path)]

    def ids(self, stream: str = "users") -> list[int]:
        return [message["record"]["id"] for message in self.messages(stream) if message["type"] == "RECORD"]

    def files(self, pattern: str = "**/*.singer*") -> list[Path]:
        return sorted(path for path in self.path.glob(pattern) if not path.name.startswith("."))

    def hidden(self) -> list[str]:
        """Temporary files left behind."""
        return [path.name for path in self.path.rglob(".tmp-*")]

    def manifest_path(self, stream: str = "users") -> Path:
        return self.path / "raw" / self.tap_id / stream / "manifest.json"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    path = tmp_path / "lake"
    return Lake(path, open_store(str(path)), HandClock())
