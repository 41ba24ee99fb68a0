"""SIGTERM and SIGINT sent to real processes behind real pipes. See also ``storm.py``."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tapprocess import PYTHON, Ended, environment, write_tap

from support.clocks import until
from support.internals import signals

NIGHTLY = pytest.mark.nightly
"""The same as the others here, only longer."""

HEAD = """
import os, sys, threading, time
import burler
tap = burler.tap("tap-x")
tap.schema("rows", SCHEMA)
"""


class Running:
    """A tap as a process with a pipe on stdout."""

    def __init__(self, path: Path, *args: str, stdout: Any = subprocess.PIPE, **env: str) -> None:
        self.process = subprocess.Popen(
            [PYTHON, "-m", "burler", "run", str(path), *args],
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=environment(**env),
            cwd=path.parent,
        )

    def until(self, text: str, timeout: float = 20) -> None:
        """Wait for a line on stderr that holds the text."""
        assert self.process.stderr is not None
        self.seen = ""
        end = time.monotonic() + timeout
        while text not in self.seen and time.monotonic() < end:
            if select.select([self.process.stderr], [], [], 0.2)[0]:  # a line that never comes must not hang the suite
                self.seen += os.read(self.process.stderr.fileno(), 65536).decode()
        assert text in self.seen, self.seen

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def ended(self, timeout: float = 20) -> Ended:
        out, err = self.process.communicate(timeout=timeout)
        return Ended(self.process.returncode, out or b"", getattr(self, "seen", "") + err.decode())


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Any]:
    """Starts a tap from its source; kills what is left of it."""
    runs: list[Running] = []

    def start(body: str, *args: str, **more: Any) -> Running:
        path = write_tap(tmp_path, HEAD + body, f"tap_{len(runs)}.py")
        runs.append(Running(path, *args, **more))
        return runs[-1]

    yield start
    for run in runs:
        if run.process.poll() is None:
            run.process.kill()
            run.process.communicate()
        for pipe in (run.process.stdout, run.process.stderr):
            if pipe is not None:
                pipe.close()


BLOCKED = """
@tap.sync("rows", key_properties="id", replication_key="id", order="asc")
def rows():
    yield {"id": 1}
    try:
        sys.stderr.write("READY\\n")
        time.sleep(600)
    finally:
        FINALLY
    yield {"id": 2}
"""


SLEEPS = """

def sleeps():
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=NIGHTLY)])
def test_one_signal_ends_with_the_last_state(started: Any, number: int):
    run = started(BLOCKED.replace("FINALLY", "sys.stderr.write('CLEANED\\n')"))
    run.until("READY")
    begun = time.monotonic()
    run.signal(number)
    ended = run.ended()
    assert ended.code == 0, ended.stderr
    assert time.monotonic() - begun < 2
    assert [m["type"] for m in ended.messages] == ["SCHEMA", "RECORD", "STATE"]
    assert ended.messages[-1]["value"] == {"bookmarks": {"rows": {"id": 1}}, "currently_syncing": "rows"}
    assert ended.stderr.count("CLEANED") == 1
    assert "stream 'rows': stopped, 1 row of 'rows'" in ended.stderr
    assert ended.lines("CRITICAL") == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_ends_at_once(started: Any, number: int, code: int):
    run = started(BLOCKED.replace("FINALLY", "sys.stderr.write('CLEANING\\n'); sleeps()") + SLEEPS)
    run.until("READY")
    run.signal(number)
    run.until("CLEANING")
    time.sleep(0.5)  # the same signal twice in one moment is one
    run.signal(number)
    ended = run.ended(5)
    assert ended.code == code
    assert "STATE" not in [m["type"] for m in ended.messages]


def test_a_second_signal_ends_even_a_main_thread_that_never_comes_back(started: Any):
    """A call into C that takes for ever and asks for no signals."""
    stuck = "import hashlib; sys.stderr.write('CLEANING\\n'); hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)"
    run = started(BLOCKED.replace("FINALLY", stuck))
    run.until("READY")
    run.signal(signal.SIGTERM)
    run.until("CLEANING")
    time.sleep(0.6)  # the same signal twice in one moment is one
    run.signal(signal.SIGTERM)
    assert run.ended(5).code == 143


def test_a_finally_that_raises_is_logged(started: Any):
    run = started(BLOCKED.replace("FINALLY", "raise OSError('while cleaning up')"))
    run.until("READY")
    run.signal(signal.SIGTERM)
    ended = run.ended()
    assert ended.code == 0
    assert ended.messages[-1]["value"]["bookmarks"] == {"rows": {"id": 1}}
    assert any("OSError: while cleaning up" in line for line in ended.lines("WARNING"))
    assert "Traceback" not in ended.stderr


SWALLOWS = """
@tap.sync("rows", key_properties="id")
def rows():
    for i in range(100000):
        try:
            yield {"id": i}
            if i == 50:
                sys.stderr.write("READY\\n")
            time.sleep(0.05 if i >= 50 else 0)
        except BaseException as error:
            if isinstance(error, GeneratorExit):
                raise
            REACT
"""


@pytest.mark.parametrize(
    "react",
    [
        pytest.param("pass", marks=NIGHTLY),
        "return",
        pytest.param("raise ValueError('changed') from error", marks=NIGHTLY),
        "sys.exit(5)",
    ],
)
def test_user_code_that_catches_everything_does_not_pass_for_complete(started: Any, react: str):
    run = started(SWALLOWS.replace("REACT", react))
    run.until("READY")
    run.signal(signal.SIGTERM)
    ended = run.ended()
    assert ended.code == 0, ended.stderr
    types = [m["type"] for m in ended.messages]
    assert types[:2] == ["SCHEMA", "ACTIVATE_VERSION"]
    assert types.count("ACTIVATE_VERSION") == 1, "a stopped table must not be activated"
    assert types[-1] == "STATE"
    assert "version" not in str(ended.messages[-1])
    assert ended.lines("CRITICAL") == []


def test_a_thread_of_the_user_that_can_not_be_woken(started: Any):
    body = BLOCKED.replace("yield {", "threading.Thread(target=time.sleep, args=(600,)).start()\n    yield {", 1)
    run = started(body.replace("FINALLY", "pass"))
    run.until("READY")
    begun = time.monotonic()
    run.signal(signal.SIGTERM)
    ended = run.ended()
    assert ended.code == 0
    assert ended.messages[-1]["value"]["bookmarks"] == {"rows": {"id": 1}}
    assert time.monotonic() - begun < 6


FOREVER = """
@tap.sync("rows", key_properties="id", replication_key="id", order="asc")
def rows():
    i = 0
    while True:
        yield {"id": i, "text": "x" * 1000}
        i += 1
"""


def test_a_reader_that_takes_nothing_ends_the_process_after_ten_seconds(started: Any, tmp_path: Path):
    """Three at once: nobody reads; the reader is stopped; nobody reads a pipe that does not block."""
    never = started(FOREVER)
    reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    stopped = started(FOREVER, stdout=reader.stdin)
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    busy = started(FOREVER, stdout=theirs)
    runs = [never, stopped, busy]
    for run in runs:
        run.until("start (sync, INCREMENTAL")
    reader.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    begun = time.monotonic()
    for run in runs:
        run.signal(signal.SIGTERM)
    try:
        codes = [run.process.wait(15) for run in runs]
        took = time.monotonic() - begun
    finally:
        reader.kill()
        reader.communicate()
        os.close(ours)
        os.close(theirs)
    assert codes == [143, 143, 143]
    assert 9.5 < took < 11


def test_a_reader_that_pauses_shorter_loses_nothing(started: Any):
    run = started(FOREVER)
    run.until("start (sync, INCREMENTAL")
    time.sleep(0.3)
    run.signal(signal.SIGTERM)
    time.sleep(2)
    ended = run.ended()
    assert ended.code == 0
    out = [m["record"]["id"] for m in ended.messages if m["type"] == "RECORD"]
    assert out == list(range(len(out)))
    assert ended.messages[-1]["value"]["bookmarks"] == {"rows": {"id": out[-1]}}


@pytest.fixture
def lake_write(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """It waits at its standard input."""
    command = [PYTHON, "-m", "burler", "lake", "write", "lake", "--tap-id", "t"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), **pipes) as process:
        until(lambda: catches(process.pid, signal.SIGTERM))
        yield process
        process.kill()


def test_lake_write_commits_what_it_has(lake_write: Any, tmp_path: Path):
    lake_write.stdin.write(
        b'{"type":"SCHEMA","stream":"s","schema":{"type":"object","properties":{"id":{"type":"integer"}}},'
        b'"key_properties":[]}\n{"type":"RECORD","stream":"s","record":{"id":1}}\n{"type":"STATE","value":{"x":1}}\n'
    )
    lake_write.stdin.flush()
    until(lambda: list(tmp_path.glob("lake/raw/t/s/*/*")) + list(tmp_path.glob("lake/raw/t/s/*/.*")))
    lake_write.send_signal(signal.SIGTERM)
    lake_write.wait(10)  # stdin is still open
    assert lake_write.stdout.read() == b'{"type":"STATE","value":{"x":1}}\n', lake_write.stderr.read()
    assert lake_write.returncode == 0
    assert len(list(tmp_path.glob("lake/raw/t/s/*/s-*.singer.gz"))) == 1


def test_lake_write_that_has_read_nothing_yet_ends_too(lake_write: Any):
    time.sleep(0.2)
    lake_write.send_signal(signal.SIGTERM)
    assert lake_write.wait(5) == 0


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler of its own for a signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(mask, 16) >> (number - 1) & 1)


CLOSES = """
class Client:
    def close(self):
        sys.stderr.write("CLOSING\\n")
        while not os.path.exists("go"):
            time.sleep(0.01)

@tap.client
def client(config):
    return Client()

@tap.sync("rows", key_properties="id", replication_key="id", order="asc")
def rows(client):
    yield {"id": 1}
    ENDS
"""


@pytest.mark.parametrize(
    ("number", "ends", "code"), [(signal.SIGTERM, "", 0), (signal.SIGINT, "raise ValueError('no')", 1)]
)
def test_a_signal_behind_the_last_state_leaves_summary_and_exit_code_as_they_are(
    started: Any, tmp_path: Path, number: int, ends: str, code: int
):
    run = started(CLOSES.replace("ENDS", ends), "--report", str(tmp_path / "report.json"))
    run.until("CLOSING")
    run.signal(number)
    (tmp_path / "go").touch()
    ended = run.ended()
    assert ended.code == code, ended.stderr
    assert ended.messages[-1]["type"] == "STATE"
    assert any(line.startswith("INFO | rows ") for line in ended.stderr.splitlines())
    assert (tmp_path / "report.json").exists()


@pytest.mark.parametrize(("number", "code"), [pytest.param(signal.SIGTERM, 143, marks=NIGHTLY), (signal.SIGINT, 130)])
def test_a_second_one_there_ends_at_once(started: Any, number: int, code: int):
    run = started(CLOSES.replace("ENDS", ""))
    run.until("CLOSING")
    run.signal(number)
    time.sleep(0.6)  # the same signal twice in one moment is one
    run.signal(number)
    assert run.ended(5).code == code


def test_an_end_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    left: list[int] = []
    monkeypatch.setattr(signals, "STUCK_SECONDS", 0.05)
    monkeypatch.setattr(signals.os, "_exit", left.append)
    stopper = signals.Stopper()
    stopper.owns_process = True
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    switch_seconds = sys.getswitchinterval()
    try:
        with stopper.installed():
            pass
        signal.raise_signal(signal.SIGTERM)
        end = time.monotonic() + 20
        while not left and time.monotonic() < end:
            time.sleep(0.01)
        assert left == [143] and stopper.signal == signal.SIGTERM
    finally:
        sys.setswitchinterval(switch_seconds)
        for number, handler in before.items():
            signal.signal(number, handler)
