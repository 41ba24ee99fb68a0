"""The command line in a test: ``code, out, err = burler("run", "tap_x.py", cwd=folder)``, in this process.

``burler_process`` takes the same and gives the same from a process of its own: for what is said of processes, as
signals, exit by the interpreter, or which modules are loaded.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from burler import Tap, __main__
from support import internals

PYTHON = sys.executable


def environment(**more: str) -> dict[str, str]:
    """This process's environment, less what would change a tap's config; every warning is an error."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TAP_", "BURLER_", "LOGGING_"))}
    kept.pop("PYTHONUNBUFFERED", None)
    return {**kept, "PYTHONWARNINGS": "error", **more}


_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (?=[A-Z]+ )", re.MULTILINE)


def without_times(log: str) -> str:
    """A log without the times that its lines begin with."""
    return _TIME.sub("", log)


class _Outcome(NamedTuple):
    code: int
    stdout: bytes
    stderr: str


class Ended(_Outcome):
    """How a command ended; ``stderr`` is without the times of its log lines."""

    __slots__ = ()

    def __new__(cls, code: int, stdout: bytes, stderr: str) -> Ended:
        return super().__new__(cls, code, stdout, without_times(stderr))

    @property
    def text(self) -> str:
        """stdout as text."""
        return self.stdout.decode()

    @property
    def messages(self) -> list[dict[str, Any]]:
        """stdout as messages; fails on anything that is no whole line of JSON."""
        return messages_of(self.stdout)

    def lines(self, level: str) -> list[str]:
        """The lines of stderr of one level, without it."""
        return [line.partition(" ")[2] for line in self.stderr.splitlines() if line.startswith(level + " ")]

    def one_critical(self) -> str:
        """The one CRITICAL message, with the lines that belong to it: at most three, and no traceback."""
        assert "Traceback" not in self.stderr, self.stderr
        assert len(self.lines("CRITICAL")) == 1, self.stderr
        text = self.stderr[self.stderr.index("CRITICAL ") :].strip()
        text = re.split(r"\n(?=(?:INFO|WARNING|ERROR|CRITICAL) )", text)[0]
        assert len(text.splitlines()) <= 3, text
        return text


def messages_of(stdout: bytes) -> list[dict[str, Any]]:
    """Whole lines of JSON, each a message."""
    assert not stdout or stdout.endswith(b"\n"), f"a torn line: {stdout[-200:]!r}"
    found = [json.loads(line) for line in stdout.split(b"\n")[:-1]]
    assert all(isinstance(message, dict) and "type" in message for message in found)
    return found


def burler(*args: Any, cwd: Path | None = None, timeout: float = 60, stdin: bytes = b"", **env: str) -> Ended:
    """``burler ...`` in this process, with stdin, stdout and stderr of its own.

    ``timeout`` is there for the sake of ``burler_process``. Modules that the command loads from ``cwd`` are forgotten.
    """

    def command() -> None:
        sys.argv = ["burler", *map(str, args)]
        __main__.main()

    return _in_this_process(command, cwd, stdin, env)


def script(tap: Any, *args: Any, cwd: Path | None = None, stdin: bytes = b"", **env: str) -> Ended:
    """A tap's own command in this process, of its file, as ``python tap_x.py ...``, or of a ``Tap`` that is there."""

    def command() -> None:
        if isinstance(tap, Tap):
            tap.cli([str(arg) for arg in args])
        sys.argv = [str(tap), *map(str, args)]
        sys.path.insert(0, str((Path.cwd() / tap).parent))
        runpy.run_path(str(tap), run_name="__main__")

    return _in_this_process(command, cwd, stdin, env)


def _in_this_process(command: Callable[[], None], cwd: Path | None, stdin: bytes, env: dict[str, str]) -> Ended:
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        files[0].write(stdin)
        files[0].seek(0)
        stack.enter_context(_as_it_was())
        # A tail ends its process two seconds later, whatever still runs there: not this one.
        stack.enter_context(mock.patch.object(internals.cli_process, "end_within", lambda *_given: None))
        stack.enter_context(contextlib.chdir(cwd or Path.cwd()))
        given = environment(**env)
        os.environ.clear()
        os.environ.update(given)
        with _streams(files):
            code = 0
            try:
                command()
            except SystemExit as ended:
                code = int(ended.code or 0)
        outputs = []
        for file in files[1:]:
            file.seek(0)
            outputs.append(file.read())
    return Ended(code, outputs[0], outputs[1].decode())


def burler_process(*args: Any, cwd: Path | None = None, timeout: float = 60, stdin: bytes = b"", **env: str) -> Ended:
    """``python -m burler ...`` to its end."""
    return python("-m", "burler", *args, cwd=cwd, timeout=timeout, stdin=stdin, **env)


def python(*args: Any, cwd: Path | None = None, timeout: float = 60, stdin: bytes = b"", **env: str) -> Ended:
    """Python to its end."""
    done = subprocess.run(
        [PYTHON, *map(str, args)],
        cwd=cwd,
        env=environment(**env),
        input=stdin,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr.decode())


def shell(command: str, cwd: Path, timeout: float = 60, **env: str) -> Ended:
    """A line of bash; ``$BURLER`` is the command. Its code is that of the first program of the pipe."""
    done = subprocess.run(
        ["bash", "-c", command + "\nexit ${PIPESTATUS[0]}"],
        cwd=cwd,
        env=environment(BURLER=f"{PYTHON} -m burler", **env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr.decode())


@contextlib.contextmanager
def _streams(files: list[Any]) -> Iterator[None]:
    """File descriptors 0 to 2 are these files."""
    saved = [os.dup(fd) for fd in range(3)]
    python_has = sys.stdin, sys.stdout, sys.stderr
    for file in python_has[1:]:
        file.flush()
    try:
        for fd, file in enumerate(files):
            os.dup2(file.fileno(), fd)
        sys.stdin = io.TextIOWrapper(os.fdopen(0, "rb", closefd=False))
        sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False))
        sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", closefd=False), write_through=True)
        try:
            yield
        finally:
            for own in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    own.flush()
    finally:
        sys.stdin, sys.stdout, sys.stderr = python_has
        for fd, copy in enumerate(saved):
            os.dup2(copy, fd)
            os.close(copy)


@contextlib.contextmanager
def _as_it_was() -> Iterator[None]:
    """What a command changes of its process is put back: arguments, environment, modules, signals, log, hooks."""
    argv, ours = list(sys.argv), dict(internals.cli_process._process)
    variables, path, modules = dict(os.environ), list(sys.path), set(sys.modules)
    folder = os.fspath(tempfile.gettempdir())
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    loggers = [logging.getLogger(name) for name in (None, "burler", "burler.cli")]
    logged = [(log, list(log.handlers), log.level, log.propagate) for log in loggers]
    hooks, shown = (sys.excepthook, threading.excepthook), warnings.showwarning
    try:
        yield
    finally:
        sys.argv = argv
        internals.cli_process._process.update(ours)
        os.environ.clear()
        os.environ.update(variables)
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            file = str(getattr(sys.modules[name], "__file__", None) or "")
            # Packages stay, also where the clone lies in /tmp: some can't be imported twice (deltalake panics).
            if file.startswith(folder) and not file.startswith(sys.prefix):
                del sys.modules[name]
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():
                signal.signal(number, handler)
        for log, its_handlers, level, propagate in logged:
            log.handlers[:] = its_handlers
            log.setLevel(level)
            log.propagate = propagate
        sys.excepthook, threading.excepthook = hooks
        warnings.showwarning = shown
