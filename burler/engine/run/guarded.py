"""The sink as the engine sees it: once it has failed, nothing more is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burler.engine.run.stop import Reason, StopToken
from burler.errors import BatchError
from burler.singer.messages import Message
from burler.sinks.base import Forward, Sink


class GuardedSink(Forward):
    """The sink; when it fails, the run's token says so: after that nothing may be written, least of all a STATE."""

    def __init__(self, sink: Sink, stop: StopToken) -> None:
        super().__init__(sink)
        self._stop = stop

    def _do(self, action: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        if self._stop.reason >= Reason.LEFT_BEHIND:
            return  # a thread that has not heard of it: what it writes would stand behind a hole, or the end
        try:
            action(*args, **kwargs)
        except BatchError:
            raise  # a row that a file can't hold: it was not taken, and its stream ends
        except BaseException as error:
            self._stop.fail(error)
            raise

    def write(self, message: Message) -> None:
        """See ``Sink.write``."""
        self._do(self._sink.write, message)

    def flush(self) -> None:
        """See ``Sink.flush``."""
        self._do(self._sink.flush)

    def settle(self) -> None:
        """See ``Sink.settle``."""
        self._do(self._sink.settle)

    def tick(self) -> None:
        """See ``Sink.tick``."""
        self._do(self._sink.tick)

    def close(self, *, complete: bool) -> None:
        """See ``Sink.close``."""
        complete = complete and self._stop.error is None
        self._stop.stop(Reason.LEFT_BEHIND)
        try:
            self._sink.close(complete=complete)
        except BaseException as error:
            self._stop.fail(error)
            raise
