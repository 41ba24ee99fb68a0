"""A run in an interpreter that somebody sits at (a notebook, a REPL): interrupts end the run, never the interpreter."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

SESSION = """
import sys, time
if {prompt}:
    sys.ps1 = "In : "  # as IPython and the REPL have it

import burler
from burler.testing import run_tap

tap = burler.tap("tap-slow")

@tap.sync("rows", schema={{"properties": {{"id": {{"type": "integer"}}}}}})
def rows():
    try:
        for i in range(100_000):
            yield {{"id": i}}
            if i == 10:
                print("begun", flush=True)
            time.sleep(0.01)
    finally:
        print("closing", flush=True)
        time.sleep({closing})

try:
    out = run_tap(tap)
    print("ended", out.result.stopped_by, flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
print("still here", flush=True)
"""


def session(*, prompt: bool, closing: float) -> subprocess.Popen[str]:
    code = SESSION.format(prompt=prompt, closing=closing)
    started = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert started.stdout is not None
    assert started.stdout.readline() == "begun\n"
    return started


def test_one_interrupt_ends_the_run():
    started = session(prompt=True, closing=0)
    started.send_signal(signal.SIGINT)
    out, _err = started.communicate(timeout=30)
    assert out.splitlines() == ["closing", f"ended {int(signal.SIGINT)}", "still here"]
    assert started.returncode == 0


@pytest.mark.parametrize(("prompt", "code"), [(True, 0), (False, 130)])
def test_a_second_one_ends_a_process_but_not_a_session(prompt, code):
    started = session(prompt=prompt, closing=5)
    started.send_signal(signal.SIGINT)
    assert started.stdout is not None
    assert started.stdout.readline() == "closing\n"
    time.sleep(0.4)  # within 0.3 s it is taken for the same signal
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=30)
    assert started.returncode == code, err
    assert ("still here" in out) is prompt
