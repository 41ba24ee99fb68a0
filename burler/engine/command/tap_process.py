"""One run of a tap's command: its files, what it writes, how it ends. Neither pipe ever blocks it but on purpose.
And what such runs say of the tap: its flags, its catalog."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from burler.engine.command import guard
from burler.engine.command.tap_command import PREFIX, TapCommand, program_of
from burler.errors import CatalogError, UsageError
from burler.singer.messages import encode

CONFIG, CATALOG, PROPERTIES, STATE = "--config", "--catalog", "--properties", "--state"
DISCOVER = "--discover"
FLAGS = (CONFIG, DISCOVER, CATALOG, PROPERTIES, STATE)
HELP_SECONDS = 60.0
"""A program that does not know ``--help`` may begin to work; it is ended then."""
MOST_HELP, MOST_CATALOG = 1 << 20, 1 << 28
_SHOWN = 120

_BLOCK_BYTES = 1 << 18
_PIPE_BYTES, _SMALL_PIPE_BYTES = 1 << 16, 4096
_HEAD_BYTES, _TAIL_BYTES = 1 << 16, 3 << 16
_LAST_LINES = 12
_NOT_THEIRS = ("PYTHON_WORKER_FACTORY_", "PYSPARK_GATEWAY_", "PYTHON_UDF_", "SPARK_AUTH")
"""What Spark tells its workers through the environment, some of it secret."""
_GUARD = (sys.executable, "-I", "-S", guard.__file__)


class TapProcess:
    """One run of a command; a context manager that leaves neither process nor file, also where this process is killed
    (see ``guard``).

    The tap is the first of its own process group, and reads nothing.

    Args:
        words: what to run; None: the command's own.
        files: flag -> the JSON that stands in a file of mode 0600 behind the flag; None leaves it out.
        needles: what must not stand on its stderr -> the name by which ``told`` has it.
        small_pipe: so that the tap stands at a full pipe after few rows, where the system allows it (Linux).
        grace_seconds: so long it has after SIGTERM; None: ``BURLER_GRACE_SECONDS``, else 5.
    """

    def __init__(
        self,
        command: TapCommand,
        words: tuple[str, ...] | None = None,
        *,
        files: Mapping[str, Any] | None = None,
        needles: Mapping[bytes, str] | None = None,
        small_pipe: bool = False,
        grace_seconds: float | None = None,
    ) -> None:
        self.command = command
        self._words = command.words if words is None else words
        self._files = {flag: content for flag, content in (files or {}).items() if content is not None}
        self._small = small_pipe
        self._grace = float(os.environ.get("BURLER_GRACE_SECONDS", "5")) if grace_seconds is None else grace_seconds
        self._said = _Stderr(needles or {})
        self._news: dict[str, str] = {}
        self._unheard = b""

    def __enter__(self) -> Self:
        """Raises: UsageError: the program is not here."""
        program, *more = self._words
        if os.sep not in program:
            program = program_of(program, f"command '{self.command.name}'")
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self.command.folder))
        self._heard, note = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*_GUARD, str(note), str(self._grace), str(self._folder), program, *more, *self._given()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={**own_environment(), **self.command.environment},
                pass_fds=(note,),
                pipesize=_SMALL_PIPE_BYTES if self._small else -1,
                start_new_session=True,
            )
        except BaseException:
            os.close(self._heard)
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        finally:
            os.close(note)
        self._started = time.monotonic()
        self._stdin, self._stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        self._listener = threading.Thread(target=self._listen, args=(stderr,), name="burler-stderr", daemon=True)
        self._listener.start()
        return self

    def _given(self) -> list[str]:
        """The flags and their files."""
        given: list[str] = []
        for flag, content in self._files.items():
            path = self._folder / f"{flag.lstrip('-')}.json"
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(_json(content))
            given += [flag, str(path)]
        return given

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close_output()
        if self._stdin is not None:
            self._stdin.close()  # the guard sees that, and ends what runs
        try:
            self._process.wait(timeout=2 * self._grace + 5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.returncode and self.pid is not None:  # the guard itself was killed
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
        os.close(self._heard)
        self._listener.join(timeout=1.0)  # for ever where a process has left the group and holds the pipe
        shutil.rmtree(self._folder, ignore_errors=True)

    # ---- what it writes -------------------------------------------------------------------------------------------

    @property
    def fd(self) -> int:
        """The descriptor of the tap's output, for who waits for it among other things."""
        assert self._stdout is not None
        return self._stdout.fileno()

    @property
    def pipe_bytes(self) -> int:
        """So much of what it wrote may be in the pipe, unread."""
        try:
            import fcntl

            return fcntl.fcntl(self.fd, fcntl.F_GETPIPE_SZ)
        except (ImportError, AttributeError, OSError):
            return _PIPE_BYTES

    def read(self, until: float | None = None, most: int = _BLOCK_BYTES) -> bytes | None:
        """The next piece of its output; b"" at its end; None if nothing came until then (``time.monotonic()``).

        Once the command has ended and the pipe is empty, that is the end: a process that has left its group may hold
        the pipe for hours.
        """
        while True:
            over = "ended" in self._news  # then all that it wrote is in the pipe
            ready = _ready((self.fd,) if over else (self.fd, self._heard), 0.0 if over else _left(until))
            if self.fd in ready:
                return os.read(self.fd, most)
            if over:
                return b""
            if self._heard in ready:
                self._hear(0.0)
            elif until is not None and time.monotonic() >= until:
                return None

    def output(self, within_seconds: float | None = None, most: int | None = None) -> bytes:
        """All that it writes; what comes later, or is more, is left."""
        until = None if within_seconds is None else time.monotonic() + within_seconds
        blocks: list[bytes] = []
        while (most is None or sum(map(len, blocks)) <= most) and (block := self.read(until)):
            blocks.append(block)
        return b"".join(blocks)

    def close_output(self) -> None:
        """From here on nobody reads what it writes."""
        if self._stdout is not None:
            self._stdout.close()

    @property
    def stderr(self) -> bytes:
        """What it has said there; where that was long, without its middle. It may hold secrets."""
        return self._said.content

    @property
    def told(self) -> tuple[str, ...]:
        """Which of the needles stood on its stderr, by name."""
        return tuple(self._said.told)

    def last_words(self) -> str:
        """The end of what it has said on stderr, in one line, without secrets; "nothing" if there was none."""
        return self.command.end_of(self.stderr, lines=_LAST_LINES)

    # ---- how it ends ----------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Since it was started."""
        return time.monotonic() - self._started

    @property
    def exited(self) -> bool:
        """Whether the command itself has ended; what it started may go on."""
        self._hear(0.0)
        return "ended" in self._news

    def wait(self, until: float | None = None) -> bool:
        """Read nothing until it has ended (True) or time is over.

        Raises:
            UsageError: the system refused to start it.
        """
        while not self.exited:
            if until is not None and time.monotonic() >= until:
                return False
            self._hear(_left(until))
        self._listener.join(timeout=1.0)
        if "refused" in self._news:
            raise UsageError(f"{self.command.shown}: can't be started: {self._news['refused']}.")
        return True

    @property
    def exit_code(self) -> int:
        """Negative: by that signal. It must have ended."""
        return int(self._news["ended"])

    def end(self) -> int:
        """Wait for its end, and for what it has to say; the exit code. Its output must have been read."""
        self.wait()
        return self.exit_code

    def failure(self, after: str = "") -> str:
        """How it ended, for errors."""
        code = self.exit_code if self.exit_code >= 0 else 128 - self.exit_code
        return f"command '{self.command.name}' ended with code {code}{after}. It said last: {self.last_words()}"

    def left(self) -> tuple[str, ...]:
        """The processes that it has left in its group, by name, once they had a moment to end; it must have ended."""
        while "left" not in self._news:
            self._hear(None)
        return tuple(filter(None, self._news["left"].split("\0")))

    @property
    def pid(self) -> int | None:
        """Its process, the first of its group; None if it was never started."""
        while not self._news:
            self._hear(None)
        return int(self._news["started"]) if "started" in self._news else None

    def terminate(self) -> None:
        """SIGTERM for the command alone, as schedulers and containers do it."""
        if self.pid is not None and not self.exited:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def _hear(self, seconds: float | None) -> None:
        """Take in what the guard has to tell."""
        if "left" in self._news or not _ready((self._heard,), seconds):
            return
        block = os.read(self._heard, _BLOCK_BYTES)
        *lines, self._unheard = (self._unheard + block).split(b"\n")
        for line in lines:
            word, _, rest = line.decode("utf-8", "replace").partition(" ")
            self._news[word] = rest
        if not block:  # somebody has killed it
            self._news = {"ended": str(-signal.SIGKILL), "left": "", **self._news}

    def _listen(self, stderr: IO[bytes]) -> None:
        with stderr:
            while block := stderr.read(_BLOCK_BYTES):
                self._said.take(block)


class _Stderr:
    """What a process says there: its beginning, its end, and which of the needles stood in it."""

    def __init__(self, needles: Mapping[bytes, str]) -> None:
        self._needles = needles
        longest_first = sorted(needles, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, longest_first))) if needles else None
        self._overlap = max(map(len, needles), default=1) - 1
        self._head, self._tail, self._cut = b"", b"", False
        self.told: dict[str, None] = {}

    def take(self, block: bytes) -> None:
        """One more piece."""
        if self._pattern is not None:
            before = (self._head + self._tail)[-self._overlap :] if self._overlap else b""
            for found in self._pattern.findall(before + block):
                self.told.setdefault(self._needles[found])
        room = _HEAD_BYTES - len(self._head)
        self._head += block[:room]
        self._tail += block[room:] if room > 0 else block
        if len(self._tail) > _TAIL_BYTES:
            self._tail, self._cut = self._tail[-_TAIL_BYTES:], True

    @property
    def content(self) -> bytes:
        """What was said; where it was long, without its middle."""
        return self._head + (b"\n[...]\n" if self._cut else b"") + self._tail


def _json(value: Any) -> bytes:
    try:
        return encode(value)
    except ValueError:  # half of a surrogate pair
        return json.dumps(value).encode()


def own_environment() -> dict[str, str]:
    """This process's own, less what Spark tells its workers and nobody else."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_THEIRS)}
    path = [part for part in kept.get("PYTHONPATH", "").split(os.pathsep) if part and not _is_sparks(part)]
    kept.pop("PYTHONPATH", None)
    return {**kept, "PYTHONPATH": os.pathsep.join(path)} if path else kept


def _is_sparks(part: str) -> bool:
    """Whether an entry of PYTHONPATH is Spark's: a tap may live in an environment that has another one."""
    name = Path(part).name
    return name == "pyspark.zip" or (name.startswith("py4j-") and name.endswith(".zip")) or name.endswith(".jar")


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - time.monotonic())


def _ready(fds: tuple[int, ...], seconds: float | None) -> set[int]:
    """Those that can be read, once there is one or time is over."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return {fd for fd, _ in poll.poll(None if seconds is None else seconds * 1000)}


# ---- what it says of itself ----------------------------------------------------------------------------------------


def flags_of(command: TapCommand, *, deadline_seconds: float | None = HELP_SECONDS) -> frozenset[str]:
    """Which of Singer's flags a command knows, as its ``--help`` names them.

    Where that fails or names none, all but ``--properties`` are assumed: taps of today know them. One of
    ``--catalog`` and ``--properties`` is always among them.
    """
    until = None if deadline_seconds is None else time.monotonic() + deadline_seconds
    with TapProcess(command, (*command.words, "--help")) as tap:
        text = tap.output(deadline_seconds, MOST_HELP)
        in_time = tap.wait(until)
        text += b"\n" + tap.stderr
    found = {flag for flag in FLAGS if re.search(rb"(?<![\w-])" + flag.encode() + rb"(?![\w-])", text)}
    if not in_time or not found:
        found = set(FLAGS) - {PROPERTIES}
    if not found & {CATALOG, PROPERTIES}:
        found.add(CATALOG)
    if command.discover_words is not None:
        found.add(DISCOVER)
    return frozenset(found)


def discover(command: TapCommand, config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The catalog that discovery prints.

    Raises:
        CatalogError: the tap failed, or printed no catalog.
    """
    with TapProcess(command, command.discovering, files={CONFIG: config}) as tap:
        text = tap.output(most=MOST_CATALOG)
        if tap.end():
            raise CatalogError(f"discovery: {tap.failure()}. Run it by itself, with {DISCOVER}, to see more")
    found, noise = split_catalog(text)
    if found is None:
        shown = command.clean(noise[:_SHOWN].replace("\n", " ")) or "nothing"
        raise CatalogError(
            f"command '{command.name}': {DISCOVER} printed no catalog but: {shown}. Give a catalog where the tap can't "
            "discover"
        )
    return found


def split_catalog(text: bytes) -> tuple[dict[str, Any] | None, str]:
    """The catalog in what discovery has printed, and what else stood there; None if there is no catalog."""
    shown = text.decode("utf-8", "replace").removeprefix("\ufeff")
    decoder = json.JSONDecoder()
    at = shown.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(shown, at)
        except (ValueError, RecursionError):
            value, end = None, at + 1
        if isinstance(value, dict) and isinstance(value.get("streams"), list):
            return value, (shown[:at].strip() + "\n" + shown[end:].strip()).strip()
        at = shown.find("{", end if value is not None else _next_line(shown, at))
    return None, shown.strip()


def _next_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
