"""``burler lake write`` and ``run --sink lake:`` as processes: options, and what they do beside another writer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tapprocess import PYTHON, SMALL, environment, shell, write_tap

from burler.lake import load, open_store, read_lines, read_singerlake
from burler.testing import canary
from support.cli import burler
from support.clocks import until

SCHEMA = {
    "type": "SCHEMA",
    "stream": "rows",
    "schema": {"properties": {"id": {"type": "integer"}}},
    "key_properties": [],
}


def lines(*messages: Any) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def rows(*ids: int, stream: str = "rows") -> bytes:
    return lines(
        {**SCHEMA, "stream": stream},
        *({"type": "RECORD", "stream": stream, "record": {"id": number}} for number in ids),
        {"type": "STATE", "value": {"at": ids[-1]}},
    )


def ids(lake: Path, tap: str = "t", stream: str = "rows") -> list[int]:
    store = open_store(str(lake))
    found = [json.loads(line) for file in load(store, tap, stream).files for line in read_lines(store, file.path)]
    return [message["record"]["id"] for message in found if message["type"] == "RECORD"]


@contextmanager
def writing(lake: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A writer with open ends, killed when the test is over."""
    command = [PYTHON, "-m", "burler", "lake", "write", str(lake), "--tap-id", "t", *options]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, env=environment(), cwd=lake.parent, **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def holding(lake: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A writer that has the lock of stream rows."""
    with writing(lake) as process:
        assert process.stdin is not None
        process.stdin.write(rows(1))
        process.stdin.flush()
        until(lambda: list(lake.rglob("*/singerlake.lock")))
        yield process


def test_files_are_compressed_as_told(tmp_path: Path) -> None:
    for number, (compression, ending) in enumerate([("gz", ".singer.gz"), ("bz2", ".singer.bz2"), ("none", ".singer")]):
        options = ("--tap-id", "t", "--compression", compression)
        assert burler("lake", "write", "lake", *options, cwd=tmp_path, stdin=rows(number)).code == 0
        assert len([path for path in tmp_path.rglob("rows-*") if path.name.endswith(ending)]) == 1
    assert sorted(ids(tmp_path / "lake")) == [0, 1, 2]


def test_folders_are_spelled_as_told(tmp_path: Path) -> None:
    for options in (("--encoding", "base85"), ()):
        assert burler("lake", "write", "lake", "--tap-id", "t", *options, cwd=tmp_path, stdin=rows(1)).code == 0
    (folder,) = [path for path in (tmp_path / "lake/raw/t/rows").iterdir() if path.is_dir()]
    assert len(folder.name) == 10
    ended = burler("lake", "write", "lake", "--tap-id", "t", "--encoding", "base58", cwd=tmp_path, stdin=rows(1))
    assert ended.code == 2
    assert "Write to another lake" in ended.one_critical()
    assert ids(tmp_path / "lake") == [1, 1]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--lock-ttl-seconds", "0"), "lock_ttl_seconds"),
        (("--lock-timeout-seconds", "-1"), "lock_timeout_seconds"),
        (("--lock-timeout-seconds", "x"), "--lock-timeout-seconds"),
        (("--max-open-files", "0"), "--max-open-files"),
        (("--compression", "zip"), "--compression"),
        (("--encoding", "hex"), "--encoding"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_wrong_options_are_usage_errors(tmp_path: Path, options: tuple[str, ...], word: str) -> None:
    ended = burler("lake", "write", "lake", "--tap-id", "t", *options, cwd=tmp_path, stdin=rows(1))
    assert ended.code == 2
    assert word in ended.stderr
    assert not (tmp_path / "lake").exists()


def test_a_second_writer_waits_for_the_first(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with holding(lake) as first, writing(lake) as second:
        assert second.stdin is not None
        assert second.stderr is not None
        second.stdin.write(rows(2))
        second.stdin.close()
        second.stdin = None
        told = second.stderr.readline()
        while b"waiting" not in told:
            told = second.stderr.readline()
        assert b"stream 'rows': waiting for the lock of " in told
        out, err = first.communicate(timeout=60)
        assert (first.returncode, json.loads(out)["value"]) == (0, {"at": 1}), err
        out, err = second.communicate(timeout=60)
        assert (second.returncode, json.loads(out)["value"]) == (0, {"at": 2}), err
    assert ids(lake) == [1, 2]
    assert not list(lake.rglob("*/singerlake.lock"))


def test_a_wait_that_is_too_long_ends_with_code_3_and_no_state_of_what_waits(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with holding(lake):
        options = ("--tap-id", "t", "--lock-timeout-seconds", "0.3")
        ended = burler("lake", "write", "lake", *options, cwd=tmp_path, stdin=rows(7, stream="other") + rows(2))
    assert ended.code == 3
    assert "waited 0 s for the lock of" in ended.one_critical()
    assert [message["value"] for message in ended.messages] == [{"at": 7}]
    assert ids(lake, stream="other") == [7]


def test_a_signal_ends_the_wait(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with holding(lake), writing(lake) as second:
        assert second.stdin is not None
        assert second.stderr is not None
        second.stdin.write(rows(7, stream="other") + rows(2))
        second.stdin.flush()
        told = second.stderr.readline()
        while b"waiting" not in told:
            told = second.stderr.readline()
        second.send_signal(signal.SIGTERM)
        out, err = second.communicate(timeout=60)
    assert second.returncode == 0, err
    assert b"stopped while waiting for the lock" in err
    assert json.loads(out)["value"] == {"at": 7}


def test_the_lock_of_a_killed_writer_stops_nobody(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with holding(lake) as killed:
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        assert list(lake.rglob("*/singerlake.lock"))
        ended = burler(
            "lake", "write", "lake", "--tap-id", "t", cwd=tmp_path, stdin=rows(2)
        )  # within a fifth of the ttl
    assert ended.code == 0, ended.stderr
    assert ids(lake) == [2]


def test_under_tail_the_lock_goes_with_the_commit(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with writing(lake, "--tail", "--max-file-age-seconds", "0.3") as tail:
        assert tail.stdin is not None
        tail.stdin.write(rows(1))
        tail.stdin.flush()
        assert tail.stdout is not None
        assert json.loads(tail.stdout.readline())["value"] == {"at": 1}
        until(lambda: not list(lake.rglob("*/singerlake.lock")))
        assert burler("lake", "write", "lake", "--tap-id", "t", cwd=tmp_path, stdin=rows(2)).code == 0
        tail.stdin.write(rows(3))
        tail.stdin.flush()
        assert json.loads(tail.stdout.readline())["value"] == {"at": 3}
        _, err = tail.communicate(timeout=60)
        assert tail.returncode == 0, err
    assert ids(lake) == [1, 2, 3]


def test_two_taps_and_two_streams_of_one_tap_do_not_wait_for_each_other(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with holding(lake):
        options = ("--tap-id", "t", "--lock-timeout-seconds", "0")
        assert burler("lake", "write", "lake", *options, cwd=tmp_path, stdin=rows(2, stream="other")).code == 0
        assert burler("lake", "write", "lake", "--tap-id", "u", *options[2:], cwd=tmp_path, stdin=rows(3)).code == 0


# --- a burler tap


def config(folder: Path, **settings: Any) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps(settings))
    return str(path)


def test_a_burler_tap_takes_the_same_settings(tmp_path: Path) -> None:
    tap = write_tap(tmp_path, SMALL)
    given = config(tmp_path, lake_compression="bz2", lake_encoding="base85", max_file_records=4, lake_options={})
    ended = burler("run", tap, "--sink", "lake:lake", "--config", given, cwd=tmp_path)
    assert ended.code == 0, ended.stderr
    files = list(tmp_path.rglob("rows-*.singer.bz2"))
    assert [len(path.parent.name) for path in files] == [10, 10, 10]
    assert ids(tmp_path / "lake", "tap-small") == list(range(10))
    about = read_singerlake(open_store(str(tmp_path / "lake")))
    assert about is not None
    assert about["taps"]["tap-small"]["status"]["state"] == "complete"


def test_a_burler_tap_waits_for_a_lock_as_long_as_its_setting_says(tmp_path: Path) -> None:
    tap = write_tap(tmp_path, SMALL)
    given = config(tmp_path, lock_timeout_seconds=0)
    assert burler("run", tap, "--sink", "lake:lake", cwd=tmp_path).code == 0
    (data,) = (tmp_path / "lake").rglob("rows-*.singer.gz")
    data.with_name("singerlake.lock").write_text('{"writer-id": "somebody"}')
    ended = burler("run", tap, "--sink", "lake:lake", "--config", given, cwd=tmp_path)
    assert ended.code == 3
    assert "the lock of somebody" in ended.one_critical()
    assert ended.messages == []


def test_options_of_a_store_that_are_wrong_are_refused_without_their_values(tmp_path: Path) -> None:
    tap, secret = write_tap(tmp_path, SMALL), canary("lake-options")
    ended = burler("run", tap, "--sink", "lake:lake", "--config", config(tmp_path, lake_options=[secret]), cwd=tmp_path)
    assert ended.code == 2
    assert "'lake_options' must be a JSON object" in ended.one_critical()
    assert secret not in ended.stderr
    given = json.dumps({"key": secret})
    ended = burler("lake", "write", "lake", "--tap-id", "t", "--lake-options", given, cwd=tmp_path, stdin=rows(1))
    assert ended.code == 0
    assert "--lake-options are for stores, and lake is a folder" in ended.stderr
    assert secret not in ended.stderr


# --- what comes out


def test_states_come_out_as_messages_or_as_bare_values(tmp_path: Path) -> None:
    options = ("lake", "write", "lake", "--tap-id", "t")
    exact = b'{"type": "STATE", "value": {"at": 0.10000000000000000001, "type": "STATE"}}\n'
    assert burler(*options, cwd=tmp_path, stdin=rows(1)).messages == [{"type": "STATE", "value": {"at": 1}}]
    ended = burler(*options, "--state-values", cwd=tmp_path, stdin=rows(2) + exact)
    assert ended.stdout == b'{"at":0.10000000000000000001,"type":"STATE"}\n'


PLAIN = """
import json, sys
state = json.load(open(sys.argv[1])) if len(sys.argv) > 1 else {}
print(json.dumps({"type": "SCHEMA", "stream": "rows", "schema": {}, "key_properties": []}))
for number in range(state.get("at", 0), state.get("at", 0) + 3):
    print(json.dumps({"type": "RECORD", "stream": "rows", "record": {"id": number}}))
print(json.dumps({"type": "STATE", "value": {**state, "at": number + 1}}))
"""


def test_a_plain_tap_goes_on_from_the_last_bare_value(tmp_path: Path) -> None:
    """The recipe of docs/lake.md: such a tap knows states, and no messages around them."""
    (tmp_path / "tap.py").write_text(PLAIN)
    run = "| $BURLER lake write lake --tap-id t --state-values >> states.jsonl && tail -1 states.jsonl > state.json"
    for given in ("", "state.json", "state.json"):
        ended = shell(f"set -o pipefail; {PYTHON} tap.py {given} {run}", tmp_path)
        assert ended.code == 0, ended.stderr
    assert ids(tmp_path / "lake") == list(range(9))
    assert json.loads((tmp_path / "state.json").read_text()) == {"at": 9}


def test_a_burler_tap_goes_on_from_a_file_of_bare_values(tmp_path: Path) -> None:
    tap, states = write_tap(tmp_path, SMALL), tmp_path / "states.jsonl"
    given = ("lake", "write", "lake", "--tap-id", "t", "--state-values")
    for times in (1, 2):
        brought = burler("run", tap, *(["--state", states] if times > 1 else []), cwd=tmp_path).stdout
        printed = burler(*given, cwd=tmp_path, stdin=brought).stdout
        states.write_bytes((states.read_bytes() if times > 1 else b"") + printed)
    assert ids(tmp_path / "lake") == [*range(10), 9]  # the greatest key comes again, no row before it
    assert [set(json.loads(line)) for line in states.read_text().splitlines()] == [{"bookmarks"}] * 2


def test_the_log_says_what_was_committed(tmp_path: Path) -> None:
    options = ("--tap-id", "t", "--max-file-records", "2")
    both = rows(1, 2, 3) + rows(7, stream="other")
    ended = burler("lake", "write", "lake", *options, cwd=tmp_path, stdin=both + b"no message\n")
    assert ended.code == 1
    assert "INFO stream 'rows': 3 rows in 2 files committed" in ended.stderr
    assert "INFO stream 'other': 1 row in 1 file committed" in ended.stderr
    assert '"metric":"record_count","value":3' in ended.stderr
