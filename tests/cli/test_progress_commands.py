"""Each command of long work hands over how far it is: what would be shown, as the work ends."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tapprocess import Ended, environment, python, write_tap
from terminals import Terminal

TAP = """
import burler

tap = burler.tap("tap-some")

@tap.sync("rows", key_properties="id", replication_key="id", schema={"properties": {"id": {"type": "integer"}}})
def rows():
    yield from ({"id": i} for i in range(7))
"""
TELLS = """
import contextlib
import sys

from support.internals import cli_progress as module

@contextlib.contextmanager
def progress(said, stdout_on_terminal=None, **_more):
    yield False
    print(f"SHOWN {said()}", file=sys.stderr, flush=True)
    print(f"STDOUT ON TERMINAL {stdout_on_terminal}", file=sys.stderr, flush=True)

module.progress = progress
from support.internals import cli_main
main = cli_main.main

main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tap, its messages, a lake of two files and messages of batch files."""
    folder = tmp_path_factory.mktemp("place")
    write_tap(folder, TAP)
    (folder / "messages.jsonl").write_bytes(told(folder, "run", "tap_x.py").stdout)
    for _ in range(2):
        told(folder, "run", "tap_x.py", "--sink", "lake:lake")
    batches = told(folder, "batch", "pack", "--storage", "files", stdin="messages.jsonl").stdout
    (folder / "batches.jsonl").write_bytes(batches)
    return folder


def told(folder: Path, *args: str, stdin: str | None = None) -> Ended:
    given = (folder / stdin).read_bytes() if stdin else b""
    return python("-c", TELLS, *args, cwd=folder, stdin=given)


@pytest.mark.parametrize(
    ("command", "stdin", "shown"),
    [
        ("verify tap_x.py", None, r".+"),
        ("infer", "messages.jsonl", r"7 records.*"),
        ("lake write other --tap-id a", "messages.jsonl", r"7 rows.*"),
        ("lake read lake", None, r"[\d.]+ KiB of messages written"),
        ("lake check lake", None, r"checked 2 of 2 files"),
        ("lake rebuild lake", None, r"read 2 of 2 files"),
        ("lake compact lake --older-than 0s", None, r"read 2 of 2 files"),
        ("lake docs lake out", None, r"stream 1: tap-some/rows"),
        ("batch pack --storage more", "messages.jsonl", r"[\d.]+ .* of messages written"),
        ("batch expand", "batches.jsonl", r"[\d.]+ .* of messages written"),
        ("batch convert --storage more --format parquet", "batches.jsonl", r"[\d.]+ .* of messages written"),
    ],
)
def test_what_is_shown(place: Path, command: str, stdin: str | None, shown: str):
    ended = told(place, *command.split(), stdin=stdin)
    assert ended.code in (0, 1), ended.stderr
    (line,) = re.findall(r"^SHOWN (.*)$", ended.stderr, re.MULTILINE)
    assert re.fullmatch(shown, line)


@pytest.mark.parametrize("on_terminal", [True, False])
@pytest.mark.parametrize(
    ("command", "stdin"),
    [
        ("run tap_x.py", None),
        ("lake read lake", None),
        ("lake write other --tap-id b", "messages.jsonl"),
        ("batch expand", "batches.jsonl"),
    ],
)
def test_nothing_is_drawn_between_messages(place: Path, command: str, stdin: str | None, on_terminal: bool):
    """They are told whether their messages come on a terminal."""
    terminal = Terminal()
    try:
        done = subprocess.run(
            [sys.executable, "-c", TELLS, *command.split()],
            cwd=place,
            env=environment(),
            input=(place / stdin).read_bytes() if stdin else b"",
            stdout=terminal.theirs if on_terminal else subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=True,
        )
    finally:
        terminal.close()
    assert f"STDOUT ON TERMINAL {on_terminal}\n".encode() in done.stderr
