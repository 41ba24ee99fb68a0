"""What the state file says that whoever runs the tap writes: only that much is with the target (docs/tail.md).

The model is tap-postgres, which reads the orchestrator's state anew every 10 seconds and flushes its slot no further.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec

from burler.clock import Clock
from burler.errors import StateError
from burler.runtime.confirmed_lines import StateLines
from burler.settings import Settings
from burler.singer.state import State, check_state, parse_state

logger = logging.getLogger(__name__)

EVERY_SECONDS = 10.0
_PATIENCE = 3  # looks at a file that is empty or half written, before that is worth a word
_TRIES = 3
_LINES_BYTES = 1024 * 1024  # a bigger file whose first line is whole JSON is taken for lines alone
_MOST_WHOLE_BYTES = 16 * 1024 * 1024  # of a state that is spread over several lines
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
    """A state file that somebody else writes, looked at now and then. Whatever is wrong with it, the run goes on: one
    WARNING, until it is good again.

    Args:
        path: the file: a state, a STATE message, or lines of either, of which the last complete one counts.
        read: a state from the file's whole content; raises StateError. For files that are no lines.
        merge: the lines carry only what has changed (``state_scope: touched``); all of them count.
        every_seconds: it is looked at no more often than this.
    """

    def __init__(
        self,
        path: str,
        *,
        read: Callable[[bytes], State] | None = None,
        merge: bool = False,
        every_seconds: float = EVERY_SECONDS,
        clock: Clock | None = None,
    ) -> None:
        self.path = path
        self._full_path = Path.cwd() / path  # user code may go to another folder
        self._read_whole = read or (lambda content: read_state_file(content, source="state file", merge=merge))
        self._lines = StateLines(merge=merge)
        self._every = every_seconds
        self._clock = clock or Clock()
        self._next = self._clock.monotonic()
        self._stamp: tuple[int, ...] = ()
        self._read_twice = False
        self._bad_looks = 0
        self._warned = False
        self._said = ""

    @classmethod
    def of(cls, settings: Settings, clock: Clock) -> Confirmed | None:
        """The file that the settings name; None if they name none."""
        path = settings.acknowledge_state_file
        if path is None:
            return None
        return cls(path, merge=settings.state_scope == "touched", every_seconds=EVERY_SECONDS, clock=clock)

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
        except (StateError, RecursionError, MemoryError) as error:
            self._wrong(_without_cure(error), patience=_PATIENCE)
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
        """The state, where the file has changed since it was read. It is read a second time even so: what was written
        within one tick of the file system's clock after the first reading looks the same from outside."""
        known, self._stamp = self._stamp, ()
        with open(self._full_path, "rb", buffering=0, opener=_not_blocking) as file:
            there = os.fstat(file.fileno())
            if not stat.S_ISREG(there.st_mode):
                raise OSError(0, "it is no plain file")
            if _stamp(there) == known and self._read_twice:
                self._stamp = known
                return None
            self._read_twice, self._stamp = _stamp(there) == known, _stamp(there)
            for _ in range(_TRIES):
                state = self._state_in(file, there)
                before, there = there, os.fstat(file.fileno())
                if _stamp(there) == _stamp(before):
                    return state
                self._stamp = ()  # somebody is writing; the next look reads it again, whatever it says now
            if there.st_size <= before.st_size:
                raise StateError("is being written all the time")
            return state  # it grows: what stood in front is as it was

    def _state_in(self, file: BinaryIO, there: os.stat_result) -> State:
        if there.st_size == 0:
            raise StateError("is empty")
        found = self._lines.read(file, there)
        if found is not None:
            return check_state(found, source="state file")
        file.seek(0)
        if there.st_size > _LINES_BYTES and _is_lines(file.read(_LINES_BYTES)):
            raise StateError("holds no line with a state")
        if there.st_size > _MOST_WHOLE_BYTES:
            raise StateError(f"no line of it holds a state, and it has more than {_MOST_WHOLE_BYTES >> 20} MiB")
        file.seek(0)
        return self._read_whole(file.read(_MOST_WHOLE_BYTES))

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


def _stamp(there: os.stat_result) -> tuple[int, ...]:
    return there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns


def _is_lines(begin: bytes) -> bool:
    """Whether a file that begins so has a value on each line: then it is not one that is spread over several."""
    first, end, _rest = begin.lstrip().partition(b"\n")
    try:
        msgspec.json.decode(first)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return bool(end)


def _without_cure(error: Exception) -> str:
    """The first sentence of an error on a state that was given: its cure is for that."""
    if isinstance(error, RecursionError):
        return "is nested too deep"
    if isinstance(error, MemoryError):
        return "is too big to be read"
    return str(error).removeprefix("state file").lstrip(" :").split(". ", 1)[0].rstrip(".")
