"""``burler batch expand | pack | convert`` as processes: pipes, signals, exit codes (docs/running.md)."""

from __future__ import annotations

import gzip
import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from piped import SCHEMA, batch, file, lines, parsed, record, rows, state

from burler.testing import canary
from support.cli import burler, burler_process, without_times
from support.clocks import until


def command(*args: str, **options: Any) -> subprocess.Popen[bytes]:
    given = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([sys.executable, "-m", "burler", "batch", *args], **given)


def run(*args: str, given: bytes, **env: str) -> tuple[int, bytes, str]:
    done = burler("batch", *args, stdin=given, **env)
    return done.code, done.stdout, done.stderr


@contextmanager
def running(*args: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command whose stdin stays open; whatever happens, it ends."""
    process = command(*args, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
        process.wait(30)


def faults(log: str) -> list[str]:
    """What is no INFO line."""
    return [line for line in without_times(log).splitlines() if not line.startswith("INFO ")]


def send(process: subprocess.Popen[bytes], *messages: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(lines(*messages))
    process.stdin.flush()


def next_lines(process: subprocess.Popen[bytes], count: int) -> list[dict[str, Any]]:
    """So many messages from its stdout, which come although it has not ended."""
    assert process.stdout is not None
    found = b""
    while found.count(b"\n") < count:
        assert select.select([process.stdout], [], [], 30)[0], found
        piece = os.read(process.stdout.fileno(), 1 << 16)
        assert piece, found
        found += piece
    return parsed(found)


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    """Its child processes that read files."""
    listed = Path(f"/proc/{process.pid}/task").glob("*/children")
    pids = [int(pid) for path in listed for pid in path.read_text().split()]
    return [pid for pid in pids if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def big(path: Path, count: int = 400_000) -> str:
    path.write_bytes(gzip.compress(b"".join(b'{"id":%d,"name":"some text"}\n' % n for n in range(count)), 1))
    return f"file://{path}"


PACKED = {"compression": {"name": "gzip"}}


def test_rows_that_nobody_counted_are_told(tmp_path: Path) -> None:
    """Two rows of three: the file was cut off at a line end, and looks whole."""
    (tmp_path / "a.jsonl").write_text('{"id":1}\n{"id":2}\n')
    url = f"file://{tmp_path}/a.jsonl"
    message = {"type": "BATCH", "stream": "users", "encoding": {"format": "jsonl", "compression": "none"}}
    code, _, err = run("expand", given=lines(SCHEMA, {**message, "manifest": [url]}))
    assert code == 0
    assert err == (
        f"INFO expand: 2 rows of 1 BATCH message; rows not counted: 1 file without file_stats ({url}), where a cut at "
        "a line end is not seen\n"
    )
    code, _, err = run("convert", "--storage", str(tmp_path), given=lines(SCHEMA, {**message, "manifest": [url, url]}))
    assert f"rows not counted: 2 files without file_stats (such as {url}), where" in err


def test_there_and_back(tmp_path: Path) -> None:
    given = lines(SCHEMA, record(1), record(2), state(2))
    options = ["--format", "csv", "--compression", "gzip", "--storage", str(tmp_path / "a"), "--tap", "tap-crm"]
    code, out, err = run("pack", *options, given=given)
    assert (code, faults(err)) == (0, [])
    assert [message["type"] for message in parsed(out)] == ["SCHEMA", "BATCH", "STATE"]
    assert "/a/tap-crm--users-" in parsed(out)[1]["manifest"][0]
    code, out, err = run("convert", "--format", "parquet", "--storage", str(tmp_path / "b"), given=out)
    assert (code, faults(err)) == (0, [])
    assert parsed(out)[1]["format"] == {"name": "parquet", "options": {"compression": "zstd"}}
    assert "INFO convert: 2 rows of 1 BATCH message\n" in err
    code, out, err = run("expand", "--processes", "2", given=out)
    assert (code, faults(err)) == (0, [])
    assert err == "INFO expand: 2 rows of 1 BATCH message\n"
    assert [m["record"] for m in parsed(out) if m["type"] == "RECORD"] == [
        {"id": 1, "name": "n1"},
        {"id": 2, "name": "n2"},
    ]
    assert parsed(out)[-1] == state(2)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_batch_that_cannot_be_read_is_exit_code_1(tmp_path: Path, processes: str) -> None:
    good, bad = file(tmp_path / "a", rows(1, 2)), f"file://{tmp_path}/nowhere"
    given = lines(SCHEMA, batch(good), state(1), batch(bad), state(2))
    code, out, err = run("expand", "--processes", processes, given=given)
    assert code == 1
    assert [message["type"] for message in parsed(out)] == ["SCHEMA", "RECORD", "RECORD", "STATE"]
    assert err.startswith("CRITICAL line 4: stream 'users': batch file ")
    assert "nowhere" in err


@pytest.mark.parametrize("name", ["expand", "pack", "convert"])
def test_what_stands_before_a_broken_line_is_out(tmp_path: Path, name: str) -> None:
    where = [] if name == "expand" else ["--storage", str(tmp_path / "out")]
    code, out, err = run(name, *where, given=lines(SCHEMA, record(1), state(1), b'{"type":"BATCH"', state(2)))
    assert code == 1
    assert [message["type"] for message in parsed(out)] == ["SCHEMA", "BATCH" if name == "pack" else "RECORD", "STATE"]
    assert "CRITICAL line 4: it is no " in err


@pytest.mark.parametrize("name", ["expand", "pack", "convert"])
def test_messages_go_on_while_the_tap_is_idle_and_a_signal_ends_it(tmp_path: Path, name: str) -> None:
    options = {"expand": ["--processes", "2"], "pack": ["--batch-age-seconds", "0.1"], "convert": []}[name]
    where = [] if name == "expand" else ["--storage", str(tmp_path / "out")]
    url = file(tmp_path / "a", rows(1))
    with running(name, *options, *where) as process:
        send(process, SCHEMA)
        assert next_lines(process, 1) == [SCHEMA]
        send(process, record(1) if name == "pack" else batch(url), state(1))
        assert next_lines(process, 2)[-1] == state(1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stdout is not None
        assert process.stdout.read() == b""


def test_a_signal_before_anything_comes_in(tmp_path: Path) -> None:
    with running("expand") as process:
        until(lambda: _handles(process.pid, signal.SIGTERM))
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def _handles(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (number - 1) & 1)


@pytest.mark.parametrize("name", ["expand", "pack", "convert"])
def test_a_reader_that_goes_while_the_tap_is_idle_is_exit_code_4(tmp_path: Path, name: str) -> None:
    where = [] if name == "expand" else ["--storage", str(tmp_path / "out")]
    with running(name, *where) as process:
        send(process, SCHEMA)
        next_lines(process, 1)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(30) == 4


def test_stopped_in_the_middle_of_files(tmp_path: Path) -> None:
    """Whole lines, no STATE of what is not out, no processes left."""
    url = big(tmp_path / "a.jsonl.gz")
    with running("expand", "--processes", "2") as process:
        send(process, SCHEMA, batch(url, **PACKED), state(1), batch(url, **PACKED), state(2))
        assert process.stdout is not None
        first = os.read(process.stdout.fileno(), 1 << 16)
        until(lambda: len(workers_of(process)) == 2)
        workers = workers_of(process)
        os.killpg(process.pid, signal.SIGTERM)  # as a terminal or a supervisor may do
        out = first + process.stdout.read()
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert faults(process.stderr.read().decode()) == []
        assert out.endswith(b"\n")
        assert b'"STATE"' not in out
        assert all(message["type"] in ("SCHEMA", "RECORD") for message in parsed(out))
        until(lambda: not any(map(lives, workers)))


def test_killed_in_the_middle_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process, and no temporary file."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    url = big(tmp_path / "a.jsonl.gz")
    with running("expand", "--processes", "3") as process:
        send(process, SCHEMA, *[batch(url, **PACKED)] * 3)
        until(lambda: len(workers_of(process)) == 3 and any(tmp_path.glob("burler-*/*")))
        workers = workers_of(process)
        process.kill()
        process.wait(30)
        until(lambda: not any(map(lives, workers)))
        assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl.gz"]


def test_killed_while_a_worker_waits_for_a_file_no_process_is_left(tmp_path: Path) -> None:
    with running("expand", "--processes", "2") as process:
        send(process, SCHEMA, batch(file(tmp_path / "a", rows(1))), state(1))
        assert next_lines(process, 3)[-1] == state(1)
        (worker,) = workers_of(process)
        process.kill()
        process.wait(30)
        until(lambda: not lives(worker))


def test_a_worker_that_dies_is_an_error_and_no_state_follows(tmp_path: Path) -> None:
    url = big(tmp_path / "a.jsonl.gz", 60_000)
    with running("expand", "--processes", "2") as process:
        send(process, SCHEMA, batch(url, **PACKED), state(1), batch(url, **PACKED), state(2))
        until(lambda: len(workers_of(process)) == 2)
        os.kill(max(workers_of(process)), signal.SIGKILL)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 1
        assert re.search(rb"CRITICAL a process that reads files was killed", err), err
        rows = sum(message["type"] == "RECORD" for message in parsed(out))
        assert [m for m in parsed(out) if m["type"] == "STATE"] == [state(1)] * (rows >= 60_000)


def test_stdout_of_a_worker_is_its_own(tmp_path: Path) -> None:
    """What anything prints in a worker does not get into the messages."""
    (tmp_path / "sitecustomize.py").write_text("print('hello from a start file', flush=False)\n")
    url = file(tmp_path / "a", rows(1))
    done = burler_process(
        "batch", "expand", "--processes", "2", stdin=lines(SCHEMA, batch(url)), PYTHONPATH=str(tmp_path)
    )
    assert done.code == 0
    out = done.stdout.removeprefix(b"hello from a start file\n")  # of the command itself, before it owns stdout
    assert [message["type"] for message in parsed(out)] == ["SCHEMA", "RECORD"]


def test_a_config_file_and_options(tmp_path: Path) -> None:
    path, secret = tmp_path / "config.json", canary("s3")
    path.write_text(
        json.dumps(
            {
                "url": "x",
                "batch_config": {
                    "encoding": {"format": "csv", "compression": "gzip", "format_options": {"delimiter": ";"}},
                    "storage": {"root": "s3://b", "prefix": "p-", "options": {"secret": secret}},
                    "batch_size": 5,
                },
            }
        )
    )
    here = ["--storage", str(tmp_path / "here")]
    given = lines(SCHEMA, *map(record, range(6)), state(1))

    def packed(*more: str) -> list[dict[str, Any]]:
        code, out, err = run("pack", "--config", str(path), *here, *more, given=given)
        assert code == 0, err
        return [message for message in parsed(out) if message["type"] == "BATCH"]

    first, second = packed()
    assert (first["format"]["options"]["delimiter"], first["encoding"]["compression"]) == (";", "gzip")
    assert (first["size"], second["size"]) == (5, 1)
    assert first["manifest"][0].startswith(f"file://{tmp_path}/here/p-tap--users-"), "another root, the same prefix"
    (parquet,) = packed("--format", "parquet", "--batch-size", "7")
    assert (parquet["format"], parquet["size"]) == ({"name": "parquet", "options": {"compression": "zstd"}}, 6)
    assert [message["encoding"]["compression"] for message in packed("--compression", "none")] == ["none", "none"]


def test_activate_version_goes_on_where_it_is_asked_for(tmp_path: Path) -> None:
    activate = {"type": "ACTIVATE_VERSION", "stream": "users", "version": 1}
    given = lines(SCHEMA, record(1, version=1), activate)
    for options, goes in (([], False), (["--activate-version"], True), (["--dialect", "sip"], True)):
        code, out, err = run("pack", "--storage", str(tmp_path), *options, given=given)
        assert (code, faults(err)) == (0, [])
        assert (activate in parsed(out)) is goes


def test_a_config_file_without_one(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"url": "x"}')
    code, out, err = run("pack", "--config", str(path), given=b"")
    assert (code, out) == (2, b"")
    assert "no batch_config in it" in err


@pytest.mark.parametrize(
    ("args", "fact"),
    [
        (["--format", "arrow", "--compression", "gzip"], "compression"),
        (["--format", "jsonl", "--compression", "lz4"], "compression"),
        (["--format-options", '{"delimeter": ";"}', "--format", "csv"], "delimeter"),
        (["--format-options", "nowhere.json"], "nowhere.json"),
        (["--storage-options", "[1]"], "--storage-options"),
        (["--presign-seconds", "60"], "sip"),
        (["--batch-age-seconds", "-1"], "batch_age_seconds"),
    ],
)
def test_wrong_options_are_exit_code_2(tmp_path: Path, args: list[str], fact: str) -> None:
    code, out, err = run("pack", "--storage", str(tmp_path), *args, given=b"")
    assert (code, out) == (2, b"")
    assert fact in err
    assert "Traceback" not in err


def test_options_as_text_or_from_a_file(tmp_path: Path) -> None:
    """That they have come shows where a folder can't have any."""
    path = tmp_path / "options.json"
    path.write_text('{"anon": true}')
    for said in ('{"anon": true}', str(path)):
        code, _, err = run("pack", "--storage", str(tmp_path), "--storage-options", said, given=b"")
        assert code == 2 and "batch_config.storage.options are for stores" in err
    secret = canary("text")
    code, _, err = run("pack", "--storage", "s3://b", "--storage-options", '{"secret": "' + secret, given=b"")
    assert code == 2 and "--storage-options" in err and secret not in err


def test_lake_write_takes_batch_messages(tmp_path: Path) -> None:
    url = file(tmp_path / "a", rows(1, 2))
    done = burler(
        "lake", "write", tmp_path / "lake", "--tap-id", "x", stdin=lines(SCHEMA, batch(url, size=2), state(2))
    )
    assert done.code == 0
    assert done.stderr.splitlines()[0] == "INFO stream 'users': 2 rows in 1 file committed"
    assert parsed(done.stdout) == [state(2)]
    (data,) = (tmp_path / "lake").rglob("*.singer.gz")
    assert [m["record"]["id"] for m in parsed(gzip.decompress(data.read_bytes()))[1:]] == [1, 2]
