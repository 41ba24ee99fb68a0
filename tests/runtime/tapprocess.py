"""Taps as real processes, for the tests of runtime, sinks and command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PYTHON = sys.executable
ROOT = Path(__file__).parents[2]

SCHEMA = '{"type": "object", "properties": {"id": {"type": "integer"}, "text": {"type": ["null", "string"]}}}'

SMALL = f"""
import burler
tap = burler.tap("tap-small", version="1.2.3", description="A small tap.")

@tap.sync("rows", key_properties="id", replication_key="id", order="asc")
def rows(stream):
    for i in range(stream.bookmark or 0, 10):
        yield {{"id": i, "text": "x"}}

tap.schema("rows", {SCHEMA})
"""


def environment(**more: str) -> dict[str, str]:
    """This process's environment, less what would change a tap's config; every warning is an error."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TAP_", "BURLER_", "LOGGING_"))}
    kept.pop("PYTHONUNBUFFERED", None)
    return {**kept, "PYTHONWARNINGS": "error", **more}


def write_tap(folder: Path, source: str, name: str = "tap_x.py") -> Path:
    """A file with the source of a tap; ``SCHEMA`` in it stands for the usual schema."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source).replace("SCHEMA", SCHEMA))
    return path


_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (?=[A-Z]+ )", re.MULTILINE)


def without_times(log: str) -> str:
    """A log without the times that its lines begin with."""
    return _TIME.sub("", log)


@dataclass(frozen=True)
class Ended:
    """How a process ended; ``stderr`` is without the times of its log lines."""

    code: int
    stdout: bytes
    stderr: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "stderr", without_times(self.stderr))

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


def burler(*args: str | Path, cwd: Path, timeout: float = 60, stdin: bytes = b"", **env: str) -> Ended:
    """``python -m burler ...`` to its end."""
    return python("-m", "burler", *args, cwd=cwd, timeout=timeout, stdin=stdin, **env)


def python(*args: str | Path, cwd: Path, timeout: float = 60, stdin: bytes = b"", **env: str) -> Ended:
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
