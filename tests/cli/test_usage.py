"""Words of the command line that no command takes: one line, the cure, exit code 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import Terminal

from support.cli import burler


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("run --selct a x.py", "No such option '--selct'. Did you mean '--select'? See: burler run --help"),
        ("lake check --strm a", "No such option '--strm'. Did you mean '--stream'? See: burler lake check --help"),
        ("lake chekc", "No such command 'chekc'. Did you mean: burler lake check? See: burler lake --help"),
        ("run x.py --limit abc", "Invalid value for '--limit': 'abc' is no whole number. See: burler run --help"),
        (
            "verify x.py --max-seconds a",
            "Invalid value for '--max-seconds': 'a' is no number. See: burler verify --help",
        ),
        (
            "run x.py --discover",
            "No such option '--discover'. Did you mean: burler discover APP? See: burler run --help",
        ),
        (
            "run x.py --on-bad-record skip",
            "No such option '--on-bad-record'. 'on_bad_record' is a key of the config. See: burler run --help",
        ),
        ("run", "Missing argument 'APP'. See: burler run --help"),
        ("run x.py --limit", "Option '--limit' requires an argument. See: burler run --help"),
        ("batch pack --level 9 --nosuch", "No such option '--nosuch'. See: burler batch pack --help"),
    ],
)
def test_what_is_said(args: str, said: str):
    ended = burler(*args.split())
    assert (ended.code, ended.stdout, ended.stderr) == (2, b"", f"CRITICAL {said}\n")


@pytest.mark.parametrize(
    ("command", "what"),
    [("infer", "records"), ("lake write lake --tap-id a", "messages"), ("batch expand", "messages")],
)
def test_who_reads_a_terminal_says_so(tmp_path: Path, command: str, what: str):
    terminal = Terminal()
    args = [sys.executable, "-m", "burler", *command.split()]
    run = subprocess.Popen(args, cwd=tmp_path, stdin=terminal.theirs, stdout=subprocess.DEVNULL, stderr=terminal.theirs)
    try:
        terminal.wait(
            lambda lines: lines[:1] and lines[0].endswith(f"Z INFO reading {what} from the terminal; Ctrl-D ends them")
        )
        os.write(terminal.ours, b"\x04")
        assert run.wait(20) in (0, 1)
    finally:
        run.kill()
        terminal.close()
