"""Start-up and discovery: the commands, and wall seconds of whole processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Told not to write bytecode, all candidates would compile their modules anew in each run.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
EMPTY = "import burler; tap = burler.tap('tap-e'); tap.sync('e', schema={'properties': {}})(lambda: []); tap.cli([])"


def commands(sdk_python: str | None, python: str = sys.executable) -> dict[str, list[str]]:
    """What is run, by name, by a Python that has burler. Without singer-sdk's Python its command is left out."""
    taps = str(HERE / "discovery_taps.py")
    found = {
        "bare interpreter": [python, "-c", "pass"],
        "import burler": [python, "-c", "import burler"],
        "burler --help": [python, "-m", "burler", "--help"],
        "run of an empty stream": [python, "-c", EMPTY],
        "discover 200 x 50, burler": [python, taps, "burler"],
    }
    if sdk_python is not None:
        found["discover 200 x 50, singer-sdk"] = [sdk_python, taps, "singer-sdk"]
    return found


def seconds(command: list[str]) -> float:
    """One run of a process, with its output thrown away."""
    begun = time.perf_counter()
    # No timeout: with one, Python looks for the end of the process every 50 ms only.
    subprocess.run(command, check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begun
