"""Runs by the command with ``--report``, for the tests of the report."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import burler
from support.cli import Ended
from support.taps import command

ANY: dict[str, Any] = {"properties": {"id": {}}}


class Streams:
    """A tap whose streams save given bookmarks, one a page; and the runs of it."""

    def __init__(self, name: str = "tap-crm") -> None:
        self.tap = burler.tap(name)
        self.state: dict[str, Any] = {}

    def add(
        self, name: str, bookmarks: Sequence[Any] = (None,), *, rows: int = 1, error: BaseException | None = None
    ) -> None:
        """A stream that begins at the first bookmark."""
        if bookmarks[0] is not None:
            self.state[name] = {"id": bookmarks[0]}

        @self.tap.sync(name, replication_key="id", bookmark_strategy="manual", schema=ANY)
        def pages(stream: Any) -> Any:
            for value in bookmarks[1:]:
                stream.save_bookmark(value)
                yield [{"id": value} for _ in range(rows)]
            if error is not None:
                raise error

    def failing(self, name: str, errors: dict[str, BaseException]) -> None:
        """A stream of whose partitions each fails."""
        self.tap.partitions(name, key="part")(lambda: [{"part": part} for part in errors])

        @self.tap.sync(name, schema=ANY)
        def rows(partition: dict[str, Any]) -> Any:
            yield {"id": 1}
            raise errors[partition["part"]]

    def run(self, *args: str, form: str = "json", **config: Any) -> tuple[Ended, str]:
        """``burler run --report FILE``: how it ended, and the file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"report.{form}"
            given: list[Any] = ["--report", path, *args]
            if self.state:
                (Path(folder) / "state.json").write_text(json.dumps({"bookmarks": self.state}))
                given += ["--state", Path(folder) / "state.json"]
            if config:
                (Path(folder) / "config.json").write_text(json.dumps(config))
                given += ["--config", Path(folder) / "config.json"]
            return command(self.tap, "run", *given), path.read_text(encoding="utf-8")

    def report(self, *args: str, **config: Any) -> dict[str, Any]:
        """The report as JSON."""
        found: dict[str, Any] = json.loads(self.run(*args, **config)[1])
        return found

    def page(self, *args: str, **config: Any) -> str:
        """The report as a page."""
        return self.run(*args, form="html", **config)[1]

    def table(self, *args: str, **config: Any) -> list[str]:
        """The summary, line by line."""
        return [line.removeprefix("| ") for line in self.run(*args, **config)[0].lines("INFO") if line[:2] == "| "]


def streams_of(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["stream"]: one for one in report["streams"]}
