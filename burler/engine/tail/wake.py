"""Wake functions: each thing that one yields makes its stream be polled at once."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from burler import logs
from burler.context import Channel, call_bound
from burler.declare.spec import UserFunction
from burler.engine.run.stop import StopToken
from burler.engine.tail.retries import Tries

if TYPE_CHECKING:
    from burler.engine.tail.sources import Source
    from burler.engine.tail.tail import Tail

logger = logging.getLogger(__name__)


def wake_loop(tail: Tail, source: Source, stop: StopToken) -> None:
    """Run a stream's wake function, again and again; in a thread of its own. Where it fails, the polling interval is
    what is left, so it is tried again for ever."""
    engine = tail.engine
    tries = Tries(engine.settings)
    while not stop.reason and source.due is not None:
        try:
            _listen(tail, source, stop, tries)
            wait = source.interval_seconds
        except (Exception, SystemExit) as error:
            if stop.reason:
                return
            tries.failed(error)
            wait = tries.wait_seconds()
            logger.warning(
                "stream '%s': its wake function failed; it is polled all the same, and listened to again in %.1f s: %s",
                source.name,
                wait,
                logs.short(error),
            )
        _pause(tail, wait, lambda: bool(stop.reason))


def _pause(tail: Tail, seconds: float, until: Callable[[], bool]) -> None:
    """Let time pass, beside the polls."""
    tail.engine.pause(seconds, until, clock=tail.engine.clock.beside)


def _listen(tail: Tail, source: Source, stop: StopToken, tries: Tries) -> None:
    engine, function = tail.engine, source.planned.spec.wake
    assert function is not None
    run = engine.session.describing(source.name)
    run._channel = _WakeChannel(tail, stop)
    begun, held = engine.clock.beside.monotonic(), contextlib.ExitStack()

    def client() -> Any:
        number, made = engine.session.clients.get()
        held.enter_context(engine.session.clients.held(number))
        return made

    run._client = client
    given = engine.session.given(stream=lambda: run, client=client)
    items: Any = None
    try:
        items = call_bound(run, lambda: _called(tail, function, given, source.name))
        while not stop.reason:
            try:
                call_bound(run, lambda: next(items))
            except StopIteration:
                return
            if engine.clock.beside.monotonic() - begun > source.interval_seconds:
                tries.good()  # it was connected and has worked
            tail.poll_now(source)
    finally:
        if items is not None:
            items.close()
        held.close()


def _called(tail: Tail, function: UserFunction, given: Any, name: str) -> Any:
    return iter(tail.engine.session.invoke(function, given, stream=name))


class _WakeChannel(Channel):
    """What ``stream`` offers in a wake function: whether to end, and a sleep that ends with it."""

    def __init__(self, tail: Tail, stop: StopToken) -> None:
        self._tail = tail
        self._stop = stop

    def stopping(self) -> bool:
        """Whether the function is to come to its end."""
        return bool(self._stop.reason)

    def wait(self, seconds: float) -> bool:
        """Sleep no longer than until then."""
        _pause(self._tail, seconds, self.stopping)
        return self.stopping()
