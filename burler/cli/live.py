"""What a tail, or other long work, is doing, on a terminal: drawn by rich, anew below the log, on stderr.

Without rich nothing is drawn. Messages are never touched, and the cursor is never hidden: a process that is killed
leaves a terminal that works.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TextIO

from burler.report.text import Line, frame

if TYPE_CHECKING:
    from burler.report.stats import RunStats

logger = logging.getLogger(__name__)

_DRAW_SECONDS = 1.0
_LEAVE_SECONDS = 2.0  # a terminal that takes nothing (Ctrl-S) must not hold up the end
_PAUSE_SECONDS = 5.0  # not drawn for so long, the process has stood still, and others may have written
_SIZE = (80, 24)
_LINE_UP = "\r\x1b[2K\x1b[1A"
Lines = Callable[[int, int], list[Line]]
"""Width and height -> what to draw."""


class Above(io.TextIOBase):
    """Stands in for stderr: whole lines go above what is drawn."""

    def __init__(self, file: TextIO, display: Display) -> None:
        self.file = file
        self._display = display
        self._kept = ""
        # One lock for both: what is drawn may write here itself (a library that is imported for it, and speaks).
        self._lock = display.lock

    def write(self, text: str) -> int:
        """As any file does."""
        with self._lock:
            whole, end, self._kept = (self._kept + text).rpartition("\n")
            if end:
                self._display.above(whole)
        return len(text)

    def finish(self) -> None:
        """What was no whole line yet."""
        with self._lock:
            if self._kept:
                self._display.above(self._kept)
            self._kept = ""

    def flush(self) -> None:
        """The beginning of a line that is wanted now is a question: ``input()``, a debugger's prompt."""
        with self._lock:
            if self._kept:
                self._display.ask(self._kept)
            self._kept = ""

    def isatty(self) -> bool:
        """See io."""
        return self.file.isatty()

    def fileno(self) -> int:
        """See io."""
        return self.file.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """See io."""
        return self.file.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """See io; click goes past a file that has none."""
        return self.file.errors

    @property
    def buffer(self) -> Any:
        """Bytes go past what is drawn."""
        return self.file.buffer


class Drawing:
    """Lines below all that is written to a terminal.

    Raises:
        ImportError: there is no rich, or one that does not fit.
    """

    def __init__(self, file: TextIO) -> None:
        console, live, text = (importlib.import_module(f"rich.{name}") for name in ("console", "live", "text"))

        class Console(console.Console):  # type: ignore[misc, name-defined]
            def show_cursor(self, show: bool = True) -> bool:
                """It stays: nobody would bring it back if the process were killed."""
                return False

        self._text, self._group = text.Text, console.Group
        self._plain = no_colour()  # rich itself leaves bold and dim
        self._console = Console(file=file, highlight=False, markup=False, emoji=False)
        self._live = live.Live(
            console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self._file, self._shown = file, list[Line]()
        self._live.start()

    def draw(self, lines: list[Line], width: int, height: int) -> None:
        """These lines in the place of those before."""
        # A terminal that has become narrower has broken lines in two: rich does not know of the second halves.
        self._file.write(_LINE_UP * sum(max(len(line.text) - 1, 0) // width for line in self._shown))
        self._shown = lines
        self._console.size = (width, height)
        texts = [
            self._text(line.text, style="" if self._plain else line.style, no_wrap=True, overflow="crop")
            for line in lines
        ]
        # The last one is empty: there the cursor stands, at the beginning of a line.
        self._live.update(self._group(*texts, self._text("")), refresh=True)

    def above(self, text: str) -> None:
        """Text that stays, above the lines."""
        self._console.print(self._text(text), soft_wrap=True)

    def close(self) -> None:
        """Take the lines away."""
        self._live.stop()


class Display(threading.Thread):
    """Draws the state of a run once a second, until ``leave``. A terminal that is gone ends the drawing, not the run.

    Where the terminal is somebody else's for a while (Ctrl-Z, ``bg``), nothing is drawn; then it begins below whatever
    stands there now.
    """

    def __init__(self, lines: Lines, file: TextIO) -> None:
        super().__init__(name="burler-live", daemon=True)
        self._lines, self._file = lines, file
        self._drawing: Drawing | None = None
        self._drawn = 0.0
        self.lock = threading.RLock()
        self._over = threading.Event()
        self._broken = False
        self._asking = False

    def run(self) -> None:
        """Draw."""
        while not self._broken:
            self.draw()
            if self._over.wait(_DRAW_SECONDS):
                break
        with self.lock, contextlib.suppress(OSError, ValueError):
            if self._drawing is not None and not self._broken:
                self._drawing.close()
            self._broken = True

    def draw(self) -> None:
        """Draw once."""
        width, height = _size(self._file)
        try:
            # A line as wide as the terminal would make some of them begin another one.
            lines = self._lines(width - 1, height - 1)
            with self.lock:
                drawing = self._drawing_now() if lines and not self._asking else None
                if drawing is not None:
                    drawing.draw(lines, width, height)
        except (Exception, SystemExit):  # the terminal is gone, or rich is not what we know
            self._broken = True
            logger.debug("live table", exc_info=True)

    def _drawing_now(self) -> Drawing | None:
        now, before = time.monotonic(), self._drawn
        self._drawn = now
        if not _is_in_front(self._file):
            self._drawing = None
        elif self._drawing is None or now - before > _PAUSE_SECONDS:
            self._drawing = Drawing(self._file)
        return self._drawing

    def ask(self, text: str) -> None:
        """Text that somebody answers on the same line: nothing is drawn until another line has come."""
        with self.lock, contextlib.suppress(OSError, ValueError):
            if self._drawing is not None and not self._broken:
                self._drawing.close()
            self._drawing, self._asking = None, True
            self._file.write(text)
            self._file.flush()

    def above(self, text: str) -> None:
        """Text that stays."""
        with self.lock:
            self._asking = False
            try:
                if self._drawing is not None and not self._broken:
                    self._drawing.above(text)
                    return
            except (Exception, SystemExit):
                self._broken = True
            with contextlib.suppress(OSError, ValueError):
                self._file.write(text + "\n")
                self._file.flush()

    def leave(self) -> None:
        """Take away what is drawn."""
        self._over.set()
        self.join(_LEAVE_SECONDS)


@contextlib.contextmanager
def live(stats: RunStats, name: str, *, stdout_on_terminal: bool) -> Iterator[None]:
    """Show a tail while it goes on.

    Args:
        name: of the tap.
        stdout_on_terminal: messages come there as well; nothing is drawn between them.
    """

    def lines(width: int, height: int) -> list[Line]:
        return frame(name, stats, width=width, height=height)

    with drawn(lines, stdout_on_terminal=stdout_on_terminal):
        yield


@contextlib.contextmanager
def drawn(lines: Lines, *, stdout_on_terminal: bool) -> Iterator[bool]:
    """Draw lines while something goes on, if stderr is a terminal that shows the log at INFO, and nothing else. Gives
    whether they are drawn.

    Args:
        lines: gives them for a width and a height; called each second, in a thread of its own.
    """
    file = sys.stderr
    if stdout_on_terminal or not is_wanted(file):
        yield False
        return
    display = Display(lines, file)
    above = Above(file, display)
    with _in_place_of(file, above):
        display.start()
        try:
            yield True
        finally:
            above.finish()
            display.leave()


def is_wanted(file: TextIO | None) -> bool:
    """Whether somebody sees what is drawn."""
    return (
        is_terminal(file)
        and not os.environ.get("LOGGING_CONF_FILE")
        and os.environ.get("TERM") != "dumb"
        and logger.isEnabledFor(logging.INFO)
        and importlib.util.find_spec("rich") is not None
    )


def no_colour() -> bool:
    """Whether ``NO_COLOR`` asks for none; empty is as not set."""
    return bool(os.environ.get("NO_COLOR"))


def is_terminal(file: TextIO | None) -> bool:
    """Whether people see what is written there."""
    try:
        return file is not None and file.isatty()
    except ValueError:  # closed
        return False


def _is_in_front(file: TextIO) -> bool:
    """Whether the terminal is ours now, and not the shell's or another program's."""
    try:
        return os.tcgetpgrp(file.fileno()) == os.getpgrp()
    except OSError:  # it is not the one that we were started from
        return True


def _size(file: TextIO) -> tuple[int, int]:
    """Columns and lines of the terminal."""
    try:
        columns, lines = os.get_terminal_size(file.fileno())
    except (OSError, ValueError):
        columns, lines = 0, 0
    return columns or _SIZE[0], lines or _SIZE[1]


@contextlib.contextmanager
def _in_place_of(file: TextIO, above: Above) -> Iterator[None]:
    """All that is written to this terminal by way of Python goes to ``above``: by log handlers, what a tap prints, and
    lines for people on stdout."""
    loggers = [
        logging.root,
        *(one for one in logging.root.manager.loggerDict.values() if isinstance(one, logging.Logger)),
    ]
    handlers = {id(handler): handler for one in loggers for handler in one.handlers}.values()
    ours = [one for one in handlers if isinstance(one, logging.StreamHandler) and one.stream is file]
    held = {name: one for name in ("stdout", "stderr") if _is_on((one := getattr(sys, name)), file)}
    for handler in ours:
        handler.setStream(above)
    for name in held:
        setattr(sys, name, above)
    try:
        yield
    finally:
        for handler in ours:
            if handler.stream is above:
                handler.setStream(file)
        for name, one in held.items():
            if getattr(sys, name) is above:
                setattr(sys, name, one)


def _is_on(one: TextIO | None, file: TextIO) -> bool:
    """Whether what is written there comes onto the same terminal."""
    if one is None or one is file:
        return one is file
    try:
        return one.isatty() and os.path.samestat(os.fstat(one.fileno()), os.fstat(file.fileno()))
    except (OSError, ValueError):
        return False
