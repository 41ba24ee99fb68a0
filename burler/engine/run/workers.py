"""Threads that work beside the one that started them."""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from burler.engine.run.signals import Stopper
from burler.engine.run.stop import Reason, StopToken

GRACE_SECONDS = 1.0
"""How long a run that is to end waits for threads whose user code may be at its ``finally`` blocks."""

_LOOK_SECONDS = 0.05


class Crew:
    """Threads of one purpose. They are daemons: one that is blocked in user code can't be woken, and must not keep the
    process from ending."""

    def __init__(self, stop: StopToken, *, name: str) -> None:
        self._stop = stop
        self._name = name
        self._ended = threading.Condition()
        self._busy = 0
        self._started = 0

    def start(self, action: Callable[[], None]) -> None:
        """Run ``action`` in a thread of its own, in an empty context: what is bound here is no concern of it."""
        with self._ended:
            self._busy += 1
            self._started += 1

        def work() -> None:
            try:
                contextvars.Context().run(action)
            finally:
                with self._ended:
                    self._busy -= 1
                    self._ended.notify_all()

        threading.Thread(target=work, name=f"{self._name}-{self._started}", daemon=True).start()

    def wait(self) -> bool:
        """Wait until all have ended: True. Where the run, or a round, is to end, no longer than a moment: False if some
        are still busy then."""
        deadline: float | None = None
        while True:
            with self._ended:
                if not self._busy:
                    return True
                # Short waits: a signal's handler runs between them, and says that the run is to end.
                self._ended.wait(_LOOK_SECONDS)
                if not self._busy:
                    return True
            if self._stop.reason >= Reason.CUT:
                deadline = deadline or time.monotonic() + GRACE_SECONDS
                if time.monotonic() >= deadline:
                    return False


class Undisturbed(Stopper):
    """Stands for a stopper in threads that no signal reaches: whoever runs there looks at the token by itself."""

    @contextlib.contextmanager
    def user_code(self, token: StopToken | None = None) -> Iterator[None]:
        """Nothing is raised here."""
        yield

    def run(self, action: Callable[[], Any], token: StopToken, on_raise: Callable[[], None] = lambda: None) -> Any:
        """Nothing is raised here."""
        return action()

    @contextlib.contextmanager
    def closing(self, token: StopToken) -> Iterator[None]:
        """Nothing is raised here."""
        yield


def stopper_here(stopper: Stopper) -> Stopper:
    """The stopper for workers of this thread."""
    return stopper if threading.current_thread() is threading.main_thread() else Undisturbed()
