"""How far long work is: drawn on a terminal, a line in a log now and then, and nothing where nobody wants it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tapprocess import write_tap
from terminals import Terminal

from support.cli import burler, environment

SLOW = """
import time
import burler

tap = burler.tap("tap-slow")

@tap.sync("rows\\n\\x1b[31mRED", schema={"properties": {"id": {"type": "integer"}}})
def rows():
    for i in range(ROUNDS):
        yield {"id": i}
        time.sleep(0.1)
"""
ASKING = """
import time
import burler

tap = burler.tap("tap-asking")

@tap.client
def client():
    time.sleep(1.5)  # something is drawn by now
    return input("code from the browser: ")

@tap.sync("rows", schema={"properties": {"code": {"type": "string"}}})
def rows(client):
    for _ in range(20):
        yield {"code": client}
        time.sleep(0.1)
"""
TAP = """
import burler

tap = burler.tap("tap-some")

@tap.sync("rows", key_properties="id", replication_key="id", schema={"properties": {"id": {"type": "integer"}}})
def rows():
    yield from ({"id": i} for i in range(7))
"""


@contextlib.contextmanager
def started(folder: Path, terminal: Terminal, *args: str, rich: bool = True, **more: Any) -> Iterator[Any]:
    """A command with stderr on the terminal."""
    path = folder / "path"
    path.mkdir(exist_ok=True)
    if not rich:
        (path / "rich.py").write_text("raise ImportError('there is none')")
    where = os.pathsep.join(filter(None, [str(path), os.environ.get("PYTHONPATH")]))
    env = environment(PYTHONPATH=where, **more.pop("env", {}))
    given = {"stdout": subprocess.PIPE, "stdin": subprocess.PIPE, **more}
    command = [sys.executable, "-m", "burler", *args]
    with subprocess.Popen(command, cwd=folder, stderr=terminal.theirs, env=env, **given) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_run_on_a_terminal_shows_its_rows_while_it_goes_on(tmp_path: Path):
    """Names of others are one harmless line."""
    write_tap(tmp_path, SLOW.replace("ROUNDS", "30"))
    terminal = Terminal()
    with started(tmp_path, terminal, "run", "tap_x.py") as process:
        terminal.wait(lambda lines: any(line.startswith("rows \\x1b[31mRED: ") and " rows, " in line for line in lines))
        messages = process.stdout.read()
        assert process.wait(30) == 0
    assert not [line for line in terminal.over() if " rows, " in line]
    terminal.close()
    assert messages.count(b'"RECORD"') == 30 and b"\x1b" not in messages


@pytest.mark.parametrize("rich", [True, False])
def test_a_question_of_the_tap_is_seen_before_it_is_answered(tmp_path: Path, rich: bool):
    write_tap(tmp_path, ASKING)
    terminal = Terminal()
    with started(tmp_path, terminal, "run", "tap_x.py", rich=rich, stdin=terminal.theirs) as process:
        terminal.wait(lambda lines: lines[-1:] == ["code from the browser:"])
        time.sleep(1.5)  # more than it takes to draw anew
        assert terminal.screen.text[-1] == "code from the browser:"
        os.write(terminal.ours, b"41\n")
        messages = process.stdout.read()
        assert process.wait(30) == 0
    assert messages.count(b'"code":"41"') == 20
    assert "code from the browser: 41" in terminal.screen.text
    terminal.close()


def test_nothing_is_drawn_in_a_log(tmp_path: Path):
    write_tap(tmp_path, SLOW.replace("ROUNDS", "15"))
    done = subprocess.run(
        [sys.executable, "-m", "burler", "run", "tap_x.py"],
        cwd=tmp_path, capture_output=True, env=environment(), check=True,
    )  # fmt: skip
    assert b"\x1b" not in done.stderr and b"\r" not in done.stderr and b"15 rows, " not in done.stderr


@pytest.mark.nightly
def test_a_log_has_a_line_now_and_then(tmp_path: Path):
    """At night: a line comes every 30 seconds, and every 5 on a terminal where nothing can be drawn."""
    write_tap(tmp_path, SLOW.replace("ROUNDS", "320"))
    ended = burler("run", "tap_x.py", cwd=tmp_path)
    (line,) = [line for line in ended.lines("INFO") if line.startswith("rows \\x1b[31mRED: ")]
    assert line.endswith(" rows, 30 s")
    assert burler("run", "tap_x.py", cwd=tmp_path, BURLER_LOG_LEVEL="WARNING").stderr == ""
    write_tap(tmp_path, SLOW.replace("ROUNDS", "70"))
    terminal = Terminal()
    with started(tmp_path, terminal, "run", "tap_x.py", env={"TERM": "dumb"}) as process:
        process.stdout.read()
    assert [line for line in terminal.over() if line.endswith(" rows, 5 s")]
    terminal.close()


# ---- commands that read, while more may come --------------------------------------------------------


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Messages of a tap, and the same with batch files."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "tap_x.py").write_text(TAP)
    plain = burler("run", "tap_x.py", cwd=folder).stdout
    packed = burler("batch", "pack", "--storage", folder / "files", cwd=folder, stdin=plain).stdout
    return {"plain": plain, "packed": packed}


@pytest.mark.parametrize(
    ("command", "kind", "shown"),
    [
        ("infer", "plain", r"7 records.*"),
        ("lake write other --tap-id a", "plain", r"nothing committed yet, .*"),
        ("batch pack --storage more", "plain", r"[\d.]+ .* of messages written, .*"),
        ("batch expand", "packed", r"[\d.]+ .* of messages written, .*"),
        ("batch convert --storage more --format parquet", "packed", r"[\d.]+ .* of messages written, .*"),
    ],
)
def test_how_far_it_is(tmp_path: Path, messages: dict[str, bytes], command: str, kind: str, shown: str):
    terminal = Terminal()
    with started(tmp_path, terminal, *command.split()) as process:
        process.stdin.write(messages[kind])
        process.stdin.flush()
        terminal.wait(lambda lines: any(re.fullmatch(shown, line) for line in lines))
        out, _err = process.communicate(timeout=30)
        assert process.returncode == 0 and out and b"\x1b" not in out
    assert not [line for line in terminal.over() if re.fullmatch(shown, line)]
    terminal.close()


def test_nothing_is_drawn_between_messages_on_a_terminal(tmp_path: Path, messages: dict[str, bytes]):
    terminal = Terminal()
    with started(tmp_path, terminal, "batch", "expand", stdout=terminal.theirs) as process:
        process.stdin.write(messages["packed"])
        process.stdin.flush()
        with pytest.raises(AssertionError):
            terminal.wait(lambda lines: any("of messages written" in line for line in lines), seconds=2)
        process.communicate(timeout=30)
    assert b'"RECORD"' in terminal.raw
    terminal.close()
