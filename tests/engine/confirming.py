"""A run beside its state file, and who looks at it: for the tests of ``acknowledge_state_file``."""

from __future__ import annotations

import json
import queue
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import burler
from burler.testing import FakeClock, TapRun, run_tap

LATER = "\n" + json.dumps({"type": "RECORD", "stream": "a", "record": {"id": 9, "bookmarks": 1}})


def state(bookmark: Any, position: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"bookmarks": {"a": {"id": bookmark, **({"stream_state": position} if position else {})}}}


class Beside:
    """A run whose function does what a test says: which STATEs are out, what the file holds, when a page ends."""

    def __init__(self, path: Path, *, given: Any = None, failing: Any = (), **more: Any) -> None:
        self.path = path
        self.told: list[Any] = []
        self.failing = list(failing)
        self.clock = FakeClock()
        self._steps: queue.Queue[Any] = queue.Queue()
        self._done: queue.Queue[None] = queue.Queue()
        tap = burler.tap("tap-t")
        options: dict[str, Any] = {"replication_key": "id", "bookmark_strategy": "manual"}
        tap.sync("a", schema={"properties": {"id": {}}}, **options)(self._rows)
        tap.acknowledge("a")(self._acknowledge)
        config = {"acknowledge_state_file": str(path), "page_max_rows": 1, **more}
        self._pool = ThreadPoolExecutor(1)
        self._run = self._pool.submit(run_tap, tap, config, state=given, clock=self.clock)
        self._done.get(timeout=20)

    def _rows(self, stream: burler.StreamRun) -> Any:
        self._done.put(None)
        while (step := self._steps.get(timeout=60)) is not None:
            if step == "page":
                yield [{"id": 0}]
            else:
                bookmark, position = step
                if position is not None:
                    stream.state.update(position)
                stream.save_bookmark(bookmark)
            self._done.put(None)

    def _acknowledge(self, bookmark: Any, state: dict[str, Any]) -> None:
        if self.failing and self.failing.pop(0):
            raise ConnectionError("gone")
        self.told.append((bookmark, dict(state)) if state else bookmark)
        state["written"] = "into what is its own"

    def _do(self, step: Any) -> None:
        self._steps.put(step)
        self._done.get(timeout=20)

    def say(self, *bookmarks: Any) -> None:
        for one in bookmarks:
            self._do(one if isinstance(one, tuple) else (one, None))

    def page(self, seconds: float = 10) -> list[Any]:
        """A page ends some time later. Gives all that was told so far."""
        self.clock.advance(seconds)
        self._do("page")
        return self.told

    def confirm(self, value: Any, seconds: float = 10) -> list[Any]:
        """The file says this; a page ends some time later."""
        self.path.write_text(value if isinstance(value, str) else json.dumps(state(value)))
        return self.page(seconds)

    def end(self) -> TapRun:
        """The run comes to its end."""
        self._steps.put(None)
        run = self._run.result(20)
        self._pool.shutdown()
        return run


def message(number: int) -> str:
    return json.dumps({"type": "STATE", "value": state(number)}) + "\n"


class Looking(Beside):
    """A run that has written the states 0 to 99, each of which the file may confirm once."""

    def __init__(self, path: Path, *, touched: bool = False) -> None:
        super().__init__(path, **({"state_scope": "touched"} if touched else {}))
        self.say(*range(100))

    def write(self, text: str | bytes) -> None:
        self.path.write_bytes(text.encode() if isinstance(text, str) else text)

    def add(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)

    def look(self) -> Any:
        """What the source is told once the file has been looked at; None if that is nothing new."""
        before = len(self.told)
        told = self.page()
        assert len(told) <= before + 1
        return told[-1] if len(told) > before else None
