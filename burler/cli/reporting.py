"""The end of a run as its user sees it: the summary on stderr, the report's file, the exit code."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from burler import logs
from burler.cli import common, process
from burler.errors import UsageError
from burler.localfile import replace_file
from burler.report.report import document
from burler.report.stats import RunStats
from burler.report.text import Line, summary

if TYPE_CHECKING:
    from burler.engine.run.sync import SyncResult
    from burler.settings import Settings

logger = logging.getLogger(__name__)

_WIDTH = 120  # of the summary, where stderr is no terminal
_MARK = "| "  # before each of its lines in a log: none may look like a METRIC line, whatever a stream is called


class Ending:
    """What is to be done when a run ends, however it ends.

    Args:
        path: ``--report``, or None.
        limit, schemas_only: what the run is limited to; the report says so.

    Raises:
        UsageError: the file could not be written later on.
    """

    def __init__(self, path: str | None, *, limit: int | None = None, schemas_only: bool = False) -> None:
        self._path = path
        self._target = common.replaceable("--report", path, UsageError) if path is not None else None
        # Without a file nobody sees how a stream went on over time.
        self.stats = RunStats() if path is not None else RunStats(points=0)
        self.stats.limit, self.stats.schemas_only = limit, schemas_only
        self.code = 0
        # Asked now: while it runs, file descriptor 1 is stderr's.
        self.stdout_on_terminal = process.stdout_on_terminal()

    @contextlib.contextmanager
    def showing(self, settings: Settings, *, tap_id: str) -> Iterator[None]:
        """While a run goes on, show how: a tail on a terminal and for Prometheus, and how far any other run is.

        Args:
            tap_id: the name that a tail goes by.

        Raises:
            UsageError: the numbers can't be offered as the settings say.
        """
        from burler.cli.exposing import exposing
        from burler.cli.live import live
        from burler.cli.progress import of_run, progress

        stats, on_terminal = self.stats, self.stdout_on_terminal
        if settings.tail:
            with exposing(stats, settings, tap_id=tap_id), live(stats, tap_id, stdout_on_terminal=on_terminal):
                yield
        else:
            with progress(of_run(stats), stdout_on_terminal=on_terminal):
                yield

    @contextlib.contextmanager
    def watching(self) -> Iterator[RunStats]:
        """While the run is under way: an error that ends it is in the report, which is written all the same."""
        try:
            yield self.stats
        except BaseException as error:
            self.stats.end("failed", process.code_of(error), error)
            self._show()
            self._write()
            raise

    def of(self, result: SyncResult) -> int:
        """The end of a run that came to its end; the exit code."""
        status = "failed" if result.errors else "stopped" if result.stopped_by is not None else "succeeded"
        self.stats.end(status, result.exit_code)
        self._show()
        code = process.report_errors(result)
        return code if self._write() else code or 1

    def _show(self) -> None:
        """The summary, for whoever reads the log at INFO; on a terminal the table alone, as time and level would take
        its room; in colour, where rich is there."""
        if not self.stats.streams or not logger.isEnabledFor(logging.INFO):
            return
        report = document(self.stats, series=False)
        if not sys.stderr.isatty() or os.environ.get("LOGGING_CONF_FILE"):
            for line in summary(report, _WIDTH):
                logger.info("%s%s", _MARK, line.text)
            return
        lines = summary(report, _terminal_width())
        if importlib.util.find_spec("rich") is not None:
            try:
                _show_with_rich(lines)
            except Exception:  # one that does not work, or is none: the rows are out all the same
                logger.debug("rich", exc_info=True)
            else:
                return
        for line in lines:
            click.echo(line.text, err=True)

    def _write(self) -> bool:
        """The file; whether it is there. What goes wrong is one line in the log: the rows are out all the same."""
        if self._target is None:
            return True
        try:
            replace_file(self._target, content(document(self.stats), self._target))
        except Exception as error:
            reason = error.strerror if isinstance(error, OSError) else logs.short(error)
            logger.debug("traceback", exc_info=True)
            logger.critical("--report %s can't be written: %s.", self._path, reason)
            return False
        return True


def _terminal_width() -> int:
    """Columns for a line. stdout's width says nothing: it is a pipe."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        columns = 0
    return columns if columns > 0 else _WIDTH


def content(report: dict[str, Any], path: Path) -> bytes:
    """What goes into a file: a page where its name ends with ``.html`` or ``.htm``, else JSON."""
    if path.suffix.lower() in (".html", ".htm"):
        from burler.report.page import page

        return page(report).encode()
    return json_of(report)


def json_of(report: dict[str, Any]) -> bytes:
    """The report as JSON that a person can read: indented, the series of each stream on one line."""
    import msgspec

    series = [b"    " + msgspec.json.encode(one) for one in report.pop("series")]
    lines = b"\n" + b",\n".join(series) + b"\n  " if series else b""
    head = process.pretty(report).removesuffix(b"\n}\n")
    return head + b',\n  "series": [' + lines + b"]\n}\n"


def _show_with_rich(lines: list[Line]) -> None:
    """The lines of the summary in colour."""
    console = importlib.import_module("rich.console").Console(stderr=True, highlight=False, soft_wrap=True)
    text = importlib.import_module("rich.text").Text
    for line in lines:
        console.print(text(line.text, style=line.style))
