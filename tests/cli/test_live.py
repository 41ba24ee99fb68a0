"""A tail on a terminal: a table, or one line, below the log; gone when the run is over."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
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
from tapprocess import environment, write_tap
from terminals import Terminal

from burler.testing import FakeClock
from support.internals import cli_live, live_painters, report_frame, report_line, tail_watch
from support.internals import cli_live as module

find_spec = importlib.util.find_spec


def lines_of(watch: tail_watch.TailWatch):
    """The table of a tail, as ``live`` draws it."""
    return lambda width, height: report_frame.frame(
        "tap-crm", watch.snapshot(), watch.totals(), width=width, height=height
    )


@pytest.fixture
def watch() -> tail_watch.TailWatch:
    clock = FakeClock()
    made = tail_watch.TailWatch(clock, [("orders", "poll"), ("users", "poll")])
    made.rows("orders", 12, "2025-12-31T23:59:57Z")
    made.failed("users", ValueError("no luck"), failures=2, wait_seconds=8.0)
    return made


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """stderr is a terminal, and the log goes there."""
    made = Terminal()
    with stderr_is(made, monkeypatch):
        yield made
    made.close()


@contextlib.contextmanager
def stderr_is(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("NO_COLOR", "LOGGING_CONF_FILE", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(module, "_DRAW_SECONDS", 0.02)
    ours = logging.StreamHandler(terminal.file)
    ours.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    log = logging.getLogger("burler")
    level, propagate = log.level, log.propagate
    log.addHandler(ours)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(ours)
        log.setLevel(level)
        log.propagate = propagate


def handlers_of(terminal: Terminal) -> list[logging.Handler]:
    return [one for one in logging.getLogger("burler").handlers if getattr(one, "stream", None) is terminal.file]


@contextlib.contextmanager
def showing(watch: tail_watch.TailWatch, terminal: Terminal, *, stdout_on_terminal: bool = False) -> Iterator[None]:
    """As while a tap runs. Not in a fixture: pytest has a stderr of its own for each phase of a test."""
    (handler,) = handlers_of(terminal)
    with contextlib.redirect_stderr(terminal.file), contextlib.redirect_stdout(terminal.file):
        try:
            with cli_live.live(watch, "tap-crm", stdout_on_terminal=stdout_on_terminal):
                yield
        finally:
            assert sys.stderr is sys.stdout is terminal.file
            assert handlers_of(terminal) == [handler]


@pytest.fixture(params=["rich", "without rich"])
def painted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "without rich":
        hide_rich(monkeypatch)
    return request.param


def hide_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str, *given: Any) -> Any:
        return None if name.partition(".")[0] == "rich" else find_spec(name, *given)

    monkeypatch.setattr(importlib.util, "find_spec", found)


def log(text: str) -> None:
    logging.getLogger("burler.test").info(text)


HEAD = "tap-crm: 2 streams, 1 failing, 12 rows, 12/s, no STATE yet, 3.0 s behind (orders)"


# ---- what stands there ---------------------------------------------------------------------------


def test_a_table_below_the_log(terminal: Terminal, watch: tail_watch.TailWatch):
    with showing(watch, terminal):
        log("one")
        shown = terminal.wait(lambda lines: len(lines) == 7)
        assert shown[:2] == ["INFO one", HEAD]
        assert shown[2].split() == "stream status rows rows/s lag last poll next failures errors bookmark".split()  # noqa: SIM905
        assert [line.split()[:2] for line in shown[4:]] == [
            ["orders", "starting"],
            ["users", "retrying"],
            ["users:", "ValueError:"],
        ]
        log("two")
        assert terminal.wait(lambda lines: len(lines) == 8)[:3] == ["INFO one", "INFO two", HEAD]
        watch.rows("orders", 30, None)
        terminal.wait(lambda lines: "30 rows" in lines[2])


def test_one_line_below_the_log_without_rich(
    terminal: Terminal, watch: tail_watch.TailWatch, monkeypatch: pytest.MonkeyPatch
):
    hide_rich(monkeypatch)
    with showing(watch, terminal):
        log("one")
        assert terminal.wait(lambda lines: len(lines) == 2) == ["INFO one", HEAD]
        watch.recovered("users")
        log("two")
        shorter = HEAD.replace(" 1 failing,", "")
        assert terminal.wait(lambda lines: lines[-1] == shorter) == ["INFO one", "INFO two", shorter]
    assert b"\x1b" not in terminal.raw


def test_it_is_gone_at_the_end_and_the_log_goes_on(terminal: Terminal, watch: tail_watch.TailWatch, painted: str):
    with showing(watch, terminal):
        log("one")
        terminal.wait(lambda lines: HEAD in lines)
    log("two")
    assert terminal.over() == ["INFO one", "INFO two"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_it_is_gone_when_the_run_ends_with_an_error(
    terminal: Terminal, watch: tail_watch.TailWatch, painted: str, error: type[BaseException]
):
    with pytest.raises(error), showing(watch, terminal):
        terminal.wait(lambda lines: HEAD in lines)
        raise error
    assert terminal.over() == []


def test_the_cursor_is_never_hidden_and_stands_at_the_beginning_of_a_line(
    terminal: Terminal, watch: tail_watch.TailWatch, painted: str
):
    """Nobody would bring it back after a SIGKILL; and what others write begins at the beginning."""
    with showing(watch, terminal):
        terminal.wait(lambda lines: HEAD in lines)
        terminal.wait(lambda _lines: terminal.screen.x == 0)
    assert b"\x1b[?25" not in terminal.raw


def test_all_that_python_writes_to_stderr_stands_above(terminal: Terminal, watch: tail_watch.TailWatch, painted: str):
    with showing(watch, terminal):
        print("of the", end=" ")
        print("tap")
        print("two", "lines", sep="\n", file=sys.stderr)
        assert sys.stderr.isatty()
        assert os.isatty(sys.stderr.fileno())
        terminal.wait(lambda lines: lines[:4] == ["of the tap", "two", "lines", HEAD])
        sys.stderr.write("half a line")
    assert terminal.over() == ["of the tap", "two", "lines", "half a line"]


def test_lines_of_the_log_are_not_cut(terminal: Terminal, watch: tail_watch.TailWatch, painted: str):
    long = "word " * 60
    with showing(watch, terminal):
        log(long + "[bold]:smile:")
        terminal.wait(lambda lines: HEAD in lines)
    whole = f"INFO {long}[bold]:smile:"
    assert [line.ljust(100) for line in terminal.over()] == [
        whole[at : at + 100].ljust(100) for at in range(0, len(whole), 100)
    ]


def test_threads_may_log_at_once(terminal: Terminal, watch: tail_watch.TailWatch, painted: str):
    def tell(name: str) -> None:
        for n in range(100):
            log(f"{name} {n}")

    with showing(watch, terminal):
        threads = [threading.Thread(target=tell, args=(name,)) for name in "abc"]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        terminal.wait(lambda lines: HEAD in lines)
    assert sorted(terminal.over()) == sorted(f"INFO {name} {n}" for name in "abc" for n in range(100))


def test_of_more_streams_than_lines_the_worst_are_shown(terminal: Terminal, watch: tail_watch.TailWatch):
    for n in range(60):
        watch.rows(f"stream_{n}", 1, None)
    with showing(watch, terminal):
        shown = terminal.wait(lambda lines: "... and 44 more" in lines)
        assert len(shown) == 23
        assert shown[3].startswith("users  ")


def test_a_terminal_that_changes_its_size(terminal: Terminal, watch: tail_watch.TailWatch, painted: str):
    with showing(watch, terminal):
        terminal.wait(lambda lines: HEAD in lines)
        for columns, lines in ((60, 24), (40, 6), (100, 3), (200, 50)):
            terminal.resize(columns, lines)
            head = HEAD[: columns - 1]
            at = len(terminal.raw)
            drawn = head.encode() + (b"\x1b" if painted == "rich" else b"\r")
            terminal.wait(lambda _lines, at=at, drawn=drawn: drawn in terminal.raw[at:])


def test_a_narrower_terminal_keeps_no_second_halves(terminal: Terminal):
    """Most terminals break lines in two when they become narrower; rich does not know of it."""
    painter = live_painters.RichTable(terminal.file)
    painter.above("INFO one")
    painter.draw([report_line.Line("x" * 95), report_line.Line("y" * 40), report_line.Line("z" * 120)], 100, 24)
    terminal.wait(lambda lines: len(lines) == 4)
    narrow, before = terminal.screen, len(terminal.raw)
    narrow.narrow(30)
    assert len(narrow.text) == 1 + 4 + 2 + 4
    painter.draw([report_line.Line("x" * 29), report_line.Line("y" * 29), report_line.Line("z" * 29)], 30, 24)
    painter.close()
    terminal.over()
    narrow.feed(terminal.raw[before:].decode())
    assert narrow.text == ["INFO one"]


def test_colours_only_where_they_are_wanted(watch: tail_watch.TailWatch, monkeypatch: pytest.MonkeyPatch):
    for plain in (False, True):
        terminal = Terminal()
        with stderr_is(terminal, monkeypatch):
            if plain:
                monkeypatch.setenv("NO_COLOR", "1")
            with showing(watch, terminal):
                terminal.wait(lambda lines: len(lines) > 5)
        assert (b"\x1b[31m" in terminal.raw) is not plain
        terminal.close()


# ---- where nothing is drawn ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"), [("TERM", "dumb"), ("LOGGING_CONF_FILE", "logging.conf")], ids=["dumb", "redirected"]
)
def test_nothing_is_drawn_where_the_environment_says_so(
    terminal: Terminal, watch: tail_watch.TailWatch, monkeypatch: pytest.MonkeyPatch, name: str, value: str
):
    monkeypatch.setenv(name, value)
    nothing_is_drawn(terminal, watch)


def nothing_is_drawn(terminal: Terminal, watch: tail_watch.TailWatch, **given: bool) -> None:
    with showing(watch, terminal, **given):
        assert sys.stderr is terminal.file
        time.sleep(0.1)
        logging.getLogger("burler.test").warning("one")
    assert terminal.over() == ["WARNING one"]


def test_nothing_is_drawn_where_the_log_is_not_wanted(terminal: Terminal, watch: tail_watch.TailWatch):
    logging.getLogger("burler").setLevel(logging.WARNING)
    nothing_is_drawn(terminal, watch)


def test_nothing_is_drawn_between_messages(terminal: Terminal, watch: tail_watch.TailWatch):
    nothing_is_drawn(terminal, watch, stdout_on_terminal=True)


def test_it_is_for_terminals_that_are_open(terminal: Terminal):
    assert cli_live.is_wanted(terminal.file)
    assert not cli_live.is_wanted(io.StringIO())
    assert not cli_live.is_wanted(None)
    terminal.file.close()
    assert not cli_live.is_wanted(terminal.file)


def test_a_tap_in_the_background_draws_nothing_between_the_lines_of_others(
    terminal: Terminal, watch: tail_watch.TailWatch, monkeypatch: pytest.MonkeyPatch, painted: str
):
    """``tap | target &``, and Ctrl-Z with ``bg`` and ``fg``."""
    front = [os.getpgrp() + 1]
    monkeypatch.setattr(os, "tcgetpgrp", lambda _fd: front[0])
    with showing(watch, terminal):
        log("one")
        time.sleep(0.1)
        assert terminal.wait(lambda lines: "INFO one" in lines) == ["INFO one"]
        front[0] = os.getpgrp()
        terminal.wait(lambda lines: HEAD in lines)
        front[0] += 1
        time.sleep(0.1)
        os.write(terminal.theirs, b"\n" * 9 + b"$ fg\n")
        log("two")
        front[0] -= 1
        shown = terminal.wait(lambda lines: lines.count(HEAD) == 2)
        assert shown.index("$ fg") < shown.index("INFO two") < len(shown) - 1 - shown[::-1].index(HEAD)
    assert terminal.over()[-2:] == ["$ fg", "INFO two"]


def test_after_a_pause_it_begins_below_what_stands_there(
    terminal: Terminal, watch: tail_watch.TailWatch, monkeypatch: pytest.MonkeyPatch
):
    """SIGSTOP, and whatever the shell has written until SIGCONT."""
    display = cli_live.Display(lines_of(watch), terminal.file)
    display.draw()
    terminal.wait(lambda lines: HEAD in lines)
    os.write(terminal.theirs, b"$ fg\n")
    monkeypatch.setattr(module, "_PAUSE_SECONDS", 0.0)
    display.draw()
    shown = terminal.wait(lambda lines: lines.count(HEAD) == 2)
    assert shown.index("$ fg") == len(shown) // 2


# ---- when it goes wrong --------------------------------------------------------------------------


def test_a_terminal_that_goes_away_does_not_end_the_run(terminal: Terminal, watch: tail_watch.TailWatch, painted: str):
    with showing(watch, terminal):
        terminal.wait(lambda lines: HEAD in lines)
        terminal.go_away()
        for n in range(5):
            log(f"nobody sees it {n}")
            time.sleep(0.02)
    log("nor this")
    assert not any(thread.name == "burler-live" for thread in threading.enumerate())


def test_stderr_that_is_closed_does_not_end_the_run(terminal: Terminal, watch: tail_watch.TailWatch, painted: str):
    with showing(watch, terminal):
        terminal.wait(lambda lines: HEAD in lines)
        terminal.file.close()
        time.sleep(0.06)
        print("nobody sees it")
    assert not any(thread.name == "burler-live" for thread in threading.enumerate())


def test_a_rich_that_does_not_work_is_done_without(
    terminal: Terminal, watch: tail_watch.TailWatch, monkeypatch: pytest.MonkeyPatch
):
    def broken(_file: Any) -> Any:
        raise ImportError("half installed")

    monkeypatch.setattr(live_painters, "RichTable", broken)
    with showing(watch, terminal):
        assert terminal.wait(lambda lines: len(lines) > 0) == [HEAD]


def test_a_table_that_fails_later_leaves_the_log_alone(
    terminal: Terminal, watch: tail_watch.TailWatch, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_given: Any) -> Any:
        raise RuntimeError("rich has changed")

    with showing(watch, terminal):
        terminal.wait(lambda lines: HEAD in lines)
        monkeypatch.setattr(live_painters.RichTable, "draw", broken)
        time.sleep(0.1)
        log("one")
    log("two")
    assert terminal.over()[-2:] == ["INFO one", "INFO two"]


def test_a_terminal_that_takes_nothing_does_not_hold_up_the_end(
    watch: tail_watch.TailWatch, monkeypatch: pytest.MonkeyPatch
):
    """Ctrl-S: whatever is written waits."""
    for n in range(40):
        watch.rows(f"stream_{n}", 1, None)
    terminal = Terminal(lines=50, looking=False)
    monkeypatch.setattr(module, "_DRAW_SECONDS", 0.001)
    monkeypatch.setattr(module, "_LEAVE_SECONDS", 0.3)
    display = cli_live.Display(lines_of(watch), terminal.file)
    display.start()
    time.sleep(0.5)
    begun = time.monotonic()
    display.leave()
    assert time.monotonic() - begun < 5
    assert display.is_alive()
    terminal.look()
    display.join(20)
    assert not display.is_alive()
    terminal.close()


def test_to_draw_fifty_streams_takes_some_milliseconds(watch: tail_watch.TailWatch):
    for n in range(50):
        watch.rows(f"stream_{n}", 1, "2025-12-31T23:59:57Z")
    terminal = Terminal(200, 60)
    display = cli_live.Display(lines_of(watch), terminal.file)
    display.draw()
    begun = time.process_time()
    for _ in range(10):
        display.draw()
    assert (time.process_time() - begun) / 10 < 0.1
    terminal.close()


def test_one_line_that_becomes_shorter_leaves_nothing_behind(terminal: Terminal):
    painter = live_painters.OneLine(terminal.file)
    painter.draw([report_line.Line("a long line")], 100, 24)
    painter.draw([report_line.Line("short")], 100, 24)
    assert terminal.wait(lambda lines: lines == ["short"])
    painter.close()
    assert terminal.over() == []


# ---- whole processes -----------------------------------------------------------------------------

TAP = """
    import burler
    tap = burler.tap("tap-x")

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc")
    def rows(stream):
        first = (stream.bookmark or 0) + 1
        yield from ({"id": first + i, "text": "x"} for i in range(3))
        print("printed by the tap")

    tap.schema("rows", SCHEMA)
"""


@contextlib.contextmanager
def tail(folder: Path, terminal: Terminal, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """The tap in tail mode, stderr on the terminal."""
    write_tap(folder, TAP)
    (folder / "config.json").write_text('{"tail": true, "new_record_polling_interval_ms": 50}')
    command = [sys.executable, "-m", "burler", "run", "tap_x.py", "--config", "config.json"]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=terminal.theirs,
        env=environment(TERM="xterm", **env),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def without_rich(folder: Path) -> str:
    """A folder for PYTHONPATH in which rich is no package that can be imported."""
    (folder / "path").mkdir()
    (folder / "path" / "rich.py").write_text("raise ImportError('not here')\n")
    return os.pathsep.join(filter(None, [str(folder / "path"), os.environ.get("PYTHONPATH")]))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("rich", [True, False])
def test_a_tail_that_is_told_to_stop_leaves_its_log_and_whole_messages(tmp_path: Path, number: int, rich: bool):
    terminal = Terminal(120, 40)
    env = {} if rich else {"PYTHONPATH": without_rich(tmp_path)}
    with tail(tmp_path, terminal, **env) as process:
        assert process.stdout is not None
        seen: list[bytes] = []
        reader = threading.Thread(target=lambda: seen.extend(process.stdout or ()))
        reader.start()
        terminal.wait(lambda lines: any(line.startswith("tap-x: 1 stream, ") for line in lines))
        terminal.wait(lambda lines: "printed by the tap" in lines)
        assert rich == any(line.startswith("stream  status") for line in terminal.screen.text)
        process.send_signal(number)
        assert process.wait(30) == 0
        reader.join()
    shown = terminal.over()
    terminal.close()
    assert not [line for line in shown if line.startswith(("tap-x: 1 stream, ", "stream  status"))]
    assert [line for line in shown if line[24:].startswith(" INFO tap-x: stopped")]
    assert b"\x1b" not in b"".join(seen)
    assert all(line.startswith(b'{"type":"') and line.endswith(b"}\n") for line in seen)
    assert seen[-1].startswith(b'{"type":"STATE"')


@pytest.mark.parametrize("rich", [True, False])
def test_a_tail_that_is_killed_leaves_a_cursor_at_the_beginning_of_a_line(tmp_path: Path, rich: bool):
    terminal = Terminal(120, 40)
    env = {} if rich else {"PYTHONPATH": without_rich(tmp_path)}
    with tail(tmp_path, terminal, **env) as process:
        threading.Thread(target=lambda: process.stdout and process.stdout.read(), daemon=True).start()
        terminal.wait(lambda lines: any(line.startswith("tap-x: 1 stream, ") for line in lines))
        time.sleep(0.2)
        process.kill()
        process.wait(30)
    terminal.over()
    assert (terminal.screen.x, terminal.screen.cursor_shown) == (0, True)
    terminal.close()
