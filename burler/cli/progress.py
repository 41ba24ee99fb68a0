"""How far long work has come: a line on a terminal, drawn anew each second; elsewhere a line in the log now and then.

What tells it is asked, not called: work counts as it does anyway, and a thread looks on. Work of less than a second
shows nothing. ``BURLER_LOG_LEVEL=WARNING`` silences it; stdout is never touched.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator

from burler.cli.live import drawn
from burler.runtime.report import Report
from burler.runtime.report_frame import Line

logger = logging.getLogger("burler")

_FIRST_SECONDS = 1.0
LOG_SECONDS = 30.0
"""How often a line comes where nothing can be drawn."""
_LEAVE_SECONDS = 2.0

Said = Callable[[], str]
"""One line on how far the work is; "" while there is nothing to say."""


class Counter:
    """Counts bytes on their way: stands in for a function that writes them.

    ``count``: bytes that were written.
    """

    def __init__(self, write: Callable[[bytes | bytearray | memoryview], object]) -> None:
        self._write = write
        self.count = 0

    def __call__(self, data: bytes | bytearray | memoryview) -> None:
        """Write, and count."""
        self._write(data)
        self.count += len(data)


@contextlib.contextmanager
def progress(said: Said, *, stdout_on_terminal: bool = False, log_seconds: float = LOG_SECONDS) -> Iterator[None]:
    """Show how far something is while this is entered.

    Args:
        said: asked from another thread; an error in it ends the showing, never the work.
        stdout_on_terminal: output comes there meanwhile; nothing is drawn between it.
    """
    begun = time.monotonic()

    def lines(width: int, _height: int) -> list[Line]:
        seconds = time.monotonic() - begun
        text = said() if seconds >= _FIRST_SECONDS else ""
        return [Line(f"{text}, {_time(seconds)}"[:width])] if text else []

    with drawn(lines, stdout_on_terminal=stdout_on_terminal) as shown:
        if shown or not logger.isEnabledFor(logging.INFO):
            yield
            return
        over = threading.Event()
        thread = threading.Thread(
            target=_log, args=(said, begun, over, log_seconds), name="burler-progress", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(_LEAVE_SECONDS)


def _log(said: Said, begun: float, over: threading.Event, every_seconds: float) -> None:
    while not over.wait(every_seconds):
        try:
            text = said()
        except Exception:
            logger.debug("progress", exc_info=True)
            return
        if text:
            logger.info("%s, %s", text, _time(time.monotonic() - begun))


def of_run(report: Report) -> Said:
    """How far a run is: the streams that are read now, with their rows and the bookmark, and rows in all."""

    def said() -> str:
        streams = report.under_way()
        if not streams:
            return ""
        shown = [
            f"{one.name}: {one.rows:,} rows" + (f", at {str(one.bookmark_to)[:40]}" if one.bookmark_to else "")
            for one in streams[-2:]
        ]
        left = len(streams) - len(shown)
        more = f" and {left} more stream{'s' if left > 1 else ''}" if left else ""
        return "; ".join(shown) + more

    return said


def files(what: str) -> tuple[Callable[[int, int], None], Said]:
    """For work on files: what it tells (done, of how many), and what is said of it: ``checked 12 of 480 files``."""
    seen = [0, 0]

    def told(done: int, of: int) -> None:
        seen[:] = [done, of]

    return told, lambda: f"{what} {seen[0]:,} of {seen[1]:,} files" if seen[1] else ""


def size(count: int) -> str:
    """Bytes as people say them: ``12.3 MB``."""
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def _time(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole} s" if whole < 100 else f"{whole // 60} min {whole % 60:02} s"
