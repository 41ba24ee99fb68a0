"""A lane: one thread's way through the units of a stream: pull, and write what was pulled.

The main thread's lane can be interrupted by signals; the others look, page by page, whether the run is to end.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from burler.context import bind
from burler.errors import StreamError
from burler.pipeline import markers as mk
from burler.pipeline.pull import Pull
from burler.runtime import pace
from burler.runtime.channel import LaneChannel
from burler.runtime.files_given import FilesGiven
from burler.runtime.logs import short
from burler.runtime.page_size import PageSize
from burler.runtime.retries import is_retried, note, set_up
from burler.runtime.signals import Stop, Stopper
from burler.runtime.unit import Unit
from burler.runtime.writing import Writing

if TYPE_CHECKING:
    from burler.runtime.stream import SyncRun

logger = logging.getLogger(__name__)

_MANY = 5000  # rows that were emitted by name and are not written yet, at the most


class Lane:
    """Drives units one after the other.

    ``unit`` is the one whose function runs now; what stands in the page may belong to earlier ones.
    """

    def __init__(self, sync: SyncRun, stopper: Stopper) -> None:
        self._sync = sync
        self._engine = sync.engine
        self._stopper = stopper
        self.unit: Unit | None = None
        self.page = PageSize(sync.engine.settings)
        self.writing = Writing(sync, self)
        self.over = self.abandoned = False
        self._warned = False
        self.told = False
        """Whether a function of the author's has seen that it is to come to its end."""
        self._thread = 0
        self._renew(None)

    def _renew(self, first: Unit | None) -> None:
        """A new pull: for the next units, or for a further try of ``first``."""
        sync = self._sync
        self.pull = Pull(lambda: self._units(first), sync.own_run, place=sync.place)
        self.pull.page_by_page = sync.page_by_page
        self.pull.one_by_one = sync.pushes
        self.pull.whole_pages = sync.whole_pages
        given = FilesGiven(sync)
        self.pull.take_files = lambda stream, files: given.take(self.unit, stream, files)
        self.pull.passed = lambda stream, files: given.passed(self.unit, stream, files)

    def _units(self, first: Unit | None) -> Iterator[Iterable[Any]]:
        """What each unit's function gives, one after the other; it runs where user code runs."""
        while True:
            self.unit = None
            given, first = first or self._sync.units.next(), None
            if given is None:
                return
            if isinstance(given, mk.UnitBroken):
                self.pull.put(given)
                continue
            unit = given
            self.unit = unit
            unit.attach(LaneChannel(self, unit), self.pull.put)
            self.pull.put(mk.UnitBegins(unit))
            bind(unit.root.run)
            yield _opened(unit)
            if self.told:
                return  # it has ended since it was told to: that says nothing about the rows it has not given
            unit.settle()
            states = unit.states()
            with unit.emitting:  # what a thread of the author's emits from here on is refused
                self.unit = None
                self.pull.put(mk.UnitEnds(unit, states))

    # ---- the loop --------------------------------------------------------------------------------------

    def run(self) -> None:
        """Go on until there are no more units, the run is to end, or the stream can't go on.

        Raises:
            errors of the sink, and of the program itself.
        """
        alive: bool | None = True
        self._thread = threading.get_ident()
        try:
            while alive and self._goes_on():
                alive = self._page()
        finally:
            # What user code yielded before it was stopped or failed goes out, too.
            self._finish()
            self.over = True

    def _goes_on(self) -> bool:
        sync = self._sync
        ended = sync.ending or sync.abandoned or self.abandoned or sync.is_cut
        return not (ended or self._engine.stopper.requested or pace.full(sync))

    def _page(self) -> bool | None:
        """One page: True if there is more, False at the end, None if it was stopped."""
        sync, engine = self._sync, self._engine
        begun = time.monotonic()
        alive, error = self._fill()
        spent = time.monotonic() - begun
        engine.session.save_config()
        unit = self.unit
        states = None if unit is None or sync.line.has_children or error is not None else self._states(unit)
        with engine.lock:
            if engine.stopper.failure is not None or engine.broken or sync.abandoned or self.abandoned:
                return None
            self.writing.process()
            current = unit is not None and self.writing.unit is unit and unit.error is None
            if unit is not None and current and alive is not None and states is not None:
                unit.keep_states(states)
            self.page.adapt(rows=sync.rows, size=sync.bytes, seconds=spent)
            sync.save_if_due()
        self._acknowledge()
        if unit is not None and (unit.error is not None or error is not None):
            return self._failed(unit, error)
        if error is not None:
            raise error
        if alive is None and unit is not None and not engine.stopper.requested and not sync.is_cut:
            return self._woken(unit)
        return alive

    def _woken(self, unit: Unit) -> bool:
        """The unit was interrupted in place of an earlier one, in which something did not fit: it begins anew."""
        self._close()
        with self._engine.lock:
            unit.again()
            self.writing.unit = None
        self._renew(unit)
        return True

    def _states(self, unit: Unit) -> mk.Snapshot | None:
        try:
            return unit.states()
        except StreamError as error:
            with self._engine.lock:
                unit.error = unit.error or error
            return None

    def _fill(self) -> tuple[bool | None, BaseException | None]:
        """Run user code until a page is full: as ``_page``, and what it raised.

        User code may catch Stop, or raise something else on its way out: it was stopped all the same, and
        must not pass for complete.
        """
        sync, stopper = self._sync, self._stopper
        stopper.on_raise = self._cut
        try:
            with stopper.user_code():
                alive = self.pull.fill(pace.limit_of(sync, self.page.rows))
        except Enough:
            return False, None
        except (Stop, KeyboardInterrupt) as stop:
            if not stopper.raised:
                return True, StreamError(sync.name, f"stream '{sync.name}' ({sync.place}): {short(stop)}")
            return None, None
        except BaseException as error:
            if stopper.raised:
                if self.unit is None or self.unit.error is None:
                    logger.warning("stream '%s': its function raised when it was stopped: %s", sync.name, short(error))
                return None, None
            if isinstance(error, Exception):
                return True, error
            # sys.exit() and the like end this stream, not the others.
            ended = StreamError(sync.name, f"stream '{sync.name}' ({sync.place}): {short(error)}")
            ended.__cause__ = error
            return True, ended
        return (None if stopper.raised else alive), None

    def _cut(self) -> None:
        self.pull.cut()

    def _failed(self, unit: Unit, error: BaseException | None) -> bool | None:
        """The unit can't go on: another try, or the next unit; None where the stream can't go on either."""
        sync, engine = self._sync, self._engine
        with engine.lock:
            written = unit.error
        # A tail function is called again by the tail, from where it has come to.
        if written is None and error is not None and not sync.pushes and is_retried(sync.spec, error, unit.retries):
            if engine.stopper.requested or sync.is_cut:
                return None  # stopped, before the next try
            try:
                self._try_again(unit, error)
            except Stop:
                return None
            except StreamError as failed:
                error = failed
            else:
                return True
        with engine.lock:
            if unit.error is None:
                unit.error = error
            if self.writing.unit is unit:
                self.writing.unit = None
            if unit in sync.open_units:
                sync.unit_ended(unit)
        if isinstance(unit.error, sync.fatal):
            raise unit.error
        if sync.ending or unit.key is None or engine.stopper.requested or sync.is_cut:
            return None
        self._close()
        self._renew(None)
        return True

    def _try_again(self, unit: Unit, error: BaseException) -> None:
        """The unit from its beginning once more, or from where its author says."""
        sync, root = self._sync, unit.root
        note(sync.spec, unit.where, error, unit.retries + 1, sync.retried)
        self._close()
        with self._engine.lock:
            unit.again()
            self.writing.unit = None
        session = self._engine.session
        with self._stopper.user_code():
            bookmark = set_up(session, sync.spec, root.given, error, unit.retries, run=root.context.run)
        unit.begin_at(bookmark)
        if unit.key is None and bookmark is None and not sync.resumable:
            with self._engine.lock:
                for outlet in sync.outlets.values():
                    outlet.versions.renew()
        self._renew(unit)

    def _finish(self) -> None:
        try:
            with self._engine.lock:
                if not self._engine.broken and self._engine.stopper.failure is None:
                    self.writing.process()
        finally:
            self._close()

    def _close(self) -> None:
        """End the user's generators; what they raise then is no error of the stream's."""
        try:
            with self._stopper.closing():
                self.pull.close()
        except Stop:
            logger.warning("stream '%s': its function did not come to its end when it was closed", self._sync.name)
        except (Exception, SystemExit, GeneratorExit, KeyboardInterrupt) as error:
            name = self._sync.name
            logger.warning("stream '%s': its function raised when it was closed: %s", name, short(error))

    def _acknowledge(self) -> None:
        if self._engine.acknowledgements.waiting and self._sync.kept is None:
            with contextlib.suppress(Stop), self._stopper.user_code():  # the rest is told at the end of the run
                self._engine.acknowledgements.call()

    # ---- from other threads ----------------------------------------------------------------------------

    def tick(self) -> None:
        """Rows that wait while user code blocks go out; called by the timer under the engine's lock.

        An error of the unit is kept, and the function is stopped where it can be, so that its lane goes on.
        """
        self.writing.process()
        unit = self.writing.unit
        if unit is not None and unit.error is not None:
            if self._sync.pushes and not self._warned:
                self._warned = True
                logger.warning("stream '%s': can't go on: %s", self._sync.name, short(unit.error))
            self._stopper.wake()
            self._engine.tell()  # whoever waits by stream.wait

    def wake(self) -> None:
        """Interrupt its user code, where it can be."""
        if not self.over:
            self._stopper.wake()

    def abandon(self, *, written: bool) -> None:
        """The run ends, and this lane's user code does not: what it has yielded goes out (where anything still can),
        nothing after that counts."""
        self.pull.cut()
        if written and not self._sync.has_hooks:
            self.writing.process()
        self.abandoned = True

    # ---- from user code --------------------------------------------------------------------------------

    def pause(self, seconds: float, until: Callable[[], bool]) -> None:
        """Let time pass for a function of the author's."""
        self._engine.pause(seconds, until)

    @property
    def stopping(self) -> bool:
        """Whether its functions are to come to their end."""
        unit = self.unit
        return self.over or not self._goes_on() or (unit is not None and unit.error is not None)

    def relieve(self) -> None:
        """Write what is in the page where user code has put much there at once; each row where nobody else would: of a
        tail function that may block for hours, with hooks that run in its own thread only."""
        if len(self.pull) < (1 if self._sync.pushes and self._sync.has_hooks else _MANY):
            return
        # A thread of the author's own is none that a signal interrupts.
        own = threading.get_ident() == self._thread
        with self._stopper.our_code() if own else contextlib.nullcontext(), self._engine.lock:
            self._write_now()
        unit = self.unit
        if unit is not None and unit.error is not None:
            raise unit.error
        if own and pace.full(self._sync):
            raise Enough

    def _write_now(self) -> None:
        if self._engine.stopper.failure is not None:
            return
        try:
            self.writing.process()
            self._sync.save_if_due()
        except BaseException as error:
            self._engine.stopper.fail(error)  # user code may eat it, or it may end a thread of the author's alone
            raise


class Enough(Stop):
    """As many rows are out as a limit allows, and user code has not come to a yield."""


def _opened(unit: Unit) -> Iterator[Any]:
    """What a unit's function gives, once somebody asks for the first of it."""
    given = unit.open()
    if given is not None:
        yield given
