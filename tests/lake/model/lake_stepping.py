"""burler's own lock, claim, commit and release, a call of the store at a time, through all schedules.

The code under test is run as it is. Each thing it asks the outside for (a call of the store, a wait, a row that is
acknowledged) is answered from a list; where the list ends, the run is left there, and what it asked for next is known.
So a schedule is a matter of lists, and ``lake_search`` goes through them all: no thread, no time, no chance.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import secrets
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO
from unittest import mock

from lake_search import Ran, Writer
from lake_stepping_world import (
    CONFLICT,
    DOWN,
    EXISTS,
    NOON,
    OK,
    SHORT_SECONDS,
    TTL_SECONDS,
    UNKNOWN,
    Call,
    Note,
    Shared,
    Wait,
    name_of,
    tag_of,
)

from burler.errors import BurlerError, StorageError
from burler.lake import StoredFile
from support.internals import clocks, lake_store

__all__ = ["NOON", "OK", "TTL_SECONDS", "Call", "Run", "Shared", "name_of", "writer"]


class Paused(BaseException):
    """The list of answers ends here."""


class RunClock(clocks.Clock):
    """The time of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def now(self) -> dt.datetime:
        return NOON

    def monotonic(self) -> float:
        return self._run.seconds

    def sleep(self, seconds: float) -> None:
        self._run.sleep(seconds)

    def uniform(self, low: float, high: float) -> float:
        return high


class Run:
    """One run of a writer, with the answers it is given. It is a ``Store``, has a clock, and takes notes.

    Args:
        waits: how often a wait may be short.
        patient: then it gives up; else all later waits are as long as it takes to think that others are dead.
    """

    url = "memory://stepping"
    conditional = True

    def __init__(self, me: int, answers: tuple[Any, ...], *, waits: int = 2, patient: bool = False) -> None:
        self.me = me
        self.asked: Any = None
        self.clock = RunClock(self)
        self._answers = answers
        self._at = 0
        self._waits, self._patient = waits, patient
        self.seconds = 1000.0
        self._names = 0
        self._failed = False  # whether the last call was a write that did not succeed

    def ask(self, what: Any) -> Any:
        """The next answer."""
        if self.asked is None:
            if self._at < len(self._answers):
                answer = self._answers[self._at]
                self._at += 1
                self._failed = answer in (CONFLICT, EXISTS, UNKNOWN)
                return answer
            self.asked = what
        raise Paused

    def chance(self, size: int = 16) -> str:
        """In the place of ``secrets.token_hex``: the same in each run of this writer, another in each other."""
        self._names += 1
        return f"{self.me:04x}{self._names:04x}".ljust(size * 2, "0")[: size * 2]

    def entered(self, lock: str) -> None:
        """It believes that it has the lock."""
        self.ask(Note("entered", lock))

    def left(self, lock: str) -> None:
        """It no longer does."""
        self.ask(Note("left", lock))

    def acked(self, row: bytes) -> None:
        """The STATE behind a row is out. ``row``: bytes that stand in its data file, and in no other's."""
        self.ask(Note("acked", "", row))

    def tired(self) -> bool:
        """Whether it gives up waiting."""
        return self._patient and self._waits <= 0

    def sleep(self, _seconds: float) -> None:
        if self._failed:  # a little later it will try again, as it might now
            return
        choices = (SHORT_SECONDS,) if self._patient else (SHORT_SECONDS, TTL_SECONDS)
        self.seconds += self.ask(Wait(choices if self._waits > 0 else choices[-1:]))
        self._waits -= 1

    # ---- the store --------------------------------------------------------------------------------

    def read(self, path: str, /) -> lake_store.Blob | None:
        data = self.ask(Call("read", path))
        return None if data is None else lake_store.Blob(data, tag_of(data))

    def create(self, path: str, data: bytes, /) -> str:
        return self._written(Call("create", path, bytes(data)))

    def replace(self, path: str, data: bytes, /, *, tag: str) -> str:
        return self._written(Call("replace", path, bytes(data), tag))

    def delete(self, path: str, /, *, tag: str) -> None:
        self._written(Call("delete", path, None, tag))

    def remove(self, path: str, /) -> None:
        raise AssertionError("writers remove nothing unconditionally")

    def _written(self, call: Call) -> str:
        answer = self.ask(call)
        if answer == CONFLICT:
            raise lake_store.Conflict(call.path)
        if answer == EXISTS:
            raise FileExistsError(call.path)
        if answer == UNKNOWN:
            raise lake_store.OutcomeUnknown(f"{call.path}: the reply is lost")
        if answer == DOWN:
            raise StorageError(f"{call.path}: the store is down")
        return tag_of(call.data or b"")

    def files(self, folder: str, /, *, hidden: bool = False) -> Iterator[StoredFile]:
        for path, size in self.ask(Call("list", folder)):
            if hidden or not lake_store.is_hidden(path):
                yield StoredFile(path, size, 0.0)

    def folders(self, folder: str, /) -> list[str]:
        rests = [path[len(folder) + 1 :] for path, _ in self.ask(Call("list", folder))]
        return sorted({rest.partition("/")[0] for rest in rests if "/" in rest})

    def new_file(self, folder: str, /) -> _NewFile:
        return _NewFile(self)

    def open(self, path: str, /) -> BinaryIO:
        data = self.ask(Call("read", path))
        if data is None:
            raise FileNotFoundError(path)
        return io.BytesIO(data)

    def locate(self, path: str, /) -> str:
        return f"{self.url}/{path}"

    def hold(self, path: str, /) -> _Hold | None:
        taken = self.ask(Call("hold", path))
        return None if taken is None else _Hold(self, path, taken)


class _Hold:
    def __init__(self, run: Run, path: str, taken: bool) -> None:
        self._run, self._path, self.taken, self._has = run, path, taken, taken

    def release(self) -> None:
        if self._has:
            self._has = False
            self._run.ask(Call("let go", self._path))


class _NewFile:
    """A data file: nothing is seen of it before it is published."""

    def __init__(self, run: Run) -> None:
        self._run, self._data = run, bytearray()

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        self._data += data

    def publish(self, path: str, /) -> None:
        self._run.create(path, bytes(self._data))

    def discard(self) -> None:
        pass


def writer(work: Callable[[Run], object], me: int, *, waits: int = 2, patient: bool = False) -> Writer:
    """A function as the search wants it. How it ended is what it gave back, or the name of burler's error."""

    def ran(history: tuple[Any, ...]) -> Ran:
        run = Run(me, history, waits=waits, patient=patient)
        end: Any = None
        with _chance(run):
            try:
                end = work(run)
            except Paused:
                pass
            except BurlerError as error:
                end = type(error).__name__
            except Exception as error:  # burler raises nothing else: tests look at how writers end
                end = repr(error)
        if run.asked is not None:
            return history, run.asked
        return ("end", end), None

    return ran


@contextlib.contextmanager
def _chance(run: Run) -> Iterator[None]:
    """What burler draws is the same whenever the run is repeated."""
    with mock.patch.object(secrets, "token_hex", run.chance):
        yield
