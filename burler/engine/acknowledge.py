"""Acknowledgements: telling sources what a written STATE covers (docs/tail.md, docs/replication.md).

Without ``acknowledge_state_file`` a source is told what the newest STATE says whose line is out; with it, only what
that file confirms, and only if this run has sent it. The model is tap-postgres, which reads the orchestrator's state
anew every 10 seconds and flushes its slot no further.

In a plain run the authors' functions are called where user code runs: between two pages, and at the end. A tail may be
blocked in its source for hours, so there a thread of its own calls them, ``burler-ack``. Files are read there as well,
never under the engine's lock.
"""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
import logging
import os
import stat
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from burler.clock import Clock
from burler.context import call_bound
from burler.declare.spec import UserFunction
from burler.engine.catalog.plan import Plan
from burler.engine.run.signals import StopToken
from burler.engine.session import Session
from burler.errors import StateError, StreamError
from burler.logs import short
from burler.settings import Settings
from burler.singer import state as st
from burler.singer.state import State

logger = logging.getLogger(__name__)

Value = tuple[Any, dict[str, Any]]
"""A bookmark and a position (``stream_state``)."""

_NOTHING: Value = (None, {})

CLOSE_SECONDS = 2.0
"""How long the end of a tail waits for an acknowledge function that is under way."""

_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 1.0, 300.0
_HANGS_SECONDS = 60.0
_STRANGE_SECONDS = 300.0
_LOOK_SECONDS = 10.0  # between two looks at a state file
_PATIENCE = 3  # looks at a file that is empty or half written, before that is worth a word
_BLOCK_BYTES = 64 * 1024
_MOST_BYTES = 16 * 1024 * 1024  # of a line, of a state that is spread over several
_MARK_BYTES = 16 * 1024
_MOST_SENT = 100_000  # states that are known, of all streams and partitions together
_LEAST_SENT = 16  # of each


def values_of(state: Mapping[str, Any], stream: str, key: str | None) -> dict[str | None, Value]:
    """What a state says of a stream (under None) and of each of its partitions; ``key``: where bookmarks stand."""
    return {
        partition: (entry.get(key) if key else None, entry.get(st.POSITION) or {})
        for partition, entry in [(None, st.entry_of(state, stream)), *st.partitions_of(state, stream).items()]
        if isinstance(entry, dict)
    }


class SentStates:
    """What the STATEs of a run have said of streams, in order: so that a file can confirm it much later.

    Digests only, since positions can be big. Of many, the oldest are forgotten. One thread may add while another one
    confirms.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[str, dict[str | None, Value]] = {}
        self._digests: dict[tuple[str, str | None], dict[bytes, None]] = {}

    def add(self, stream: str, now: dict[str | None, Value], before: dict[str | None, Value]) -> None:
        """A STATE that says this is out. ``before``: what was so already when the run began."""
        last = self._last.get(stream, before)
        self._last[stream] = now
        with self._lock:
            for partition, value in now.items():
                if value == last.get(partition, _NOTHING):
                    continue
                own, digest = self._digests.setdefault((stream, partition), {}), _digest(value)
                own.pop(digest, None)
                own[digest] = None  # said again: it counts as the newest
                while len(own) > max(_LEAST_SENT, _MOST_SENT // len(self._digests)):
                    del own[next(iter(own))]

    def has(self, stream: str, partition: str | None, value: Value) -> bool:
        """Whether this was said, and nothing after it was confirmed."""
        with self._lock:
            return _digest(value) in self._digests.get((stream, partition), {})

    def confirmed(self, stream: str, partition: str | None, value: Value) -> None:
        """This need not be known any more, nor what was said before it."""
        with self._lock:
            own, digest = self._digests.get((stream, partition), {}), _digest(value)
            while digest in own:
                del own[next(iter(own))]

    def waits(self, stream: str) -> bool:
        """Whether there is something of a stream that was not confirmed."""
        with self._lock:
            return any(own for (name, _partition), own in self._digests.items() if name == stream)


class StateFile:
    """A state file that somebody else writes, looked at now and then: a state, a STATE message, or lines of either, of
    which the last whole one counts. Whatever is wrong with it, the run goes on: one WARNING, until it is good again.

    Args:
        merge: the lines carry only what has changed (``state_scope: touched``); all of them count.
    """

    def __init__(self, path: str, clock: Clock, *, merge: bool) -> None:
        self.path = path
        self._full_path = Path.cwd() / path  # user code may go to another folder
        self._merge = merge
        self._clock = clock
        self._next = clock.monotonic()
        self._stamp: tuple[int, ...] = ()
        self._fault, self._bad_looks, self._warned = "", 0, False
        self._merged: State | None = None  # of the lines before ``_at``, the end of which is the mark
        self._at, self._mark = 0, b""

    @property
    def is_due(self) -> bool:
        """Whether it is time for another look."""
        return self._clock.monotonic() >= self._next

    def look(self) -> State | None:
        """What the file says; None if it says nothing new, or can't be read."""
        self._next = self._clock.monotonic() + _LOOK_SECONDS
        state, patience = None, _PATIENCE
        try:
            state = self._new()
        except (OSError, ValueError) as error:  # the latter: no file can have such a name
            self._fault, patience = f"can't be read: {getattr(error, 'strerror', None) or error}", 1
        except RecursionError:
            self._fault = "is nested too deep"
        except StateError as error:
            self._fault = str(error).removeprefix("state file").lstrip(" :").split(". ", 1)[0].rstrip(".")
        if state is not None:
            self._fault, self._bad_looks = "", 0
            if self._warned:
                self._warned = False
                logger.info("acknowledge_state_file %s: holds a state now", self.path)
        elif self._fault:  # perhaps as it was, and it was no good
            self._bad_looks += 1
            if self._bad_looks >= patience and not self._warned:
                self._warned = True
                cure = "Nothing is acknowledged until it holds a state"
                logger.warning("acknowledge_state_file %s: %s. %s", self.path, self._fault, cure)
        return state

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
                return st.check_state(found, source="state file")
            if there.st_size > _MOST_BYTES:
                raise StateError("holds no line with a state")
            file.seek(0)
            return st.read_state_file(file.read(_MOST_BYTES), source="state file", merge=self._merge)

    def _merged_lines(self, file: BinaryIO) -> State | None:
        """What all lines say together. Of a file that only grows, what is new is read."""
        file.seek(max(0, self._at - len(self._mark)))
        if file.read(len(self._mark)) != self._mark:
            self._merged, self._at, self._mark = None, 0, b""
            file.seek(0)
        new = file.read()
        end = new.rfind(b"\n") + 1
        if _state_in(new[end:]) is None:
            new = new[:end]  # the last line is not whole
        for line in new.split(b"\n"):
            if (state := _state_in(line)) is not None:
                self._merged = {} if self._merged is None else self._merged
                st.merge_into(self._merged, st.check_state(state, source="state file"))
        self._at, self._mark = self._at + len(new), (self._mark + new)[-_MARK_BYTES:]
        return self._merged


class _Listener(NamedTuple):
    """A stream's function; ``key``: where the state holds its bookmark."""

    name: str
    function: UserFunction
    key: str | None


class Acknowledgements:
    """Calls the authors' ``@tap.acknowledge`` functions, for STATEs whose lines have been written.

    The sink tells of them, perhaps much later (a lake commits first). One function at a time; it is never told an older
    STATE after a newer one. What it is told goes back only where STATE itself does: a run that begins there reads these
    rows again, so to keep it from the source would be to lose them.

    Args:
        given: the state that the run begins with: that was told before.
        client_of: the client that a stream's functions have just now, and its number.
        stop: says whether the run has failed: then nothing counts any more.
        failed: told of the error of a stream's function in a plain run. died: of one after which nothing can go on.

    Attributes:
        partitions: those of this run, by their keys in the state: what a function is told of.
    """

    def __init__(
        self,
        session: Session,
        plan: Plan,
        settings: Settings,
        clock: Clock,
        *,
        given: State,
        client_of: Callable[[str], tuple[int, Any]],
        stop: StopToken,
        failed: Callable[[str, StreamError], None],
        died: Callable[[BaseException], None],
    ) -> None:
        self._session, self._clock, self._is_tail = session, clock, settings.tail
        self._client_of, self._stop, self._failed, self._died = client_of, stop, failed, died
        path = settings.acknowledge_state_file
        self._file = None if path is None else StateFile(path, clock, merge=settings.state_scope == "touched")
        self._some = any(spec.acknowledge is not None for spec in session.app.streams.values())
        self._given: State = msgspec.json.decode(msgspec.json.encode(given)) if self._some else {}
        self._told: dict[str, dict[str | None, Value]] = {}
        self._sent = SentStates()
        self._newest: State | None = None  # a later STATE says all that an earlier one said
        self._done: State | None = None
        self._file_says: State = {}
        self._strange: dict[str, float] = {}
        self._waits: dict[str, tuple[float, float]] = {}  # in a tail: how long it waits after its failure, until when
        self._telling = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._over = self._left = False
        self._at: tuple[float, str] | None = None  # since when which function has been at it
        self.partitions: dict[str, dict[str, Any]] = defaultdict(dict)
        self.follow(plan)

    # ---- from the engine: these are quick, and read no file ----------------------------------------------------

    def follow(self, plan: Plan) -> None:
        """Tell the functions of the streams there are now: a tail that discovers anew may find more of them."""
        keys = {one.tap_stream_id: one.bookmark_key for one in plan.streams}
        self._listeners = [
            _Listener(name, spec.acknowledge, keys.get(name, spec.bookmark_key))
            for name, spec in plan.specs.items()
            if spec.acknowledge is not None
        ]
        self._waits = {one.name: self._waits[one.name] for one in self._listeners if one.name in self._waits}

    @property
    def waiting(self) -> bool:
        """Whether ``call`` has something to do."""
        if self._thread is not None or not self._listeners or self._newest is None:
            return False
        return self._file.is_due if self._file is not None else self._newest is not self._done

    def state_is_out(self, value: State) -> None:
        """A STATE's line has been written; called by the sink."""
        for one in self._listeners if self._file is not None else ():
            self._sent.add(one.name, values_of(value, one.name, one.key), self._told_of(one))
        self._newest = value
        if self._file is None:
            self._wake.set()

    def tick(self) -> None:
        """Called by the engine's timer, some times a second: wakes the thread where something is due."""
        if self._thread is None:
            return
        now, at = self._clock.monotonic(), self._at
        if at is not None and self._clock.beside.monotonic() - at[0] >= _HANGS_SECONDS:
            self._at = None
            but = "Other acknowledgements wait for it; rows and STATE go on"
            logger.warning("%s has not come back for %.0f s. %s", at[1], _HANGS_SECONDS, but)
        looks = self._file is not None and self._file.is_due
        if looks or any(until <= now for _wait, until in list(self._waits.values())):
            self._wake.set()

    def start(self) -> None:
        """A run begins. In a tail the thread begins with it."""
        if self._file is not None and not self._some:
            logger.warning("acknowledge_state_file is set, and no stream of this tap has an acknowledge function")
        if self._is_tail and self._some:
            work = contextvars.Context()  # what is bound here is no concern of it
            self._thread = threading.Thread(target=work.run, args=(self._work,), name="burler-ack", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """The run has ended, and its last STATE is out: what it says is told. A tail waits for functions that don't
        come back no longer than a moment; they are left behind."""
        if self._thread is None:
            self.call(last=True)
            return
        self._over = True
        self._wake.set()
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            self._left = True
            at = self._at or (0, "an acknowledge function")
            logger.warning("%s has not come back within %.0f s; it is left behind", at[1], CLOSE_SECONDS)

    # ---- telling --------------------------------------------------------------------------------------------

    def call(self, *, last: bool = False) -> None:
        """Tell the functions of streams that have moved since they were told last. One thread at a time. One that fails
        is told no more, and its stream has failed; in a tail it is tried again after a wait, and all goes on."""
        if not self._listeners or not self._telling.acquire(blocking=False):
            return
        try:
            if self._file is not None:
                self._tell_confirmed(self._file, last=last)
                return
            while (state := self._newest) is not None and state is not self._done and self._stop.error is None:
                heard = [self._tell_all(one, self._news_in(state, one), last=last) for one in self._listeners]
                if not all(heard):
                    return  # a function has failed, and waits
                self._done = state  # only now: one that a signal has cut off is told again at the end of the run
        finally:
            self._telling.release()

    def _work(self) -> None:
        """The thread."""
        try:
            over = False
            while not over:
                self._wake.wait()
                self._wake.clear()
                over = self._over
                self.call(last=over)
        except BaseException as error:
            self._died(error)

    def _tell_confirmed(self, file: StateFile, *, last: bool) -> None:
        if last or file.is_due:
            self._file_says = file.look() or self._file_says
        for one in self._listeners:
            news = {at: value for at, value in self._news_in(self._file_says, one).items() if value != _NOTHING}
            known = {at: value for at, value in news.items() if self._sent.has(one.name, at, value)}
            self._note_strange(one.name, file, is_strange=len(known) < len(news))
            self._tell_all(one, known, last=last)

    def _note_strange(self, name: str, file: StateFile, *, is_strange: bool) -> None:
        """One warning where the file goes on saying what this run has not said, while something waits."""
        now = self._clock.monotonic()
        if not is_strange or not self._sent.waits(name):
            self._strange.pop(name, None)
        elif now - self._strange.setdefault(name, now) >= _STRANGE_SECONDS:
            self._strange[name] = float("inf")
            logger.warning(
                "stream '%s': what acknowledge_state_file %s says of it is nothing that this run has written, for %.0f "
                "minutes now. Nothing is acknowledged. Is it the state of this tap, and of its latest run?",
                *(name, file.path, _STRANGE_SECONDS / 60),
            )

    def _tell_all(self, to: _Listener, news: dict[str | None, Value], *, last: bool) -> bool:
        """Whether the function has heard of all of it."""
        wait, until = self._waits.get(to.name, (0.0, 0.0))
        for partition, value in news.items():
            if self._left or (self._clock.monotonic() < until and not last):
                return False
            try:
                self._tell(to.name, to.function, partition, *value)
            except StreamError as error:
                if self._thread is None:
                    self._listeners = [one for one in self._listeners if one is not to]
                    self._failed(to.name, error)
                    return True
                wait = min(max(2 * wait, _FIRST_WAIT_SECONDS), _LONGEST_WAIT_SECONDS)
                self._waits[to.name] = (wait, self._clock.monotonic() + wait)
                again = "not told again" if last else f"tried again in {wait:.0f} s"
                logger.warning("%s; %s. The run goes on", error, again)
                return False
            self._told_of(to)[partition] = value
            self._sent.confirmed(to.name, partition, value)
        if self._waits.pop(to.name, None):
            logger.info("stream '%s': its acknowledge function works again", to.name)
        return True

    def _tell(self, name: str, function: UserFunction, key: str | None, bookmark: Any, position: Any) -> None:
        session, held = self._session, contextlib.ExitStack()
        partition = self.partitions[name].get(key) if key is not None else None
        own = msgspec.json.decode(msgspec.json.encode(position))  # what it writes into it reaches no state

        def client() -> Any:
            number, made = self._client_of(name)
            held.enter_context(session.clients.held(number))  # not closed meanwhile
            return made

        run = session.describing(name, client=client, bookmark=bookmark, state=own, partition=partition)
        given = session.given(bookmark=lambda: bookmark, state=lambda: own, stream=lambda: run, client=client)
        what = f"stream '{name}': its acknowledge function ({function.place})"
        self._at = (self._clock.beside.monotonic(), what)
        try:
            call_bound(run, lambda: session.invoke(function, given, stream=name))
        except (Exception, SystemExit) as error:
            raise StreamError(name, f"{what} failed: {short(error)}") from error
        finally:
            held.close()
            self._at = None

    # ---- what there is --------------------------------------------------------------------------------------

    def _news_in(self, state: State, to: _Listener) -> dict[str | None, Value]:
        """What a state says of a stream, and its function has not been told."""
        told = self._told_of(to)
        return {at: one for at, one in values_of(state, to.name, to.key).items() if one != told.get(at, _NOTHING)}

    def _told_of(self, to: _Listener) -> dict[str | None, Value]:
        """What a stream's function has been told; at first what the run was given: that was told before."""
        # Another thread may ask for the first time just now, too.
        return self._told.get(to.name) or self._told.setdefault(to.name, values_of(self._given, to.name, to.key))


def _not_blocking(path: str, flags: int) -> int:
    """What stands there now may be a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _last_state(file: BinaryIO, size: int) -> State | None:
    """The state of the last whole line that holds one, read from the end; None: no line does."""
    for length in (_BLOCK_BYTES, _MOST_BYTES):
        begin = max(0, size - length)
        file.seek(begin)
        lines = file.read(size - begin).split(b"\n")
        for line in reversed(lines if begin == 0 else lines[1:]):
            if (state := _state_in(line)) is not None:
                return state
    return None


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
    return value if st.is_state(value) else None


def _digest(value: Value) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(_plain(value), order="sorted"), digest_size=16).digest()


def _plain(value: Any) -> Any:
    """With whole floats as integers: what others write of a state may hold 5 for 5.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
