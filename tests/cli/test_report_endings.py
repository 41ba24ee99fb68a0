"""The report and the state file when a run ends badly: stopped, killed, cut off, out of room; and on a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import resource
import signal
import subprocess
import termios
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
from tapprocess import PYTHON, SMALL, Ended, environment, write_tap

ENDLESS = """
import burler, time
tap = burler.tap("tap-endless")
@tap.sync("rows", key_properties="id", replication_key="id", order="asc", bookmark_strategy="every_n(100)")
def rows(stream):
    i = stream.bookmark or 0
    while True:
        yield {"id": i, "text": "x" * 50}
        i += 1
        if not i % 100:
            time.sleep(0.001)
tap.schema("rows", SCHEMA)
"""


@pytest.fixture(autouse=True)
def tap(tmp_path: Path) -> None:
    write_tap(tmp_path, ENDLESS)


def start(folder: Path, *args: str, **given: Any) -> subprocess.Popen[bytes]:
    command = [PYTHON, "-m", "burler", "run", "tap_x.py", *args]
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment(), **given}
    return subprocess.Popen(command, cwd=folder, **given)


def report_in(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.endswith(".tmp")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_has_a_report(tmp_path: Path, number: int):
    with start(tmp_path, "--report", "report.json") as process:
        assert process.stdout is not None and process.stderr is not None
        for _ in range(300):
            process.stdout.readline()
        process.send_signal(number)
        out, err = process.stdout.read(), process.stderr.read()
    assert process.returncode == 0, err
    report = report_in(tmp_path)
    assert (report["status"], report["exit_code"], report["error"]) == ("stopped", 0, None)
    last = [json.loads(line) for line in out.splitlines()][-1]
    (one,) = report["streams"]
    assert one["status"] == "stopped"
    assert one["bookmark_to"] == last["value"]["bookmarks"]["rows"]["id"]
    assert one["rows"] == one["bookmark_to"] + 1
    assert "stopped" in next(line for line in err.decode().splitlines() if " INFO | rows" in line)


def test_a_run_whose_reader_has_gone_has_a_report(tmp_path: Path):
    with start(tmp_path, "--report", "report.json") as process:
        assert process.stdout is not None and process.stderr is not None
        for _ in range(300):
            process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read().decode()
        process.wait(60)
    assert process.returncode == 4, err
    report = report_in(tmp_path)
    assert (report["status"], report["exit_code"], report["error"]["type"]) == ("failed", 4, "OutputClosed")
    (one,) = report["streams"]
    assert one["rows"] >= 300
    assert report["series"][0]["rows"][-1] == one["rows"]
    assert len(re.findall(" INFO [|] ", err)) == 3


def test_an_interrupted_start_has_a_report(tmp_path: Path):
    """SIGINT while the tap is still being loaded: no run yet, and no traceback."""
    write_tap(tmp_path, "import time\nprint('loading', flush=True)\ntime.sleep(60)\n")
    with start(tmp_path, "--report", "report.json") as process:
        assert process.stderr is not None
        assert b"loading" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    report = report_in(tmp_path)
    assert (report["status"], report["exit_code"], report["tap"]) == ("failed", 130, None)


# ---- no room -------------------------------------------------------------------------------------


def no_room(most: int) -> Any:
    """For ``preexec_fn``: no file may grow beyond so many bytes, as on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def ended(process: subprocess.Popen[bytes]) -> Ended:
    out, err = process.communicate(timeout=60)
    return Ended(process.returncode, out, err.decode())


def test_a_report_that_has_no_room_fails_a_run_that_went_well(tmp_path: Path):
    write_tap(tmp_path, SMALL)
    (tmp_path / "report.json").write_text("of yesterday")
    with start(tmp_path, "--report", "report.json", preexec_fn=no_room(100)) as process:
        done = ended(process)
    assert done.code == 1
    assert done.one_critical() == "CRITICAL --report report.json can't be written: File too large."
    assert done.messages[-1] == {"type": "STATE", "value": {"bookmarks": {"rows": {"id": 9}}}}
    assert (tmp_path / "report.json").read_text() == "of yesterday"
    assert leftovers(tmp_path) == []


def test_a_report_that_has_no_room_changes_no_other_exit_code(tmp_path: Path):
    with start(tmp_path, "--report", "report.json", preexec_fn=no_room(100)) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read().decode()
        process.wait(60)
    assert process.returncode == 4
    assert "CRITICAL --report report.json can't be written" in err
    assert not (tmp_path / "report.json").exists()


def test_a_folder_that_goes_away_is_one_line(tmp_path: Path):
    source = SMALL.replace("    for i in", "    import shutil\n    shutil.rmtree('out')\n    for i in")
    write_tap(tmp_path, source)
    (tmp_path / "out").mkdir()
    with start(tmp_path, "--report", "out/report.json") as process:
        done = ended(process)
    assert done.code == 1
    assert "--report out/report.json can't be written: No such file" in done.one_critical()
    assert done.messages[-1]["type"] == "STATE"


def test_a_state_file_without_room_ends_the_run_before_its_state_line(tmp_path: Path):
    (tmp_path / "state.json").write_text('{"bookmarks": {"rows": {"id": 0}}}')
    source = ENDLESS.replace("    while True:", "    while True:\n        stream.state['filler'] = 'x' * i")
    write_tap(tmp_path, source)
    with start(tmp_path, "-o", "state.json", "-s", "state.json", preexec_fn=no_room(3000)) as process:
        done = ended(process)
    assert done.code == 1
    assert "--out-file state.json can't be written: File too large." in done.one_critical()
    states = [message["value"] for message in done.messages if message["type"] == "STATE"]
    kept = json.loads((tmp_path / "state.json").read_text())
    assert kept == states[-1]
    assert leftovers(tmp_path) == []


# ---- on a terminal -------------------------------------------------------------------------------


def on_terminal(folder: Path, columns: int, **env: str) -> list[str]:
    """Run the tap with stderr on a terminal so many columns wide; the lines that stand there then."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    shown = bytearray()

    def read() -> None:
        with contextlib.suppress(OSError):  # the terminal has no writer any more
            while part := os.read(ours, 65536):
                shown.extend(part)

    reader = threading.Thread(target=read)
    reader.start()
    process = start(folder, stdout=subprocess.DEVNULL, stderr=theirs, env=environment(**env))
    os.close(theirs)
    assert process.wait(60) == 0
    reader.join()
    os.close(ours)
    return shown.decode().replace("\r\n", "\n").splitlines()


NAMED = SMALL.replace('"rows"', '"rows_of_' + "a_name_" * 12 + '[bold]"')


@pytest.mark.parametrize("columns", [40, 200])
def test_the_summary_fits_the_terminal(tmp_path: Path, columns: int):
    write_tap(tmp_path, NAMED)
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "rich.py").write_text("raise ImportError('there is none')")
    path = os.pathsep.join(filter(None, [str(tmp_path / "path"), os.environ.get("PYTHONPATH")]))
    lines = on_terminal(tmp_path, columns, PYTHONPATH=path)[-3:]
    assert lines[0].startswith("stream ") and set(lines[1]) == {"-"} and lines[2].startswith("rows_of")
    assert max(map(len, lines)) <= columns
    assert len(lines[1]) > columns * 0.8 or columns == 200
    assert ("a_name_[bold]" in lines[2]) == (columns == 200)


FAKE_RICH = {
    "__init__": "print('rich is here')",
    "console": """
        import sys
        class Console:
            width = 100
            def __init__(self, *, stderr, highlight, soft_wrap):
                assert stderr and not highlight
            def print(self, text):
                print("RICH", *text, file=sys.stderr)
    """,
    "text": """
        def Text(line, *, style):
            return style or "plain", line
    """,
}


def test_rich_colours_the_summary_on_a_terminal_alone(tmp_path: Path):
    package = tmp_path / "path" / "rich"
    package.mkdir(parents=True)
    for name, source in FAKE_RICH.items():
        (package / f"{name}.py").write_text(textwrap.dedent(source))
    write_tap(tmp_path, SMALL)
    path = os.pathsep.join(filter(None, [str(tmp_path / "path"), os.environ.get("PYTHONPATH")]))
    lines = on_terminal(tmp_path, 100, PYTHONPATH=path)
    drawn = [line.split()[1:4] for line in lines if line.startswith("RICH")]
    assert drawn == [["bold", "stream", "rows"], ["dim", "-" * 58], ["plain", "rows", "10"]]
    assert not [line for line in lines if " INFO | " in line]
    with start(tmp_path, env=environment(PYTHONPATH=path)) as process:
        done = ended(process)
    assert "rich is here" not in done.stderr and "INFO | rows" in done.stderr
    quiet = on_terminal(tmp_path, 100, PYTHONPATH=path, BURLER_LOG_LEVEL="WARNING")
    assert not [line for line in quiet if "rows" in line]
    (package / "text.py").write_text("raise RuntimeError('half installed')")
    assert on_terminal(tmp_path, 100, PYTHONPATH=path)[-1].split()[:4] == ["rows", "10", "10", "0"]
