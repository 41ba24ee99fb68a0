"""How the state of a tail gets onto a terminal: a table in colour with rich, one line without it."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
from typing import Protocol, TextIO

from burler.report.frame import Line

logger = logging.getLogger(__name__)

_LINE_UP = "\r\x1b[2K\x1b[1A"


def no_colour() -> bool:
    """Whether ``NO_COLOR`` asks for none; empty is as not set."""
    return bool(os.environ.get("NO_COLOR"))


class Painter(Protocol):
    """Draws lines where the cursor is, and takes them away again."""

    def draw(self, lines: list[Line], width: int, height: int) -> None:
        """These lines in the place of those before."""

    def above(self, text: str) -> None:
        """Text that stays, above the lines."""

    def close(self) -> None:
        """Take the lines away."""


class OneLine:
    """One line that is written over. The cursor stands at its beginning, so that whatever else writes to the terminal
    writes over it, too."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._shown = ""

    def draw(self, lines: list[Line], width: int, height: int) -> None:
        """See Painter."""
        text = lines[0].text
        self._write(f"\r{text.ljust(min(len(self._shown), width))}\r")
        self._shown = text

    def above(self, text: str) -> None:
        """See Painter."""
        self._write(f"\r{' ' * len(self._shown)}\r{text}\n{self._shown}\r")

    def close(self) -> None:
        """See Painter."""
        self._write(f"\r{' ' * len(self._shown)}\r")

    def _write(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()


class RichTable:
    """A table in colour, drawn by rich.

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
        """See Painter."""
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
        """See Painter."""
        self._console.print(self._text(text), soft_wrap=True)

    def close(self) -> None:
        """See Painter."""
        self._live.stop()


def painter_for(file: TextIO) -> Painter:
    """A table where there is rich, else one line."""
    if importlib.util.find_spec("rich") is not None:
        try:
            return RichTable(file)
        except Exception:  # one that does not work, or is none
            logger.debug("rich", exc_info=True)
    return OneLine(file)
