"""The query's side of the pump: started when it is first needed, heard of, and ended with the query."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from typing import IO, Any

from burler import errors
from burler.engine.command.tap_process import own_environment
from burler.errors import BurlerError, StreamError
from burler.spark.streaming.pump import Work

_START = "from burler.spark.streaming.pump import start; start()"
_LEAVE_SECONDS = 5.0


class Pumping:
    """A pump that runs. It ends by itself when this process ends, however that happens."""

    def __init__(self, work: Work, *, stream: str) -> None:
        self._stream = stream
        self._said: list[dict[str, Any]] = []
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(),
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._listener = threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True)
        self._listener.start()
        with contextlib.suppress(BrokenPipeError):  # it ended at once: what it said tells why
            self._process.stdin.write(work.to_line())
            self._process.stdin.flush()

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone and all it said has been heard."""
        return self._process.poll() is not None and not self._listener.is_alive()

    @property
    def failure(self) -> BurlerError | None:
        """Why it ended; None while it runs and where it ended well."""
        if not self.has_ended:
            return None
        last = self._said[-1] if self._said else {}
        if last.get("event") == "ended":
            return None
        text = last.get("text") or (
            f"stream '{self._stream}': the process that runs the tap ended with code {self._process.returncode}. "
            "Its log is on the driver's stderr; start the query again, nothing is lost."
        )
        kind = getattr(errors, str(last.get("kind")), None)
        if isinstance(kind, type) and issubclass(kind, StreamError):
            return StreamError(self._stream, text)
        if isinstance(kind, type) and issubclass(kind, errors.UsageError):
            return errors.UsageError(text)
        return BurlerError(text)

    def stop(self) -> None:
        """End it: it has some seconds to commit what it holds. Safe to call again."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is self._process.stdin and pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_LEAVE_SECONDS)
            self._listener.join(timeout=1.0)

    def _listen(self, said: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError), said:
            for line in said:
                with contextlib.suppress(ValueError):
                    self._said = [*self._said[-10:], json.loads(line)]


def _environment() -> dict[str, str]:
    """This process's own, with the folders in which it finds modules: apps that were sent along with the session."""
    own = tuple({sys.prefix, sys.base_prefix})
    path = [part for part in sys.path if part and not part.startswith(own)]
    return {**own_environment(), **({"PYTHONPATH": os.pathsep.join(path)} if path else {})}
