"""Acknowledgements: telling sources what a written STATE covers (docs/tail.md, docs/replication.md).

Without ``acknowledge_state_file`` a source is told what the newest STATE says whose line is out; with it, only what
that file confirms, and only if this run has sent it. The model is tap-postgres, which reads the orchestrator's state
anew every 10 seconds and flushes its slot no further.

In a plain run the authors' functions are called where user code runs: between two pages, and at the end. A tail may be
blocked in its source for hours, so there a thread of its own calls them, ``burler-ack``.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from burler.clock import Clock
from burler.context import call_bound
from burler.declare.spec import UserFunction
from burler.engine.catalog.plan import Plan
from burler.engine.run.signals import Stop, Stopper
from burler.engine.session import Session
from burler.errors import StateError, StreamError
from burler.logs import short
from burler.settings import Settings
from burler.singer import messages
from burler.singer import state as st
from burler.singer.state import State

logger = logging.getLogger(__name__)

Value = tuple[Any, dict[str, Any]]
"""A bookmark and a position (``stream_state``)."""

_NOTHING: Value = (None, {})

_CLOSE_SECONDS = 2.0  # how long the end of a tail waits for a function that is under way
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 1.0, 300.0
_HANGS_SECONDS = 60.0
_STRANGE_SECONDS = 300.0
_LOOK_SECONDS = 10.0  # between two looks at a state file
_PATIENCE = 3  # looks at a file that holds no state, perhaps since it is half written, before that is worth a word
_MOST_BYTES = 16 * 1024 * 1024  # of a state
_MOST_SENT = 10_000  # states that are known of a stream or partition


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
        self._bad_looks, self._warned = 0, False

    @property
    def is_due(self) -> bool:
        """Whether it is time for another look."""
        return self._clock.monotonic() >= self._next

    def look(self) -> State | None:
        """What the file says; None if it holds no state."""
        self._next = self._clock.monotonic() + _LOOK_SECONDS
        try:
            state = self._read()
        except (OSError, StateError, RecursionError) as error:
            self._bad_looks += 1
            if not self._warned and (isinstance(error, OSError) or self._bad_looks >= _PATIENCE):
                self._warned = True
                fault = str(getattr(error, "strerror", None) or error)
                fault = fault.removeprefix("state file").lstrip(" :").partition(". ")[0].rstrip(".")
                cure = "Nothing is acknowledged until it holds a state"
                logger.warning("acknowledge_state_file %s: %s. %s", self.path, fault, cure)
            return None
        if self._warned:
            logger.info("acknowledge_state_file %s: holds a state now", self.path)
        self._bad_looks, self._warned = 0, False
        return state

    def _read(self) -> State:
        if not self._full_path.is_file():  # to open a pipe would wait for who writes it
            raise OSError("is no plain file, or not there")
        with open(self._full_path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if self._merge or size <= _MOST_BYTES:
                content = file.read()
            else:  # of a file of lines, the last ones
                file.seek(size - _MOST_BYTES)
                content = file.read().partition(b"\n")[2]
        for line in () if self._merge else reversed(content.splitlines()[-2:]):  # the last one may not be whole
            try:
                return st.read_state_file(line, source="state file")
            except StateError:
                pass  # it is no line of states, but one state over several, or what comes last is another message
        return st.read_state_file(content, source="state file", merge=self._merge)


class _Listener:
    """A stream with an acknowledge function: what that was told, and what it may be told.

    Args:
        key: where the state holds the stream's bookmark.
        given: the state that the run begins with: that was told before.
    """

    def __init__(self, name: str, function: UserFunction, key: str | None, given: State) -> None:
        self.name, self.function, self.key = name, function, key
        self._told = self.values_of(given)
        self._lock = threading.Lock()
        self._sent: dict[str | None, dict[bytes, None]] = {}
        self._strange_since: float | None = None
        self.wait_seconds = self.waits_until = 0.0  # after a failure, in a tail

    def values_of(self, state: Mapping[str, Any]) -> dict[str | None, Value]:
        """What a state says of the stream (under None) and of each of its partitions."""
        return {
            partition: (entry.get(self.key) if self.key else None, entry.get(st.POSITION) or {})
            for partition, entry in [(None, st.entry_of(state, self.name)), *st.partitions_of(state, self.name).items()]
            if isinstance(entry, dict)
        }

    def news_in(self, state: Mapping[str, Any]) -> dict[str | None, Value]:
        """What a state says, and the function has not been told."""
        return {at: one for at, one in self.values_of(state).items() if one != self._told.get(at, _NOTHING)}

    def sent(self, state: State, before: State) -> None:
        """A STATE is out, after another one: what it says that this one did not can be confirmed from now on."""
        earlier = self.values_of(before)
        for partition, value in self.values_of(state).items():
            if value == earlier.get(partition, _NOTHING):
                continue
            digest = _digest(value)  # positions can be big
            with self._lock:
                own = self._sent.setdefault(partition, {})
                own.pop(digest, None)
                own[digest] = None  # said again: it counts as the newest
                if len(own) > _MOST_SENT:
                    del own[next(iter(own))]

    def confirmed_in(self, state: State) -> tuple[dict[str | None, Value], bool]:
        """The news that a file confirms, and whether it says something that this run has not."""
        news = {at: value for at, value in self.news_in(state).items() if value != _NOTHING}
        with self._lock:
            known = {at: value for at, value in news.items() if _digest(value) in self._sent.get(at, {})}
        return known, len(known) < len(news)

    def heard(self, partition: str | None, value: Value) -> None:
        """The function was told: this can't be confirmed any more, nor what was said before it."""
        self._told[partition] = value
        with self._lock:
            own, digest = self._sent.get(partition, {}), _digest(value)
            while digest in own:
                del own[next(iter(own))]

    def is_strange_for_long(self, now: float, *, is_strange: bool) -> bool:
        """Whether it is time for a word on a file that goes on saying what this run has not said."""
        if not is_strange:
            self._strange_since = None
            return False
        since = self._strange_since = now if self._strange_since is None else self._strange_since
        if now - since < _STRANGE_SECONDS:
            return False
        self._strange_since = float("inf")
        return True


class Acknowledgements:
    """Calls the authors' ``@tap.acknowledge`` functions for STATEs whose lines have been written: in a plain run, where
    it is told to.

    The sink tells of STATEs, perhaps much later (a lake commits first). One function at a time; it is never told an
    older STATE after a newer one. What it is told goes back only where STATE itself does: a run that begins there reads
    these rows again, so to keep it from the source would be to lose them. One that fails is told no more.

    Args:
        given: the state that the run begins with.
        stopper: knows whether the run has failed: then nothing counts any more.
        client_of: the client that a stream's functions have just now, and its number.
        failed: told of the error of a stream's function.

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
        stopper: Stopper,
        client_of: Callable[[str], tuple[int, Any]],
        failed: Callable[[str, StreamError], None],
    ) -> None:
        self._session, self._clock, self._stopper = session, clock, stopper
        self._client_of, self._failed = client_of, failed
        path = settings.acknowledge_state_file
        self._file = None if path is None else StateFile(path, clock, merge=settings.state_scope == "touched")
        self._has_functions = any(spec.acknowledge is not None for spec in session.app.streams.values())
        self._given = messages.EncodedState(msgspec.json.encode(given) if self._has_functions else b"{}")
        self._newest: messages.State = self._given  # a later STATE says all that an earlier one said
        self._done: messages.State = self._given
        self._file_says: State = {}
        self._telling = threading.Lock()
        self._left = False  # the run is over, and waits for no function any more
        self._listeners: list[_Listener] = []
        self.partitions: dict[str, dict[str, Any]] = defaultdict(dict)
        self.follow(plan)

    # ---- from the engine: these are quick, and read no file ----------------------------------------------------

    def follow(self, plan: Plan) -> None:
        """Tell the functions of the streams there are now: a tail that discovers anew may find more of them."""
        known = {one.name: one for one in self._listeners}
        keys = {one.tap_stream_id: one.bookmark_key for one in plan.streams}
        listeners = []
        for name, spec in plan.specs.items():
            if spec.acknowledge is not None:
                key = keys.get(name, spec.bookmark_key)
                listener = known.get(name) or _Listener(name, spec.acknowledge, key, self._given.whole)
                listener.key = key
                listeners.append(listener)
        self._listeners = listeners

    def state_is_out(self, message: messages.State) -> None:
        """A STATE's line has been written; called by the sink."""
        for one in self._listeners if self._file is not None else ():
            one.sent(message.whole, self._newest.whole)
        self._newest = message

    @property
    def is_due(self) -> bool:
        """Whether ``tell`` has something to do."""
        if not self._listeners or self._newest is self._given:
            return False
        return self._file.is_due if self._file is not None else self._newest is not self._done

    def start(self) -> None:
        """A run begins."""
        if self._file is not None and not self._has_functions:
            logger.warning("acknowledge_state_file is set, and no stream of this tap has an acknowledge function")

    def tick(self) -> None:
        """A second has passed."""

    def close(self) -> None:
        """The run has ended, and its last STATE is out: what it says is told. After a signal a function that goes on
        has as long as a ``finally`` of the author's has."""
        with contextlib.suppress(Stop), self._stopper.closing(self._stopper.stop):
            self.tell(last=True)

    # ---- telling --------------------------------------------------------------------------------------------

    def tell(self, *, last: bool = False) -> None:
        """Tell the functions of streams that have moved since they were told last. One thread at a time."""
        if not self._listeners or not self._telling.acquire(blocking=False):
            return
        try:
            if self._file is not None:
                self._tell_confirmed(self._file, last=last)
                return
            while (state := self._newest) is not self._done and self._stopper.stop.error is None:
                heard = [self._tell_all(one, one.news_in(state.whole), last=last) for one in self._listeners]
                if not all(heard):
                    return  # a function has failed, and waits
                self._done = state  # only now: one that a signal has cut off is told again at the end of the run
        finally:
            self._telling.release()

    def _tell_confirmed(self, file: StateFile, *, last: bool) -> None:
        if last or file.is_due:
            self._file_says = file.look() or self._file_says
        for one in self._listeners:
            confirmed, is_strange = one.confirmed_in(self._file_says)
            is_strange = is_strange and bool(one.news_in(self._newest.whole))
            if one.is_strange_for_long(self._clock.monotonic(), is_strange=is_strange):
                logger.warning(
                    "stream '%s': what acknowledge_state_file %s says of it is nothing that this run has written, for "
                    "%.0f minutes now. Nothing is acknowledged. Is it the state of this tap, and of its latest run?",
                    *(one.name, file.path, _STRANGE_SECONDS / 60),
                )
            self._tell_all(one, confirmed, last=last)

    def _tell_all(self, to: _Listener, news: dict[str | None, Value], *, last: bool) -> bool:
        """Whether the function has heard of all of it, or is told no more."""
        for partition, value in news.items():
            if self._left or (self._clock.monotonic() < to.waits_until and not last):
                return False
            try:
                self._call(to, partition, *value)
            except StreamError as error:
                return self._has_failed(to, error, last=last)
            to.heard(partition, value)
        if to.wait_seconds:
            to.wait_seconds = to.waits_until = 0.0
            logger.info("stream '%s': its acknowledge function works again", to.name)
        return True

    def _has_failed(self, to: _Listener, error: StreamError, *, last: bool) -> bool:
        self._listeners = [one for one in self._listeners if one is not to]
        self._failed(to.name, error)
        return True

    def _call(self, to: _Listener, key: str | None, bookmark: Any, position: Any) -> None:
        partition = self.partitions[to.name].get(key) if key is not None else None
        own = msgspec.json.decode(msgspec.json.encode(position))  # what it writes into it reaches no state
        more = {"bookmark": bookmark, "state": own, "partition": partition}
        with self._session.beside(to.name, lambda: self._client_of(to.name), **more) as (run, given):
            given |= {"bookmark": lambda: bookmark, "state": lambda: own}
            try:
                call_bound(run, lambda: self._session.invoke(to.function, given, stream=to.name))
            except (Exception, SystemExit) as error:
                raise StreamError(to.name, f"{_what(to)} failed: {short(error)}") from error


class AcknowledgeThread(Acknowledgements):
    """In a tail run: a thread of its own calls the functions, one that fails is told again after a wait, and all goes
    on. The end waits for one that does not come back no longer than a moment."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._thread = threading.Thread(target=self._work, name="burler-ack", daemon=True)
        self._wake = threading.Event()
        self._over = False
        self._at: tuple[float, _Listener] | None = None  # since when whose function has been at it

    def start(self) -> None:
        """A run begins."""
        super().start()
        if self._has_functions:
            self._thread.start()

    def state_is_out(self, message: messages.State) -> None:
        """A STATE's line has been written; called by the sink."""
        super().state_is_out(message)
        if self._file is None:
            self._wake.set()

    def tick(self) -> None:
        """A second has passed: the thread looks for what is due. A word where a function hangs."""
        if self.is_due or any(one.wait_seconds for one in self._listeners):
            self._wake.set()
        at = self._at
        if at is not None and self._clock.beside.monotonic() - at[0] >= _HANGS_SECONDS:
            self._at = None
            but = "Other acknowledgements wait for it; rows and STATE go on"
            logger.warning("%s has not come back for %.0f s. %s", _what(at[1]), _HANGS_SECONDS, but)

    def close(self) -> None:
        """The run has ended, and its last STATE is out. A function that does not come back is left behind."""
        if not self._has_functions:
            return
        self._over = True
        self._wake.set()
        self._thread.join(_CLOSE_SECONDS)
        if self._thread.is_alive():
            self._left, at = True, self._at
            what = "an acknowledge function" if at is None else _what(at[1])
            logger.warning("%s has not come back within %.0f s; it is left behind", what, _CLOSE_SECONDS)

    def _work(self) -> None:
        try:
            over = False
            while not over:
                self._wake.wait()
                self._wake.clear()
                over = self._over
                self.tell(last=over)
        except BaseException as error:
            self._stopper.fail(error)

    def _has_failed(self, to: _Listener, error: StreamError, *, last: bool) -> bool:
        to.wait_seconds = min(max(2 * to.wait_seconds, _FIRST_WAIT_SECONDS), _LONGEST_WAIT_SECONDS)
        to.waits_until = self._clock.monotonic() + to.wait_seconds
        again = "not told again" if last else f"tried again in {to.wait_seconds:.0f} s"
        logger.warning("%s; %s. The run goes on", error, again)
        return False

    def _call(self, to: _Listener, key: str | None, bookmark: Any, position: Any) -> None:
        self._at = (self._clock.beside.monotonic(), to)
        try:
            super()._call(to, key, bookmark, position)
        finally:
            self._at = None


def _what(to: _Listener) -> str:
    return f"stream '{to.name}': its acknowledge function ({to.function.place})"


def _digest(value: Value) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(_plain(value), order="sorted"), digest_size=16).digest()


def _plain(value: Any) -> Any:
    """With whole floats as integers: what others write of a state may hold 5 for 5.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
