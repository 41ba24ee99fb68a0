"""Whether something is to end, and why: one token for a run, children of it for what runs in it."""

from __future__ import annotations

import enum


class Reason(enum.IntEnum):
    """Why something is to end. Of several the greatest counts."""

    NONE = 0
    ENDED = 1
    """It can't go on, or need not; what it has given counts."""
    CUT = 2
    """A round of a tail is to end, and the tail goes on."""
    STOPPED = 3
    """The run is to end."""
    LEFT_BEHIND = 4
    """The run goes on, or has ended, without it: nothing counts that it still gives."""
    FAILED = 5
    """Nothing can be written any more."""


class StopToken:
    """Asked by whoever works, set by whoever knows; what a parent is told holds for all below it.

    Below a run's own (``Stopper.stop``) hang the engine's, under which the sink is written, and in a tail the one that
    lasts until the next SIGHUP. A family's (``Job``) hangs below one of these two, a worker's below that, and below
    that the one of a try of a task.

    Setting it takes no lock, so that a signal's handler may. ``error`` is the first one after which nothing can be
    written.
    """

    __slots__ = ("_error", "_parent", "_reason")

    def __init__(self, parent: StopToken | None = None) -> None:
        self._parent = parent
        self._reason = Reason.NONE
        self._error: BaseException | None = None

    def child(self) -> StopToken:
        """A token of something that runs inside of this."""
        return StopToken(self)

    @property
    def reason(self) -> Reason:
        """Why to end; ``Reason.NONE``, which is false, as long as there is none."""
        found, above = self._reason, self._parent
        while above is not None:
            if above._reason > found:
                found = above._reason
            above = above._parent
        return found

    def stop(self, reason: Reason) -> None:
        """It is to end. A reason that is told already stays if it is the greater one."""
        if reason > self._reason:
            self._reason = reason

    def fail(self, error: BaseException) -> None:
        """Nothing can be written any more, in the whole run: no row, and least of all a STATE."""
        if self._parent is not None:
            self._parent.fail(error)
            return
        if self._error is None:
            self._error = error
        self.stop(Reason.FAILED)

    @property
    def error(self) -> BaseException | None:
        """What the whole run has failed with."""
        return self._parent.error if self._parent is not None else self._error
