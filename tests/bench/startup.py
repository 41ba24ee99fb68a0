"""Start-up and discovery, measured: a benchmark anyone can run, not a test.

    make bench
    python tests/bench/startup.py [PEERS_PYTHON]

Wall seconds of whole processes, medians, the candidates interleaved in one run. PEERS_PYTHON is the Python of an
environment that holds singer-sdk; without it the peer's row is left out. The first run of each is not counted: it
writes the bytecode that all users but the first one have.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
RUNS = 9
# Told not to write bytecode, all candidates would compile their modules anew in each run.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
EMPTY = "import burler; tap = burler.tap('tap-e'); tap.sync('e', schema={'properties': {}})(lambda: []); tap.cli([])"


def seconds(command: list[str]) -> float:
    """One run of a process, with its output thrown away."""
    begun = time.perf_counter()
    # No timeout: with one, Python looks for the end of the process every 50 ms only.
    subprocess.run(command, check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begun


def main(peers: str | None) -> None:
    """Measure and print."""
    python = sys.executable
    taps = str(HERE / "discovery_taps.py")
    commands = {
        "bare interpreter": [python, "-c", "pass"],
        "import burler": [python, "-c", "import burler"],
        "burler --help": [python, "-m", "burler", "--help"],
        "run of an empty stream": [python, "-c", EMPTY],
        "discover 200 x 50, burler": [python, taps, "burler"],
    }
    if peers:
        commands["discover 200 x 50, singer-sdk"] = [peers, taps, "singer-sdk"]
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for round_ in range(RUNS + 1):
        for name, command in commands.items():
            spent = seconds(command)
            if round_:
                taken[name].append(spent)
    medians = {name: statistics.median(values) for name, values in taken.items()}
    for name, median in medians.items():
        values = taken[name]
        print(f"{name:32} {median:7.3f} s   ({min(values):.3f} to {max(values):.3f})")
    print(f"import burler, over the bare interpreter: {medians['import burler'] - medians['bare interpreter']:.3f} s")
    if peers:
        ratio = medians["discover 200 x 50, burler"] / medians["discover 200 x 50, singer-sdk"]
        print(f"discover, burler / singer-sdk: {ratio:.2f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
