"""tap-gitlab 0.5 and the burler tap that takes its place, run on one server. As a script: how long each takes.

python tests/peers/moved_tap.py
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "examples"))
NEW = [sys.executable, "-m", "burler", "run", str(ROOT / "examples" / "tap_moved_gitlab")]


@dataclass(frozen=True)
class Done:
    """A run: its exit code, messages as they came, log, and seconds of the wall and of CPU."""

    code: int
    lines: list[str]
    log: str
    seconds: float
    cpu_seconds: float

    @property
    def messages(self) -> list[dict[str, Any]]:
        """All of them."""
        return [json.loads(line) for line in self.lines]

    @property
    def states(self) -> list[dict[str, Any]]:
        """The value of each STATE."""
        return [message["value"] for message in self.messages if message["type"] == "STATE"]

    def rows(self, stream: str) -> list[dict[str, Any]]:
        """The rows of a stream."""
        return [one["record"] for one in self.messages if one["type"] == "RECORD" and one["stream"] == stream]


def run(command: list[Any], folder: Path, config: dict[str, Any], state: dict[str, Any] | None = None) -> Done:
    """Run a tap."""
    (folder / "config.json").write_text(json.dumps(config))
    words = [*map(str, command), "--config", str(folder / "config.json")]
    if state is not None:
        (folder / "state.json").write_text(json.dumps(state))
        words += ["--state", str(folder / "state.json")]
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=300, check=False)
    after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - begun
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Done(done.returncode, done.stdout.splitlines(), done.stderr, seconds, cpu)


def main() -> None:
    """Print how long both take, with few rows and with many."""
    import tempfile

    import peers_environment

    from tap_moved_gitlab.data import Data
    from tap_moved_gitlab.server import TOKEN, Gitlab

    old = [peers_environment.make_tap("gitlab") / "tap-gitlab"]
    sys.stdout.write("| rows | requests, old and new | wall, old and new | CPU, old and new |\n|---|---|---|---|\n")
    for size in (45, 3000):
        runs: dict[str, list[Done]] = {"old": [], "new": []}
        asked = {}
        with tempfile.TemporaryDirectory() as folder, Gitlab(Data(size, size)).running() as server:
            config = {"api_url": server.url, "private_token": TOKEN, "projects": "1 2 3", "groups": ""}
            config["start_date"] = "2024-01-01T00:00:00Z"
            for _round in range(3):
                for name, command in (("old", old), ("new", NEW)):
                    server.asked.clear()
                    runs[name].append(run(command, Path(folder), config))
                    asked[name] = len(server.asked)
        rows = sum('"RECORD"' in line[:40] for line in runs["new"][0].lines)
        walls = [statistics.median(one.seconds for one in found) for found in runs.values()]
        cpus = [statistics.median(one.cpu_seconds for one in found) for found in runs.values()]
        requests = " and ".join(map(str, asked.values()))
        times = [f"{one[0]:.2f} s and {one[1]:.2f} s: {one[0] / one[1]:.1f} x" for one in (walls, cpus)]
        sys.stdout.write(f"| {rows:,} | {requests} | {times[0]} | {times[1]} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
