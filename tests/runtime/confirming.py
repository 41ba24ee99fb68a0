"""A state file, a clock, and who looks at it: for the tests of ``acknowledge_state_file``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from burler.testing import FakeClock
from support.internals import confirmed

LATER = "\n" + json.dumps({"type": "RECORD", "stream": "a", "record": {"id": 9, "bookmarks": 1}})


def state(number: int, **more: Any) -> dict[str, Any]:
    return {"bookmarks": {"a": {"id": number}}, **more}


def message(number: int) -> str:
    return json.dumps({"type": "STATE", "value": state(number)}) + "\n"


class Looking:
    """A file, a clock, and who looks at it."""

    def __init__(self, path: Path, *, merge: bool = False) -> None:
        self.path = path
        self.clock = FakeClock()
        self.confirmed = confirmed.Confirmed(str(path), merge=merge, clock=self.clock)

    def write(self, text: str | bytes) -> None:
        self.path.write_bytes(text.encode() if isinstance(text, str) else text)

    def add(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)

    def replace(self, text: str) -> None:
        beside = self.path.with_suffix(".new")
        beside.write_text(text)
        beside.rename(self.path)

    def look(self) -> Any:
        self.clock.advance(10)
        assert self.confirmed.is_due
        return self.confirmed.look()
