"""``burler lake read`` in a test: ``out = replay(lake, "--since", "2024-01-02", state=...)``."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from support.cli import Ended, burler


class Out:
    """What a run wrote, and how it ended."""

    def __init__(self, done: Ended) -> None:
        assert not done.stdout or done.stdout.endswith(b"\n")
        self.lines = done.stdout.split(b"\n")[:-1]
        self.messages = [json.loads(line) for line in self.lines]
        self.code, self.said, self._done = done.code, done.stderr, done

    @property
    def state(self) -> Any:
        """The last STATE, which is the last line."""
        assert self.messages[-1]["type"] == "STATE"
        return self.messages[-1]["value"]

    @property
    def ids(self) -> list[int]:
        return [one["record"]["id"] for one in self.messages if one["type"] == "RECORD"]

    @property
    def kinds(self) -> str:
        """S(CHEMA), R(ECORD), A(CTIVATE_VERSION), with the id of rows; STATEs left out."""
        return " ".join(
            f"R{one['record']['id']}" if one["type"] == "RECORD" else one["type"][0]
            for one in self.messages
            if one["type"] != "STATE"
        )

    @property
    def warnings(self) -> list[str]:
        return self._done.lines("WARNING")


def replay(lake: Any, *options: str, code: int = 0, state: Any = None, catalog: Any = None) -> Out:
    """One run, which ends with ``code``. ``lake`` has a ``store`` that can be opened by its URL."""
    with tempfile.TemporaryDirectory() as name:
        given: list[str] = []
        for option, value in (("--state", state), ("--catalog", catalog)):
            if value is not None:
                path = Path(name) / f"{option[2:]}.json"
                path.write_text(json.dumps(value))
                given += [option, str(path)]
        done = burler("lake", "read", lake.store.url, *given, *options)
    assert done.code == code, done.stderr
    return Out(done)


def discover(lake: Any, *options: str, code: int = 0) -> tuple[dict[str, Any], str]:
    """The catalog that ``--discover`` prints, and what is said besides."""
    done = burler("lake", "read", lake.store.url, "--discover", *options)
    assert done.code == code, done.stderr
    return json.loads(done.stdout or b"{}"), done.stderr
