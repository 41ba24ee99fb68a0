"""The environment of the programs that others wrote: ``.venv-peers``, made once, then kept."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

PEERS = Path(__file__).resolve().parents[2] / ".venv-peers"
PACKAGES = ["meltanolabs-target-postgres>=0.8"]  # singer-sdk is a dependency of it


class NotInstalled(Exception):
    """pip could not install the peers; the text says why."""


def make() -> Path:
    """The bin folder of the environment.

    Raises:
        NotInstalled: see there.
    """
    stamp = PEERS / ".for-peers"
    wanted = "\n".join(PACKAGES)
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(PEERS, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", PEERS], check=True)
        pip = [PEERS / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "-q", *PACKAGES]
        done = subprocess.run(pip, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotInstalled(done.stderr.strip()[-300:])
        stamp.write_text(wanted)
    return PEERS / "bin"
