"""A tail on a terminal: a table below the log, which fits; gone when the run is over."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tapprocess import write_tap
from terminals import Terminal

from support.cli import environment
from support.clocks import until

TAP = """
    import logging, sys, threading
    import burler
    tap = burler.tap("tap-x")
    said = []

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc")
    def rows(stream):
        first = (stream.bookmark or 0) + 1
        yield from ({"id": first + i, "text": "x"} for i in range(3))
        print("printed by the tap")
        if not said:
            said.append(1)
            print("two", "lines", sep="\\n", file=sys.stderr)
            logging.getLogger("burler.x").warning("word " * 60 + "[bold]:smile:")
            tell = lambda name: [logging.getLogger("burler.x").warning(f"{name} {n}.") for n in range(30)]
            threads = [threading.Thread(target=tell, args=(name,)) for name in "abc"]
            for one in threads:
                one.start()
            for one in threads:
                one.join()

    @tap.sync("users", key_properties="id", replication_key="id")
    def users():
        raise ValueError("no luck")
        yield

    tap.schema("rows", SCHEMA)
    tap.schema("users", SCHEMA)
"""
HEAD = "tap-x: 2 streams, 1 failing, "


@contextlib.contextmanager
def tail(
    folder: Path, terminal: Terminal, *, rich: bool = True, source: str = TAP, **more: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """The tap in tail mode, stderr on the terminal."""
    write_tap(folder, source)
    config = {"tail": True, "new_record_polling_interval_ms": 50, **more.pop("config", {})}
    (folder / "config.json").write_text(json.dumps(config))
    env = {"TERM": "xterm", **more.pop("env", {})}
    if not rich:
        (folder / "path").mkdir()
        (folder / "path" / "rich.py").write_text("raise ImportError('half installed')\n")
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder / "path"), os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        [sys.executable, "-m", "burler", "run", "tap_x.py", "--config", "config.json"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=more.get("stdout", subprocess.PIPE),
        stderr=terminal.theirs,
        env=environment(**env),
    )
    seen: list[bytes] = []
    reader = threading.Thread(target=lambda: seen.extend(process.stdout or ()), daemon=True)
    reader.start()
    process.seen, process.reader = seen, reader  # type: ignore[attr-defined]
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)
        reader.join(30)
        if process.stdout is not None:
            process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_tail_that_is_told_to_stop_leaves_its_log_and_whole_messages(tmp_path: Path, number: int):
    terminal = Terminal(120, 40)
    with tail(tmp_path, terminal) as process:
        shown = terminal.wait(lambda lines: any(line.startswith(HEAD) for line in lines))
        assert "printed by the tap" in shown
        at = next(at for at, line in enumerate(shown) if line.startswith(HEAD))
        assert shown[at + 1].split()[:4] == ["stream", "status", "rows", "rows/s"]
        table = " ".join(terminal.wait(lambda lines: any(line.startswith("users: ") for line in lines))[at:])
        assert "rows  " in table and "users  " in table and "ValueError: no luck" in table
        process.send_signal(number)
        assert process.wait(30) == 0
        process.reader.join()
    shown = terminal.over()
    terminal.close()
    assert not [line for line in shown if line.startswith((HEAD, "stream  status"))]
    assert [line for line in shown if line[24:].startswith(" INFO tap-x: stopped")]
    assert shown[shown.index("two") + 1] == "lines"
    whole = "".join(line.ljust(120) for line in shown)  # lines of the log are not cut
    assert "word " * 60 + "[bold]:smile:" in whole
    told = [line[25:] for line in shown if line.endswith(".") and line[25:].startswith(("WARNING a", "WARNING b"))]
    assert len(told) == len(set(told)) == 60
    assert b"\x1b[31m" in terminal.raw and b"\x1b[?25" not in terminal.raw  # the cursor is never hidden
    seen = process.seen
    assert b"\x1b" not in b"".join(seen)
    assert all(line.startswith(b'{"type":"') and line.endswith(b"}\n") for line in seen)
    assert seen[-1].startswith(b'{"type":"STATE"')


def test_a_tail_that_is_killed_leaves_a_cursor_at_the_beginning_of_a_line(tmp_path: Path):
    """And no colours where somebody wants none."""
    terminal = Terminal(120, 40)
    with tail(tmp_path, terminal, env={"NO_COLOR": "1"}) as process:
        terminal.wait(lambda lines: any(line.startswith(HEAD) for line in lines))
        time.sleep(0.2)
        process.kill()
        process.wait(30)
    terminal.over()
    assert (terminal.screen.x, terminal.screen.cursor_shown) == (0, True)
    assert b"\x1b[31m" not in terminal.raw
    terminal.close()


@pytest.mark.parametrize("why", ["a dumb terminal", "a quiet log", "messages on the terminal", "no rich"])
def test_nothing_is_drawn_where_nobody_wants_it(tmp_path: Path, why: str):
    terminal = Terminal(200, 40)
    env = {"a dumb terminal": {"TERM": "dumb"}, "a quiet log": {"BURLER_LOG_LEVEL": "WARNING"}}.get(why, {})
    out = {"stdout": terminal.theirs} if why.startswith("messages") else {}
    with tail(tmp_path, terminal, env=env, rich=why != "no rich", **out):
        terminal.wait(lambda lines: sum("printed by the tap" in line for line in lines) > 2)
        time.sleep(1.3)  # more than it takes to draw
    assert HEAD.encode() not in terminal.raw
    terminal.close()


def test_a_terminal_that_goes_away_does_not_end_the_run(tmp_path: Path):
    terminal = Terminal(120, 40)
    with tail(tmp_path, terminal) as process:
        terminal.wait(lambda lines: any(line.startswith(HEAD) for line in lines))
        terminal.go_away()
        came = len(process.seen)
        until(lambda: len(process.seen) >= came + 20 or process.poll() is not None, "rows go on")
        assert process.poll() is None
        process.terminate()
        process.wait(30)
        process.reader.join()
    terminal.close()
    assert process.seen[-1].startswith(b'{"type":"STATE"')


def test_a_terminal_that_takes_nothing_holds_up_neither_rows_nor_the_last_state(tmp_path: Path):
    """Ctrl-S: whatever is drawn or logged waits. The process ends once somebody looks, or at the second SIGTERM."""
    terminal = Terminal(120, 40, looking=False)
    with tail(tmp_path, terminal, env={"BURLER_LOG_LEVEL": "INFO"}) as process:
        until(lambda: process.seen, "rows come")
        time.sleep(1)
        process.terminate()
        limit, came = time.monotonic() + 20, -1
        while len(process.seen) != came:
            came = len(process.seen)
            assert time.monotonic() < limit
            time.sleep(1)
        assert process.seen[-1].startswith(b'{"type":"STATE"')
        terminal.look()
        process.wait(30)
    terminal.close()


SECRET = "hunter2correcthorse"
SECRETIVE = f"""
    import burler
    tap = burler.tap("tap-x", config_spec={{"type": "object", "properties": {{"password": {{}}}}}})
    text = {{"properties": {{"id": {{"type": "string"}}}}}}

    @tap.sync("rows-{SECRET}", key_properties="id", replication_key="id", order="asc", schema=text)
    def rows(stream):
        yield {{"id": "after {SECRET}"}}

    @tap.sync("users", key_properties="id", replication_key="id", schema=text)
    def users():
        raise ValueError("token {SECRET} refused")
        yield
"""


def test_no_secret_is_on_the_terminal_nor_in_a_line_of_the_log(tmp_path: Path):
    terminal = Terminal(160, 40)
    with tail(tmp_path, terminal, source=SECRETIVE, config={"password": SECRET}):
        shown = terminal.wait(lambda lines: any(line.startswith(HEAD) for line in lines))
        terminal.wait(lambda lines: any(line.startswith("rows-***  ") and "after ***" in line for line in lines))
        assert any("token *** refused" in line for line in shown)
    terminal.over()
    terminal.close()
    assert SECRET[:8].encode() not in terminal.raw


MANY = """
    import burler
    tap = burler.tap("tap-x")

    def make(name, failing):
        @tap.sync(name, key_properties="id", replication_key="id", order="asc", schema=SCHEMA)
        def rows(stream):
            if failing:
                raise ValueError(chr(27) + "[2J no luck " * 30)
            yield {"id": (stream.bookmark or 0) + 1}

    for number in range(30):
        make(f"a_stream_with_a_long_name_{number}", failing=number in (20, 25))
    make(chr(27) + "[2J" + chr(13) + "Z" + chr(252) + "rich", failing=True)
"""


def test_the_table_fits_and_shows_the_worst_and_no_name_moves_the_cursor(tmp_path: Path):
    terminal = Terminal(60, 12)

    def table(lines: list[str]) -> list[str]:
        """The table, once it is drawn with all streams."""
        heads = [at for at, line in enumerate(lines) if line.startswith("tap-x: 31 streams, 3 failing, ")]
        return lines[heads[-1] :] if heads else []

    with tail(tmp_path, terminal, source=MANY, config={"new_record_polling_interval_ms": 200}):
        shown = table(terminal.wait(lambda lines: len(table(lines)) > 9))
    terminal.close()
    assert len(shown) <= 12 and max(map(len, shown)) <= 60
    assert shown[1].split()[:2] == ["stream", "status"] and set(shown[2]) == {"-"}
    worst = [line.split("  ")[0] for line in shown[3:6]]
    assert all(line.isascii() and line.isprintable() for line in shown)
    assert any(line.startswith("\\x1b[2J\\x0dZ\\xfcrich") for line in shown[3:6]), worst
    assert sum("retrying" in line for line in shown[3:6]) == 3, worst
    assert any(line.startswith("... and ") and line.endswith(" more") for line in shown)
