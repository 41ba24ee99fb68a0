"""Acknowledgements: telling sources what a written STATE covers (docs/tail.md, docs/replication.md).

In a plain run the authors' functions are called where user code runs: between two pages, and at the end. A tail may be
blocked in its source for hours, so there a thread of its own calls them, ``burler-ack``. Files are read there as
well, never under the engine's lock.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from burler.context import call_bound
from burler.declare.spec import StreamSpec, UserFunction
from burler.engine.run.confirmed import Confirmed
from burler.engine.run.said import Said, Value, values_of
from burler.errors import StreamError
from burler.logs import short

if TYPE_CHECKING:
    from burler.engine.run.sync import Engine

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 2.0
"""How long the end of a tail waits for an acknowledge function that is under way."""

_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 1.0, 300.0
_HANGS_SECONDS = 60.0
_STRANGE_SECONDS = 300.0


class Acknowledgements:
    """Calls the authors' ``@tap.acknowledge`` functions, for STATEs whose lines have been written.

    The sink tells of them, perhaps much later (a lake commits first). With ``confirmed`` (the setting
    ``acknowledge_state_file``) a function is told only what that file confirms of them. One function at a time; it is
    never told an older STATE after a newer one. What it is told goes back only where STATE itself does: a run that
    begins there reads these rows again, so to keep it from the source would be to lose them.
    """

    def __init__(self, engine: Engine, confirmed: Confirmed | None = None) -> None:
        self._engine = engine
        self._clock = engine.clock
        self._confirmed = confirmed or Confirmed.of(engine.settings, self._clock)
        self._specs: dict[str, StreamSpec] = {}
        self._plan: object = None
        self._keys: dict[str, str | None] = {}
        self._functions: dict[str, UserFunction] = {}
        self._failed: set[str] = set()  # told no more: in a plain run
        self._waits: dict[str, tuple[float, float]] = {}  # in a tail: how long it waits after its failure, until when
        self._some = any(spec.acknowledge is not None for spec in engine.session.declared.values())
        self._given: bytes = msgspec.json.encode(engine.state) if self._some else b"{}"
        self._told: dict[str, dict[str | None, Value]] = {}
        self._said = Said()
        self._newest: dict[str, Any] | None = None  # a later STATE says all that an earlier one said
        self._done: dict[str, Any] | None = None
        self._file_says: dict[str, Any] | None = None
        self._strange: dict[str, float] = {}
        self._telling = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._over = self._left = False
        self._at: tuple[float, str] | None = None  # since when which function has been at it
        self.partitions: dict[str, dict[str, Any]] = defaultdict(dict)
        """The partitions of this run, by their keys in the state: what a function is told of."""

    # ---- from the engine: these are quick, and read no file ----------------------------------------------------

    @property
    def waiting(self) -> bool:
        """Whether ``call`` has something to do."""
        if self._thread is not None or not self._wanted():
            return False
        if self._confirmed is not None:
            return self._confirmed.is_due and (self._newest is not None)
        return self._newest is not self._done

    def state_is_out(self, value: dict[str, Any]) -> None:
        """A STATE's line has been written; called by the sink."""
        functions = self._wanted()
        if not functions:
            return
        if self._confirmed is not None:
            for name in functions:
                self._said.add(name, values_of(value, name, self._key(name)), self._told_of(name))
        self._newest = value
        if self._confirmed is None:
            self._wake.set()

    def tick(self) -> None:
        """Called by the engine's timer, some times a second: wakes the thread where something is due."""
        if self._thread is None:
            return
        now = self._clock.monotonic()
        at = self._at
        # The function runs by the time on the wall, which a test's clock may leave far behind.
        if at is not None and not self._clock.is_fake and now - at[0] >= _HANGS_SECONDS:
            self._at = None
            logger.warning(
                "%s has not come back for %.0f s. Other acknowledgements wait for it; rows and STATE go on",
                at[1],
                _HANGS_SECONDS,
            )
        looks = self._confirmed is not None and self._confirmed.is_due
        if looks or any(until <= now for _wait, until in list(self._waits.values())):
            self._wake.set()

    def start(self) -> None:
        """A run begins. In a tail the thread begins with it."""
        if self._confirmed is not None and not self._some:
            logger.warning("acknowledge_state_file is set, and no stream of this tap has an acknowledge function")
        if self._engine.settings.tail and self._some:
            work = contextvars.Context()  # what is bound here is no concern of it
            self._thread = threading.Thread(target=work.run, args=(self._work,), name="burler-ack", daemon=True)
            self._thread.start()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """The run has ended, and its last STATE is out: what it says is told.

        Args:
            seconds: a tail waits no longer than this for functions that don't come back; they are left behind.
        """
        if self._thread is None:
            self._call(last=True)
            return
        self._over = True
        self._wake.set()
        self._thread.join(seconds)
        if self._thread.is_alive():
            self._left = True
            at = self._at or (0, "an acknowledge function")
            logger.warning("%s has not come back within %.0f s; it is left behind", at[1], seconds)

    # ---- telling --------------------------------------------------------------------------------------------

    def call(self) -> None:
        """Tell the functions of streams that have moved since they were told last. One thread at a time. One that fails
        is told no more, and its stream has failed; in a tail it is tried again after a wait, and all goes on."""
        if self._thread is None:
            self._call(last=False)

    def _work(self) -> None:
        """The thread."""
        try:
            over = False
            while not over:
                self._wake.wait()
                self._wake.clear()
                over = self._over
                self._call(last=over)
        except BaseException as error:
            self._engine.stopper.fail(error)

    def _call(self, *, last: bool) -> None:
        if not self._wanted() or not self._telling.acquire(blocking=False):
            return
        try:
            if self._confirmed is None:
                self._tell_newest(last=last)
            else:
                self._tell_confirmed(self._confirmed, last=last)
        finally:
            self._telling.release()

    def _tell_newest(self, *, last: bool) -> None:
        while (state := self._newest) is not None and state is not self._done and not self._engine.broken:
            whole = True
            for name in self._wanted():
                whole &= self._tell_all(name, values_of(state, name, self._key(name)), last=last)
            if not whole:
                return  # a function has failed, and waits
            self._done = state  # only now: one that a signal has cut off is told again at the end of the run

    def _tell_confirmed(self, confirmed: Confirmed, *, last: bool) -> None:
        if last or confirmed.is_due:
            self._file_says = confirmed.look() or self._file_says
        if self._file_says is None:
            return
        for name in self._wanted():
            now = values_of(self._file_says, name, self._key(name))
            told, unknown = self._told_of(name), False
            news = {}
            for partition, value in now.items():
                if value != told.get(partition, (None, {})) and value != (None, {}):
                    known = self._said.has(name, partition, value)
                    unknown = unknown or not known
                    if known:
                        news[partition] = value
            self._note_strange(name, unknown)
            self._tell_all(name, news, last=last)

    def _note_strange(self, name: str, unknown: bool) -> None:
        """One warning where the file goes on saying what this run has not said."""
        if not unknown or not self._said.waits(name):
            self._strange.pop(name, None)
            return
        now = self._clock.monotonic()
        since = self._strange.setdefault(name, now)
        if now - since >= _STRANGE_SECONDS:
            self._strange[name] = float("inf")
            path = self._engine.settings.acknowledge_state_file
            logger.warning(
                "stream '%s': what acknowledge_state_file %s says of it is nothing that this run has written, for %.0f "
                "minutes now. Nothing is acknowledged. Is it the state of this tap, and of its latest run?",
                *(name, path, _STRANGE_SECONDS / 60),
            )

    def _tell_all(self, name: str, now: dict[str | None, Value], *, last: bool) -> bool:
        """Whether the function has heard of all of it."""
        told = self._told_of(name)
        wait, until = self._waits.get(name, (0.0, 0.0))
        for partition, value in now.items():
            if value == told.get(partition, (None, {})) or name not in self._functions:
                continue
            if self._left or (self._clock.monotonic() < until and not last):
                return False
            try:
                self._tell(name, self._functions[name], partition, *value)
            except StreamError as error:
                return self._has_failed(name, error, wait, last=last)
            told[partition] = value
            self._said.confirmed(name, partition, value)
        if self._waits.pop(name, None):
            logger.info("stream '%s': its acknowledge function works again", name)
        return True

    def _has_failed(self, name: str, error: StreamError, waited: float, *, last: bool) -> bool:
        if self._thread is None:
            self._failed.add(name)
            del self._functions[name]
            self._engine.stream_failed(name, error)
            return True
        wait = min(max(2 * waited, _FIRST_WAIT_SECONDS), _LONGEST_WAIT_SECONDS)
        self._waits[name] = (wait, self._clock.monotonic() + wait)
        again = "not told again" if last else f"tried again in {wait:.0f} s"
        logger.warning("%s; %s. The run goes on", error, again)
        return False

    def _tell(
        self, name: str, function: UserFunction, key: str | None, bookmark: Any, position: dict[str, Any]
    ) -> None:
        session = self._engine.session
        partition = self.partitions[name].get(key) if key is not None else None
        own = msgspec.json.decode(msgspec.json.encode(position))  # what it writes into it reaches no state
        run = session.describing(name, bookmark=bookmark, state=own, partition=partition)
        held = contextlib.ExitStack()

        def client() -> Any:
            number, made = self._engine.client_of(name)
            held.enter_context(session.clients.held(number))  # not closed meanwhile
            return made

        run._client = client
        given: dict[str, Callable[[], Any]] = session.given(
            bookmark=lambda: bookmark, state=lambda: own, stream=lambda: run, client=client
        )
        self._at = (self._clock.monotonic(), f"stream '{name}': its acknowledge function ({function.place})")
        try:
            call_bound(run, lambda: session.invoke(function, given, stream=name))
        except (Exception, SystemExit) as error:
            fact = f"stream '{name}': its acknowledge function ({function.place}) failed: {short(error)}"
            raise StreamError(name, fact) from error
        finally:
            held.close()
            self._at = None

    # ---- what there is --------------------------------------------------------------------------------------

    def _wanted(self) -> list[str]:
        """The streams whose functions are told; a tail that discovers anew may find more of them."""
        if self._specs is not self._engine.session.specs:
            self._specs = self._engine.session.specs
            self._functions = {
                name: spec.acknowledge
                for name, spec in self._specs.items()
                if spec.acknowledge is not None and name not in self._failed
            }
            self._waits = {name: wait for name, wait in self._waits.items() if name in self._functions}
        return list(self._functions)

    def _key(self, name: str) -> str | None:
        if self._plan is not self._engine.plan:
            self._plan = self._engine.plan
            self._keys = {one.tap_stream_id: one.bookmark_key for run in self._engine.plan for one in run.streams}
        return self._keys[name] if name in self._keys else self._specs[name].bookmark_key

    def _told_of(self, name: str) -> dict[str | None, Value]:
        """What a stream's function has been told; at first what the run was given: that was told before."""
        told = self._told.get(name)
        if told is None:
            given = values_of(msgspec.json.decode(self._given), name, self._key(name))
            told = self._told.setdefault(name, given)  # another thread may ask for the first time just now, too
        return told
