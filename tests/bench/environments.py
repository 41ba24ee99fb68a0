"""A virtual environment for each peer, in ``.venv-bench``, made once and kept: what they need does not go together."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".venv-bench"
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
        print(f"making .venv-bench/{name}", file=sys.stderr)
        python = str(folder / "bin" / "python")
        _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
        _run(
            [
                sys.executable,
                "-m",
                "pip",
                "--disable-pip-version-check",
                "--python",
                python,
                "install",
                "-q",
                *PACKAGES[name],
            ]
        )
        stamp.write_text(wanted)
    return str(folder / "bin" / "python")


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        reasons = [line for line in lines if line.startswith(("ERROR", "Error"))] or lines[-1:]
        raise NotInstalled(reasons[-1][:200])
