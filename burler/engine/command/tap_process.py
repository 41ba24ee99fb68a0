"""A Singer tap's command as a process: found, started with its files, read, and never left behind."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from burler.config.secrets import scrub, secret_values
from burler.errors import UsageError
from burler.logs import without_time
from burler.singer.messages import encode
from burler.spark.source import guard

logger = logging.getLogger(__name__)

_BLOCK_BYTES = 1 << 18
_TAIL_LINES = 12
_LINE_CHARACTERS = 400
_TOLD_CHARACTERS = 1200
_NOT_THEIRS = ("PYTHON_WORKER_FACTORY_", "PYSPARK_GATEWAY_", "PYTHON_UDF_", "SPARK_AUTH")
"""What Spark tells its workers through the environment, some of it secret."""

_GUARD = (sys.executable, "-I", "-S", guard.__file__)

CONFIG, CATALOG, PROPERTIES, STATE = "--config", "--catalog", "--properties", "--state"


@dataclass(frozen=True, slots=True)
class Command:
    """A tap's command.

    Attributes:
        text: as it was given. words: the program, with its whole path, and its arguments.
    """

    text: str = field(repr=False)
    words: tuple[str, ...] = field(repr=False)

    @property
    def name(self) -> str:
        """What is run, for errors: the program, of Python's the script or module. Other arguments may hold what nobody
        should read."""
        program, *more = self.words
        if not (Path(program).name.startswith("python") and more):
            return Path(program).name
        script = more[1] if more[0] == "-m" and len(more) > 1 else more[0]
        return "python" if script.startswith("-") else Path(script).name

    @property
    def beginning(self) -> str:
        """The same as a person would type it: ``python -m tap_x`` for the module ``tap_x``."""
        program, *more = self.words
        if not (Path(program).name.startswith("python") and more) or self.name == "python":
            return self.name
        return f"{Path(program).name} -m {more[1]}" if more[0] == "-m" else f"{Path(program).name} {more[0]}"


def find(text: str) -> Command:
    """The command that a text names. It is split as a shell would split it, and no shell ever sees it.

    The program is looked for on PATH, then beside this Python.

    Raises:
        UsageError: no words, quotes that do not close, or no such program.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"format 'burler': option 'exec' can't be split into words: {error}.") from None
    if not words:
        raise UsageError("format 'burler': option 'exec' is empty. Give a tap's command, such as \"tap-gitlab\".")
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    program = shutil.which(words[0], path=path)
    if program is None:
        raise UsageError(
            f"format 'burler': option 'exec': there is no program '{words[0]}' on {os.uname().nodename}. "
            "Install the tap where the executors run, or give the program's whole path."
        )
    return Command(text, (str(Path(program).absolute()), *words[1:]))


class Running:
    """One run of a command; a context manager that leaves neither process nor file.

    Args:
        command: what to run. arguments: what stands behind it.
        files: flag -> the JSON that stands in a file of mode 0600 behind the flag; None leaves it out.
        config: what the log and errors must not show.
    """

    def __init__(
        self,
        command: Command,
        arguments: Sequence[str] = (),
        *,
        files: Mapping[str, Mapping[str, Any] | None],
        config: Mapping[str, Any],
    ) -> None:
        self.command = command
        self._arguments = arguments
        self._files = files
        self._secrets = tuple(secret_values(config))
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)

    def __enter__(self) -> Running:
        self._folder = Path(tempfile.mkdtemp(prefix="burler-exec-"))
        try:
            given = [part for flag, content in self._files.items() for part in self._written(flag, content)]
            self._process = subprocess.Popen(
                [*_GUARD, str(self._folder), *self.command.words, *self._arguments, *given],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment(),
            )
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        assert self._process.stderr is not None
        self._listener = threading.Thread(target=self._listen, args=(self._process.stderr,), daemon=True)
        self._listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def fd(self) -> int:
        """The descriptor of the tap's output, for who waits for it among other things."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def blocks(self, within_seconds: float | None = None) -> Iterator[bytes]:
        """Yield what the tap writes, as it comes.

        Args:
            within_seconds: after so many, what comes later is left; None: nothing is.
        """
        fd, end = self.fd, None if within_seconds is None else time.monotonic() + within_seconds
        poll = select.poll()
        poll.register(fd, select.POLLIN | select.POLLHUP)
        while end is None or poll.poll(max(0.0, end - time.monotonic()) * 1000):
            block = os.read(fd, _BLOCK_BYTES)
            if not block:
                return
            yield block

    def end(self) -> int:
        """Wait for the tap's end; its exit code. Its output must have been read."""
        code = self._process.wait()
        self._listener.join(timeout=1.0)
        return code

    def stop(self) -> None:
        """End the tap if it runs, and whatever it has started: it has some seconds for it."""
        process = self._process
        for pipe in (process.stdin, process.stdout):  # the guard sees the first one close
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        try:
            process.wait(timeout=guard.GRACE_SECONDS + 5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._listener.join(timeout=1.0)
        assert process.stderr is not None
        process.stderr.close()

    def last_words(self) -> str:
        """The end of what the tap has said on stderr, in one line, without secrets."""
        said = " | ".join(self._tail)
        return said[-_TOLD_CHARACTERS:] if said else ""

    def without_secrets(self, text: str) -> str:
        """A text of the tap's that may be shown."""
        return scrub(text, self._secrets)

    def _written(self, flag: str, content: Mapping[str, Any] | None) -> list[str]:
        if content is None:
            return []
        path = self._folder / f"{flag.lstrip('-')}.json"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(encode(content))
        return [flag, str(path)]

    def _listen(self, stderr: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):  # it was closed meanwhile
            for line in stderr:
                text = without_time(self.without_secrets(line.decode("utf-8", "replace").strip()))
                if text:
                    self._tail.append(text[:_LINE_CHARACTERS])
                    logger.debug("%s: %s", self.command.name, text)


def _environment() -> dict[str, str]:
    """This process's own, less what Spark tells its workers and nobody else."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_THEIRS)}
    path = [part for part in kept.get("PYTHONPATH", "").split(os.pathsep) if part and not _is_sparks(part)]
    kept.pop("PYTHONPATH", None)
    return {**kept, "PYTHONPATH": os.pathsep.join(path)} if path else kept


def _is_sparks(part: str) -> bool:
    """Whether an entry of PYTHONPATH is Spark's: a tap may live in an environment that has another one."""
    name = Path(part).name
    return name == "pyspark.zip" or (name.startswith("py4j-") and name.endswith(".zip")) or name.endswith(".jar")
