"""Runs cases, each a process that writes to a pipe which another process reads."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import environments
from startup import ENVIRONMENT

if TYPE_CHECKING:
    from cases import Case, Program

PROGRAMS = Path(__file__).resolve().parent / "programs"
_LEARN_ROWS = 1_500


class Failed(Exception):
    """A program ended with an error; the text is the last thing it said."""


@dataclass(frozen=True)
class States:
    """STATE lines that came through the pipe: how many, their bytes, those of all other lines, those of the last."""

    states: int
    state_bytes: int
    other_bytes: int
    last_bytes: int


@dataclass(frozen=True)
class Figures:
    """What one run of a case took.

    Attributes:
        cpu: seconds, less imports; so is ``wall``.
        peak: memory, in bytes.
        whole: wall seconds of the whole process, imports and all.
        states: STATE lines, where they were counted.
    """

    cpu: float
    wall: float
    peak: int
    whole: float = 0.0
    states: States | None = None


@dataclass(frozen=True)
class Summary:
    """Medians of a case's runs."""

    case: Case
    rows: int
    runs: tuple[Figures, ...]

    @property
    def cpu(self) -> float:
        """Median CPU seconds."""
        return statistics.median(run.cpu for run in self.runs)

    @property
    def wall(self) -> float:
        """Median wall seconds."""
        return statistics.median(run.wall for run in self.runs)

    @property
    def peak(self) -> int:
        """The greatest peak, in bytes."""
        return max(run.peak for run in self.runs)

    @property
    def whole(self) -> float:
        """Median wall seconds of the whole process."""
        return statistics.median(run.whole for run in self.runs)

    @property
    def states(self) -> States | None:
        """STATE lines of the run that had the most bytes of them; None if they were not counted."""
        counted = [run.states for run in self.runs if run.states is not None]
        return max(counted, key=lambda states: states.state_bytes, default=None)

    @property
    def spread(self) -> tuple[float, float]:
        """Least and greatest CPU seconds."""
        return min(run.cpu for run in self.runs), max(run.cpu for run in self.runs)

    @property
    def rate(self) -> float:
        """Rows per second of CPU."""
        return self.rows / max(self.cpu, 1e-6)  # a tiny run may take less than the system's clock shows


class Bench:
    """One use of the benchmark: its scratch folder, the peers' Pythons, the modules each case imports.

    ``environment`` is given to all programs.
    """

    def __init__(self, folder: Path, *, peers: bool) -> None:
        self.folder = folder
        self.peers = peers
        self.versions: dict[str, str] = {}
        self.absent: dict[str, str] = {}
        self.environment: dict[str, str] = {}
        self._pythons: dict[str, str] = {}
        self._learned: dict[tuple[str, ...], Path] = {}
        self._made: dict[tuple[str, int], Path] = {}
        self.references: dict[tuple[str, int], list[dict[str, Any]]] = {}

    def python(self, program: Program) -> str:
        """The Python that runs a program.

        Raises:
            environments.NotInstalled: it has none, or peers are not wanted.
        """
        name = program.environment
        if name is None:
            return sys.executable
        if name in self._pythons:
            return self._pythons[name]
        if not self.peers:
            raise environments.NotInstalled("peers are left out (--no-peers)")
        if name in self.absent:
            raise environments.NotInstalled(self.absent[name])
        try:
            self._pythons[name] = environments.python_of(name)
        except environments.NotInstalled as error:
            self.absent[name] = str(error)
            raise
        return self._pythons[name]

    def use(self, name: str, python: str) -> None:
        """Programs of the environment of this name are run by this Python."""
        self._pythons[name] = python

    def learn(self, case: Case) -> None:
        """Note what a case imports, with a short run, unless one for ``output`` has. Once for each kind; not measured.

        Raises:
            Failed: the program does.
            environments.NotInstalled: see ``python``.
        """
        key = _key(case)
        if key not in self._learned:
            learned = self._modules(case)
            self._start(case, _LEARN_ROWS if case.work != "big" else 3, {"BENCH_LEARN": str(learned)})
            self._learned[key] = learned

    def run(self, case: Case, rows: int, *, count_states: bool = False) -> Figures:
        """Measure a case once.

        Args:
            count_states: the reader of the pipe tells STATE lines from others; else it throws all away unseen.

        Raises:
            Failed: the program does.
            environments.NotInstalled: see ``python``.
        """
        self.learn(case)
        modules = self._learned[_key(case)]
        counted = self.folder / "states.json" if count_states else None
        told = self._start(case, rows, {"BENCH_MODULES": str(modules)}, counted)
        states = States(**json.loads(counted.read_text())) if counted is not None else None
        return Figures(told["cpu"], told["wall"], told["peak"], told["whole"], states)

    def profile(self, case: Case, rows: int) -> Path:
        """Run a case under cProfile; gives the file of its figures."""
        self.learn(case)
        modules = self._learned[_key(case)]
        target = self.folder / "profile"
        self._start(case, rows, {"BENCH_MODULES": str(modules), "BENCH_PROFILE": str(target)})
        return target

    def output(self, case: Case, rows: int) -> bytes:
        """What a case writes to stdout, in a run that is not measured. What it imports is noted: see ``learn``.

        Raises:
            Failed: the program does.
        """
        environment = {**ENVIRONMENT, **self.environment, **self._given(case, rows)}
        key, learned = _key(case), self._modules(case)
        # A program that shows what it has read imports what shows it.
        if learning := key not in self._learned and "BENCH_SHOW" not in self.environment:
            environment["BENCH_LEARN"] = str(learned)
        with tempfile.TemporaryFile(dir=self.folder) as out, self._errors() as errors:
            done = subprocess.run(
                self._command(case, rows), env=environment, stdout=out, stderr=errors, cwd=self.folder, check=False
            )
            _check(done.returncode, errors)
            if learning:
                self._learned[key] = learned
            out.seek(0)
            return out.read()

    def _modules(self, case: Case) -> Path:
        return self.folder / "-".join(("modules", *_key(case)))

    def _start(self, case: Case, rows: int, more: dict[str, str], counted: Path | None = None) -> dict[str, Any]:
        side = self.folder / "side.json"
        side.unlink(missing_ok=True)
        environment = {**ENVIRONMENT, **self.environment, **self._given(case, rows), "BENCH_SIDE": str(side), **more}
        command = self._command(case, rows)
        reading = [sys.executable, "-S", str(PROGRAMS / "reader.py"), *([str(counted)] if counted is not None else [])]
        reader = subprocess.Popen(reading, stdin=subprocess.PIPE)
        assert reader.stdin is not None
        with self._errors() as errors:
            begun = time.perf_counter()
            # No timeout: with one, Python looks for the end of the process every 50 ms only.
            process = subprocess.Popen(command, env=environment, stdout=reader.stdin, stderr=errors, cwd=self.folder)
            reader.stdin.close()
            code = process.wait()
            whole = time.perf_counter() - begun
            reader.wait()
            _check(code, errors)
        told: dict[str, Any] = json.loads(side.read_text())
        self.versions |= told["versions"]
        return {**told, "whole": whole}

    def _given(self, case: Case, rows: int) -> dict[str, str]:
        """What a program reads, made if it is not there yet; as the variable that names it.

        Raises:
            Failed: it can't be made.
        """
        script = case.program.given
        if script is None:
            return {}
        if (script, rows) not in self._made:
            folder = self.folder / f"given-{len(self._made)}"
            command = [sys.executable, str(PROGRAMS / script), str(folder), str(rows)]
            with self._errors() as errors:
                done = subprocess.run(
                    command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=errors, cwd=self.folder, check=False
                )
                _check(done.returncode, errors)
            self._made[script, rows] = folder
        return {"BENCH_GIVEN": str(self._made[script, rows])}

    def _command(self, case: Case, rows: int) -> list[str]:
        program = case.program
        script = str(PROGRAMS / program.script)
        return [self.python(program), script, program.variant, case.work, str(rows)]

    def _errors(self) -> Any:
        # A file, not a pipe: logs are written as they would be, and nobody has to read along.
        return tempfile.TemporaryFile("w+", dir=self.folder, errors="replace")


def _key(case: Case) -> tuple[str, ...]:
    """What cases that import the same modules have in common."""
    return case.program.environment or "own", case.program.script, case.program.variant, case.kind


def progress(text: str) -> None:
    """Say what is being done, to somebody who watches; an empty text takes it away."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text:.100}", end="", file=sys.stderr, flush=True)


def _check(code: int, errors: Any) -> None:
    if code:
        errors.seek(0)
        said = [line for line in errors.read().splitlines() if line.strip()]
        critical = [line for line in said if " CRITICAL " in line]
        last = (critical or said or ["nothing"])[-1]
        raise Failed(f"exit code {code}: {last[:300]}")
