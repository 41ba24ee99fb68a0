"""A tap's command as a process: found, told, read, and never left behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_taps import write_tap

from burler.errors import UsageError
from support.internals import source_command

SECRET = "hunter2-hunter2"


def folders(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("burler-exec-*")]


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # gone, also while it is being read
        return False


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_words_are_split_as_a_shell_does_and_no_shell_runs_them(tmp_path):
    program = tmp_path / "a program"
    program.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    program.chmod(0o700)
    command = source_command.find(f"'{program}' 'two words' $HOME '; touch x' \"a b\"")
    with source_command.Running(command, files={}, config={}) as tap:
        assert b"".join(tap.blocks()).decode().splitlines() == ["two words", "$HOME", "; touch x", "a b"]
        assert tap.end() == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "is empty"), ("tap 'x", "can't be split"), ("tap-that-is-not-here --x", "no program 'tap-that-is-not-here'")],
    ids=["empty", "quote", "absent"],
)
def test_what_names_no_program_is_refused(text, said):
    with pytest.raises(UsageError, match=said):
        source_command.find(text)


def test_a_program_beside_this_python_is_found_without_a_path(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert source_command.find("python --version").words[0] == str(Path(sys.executable).parent / "python")


def test_files_are_private_and_gone_at_the_end(temporary, tmp_path):
    command = source_command.find(
        f"{sys.executable} -c 'import sys, time; print(sys.argv[1:], flush=True); time.sleep(60)'"
    )
    with source_command.Running(
        command, files={source_command.CONFIG: {"password": SECRET}}, config={"password": SECRET}
    ) as tap:
        given = next(tap.blocks()).decode()
        path = Path(given.split("'")[3])
        assert path.read_text() == f'{{"password":"{SECRET}"}}'
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert folders(temporary) == []


def test_the_end_of_stderr_is_told_without_secrets():
    body = f"import sys; [print('line', n, '{SECRET}', file=sys.stderr) for n in range(100)]; sys.exit(3)"
    with source_command.Running(
        source_command.find(f'{sys.executable} -c "{body}"'), files={}, config={"password": SECRET}
    ) as tap:
        assert list(tap.blocks()) == []
        assert tap.end() == 3
        assert tap.last_words().startswith("line 88 *** | line 89 ***")
        assert tap.last_words().endswith("line 99 ***")


def test_a_signal_shows_in_the_code():
    with source_command.Running(source_command.find("sh -c 'kill -SEGV $$'"), files={}, config={}) as tap:
        assert list(tap.blocks()) == []
        assert tap.end() == 128 + signal.SIGSEGV


def test_a_tap_that_nobody_reads_any_more_is_ended(tmp_path):
    body = "schema()\nn = 0\nwhile True:\n    n += 1\n    record(id=n)\n"
    with source_command.Running(source_command.find(write_tap(tmp_path, body)), files={}, config={}) as tap:
        next(tap.blocks())
        until(lambda: (tmp_path / "asked.json").exists())
        pid = int((tmp_path / "asked.json").read_text().rpartition(": ")[2].rstrip("}"))
        assert is_alive(pid)
    assert not is_alive(pid)


WORKER = """\
import sys, time
import tempfile
tempfile.tempdir = sys.argv[2]
from support.internals import source_command
Running, find = source_command.Running, source_command.find
with Running(find(sys.argv[1]), files={"--config": {"password": "hunter2-hunter2"}}, config={}) as tap:
    for block in tap.blocks():
        print(block.decode(), flush=True)
"""


def test_a_worker_that_is_killed_leaves_neither_tap_nor_files(tmp_path, temporary):
    """What Spark does to the worker of a cancelled task. The tap waits for its source, with a child of its own."""
    child = "import subprocess\nother = subprocess.Popen(['sleep', '600'])\n"
    body = child + "print(json.dumps([os.getpid(), other.pid]), flush=True)\ntime.sleep(600)"
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, write_tap(tmp_path, body), str(temporary)], stdout=subprocess.PIPE, text=True
    )
    assert worker.stdout is not None
    pids = [int(pid) for pid in worker.stdout.readline().strip("[]\n ").split(",")]
    assert all(map(is_alive, pids))
    assert len(folders(temporary)) == 1
    worker.kill()
    worker.wait()
    worker.stdout.close()
    until(lambda: not any(map(is_alive, pids)))
    until(lambda: folders(temporary) == [])


def test_a_tap_that_ignores_sigterm_is_killed(tmp_path, monkeypatch):
    monkeypatch.setenv("BURLER_GRACE_SECONDS", "0.3")
    body = (
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(os.getpid(), flush=True)\ntime.sleep(600)"
    )
    with source_command.Running(source_command.find(write_tap(tmp_path, body)), files={}, config={}) as tap:
        pid = int(next(tap.blocks()))
    assert not is_alive(pid)


def test_taps_do_not_see_what_spark_tells_its_workers(monkeypatch):
    monkeypatch.setenv("PYTHON_WORKER_FACTORY_SECRET", SECRET)
    monkeypatch.setenv("PYTHONPATH", f"/x/pyspark.zip{os.pathsep}/mine{os.pathsep}/x/py4j-0.10.9-src.zip")
    monkeypatch.setenv("MINE", "kept")
    with source_command.Running(source_command.find("env"), files={}, config={}) as tap:
        seen = b"".join(tap.blocks()).decode().splitlines()
    assert "MINE=kept" in seen
    assert "PYTHONPATH=/mine" in seen
    assert not any(SECRET in line for line in seen)
