"""The timer: what is due while user code blocks. Rows that wait go out, a STATE that is due comes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from burler.events import Tick

if TYPE_CHECKING:
    from burler.engine.run.sync import Engine
    from burler.engine.tail.tail import Tail

_PUSHED_SECONDS, _POLLED_SECONDS = 0.05, 0.2  # rows of a tail whose function blocks wait no longer
_SINK_SECONDS = 1.0


class Timer(threading.Thread):
    """Hands on rows that wait while user code blocks, and lets the sink do what is due by age."""

    def __init__(self, engine: Engine, tail: Tail | None) -> None:
        super().__init__(name="burler-timer", daemon=True)
        self._engine = engine
        self._tail = tail
        self._over = threading.Event()

    def run(self) -> None:
        """Tick until stopped."""
        engine, tail = self._engine, self._tail
        if tail is not None:
            threading.Thread(target=self._tell, name="burler-show", daemon=True).start()
        age = engine.settings.page_max_age_seconds
        period = age if tail is None else min(age, _PUSHED_SECONDS if tail.pushes else _POLLED_SECONDS)
        every = max(1, round(min(age, _SINK_SECONDS) / period))
        count = 0
        while not self._over.wait(self._until_due(period)):
            count += 1
            whole = count % every == 0
            if not whole and not engine.running and engine.ledger.uncovered_since is None:
                continue  # nothing can be due
            with engine.lock:
                if self._over.is_set() or engine.stop.error is not None:
                    return
                try:
                    self._tick(whole=whole)
                except BaseException as error:
                    engine.stopper.fail(error)
                    return
            if tail is not None:
                tail.tell_if_over()

    def _tell(self) -> None:
        """Ticks of a tail, in a thread of its own: whoever reads stderr may be slow."""
        while not self._over.wait(_SINK_SECONDS):
            self._engine.events.tell(Tick())

    def _until_due(self, period: float) -> float:
        """Until the next tick; a STATE is not late for it."""
        due = self._tail.state_due if self._tail is not None else None
        return period if due is None else max(0.001, min(period, due - self._engine.clock.monotonic()))

    def _tick(self, *, whole: bool) -> None:
        engine, tail = self._engine, self._tail
        if whole:
            engine.session.save_config()
        for run in list(engine.running):
            run.tick()
        if tail is not None:
            if engine.running:
                engine.sink.flush()
            tail.tick(whole=whole)
        if whole:
            engine.sink.tick()

    def stop(self) -> None:
        """End, and wait for a tick that is under way."""
        self._over.set()
        self.join()
