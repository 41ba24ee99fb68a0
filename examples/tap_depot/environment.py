"""The Python of the SOAP server: ``.venv-soap`` at the top of the repository, made once, then kept.

The server is made with spyne, which runs on Python 3.11 and older only. burler has no such limit, so the server has an
environment and a process of its own, and the tap asks it as it would ask any other.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".venv-soap"
PACKAGES = ["spyne==2.14.0", "lxml>=4.9"]
VERSION = (3, 11)


class NotInstalled(Exception):
    """The environment can't be made; the text says why."""


def python() -> Path:
    """The environment's Python; the environment is made where it is missing.

    Raises:
        NotInstalled: there is no Python 3.11, or pip could not install spyne.
    """
    with FOLDER.with_name(".venv-soap.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run on several processes
        return _made()


def _made() -> Path:
    found = FOLDER / "bin" / "python"
    stamp = FOLDER / ".for-soap"
    wanted = "\n".join(PACKAGES)
    if stamp.exists() and stamp.read_text() == wanted and _is_it(found):
        return found
    base = next((one for one in _candidates() if _is_it(one)), None)
    if base is None:
        raise NotInstalled("the SOAP server needs Python 3.11 beside this one (spyne runs on no newer one)")
    shutil.rmtree(FOLDER, ignore_errors=True)
    _run([base, "-m", "venv", FOLDER])
    _run([found, "-m", "pip", "--disable-pip-version-check", "install", "-q", *PACKAGES])
    stamp.write_text(wanted)
    return found


def _candidates() -> Iterator[Path]:
    """Where a Python 3.11 may be: this one, the path, pyenv, what a CI machine keeps."""
    name = f"{VERSION[0]}.{VERSION[1]}"
    if sys.version_info[:2] == VERSION:
        yield Path(sys.executable)
    on_path = shutil.which(f"python{name}")
    if on_path is not None:
        yield Path(on_path)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/{name}.*/bin/python"))
    if "RUNNER_TOOL_CACHE" in os.environ:
        yield from sorted(Path(os.environ["RUNNER_TOOL_CACHE"]).glob(f"Python/{name}.*/*/bin/python"))


def _is_it(python: Path) -> bool:
    """Whether it runs, and is of the version: pyenv leaves names on the path that start nothing."""
    code = f"import sys; raise SystemExit(sys.version_info[:2] != {VERSION})"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _run(command: list[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalled(done.stderr.strip()[-300:])
