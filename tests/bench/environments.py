"""A virtual environment for each peer, and for burler at an older commit, in ``.venv-bench``, made once and kept: what
they need does not go together."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".venv-bench"
BEFORE, NOW = "before", "now"
"""The names of the environments in which two commits are compared, among a program's environments."""
EXTRAS = "lake,batch,sql"
PACKAGES = {
    "singer-sdk": ("singer-sdk[parquet]>=0.54", "msgspec"),
    "airbyte-cdk": ("airbyte-cdk>=7",),
    "dlt": ("dlt[parquet]>=1.20",),
    "singer-python": ("singer-python>=6.8",),
    "meltanolabs-tap-postgres": ("meltanolabs-tap-postgres",),
}


class NotInstalled(Exception):
    """A peer could not be installed; the text says why, in one line."""


def python_of(name: str) -> str:
    """The Python of a peer's environment, which is made if it is not there or has other packages.

    Raises:
        NotInstalled: see there.
    """
    folder = FOLDER / name
    stamp = folder / ".made-for"
    wanted = "\n".join((sys.version, *PACKAGES[name]))
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        _make(folder, *PACKAGES[name])
        stamp.write_text(wanted)
    return str(folder / "bin" / "python")


def python_of_commit(commit: str) -> str:
    """The Python of an environment with burler as it was at a commit, with the packages that it asked for.

    Raises:
        NotInstalled: git knows no such commit, or it can't be installed.
    """
    found = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    if not found:
        raise NotInstalled(f"no commit of this repository: {commit!r}")
    folder = FOLDER / f"{BEFORE}-{found[:12]}"
    stamp = folder / ".made-for"
    if not stamp.exists() or stamp.read_text() != sys.version:
        source = folder / "source"
        shutil.rmtree(folder, ignore_errors=True)
        source.mkdir(parents=True)
        with tempfile.TemporaryFile() as packed:
            subprocess.run(["git", "archive", found], cwd=ROOT, stdout=packed, check=True)
            packed.seek(0)
            with tarfile.open(fileobj=packed) as archive:
                archive.extractall(source, filter="data")
        _make(folder, "-e", f"{source}[{EXTRAS}]")
        stamp.write_text(sys.version)
    return str(folder / "bin" / "python")


def python_now() -> str:
    """The Python of an environment with burler as it is here and the packages that it asks for, no others: with numpy
    beside it pyarrow takes another time.

    Raises:
        NotInstalled: it can't be installed.
    """
    folder = FOLDER / NOW
    stamp = folder / ".made-for"
    wanted = "\n".join((sys.version, (ROOT / "pyproject.toml").read_text()))
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        _make(folder, "-e", f"{ROOT}[{EXTRAS}]")
        stamp.write_text(wanted)
    return str(folder / "bin" / "python")


def _make(folder: Path, *wanted: str) -> None:
    print(f"making {folder.relative_to(ROOT)}", file=sys.stderr)
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder / "bin" / "python")]
    _run([*pip, "install", "-q", *wanted])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        reasons = [line for line in lines if line.startswith(("ERROR", "Error"))] or lines[-1:]
        raise NotInstalled(reasons[-1][:200])
