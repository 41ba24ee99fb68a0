"""The decorators of tail mode: sources that push, sources that call, and sources that are told what is out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, Unpack

from burler.call import caller, place_of, wanted
from burler.declare import registry as reg
from burler.declare.options import NOT_GIVEN, StreamOptions, check_name
from burler.declare.parts import Parts
from burler.declare.spec import UserFunction

Function = TypeVar("Function", bound=Callable[..., Any])


class TailParts(Parts):
    """The part of :class:`burler.Tap` that is about tail runs (tail-mode proposal)."""

    def tail(
        self, stream: str = NOT_GIVEN, *, overlap: bool = False, **options: Unpack[StreamOptions]
    ) -> Callable[[Function], Function]:
        """Decorator: the function of a source that pushes (a queue, a socket, a replication log). It is called in a
        tail run only, and as a rule never returns by itself.

        It may ask for ``client, config, state, catalog, stream`` and yields what a sync function may yield. Where
        there is a sync function, too, that one brings all rows up to now first; then this one goes on, and each time
        that it ends or fails, the same again. A stream without one is left out of plain runs, and is LOG_BASED unless
        it says otherwise: its rows are never the whole table.

        Args:
            overlap: for a source that can't give again what it sent: this function is called first, subscribes, and
                then calls ``yield from stream.catch_up()``, the rows of the sync function. A few rows come twice, and
                none is lost.

        Raises:
            DeclarationError: no stream's name, unknown options or parameters, a function that can give nothing.
        """
        check_name(stream, caller().place, decorator="tail")

        def decorate(fn: Function) -> Function:
            names = wanted(fn, reg.TAIL_PARAMETERS, what=f"the tail function of '{stream}'")
            where = place_of(fn)
            self._registry.check_open(where)
            self._registry.check_free(stream, "tail", place=where)  # before its options, as in ``sync``
            self._registry.declare_options(stream, options, place=where, beside=("overlap",))
            self._registry.declare(stream, "tail", UserFunction(fn, names, where), place=where)
            self._registry.declare_overlap(stream, overlap, place=where)
            return fn

        return decorate

    def wake(self, stream: str = NOT_GIVEN) -> Callable[[Function], Function]:
        """Decorator: a generator that yields whenever the stream should be polled at once, in a tail run (LISTEN and
        NOTIFY, a file that changed, a webhook); what it yields does not matter.

        It may ask for ``client, config, stream``, runs in a thread of its own, and yields once when it is subscribed.
        The stream is polled at its interval as well, so a lost call costs time, never rows.

        Raises:
            DeclarationError: no stream's name, unknown parameters, a function without ``yield``.
        """
        return self._part(stream, "wake", reg.WAKE_PARAMETERS)

    def acknowledge(self, stream: str = NOT_GIVEN) -> Callable[[Function], Function]:
        """Decorator: a function that is called after a STATE that moved the stream has been written: to tell a queue
        or a log how far it may forget. It may ask for ``bookmark, state, stream, client, config``.

        It proves that the line left the tap (with a lake: that the data is committed), not that a target stored it.
        With the setting ``acknowledge_state_file`` it is called with what that file confirms only.
        """
        return self._part(stream, "acknowledge", reg.ACKNOWLEDGE_PARAMETERS)

    def ack(self, stream: str = NOT_GIVEN) -> Callable[[Function], Function]:
        """The same as ``acknowledge``."""
        return self._part(stream, "acknowledge", reg.ACKNOWLEDGE_PARAMETERS, decorator="ack")
