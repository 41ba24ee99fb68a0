"""What work takes: wall seconds, CPU seconds of a whole tree of processes, and its memory.

Run as: taking.py REPORT COMMAND...; runs a command and writes what it took as JSON to REPORT. A command that starts a
JVM may end before that does, and nobody would count the JVM's seconds: the process that runs this file adopts whoever
is left behind (Linux) and waits for them, too.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SET_CHILD_SUBREAPER = 36  # of prctl(2)
_LOOK_SECONDS = 0.2  # each look reads all of /proc: more of them would be felt


class Failed(Exception):
    """A command ended with an error; the text is the last thing it said."""


@dataclass(frozen=True)
class Took:
    """Wall and CPU seconds, and the peak of the memory of all processes together, in bytes (0: not looked at)."""

    wall: float
    cpu: float
    peak: int = 0


def tree(root: int) -> dict[int, tuple[float, int]]:
    """CPU seconds (with those of ended children) and resident bytes of a process and all below it."""
    parents: dict[int, int] = {}
    told: dict[int, tuple[float, int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        pid = int(entry.name)
        parents[pid] = int(fields[1])
        told[pid] = (sum(map(int, fields[11:15])) / _TICKS, int(fields[21]) * _PAGE)
    below, found = [root], {}
    while below:
        pid = below.pop()
        if pid in told:
            found[pid] = told[pid]
        below += [child for child, parent in parents.items() if parent == pid]
    return found


def cpu_now() -> float:
    """CPU seconds that this process and all below it have used."""
    return sum(cpu for cpu, _memory in tree(os.getpid()).values())


class Clock:
    """``with Clock() as clock: ...``; then ``clock.took`` has wall and CPU seconds of the tree of processes."""

    took: Took

    def __enter__(self) -> Clock:
        self._cpu, self._wall = cpu_now(), time.perf_counter()
        return self

    def __exit__(self, *_error: object) -> None:
        wall = time.perf_counter() - self._wall
        self.took = Took(wall, cpu_now() - self._cpu)


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Took:
    """What a command takes, from the start of its process to its end; its CPU with that of whoever outlives it.
    What it printed stands in ``folder / "out.txt"``.

    Raises:
        Failed: it ends with another code than 0.
    """
    report, said = folder / "took.json", folder / "said.txt"
    with said.open("wb") as errors, (folder / "out.txt").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-S", __file__, str(report), *command],
            env=None if environment is None else dict(environment),
            stdout=out,
            stderr=errors,
            check=False,
        )
    if done.returncode:
        lines = [line for line in said.read_text(errors="replace").splitlines() if line.strip()] or ["nothing"]
        raise Failed(f"{' '.join(command[:3])}: exit code {done.returncode}: {lines[-1][:300]}")
    return Took(**json.loads(report.read_text()))


class _Peak(threading.Thread):
    """Looks at the memory of the tree below this process, again and again."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self._own = os.getpid()
        self._ended = threading.Event()

    def run(self) -> None:
        while True:
            found = tree(self._own)
            found.pop(self._own, None)
            self.most = max(self.most, sum(memory for _cpu, memory in found.values()))
            if self._ended.wait(_LOOK_SECONDS):
                return

    def end(self) -> int:
        """The most there was."""
        self._ended.set()
        self.join()
        return self.most


def _main(report: str, command: list[str]) -> int:
    import ctypes

    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    peak = _Peak()
    begun = time.perf_counter()
    process = subprocess.Popen(command)
    peak.start()
    code = process.wait()
    wall = time.perf_counter() - begun
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = Took(wall, used.ru_utime + used.ru_stime, peak.end())
    Path(report).write_text(json.dumps(asdict(took)))
    return code


if __name__ == "__main__":
    raise SystemExit(_main(sys.argv[1], sys.argv[2:]))
