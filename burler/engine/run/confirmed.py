"""What the state file says that whoever runs the tap writes: only that much is with the target (docs/tail.md).

The model is tap-postgres, which reads the orchestrator's state anew every 10 seconds and flushes its slot no further.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import BinaryIO

import msgspec

from burler.clock import Clock
from burler.errors import StateError
from burler.settings import Settings
from burler.singer.state import State, check_state, merge_into, parse_state

logger = logging.getLogger(__name__)

EVERY_SECONDS = 10.0
_PATIENCE = 3  # looks at a file that is empty or half written, before that is worth a word
_BLOCK_BYTES = 64 * 1024
_MOST_BYTES = 16 * 1024 * 1024  # of a line, of a state that is spread over several
_MARK_BYTES = 16 * 1024
_NOTHING_IS = "Nothing is acknowledged until it holds a state"


def read_state_file(content: bytes, *, source: str, merge: bool = False) -> State:
    """A state from a file's bytes, as ``singer.state.parse_state`` reads it; a state of a tap, or empty.

    Raises:
        StateError: none; an object that is no state of a tap.
    """
    state = parse_state(content, source=source, merge=merge)
    if state and not {"bookmarks", "currently_syncing"} & set(state):
        cure = (
            "What stands below its 'singer_state' is the state of a tap (meltano state get): jq .singer_state FILE"
            if "singer_state" in state
            else "Is it the right file? Leave --state out to start from the beginning."
        )
        raise StateError(f"{source} holds neither 'bookmarks' nor 'currently_syncing'. {cure}")
    return state


class Confirmed:
    """A state file that somebody else writes, looked at now and then: a state, a STATE message, or lines of either, of
    which the last whole one counts. Whatever is wrong with it, the run goes on: one WARNING, until it is good again.

    Args:
        merge: the lines carry only what has changed (``state_scope: touched``); all of them count.
        every_seconds: it is looked at no more often than this.
    """

    def __init__(
        self, path: str, *, merge: bool = False, every_seconds: float = EVERY_SECONDS, clock: Clock | None = None
    ) -> None:
        self.path = path
        self._full_path = Path.cwd() / path  # user code may go to another folder
        self._merge = merge
        self._every = every_seconds
        self._clock = clock or Clock()
        self._next = self._clock.monotonic()
        self._stamp: tuple[int, ...] = ()
        self._bad_looks = 0
        self._warned = False
        self._said = ""
        self._merged: State | None = None  # of the lines before ``_at``, the last of which is the mark
        self._at, self._mark = 0, b""

    @classmethod
    def of(cls, settings: Settings, clock: Clock) -> Confirmed | None:
        """The file that the settings name; None if they name none."""
        path = settings.acknowledge_state_file
        return None if path is None else cls(path, merge=settings.state_scope == "touched", clock=clock)

    @property
    def is_due(self) -> bool:
        """Whether it is time for another look."""
        return self._clock.monotonic() >= self._next

    def look(self) -> State | None:
        """What the file says; None if it says nothing new, or can't be read."""
        self._next = self._clock.monotonic() + self._every
        try:
            state = self._new()
        except FileNotFoundError:
            self._wrong("is not there", patience=1)
        except OSError as error:
            self._wrong(f"can't be read: {error.strerror}", patience=1)
        except (StateError, RecursionError) as error:
            fact = "is nested too deep" if isinstance(error, RecursionError) else str(error)
            self._wrong(fact.removeprefix("state file").lstrip(" :").split(". ", 1)[0].rstrip("."), patience=_PATIENCE)
        except ValueError:
            self._wrong("is no name of a file", patience=1)
        else:
            if state is not None:
                self._right()
            elif self._said:  # as it was, and it was no good
                self._wrong(self._said, patience=_PATIENCE)
            return state
        return None

    def _new(self) -> State | None:
        """The state, where the file has changed since it was read."""
        known, self._stamp = self._stamp, ()
        with open(self._full_path, "rb", buffering=0, opener=_not_blocking) as file:
            there = os.fstat(file.fileno())
            if not stat.S_ISREG(there.st_mode):
                raise OSError(0, "it is no plain file")
            self._stamp = (there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns)
            if self._stamp == known:
                return None
            if there.st_size == 0:
                raise StateError("is empty")
            found = self._merged_lines(file) if self._merge else _last_state(file, there.st_size)
            if found is not None:
                return check_state(found, source="state file")
            if there.st_size > _MOST_BYTES:
                raise StateError("holds no line with a state")
            file.seek(0)
            return read_state_file(file.read(_MOST_BYTES), source="state file", merge=self._merge)

    def _merged_lines(self, file: BinaryIO) -> State | None:
        """What all lines say together. Of a file that only grows, what is new is read."""
        file.seek(max(0, self._at - len(self._mark)))
        if file.read(len(self._mark)) != self._mark:
            self._merged, self._at, self._mark = None, 0, b""
            file.seek(0)
        whole, end, rest = file.read().rpartition(b"\n")
        for line in whole.split(b"\n"):
            if (state := _state_in(line)) is not None:
                self._merged = {} if self._merged is None else self._merged
                merge_into(self._merged, check_state(state, source="state file"))
        self._at += len(whole) + len(end)
        self._mark = (self._mark + whole + end)[-_MARK_BYTES:]
        last = _state_in(rest)  # a line without its end counts if it is whole, and is read once more
        if last is None:
            return self._merged
        found = check_state(self._merged, source="state file")
        merge_into(found, check_state(last, source="state file"))
        return found

    def _wrong(self, fact: str, *, patience: int) -> None:
        self._said = fact
        self._bad_looks += 1
        if self._bad_looks >= patience and not self._warned:
            self._warned = True
            logger.warning("acknowledge_state_file %s: %s. %s", self.path, fact, _NOTHING_IS)

    def _right(self) -> None:
        self._said, self._bad_looks = "", 0
        if self._warned:
            self._warned = False
            logger.info("acknowledge_state_file %s: holds a state now", self.path)


def _not_blocking(path: str, flags: int) -> int:
    """What stands there now may be a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _last_state(file: BinaryIO, size: int) -> State | None:
    """The state of the last whole line that holds one, read from the end; None: no line does."""
    length = _BLOCK_BYTES
    while True:
        begin = max(0, size - length)
        file.seek(begin)
        lines = file.read(size - begin).split(b"\n")
        for line in reversed(lines if begin == 0 else lines[1:]):
            if (state := _state_in(line)) is not None:
                return state
        if begin == 0 or length >= _MOST_BYTES:
            return None
        length *= 4


def _state_in(line: bytes) -> State | None:
    """The state that a line holds; None if it is none: another message, a torn line, one of the lines of a state that
    is spread over several."""
    line = line.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not line.startswith(b"{"):
        return None
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if "type" in value and "bookmarks" not in value:
        value = value.get("value") if str(value["type"]).upper() == "STATE" else None
        return value if isinstance(value, dict) else None
    return value if "bookmarks" in value or "currently_syncing" in value else None
