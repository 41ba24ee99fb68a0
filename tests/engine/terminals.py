"""Real terminals (pty) for tests, and what a person would see on them."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import termios
import threading
import time
from collections.abc import Callable
from typing import TextIO

_CODE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")


class Screen:
    """As much of a terminal as programs use that draw below their log: a cursor, lines that wrap, what scrolls away."""

    def __init__(self, columns: int, lines: int) -> None:
        self.columns, self.height = columns, lines
        self.lines: list[str] = [""]
        self.x = self.y = 0
        self.cursor_shown = True

    @property
    def top(self) -> int:
        """The first line that has not scrolled away."""
        return max(len(self.lines) - self.height, 0)

    def feed(self, text: str) -> None:
        """Take what a program wrote."""
        at = 0
        while at < len(text):
            if found := _CODE.match(text, at):
                self._code(*found.groups())
                at = found.end()
                continue
            self._char(text[at])
            at += 1

    def _char(self, char: str) -> None:
        if char == "\r":
            self.x = 0
        elif char == "\n":
            self._down()
        elif char.isprintable():
            if self.x == self.columns:
                self.x = 0
                self._down()
            line = self.lines[self.y].ljust(self.x)
            self.lines[self.y] = line[: self.x] + char + line[self.x + 1 :]
            self.x += 1
        else:
            raise AssertionError(f"{char!r} on a terminal")

    def _down(self) -> None:
        self.y += 1
        if self.y == len(self.lines):
            self.lines.append("")

    def _code(self, number: str, letter: str) -> None:
        if letter == "A":
            self.y = max(self.y - int(number or 1), self.top)
        elif letter == "K":
            assert number == "2"
            self.lines[self.y] = ""
        elif letter in "hl":
            self.cursor_shown = letter == "h" if number == "?25" else self.cursor_shown
        else:
            assert letter == "m", letter

    @property
    def text(self) -> list[str]:
        """All lines, without the empty ones at the end."""
        shown = [line.rstrip() for line in self.lines]
        while shown and not shown[-1]:
            shown.pop()
        return shown


class Terminal:
    """A terminal that somebody looks at."""

    def __init__(self, columns: int = 100, lines: int = 24, *, looking: bool = True) -> None:
        self.ours, self.theirs = pty.openpty()
        self.size = columns, lines
        self.resize(columns, lines)
        self.file: TextIO = open(os.dup(self.theirs), "w", encoding="utf-8")  # noqa: SIM115  closed by the test
        self.raw = bytearray()
        self._away = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        if looking:
            self._reader.start()

    def resize(self, columns: int, lines: int) -> None:
        """Make the window another size."""
        termios.tcsetwinsize(self.theirs, (lines, columns))

    def look(self) -> None:
        """Begin to read what is written."""
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # nobody writes any more
            while not self._away.is_set():
                if select.select([self.ours], [], [], 0.02)[0]:
                    self.raw.extend(os.read(self.ours, 65536))

    def go_away(self) -> None:
        """As when its window is closed."""
        self._away.set()
        if self._reader.ident is not None:
            self._reader.join(20)  # another file may get the number of a descriptor that it still reads from
        os.close(self.theirs)
        os.close(self.ours)

    @property
    def screen(self) -> Screen:
        """What stands there now."""
        made = Screen(*self.size)
        whole = re.sub(rb"\x1b(\[[?0-9;]*)?$", b"", bytes(self.raw))  # half a code: the rest is on its way
        made.feed(whole.decode(errors="ignore"))
        return made

    def wait(self, seen: Callable[[list[str]], bool], seconds: float = 20) -> list[str]:
        """The lines, once they are as wanted."""
        limit = time.monotonic() + seconds
        while not seen(shown := self.screen.text):
            assert time.monotonic() < limit, shown
            time.sleep(0.01)
        return shown

    def over(self) -> list[str]:
        """The lines once all is written; whoever wrote has ended."""
        with contextlib.suppress(OSError, ValueError):
            self.file.close()
        os.close(self.theirs)
        self._reader.join(20)
        self.theirs = os.dup(self.ours)  # something to close
        return self.screen.text

    def close(self) -> None:
        """Let go of it."""
        with contextlib.suppress(OSError, ValueError):
            self.file.close()
        if not self._away.is_set():
            self.go_away()
