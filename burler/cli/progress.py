"""How far long work has come: a line on a terminal, drawn anew each second; elsewhere a line in the log now and then.

What tells it is asked, not called: work counts as it does anyway, and a thread looks on. Work of less than a second
shows nothing. ``BURLER_LOG_LEVEL=WARNING`` silences it; messages on stdout are never touched.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from burler import logs
from burler.cli.live import drawn, is_terminal
from burler.report.text import Line
from burler.words import counted, long_time

if TYPE_CHECKING:
    from burler.report.stats import RunStats

logger = logging.getLogger(__name__)

_FIRST_SECONDS = 1.0
LOG_SECONDS = 30.0
"""How often a line comes in a log."""
_SPACES = {ord("\n"): " ", ord("\t"): " "}
_TERMINAL_SECONDS = 5.0  # somebody waits, and nothing can be drawn
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
def progress(said: Said, *, stdout_on_terminal: bool = False, log_seconds: float | None = None) -> Iterator[bool]:
    """Show how far something is while this is entered; gives whether it is drawn on a terminal.

    Args:
        said: asked from another thread; an error in it ends the showing, never the work.
        stdout_on_terminal: messages come there meanwhile; nothing is drawn between them. Lines that are printed for
            people by way of ``sys.stdout`` are no reason: they go above what is drawn.
        log_seconds: between two lines where nothing is drawn; by default 5 on a terminal, 30 elsewhere.
    """
    begun = time.monotonic()

    def lines(width: int, _height: int) -> list[Line]:
        seconds = time.monotonic() - begun
        text = _line(said()) if seconds >= _FIRST_SECONDS else ""
        return [Line(f"{text}, {_time(seconds)}"[:width])] if text else []

    with drawn(lines, stdout_on_terminal=stdout_on_terminal) as shown:
        if shown or not logger.isEnabledFor(logging.INFO):
            yield shown
            return
        seconds = log_seconds or (_TERMINAL_SECONDS if is_terminal(sys.stderr) else LOG_SECONDS)
        over = threading.Event()
        thread = threading.Thread(target=_log, args=(said, begun, over, seconds), name="burler-progress", daemon=True)
        thread.start()
        try:
            yield False
        finally:
            over.set()
            thread.join(_LEAVE_SECONDS)


def _log(said: Said, begun: float, over: threading.Event, every_seconds: float) -> None:
    while not over.wait(every_seconds):
        try:
            text = _line(said())
        except Exception:
            logger.debug("progress", exc_info=True)
            return
        if text:
            logger.info("%s, %s", text, _time(time.monotonic() - begun))


def _line(text: str) -> str:
    """One line: names and values of others may have ends of lines and codes of terminals in them."""
    return logs.harmless(text).translate(_SPACES)


def of_run(stats: RunStats) -> Said:
    """How far a run is: the streams that are read now, with their rows and the bookmark, and rows in all."""

    def said() -> str:
        streams = [one for one in stats.known if one.begun and not one.over]
        if not streams:
            return ""
        shown = [
            f"{one.name}: {counted(one.rows, 'row')}" + (f", at {str(one.bookmark)[:40]}" if one.bookmark else "")
            for one in streams[-2:]
        ]
        left = len(streams) - len(shown)
        more = f" and {counted(left, 'more stream')}" if left else ""
        return "; ".join(shown) + more

    return said


def of_all(done: str, what: str) -> tuple[Callable[[int, int], None], Said]:
    """For work that knows its parts: what it tells (how many are done, of how many), and what is said of it:
    ``checked 12 of 480 files``."""
    seen = [0, 0]

    def told(ended: int, of: int) -> None:
        seen[:] = [ended, of]

    return told, lambda: f"{done} {seen[0]:,} of {seen[1]:,} {what}" if seen[1] else ""


def _time(seconds: float) -> str:
    return f"{int(seconds)} s" if seconds < 60 else long_time(seconds)
