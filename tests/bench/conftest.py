"""The benchmark's modules for its tests. Their names (``run``, ``report``) are not for the whole test run: they are
gone again behind each test."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parent
MODULES = sorted(
    path.stem
    for folder in (BENCH, BENCH / "programs")
    for path in folder.glob("*.py")
    # Taps of other frameworks can't be imported here.
    if not path.stem.startswith(("test_", "tap_", "conftest", "discovery_taps"))
)


@pytest.fixture
def bench(monkeypatch):
    """The benchmark's modules by name."""
    monkeypatch.syspath_prepend(str(BENCH / "programs"))
    monkeypatch.syspath_prepend(str(BENCH))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield {name: importlib.import_module(name) for name in MODULES}
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def run_bench():
    """The benchmark as a user runs it."""

    def run(*args):
        command = [sys.executable, str(BENCH / "run.py"), *args]
        # Whatever the person who runs the tests has set, a tap's settings come from nowhere else.
        env = {key: value for key, value in os.environ.items() if not key.startswith(("TAP_", "BENCH_", "BURLER_"))}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=env)

    return run


@pytest.fixture
def cells():
    """The cells of the table row that begins with a title."""

    def find(text, title):
        [line] = [line for line in text.splitlines() if line.startswith(f"| {title} |")]
        return [cell.strip() for cell in line.strip("|").split("|")]

    return find


@pytest.fixture
def summary(bench):
    """A summary of one made-up run."""

    def make(case, *, cpu=1.0, rows=1000, whole=1.0, states=None):
        figures = bench["measure"].Figures(cpu, cpu, 50_000_000, whole, states)
        return bench["measure"].Summary(case, rows, (figures,))

    return make


@pytest.fixture
def pretend(bench, monkeypatch):
    """No process is started: each case writes ``output`` and takes a second."""

    def pretend_with(output):
        ran = []

        def start(self, case, rows, more, counted=None):
            self.python(case.program)
            ran.append((case, "BENCH_LEARN" in more))
            if counted is not None:
                counted.write_text('{"states": 2, "state_bytes": 100, "other_bytes": 900, "last_bytes": 50}')
            return {"cpu": 1.0, "wall": 1.0, "peak": 1, "versions": {}, "whole": 1.5}

        def written(self, case, rows):
            return "\n".join(map(json.dumps, output(case, rows))).encode()

        monkeypatch.setattr(bench["measure"].Bench, "_start", start)
        monkeypatch.setattr(bench["measure"].Bench, "output", written)
        return ran

    return pretend_with
