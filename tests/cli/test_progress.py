"""How far long work is: drawn on a terminal, a line in a log now and then, and nothing where nobody wants it."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tapprocess import environment, write_tap
from terminals import Terminal

from support.internals import cli_progress, run_report
from support.internals import cli_progress as module

SLOW = """
import time
import burler

tap = burler.tap("tap-slow")

@tap.sync("rows", schema={"properties": {"id": {"type": "integer"}}})
def rows():
    for i in range(30):
        yield {"id": i}
        time.sleep(0.1)
"""


def test_a_log_has_a_line_now_and_then(caplog):
    caplog.set_level("INFO", logger="burler")
    with cli_progress.progress(lambda: "42 rows", log_seconds=0.1):
        time.sleep(0.35)
    said = [record.getMessage() for record in caplog.records]
    assert 1 <= len(said) <= 4
    assert {one.partition(",")[0] for one in said} == {"42 rows"}


@pytest.mark.parametrize("level", ["WARNING", "ERROR"])
def test_a_quiet_log_has_none(caplog, level):
    caplog.set_level(level, logger="burler")
    with cli_progress.progress(lambda: "42 rows", log_seconds=0.02):
        time.sleep(0.1)
    assert caplog.records == []


def test_an_error_in_what_is_said_ends_the_showing_alone(caplog):
    caplog.set_level("INFO", logger="burler")
    with cli_progress.progress(lambda: 1 // 0 and "", log_seconds=0.02):
        time.sleep(0.1)
    assert [record for record in caplog.records if record.levelno >= logging.INFO] == []


def test_names_and_values_of_others_are_one_harmless_line(caplog):
    caplog.set_level("INFO", logger="burler")
    with cli_progress.progress(lambda: "rows: 1 rows, at k\n\x1b[31mRED\x07", log_seconds=0.02):
        time.sleep(0.3)
    assert caplog.records
    assert {one.getMessage().partition("RED")[0] for one in caplog.records} == {"rows: 1 rows, at k \\x1b[31m"}
    assert all("RED\\x07, " in one.getMessage() for one in caplog.records)


def test_what_is_said_of_a_run():
    report = run_report.Report()
    said = cli_progress.of_run(report)
    assert said() == ""
    report.begin("tap-crm")
    report.stream_began("contacts", method="INCREMENTAL", bookmark=None)
    report.page("contacts", 12_345, "2024-05-01T00:00:00Z")
    assert said() == "contacts: 12,345 rows, at 2024-05-01T00:00:00Z"
    for name in ("notes", "orders"):
        report.stream_began(name, method="FULL_TABLE", bookmark=None)
    assert said() == "notes: 0 rows; orders: 0 rows and 1 more stream"


def test_how_many_of_all():
    told, said = cli_progress.of_all("checked", "files")
    assert said() == ""
    told(12, 4800)
    assert said() == "checked 12 of 4,800 files"


def test_a_counter_writes_and_counts():
    out: list[bytes] = []
    counter = cli_progress.Counter(out.append)
    counter(b"abc")
    counter(b"de")
    assert (counter.count, b"".join(out)) == (5, b"abcde")


@pytest.mark.parametrize("rich", [True, False])
def test_a_run_on_a_terminal_shows_its_rows_while_it_goes_on(tmp_path: Path, rich: bool):
    write_tap(tmp_path, SLOW)
    path = tmp_path / "path"
    path.mkdir()
    if not rich:
        (path / "rich.py").write_text("raise ImportError('there is none')")
    where = os.pathsep.join(filter(None, [str(path), os.environ.get("PYTHONPATH")]))
    terminal = Terminal()
    command = [sys.executable, "-m", "burler", "run", "tap_x.py"]
    started = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal.file, env=environment(PYTHONPATH=where)
    )
    assert started.stdout is not None
    try:
        terminal.wait(lambda lines: any(line.startswith("rows: ") and " rows, " in line for line in lines))
        messages = started.stdout.read()
        assert started.wait(30) == 0
    finally:
        started.stdout.close()
        terminal.close()
    assert messages.count(b'"RECORD"') == 30 and b"\x1b" not in messages


@pytest.mark.parametrize(("seconds", "drawn"), [(0.0, False), (3600.0, True)])
def test_work_that_has_just_begun_shows_nothing(monkeypatch, seconds: float, drawn: bool):
    """What would be drawn, by the clock."""
    seen = []

    @contextlib.contextmanager
    def asks(lines, **_more):
        later = time.monotonic() + seconds
        monkeypatch.setattr(module.time, "monotonic", lambda: later)
        seen.extend(lines(80, 24))
        yield True

    monkeypatch.setattr(module, "drawn", asks)
    with cli_progress.progress(lambda: "42 rows"):
        pass
    assert bool(seen) is drawn


@pytest.mark.parametrize(("on_terminal", "seconds"), [(True, 5.0), (False, 30.0)])
def test_how_often_a_line_comes(monkeypatch, caplog, on_terminal: bool, seconds: float):
    """On a terminal where nothing can be drawn somebody waits."""
    caplog.set_level("INFO", logger="burler")
    waits = []
    monkeypatch.setattr(module, "is_terminal", lambda _file: on_terminal)
    monkeypatch.setattr(module, "_log", lambda _said, _begun, _over, every_seconds: waits.append(every_seconds))
    monkeypatch.setattr(module, "drawn", lambda *_args, **_more: contextlib.nullcontext(False))
    with cli_progress.progress(lambda: "42 rows"):
        pass
    assert waits == [seconds]


def test_nothing_is_drawn_in_a_log(tmp_path: Path):
    write_tap(tmp_path, SLOW)
    done = subprocess.run(
        [sys.executable, "-m", "burler", "run", "tap_x.py"],
        cwd=tmp_path, capture_output=True, env=environment(), check=True,
    )  # fmt: skip
    assert b"\x1b" not in done.stderr and b"\r" not in done.stderr
    assert module.LOG_SECONDS == 30


LINES = """
import time, click
from support.internals import logs
from support.internals import cli_progress
of_all, progress = cli_progress.of_all, cli_progress.progress
logs.configure()
told, said = of_all("read", "files")
with progress(said):
    told(3, 7)
    time.sleep(1.5)
    click.echo("first stream: 3 files")
    time.sleep(1.2)
    click.echo("second stream: 4 files")
"""


@pytest.mark.parametrize("rich", [True, False])
def test_lines_for_people_go_above_what_is_drawn(tmp_path: Path, rich: bool):
    if not rich:
        (tmp_path / "rich.py").write_text("raise ImportError('there is none')")
    (tmp_path / "lines.py").write_text(LINES)
    terminal = Terminal()
    where = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    started = subprocess.Popen(
        [sys.executable, "lines.py"],
        cwd=tmp_path, stdout=terminal.file, stderr=terminal.file, env=environment(PYTHONPATH=where),
    )  # fmt: skip
    try:
        terminal.wait(lambda lines: lines[:1] == ["first stream: 3 files"] and "read 3 of 7 files, 2 s" in lines)
        assert started.wait(30) == 0
        assert terminal.over() == ["first stream: 3 files", "second stream: 4 files"]
    finally:
        terminal.close()


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


@pytest.mark.parametrize("rich", [True, False])
def test_a_question_of_the_tap_is_seen_before_it_is_answered(tmp_path: Path, rich: bool):
    write_tap(tmp_path, ASKING)
    path = tmp_path / "path"
    path.mkdir()
    if not rich:
        (path / "rich.py").write_text("raise ImportError('there is none')")
    where = os.pathsep.join(filter(None, [str(path), os.environ.get("PYTHONPATH")]))
    terminal = Terminal()
    started = subprocess.Popen(
        [sys.executable, "-m", "burler", "run", "tap_x.py"],
        cwd=tmp_path, stdin=terminal.theirs, stdout=subprocess.PIPE, stderr=terminal.file,
        env=environment(PYTHONPATH=where),
    )  # fmt: skip
    assert started.stdout is not None
    try:
        terminal.wait(lambda lines: lines[-1:] == ["code from the browser:"])
        time.sleep(1.5)  # more than it takes to draw anew
        assert terminal.screen.text[-1] == "code from the browser:"
        os.write(terminal.ours, b"41\n")
        messages = started.stdout.read()
        assert started.wait(30) == 0
    finally:
        started.kill()
        started.stdout.close()
        terminal.close()
    assert messages.count(b'"code":"41"') == 20
    assert "code from the browser: 41" in terminal.screen.text
