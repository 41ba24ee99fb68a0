"""Stopping a run with workers: real processes, real signals, workers that are blocked in user code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from blocked import started, wait_for
from parts import key_of, marks
from tapprocess import burler, messages_of

SOURCE = """
import os, sys, threading, time
import burler

tap = burler.tap("tap-x")
FIELDS = {"properties": {"account": {"type": "string"}, "id": {"type": "integer"}}}

def block():
    how = os.environ.get("BLOCK")
    if how == "sleep":
        time.sleep(600)
    elif how == "recv":
        os.read(os.pipe()[0], 1)  # no objects that a signal could leave half made
    elif how == "lock":
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()

@tap.partitions("rows")
def accounts():
    for name in os.environ.get("ACCOUNTS", "abcd"):
        if name == "!":
            sys.stderr.write("BLOCKED\\n")
            block()
        yield {"account": name}

@tap.sync("rows", key_properties=["account", "id"], replication_key="id", order="asc", schema=FIELDS,
          workers=int(os.environ.get("WORKERS", "4")))
def rows(stream, partition):
    name = partition["account"]
    try:
        for number in range(stream.bookmark or 0, 6):
            if number == 3 and name not in os.environ.get("FREE", ""):
                sys.stderr.write("BLOCKED\\n")
                block()
            yield {"account": name, "id": number}
            stream.state["done"] = number
    finally:
        if os.environ.get("BLOCK"):
            sys.stderr.write(f"FINALLY {name}\\n")
"""

STREAMS = """
import os, sys, time
import burler

tap = burler.tap("tap-x")
FIELDS = {"properties": {"id": {"type": "integer"}}}

def rows(stream):
    for number in range(stream.bookmark or 0, 6):
        if number == 3 and os.environ.get("BLOCK"):
            sys.stderr.write("BLOCKED\\n")
            time.sleep(600)
        yield {"id": number}

for name in "abc":
    tap.sync(name, key_properties="id", replication_key="id", order="asc", schema=FIELDS)(rows)
"""


def ended(process: subprocess.Popen[bytes], number: int) -> tuple[int, list[dict[str, Any]], str, float]:
    """Send a signal; the exit code, messages, the rest of stderr, and the seconds that it took."""
    begun = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    return process.returncode, messages_of(out), err.decode(), time.monotonic() - begun


def rows_of(messages: list[dict[str, Any]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for message in messages:
        if message["type"] == "RECORD":
            found.setdefault(message["record"].get("account", message["stream"]), []).append(message["record"]["id"])
    return found


@pytest.mark.parametrize(
    ("block", "number"),
    [
        pytest.param("sleep", signal.SIGTERM, marks=pytest.mark.nightly),
        pytest.param("recv", signal.SIGINT, marks=pytest.mark.nightly),
        ("lock", signal.SIGTERM),
    ],
)
def test_blocked_workers_do_not_keep_a_run_from_ending(tmp_path: Path, block: str, number: int):
    with started(tmp_path, SOURCE, BLOCK=block) as process:
        wait_for(process, b"BLOCKED", 4)
        code, messages, stderr, seconds = ended(process, number)
    assert code == 0, stderr
    assert seconds < 10
    assert rows_of(messages) == {name: [0, 1, 2] for name in "abcd"}
    assert messages[-1]["type"] == "STATE"
    assert marks(messages[-1]["value"]) == dict.fromkeys("abcd", 2)
    assert messages[-1]["value"]["currently_syncing"] == "rows"
    parts = messages[-1]["value"]["bookmarks"]["rows"]["partitions"]
    assert all(parts[key_of(name)].get("stream_state", {}).get("done", -1) <= 2 for name in "abcd"), "no more is out"
    assert stderr.count("FINALLY") == 1  # that of the main thread; the others can't be woken
    assert "Traceback" not in stderr
    state = tmp_path / "state.json"
    state.write_text(json.dumps(messages[-1]["value"]))
    rest = burler("run", tmp_path / "tap_x.py", "--state", state, cwd=tmp_path)
    assert rest.code == 0
    assert rows_of(rest.messages) == {name: [2, 3, 4, 5] for name in "abcd"}


def test_rows_that_wait_in_the_pages_of_blocked_workers_go_out(tmp_path: Path):
    """Nothing has come out before the signal: rows may wait for 30 seconds here."""
    with started(tmp_path, SOURCE, config={"page_max_age_seconds": 30}, BLOCK="lock") as process:
        wait_for(process, b"BLOCKED", 4)
        code, messages, stderr, _seconds = ended(process, signal.SIGTERM)
    assert code == 0, stderr
    assert rows_of(messages) == {name: [0, 1, 2] for name in "abcd"}
    assert marks(messages[-1]["value"]) == dict.fromkeys("abcd", 2)


def test_the_main_thread_is_done_and_only_others_are_blocked(tmp_path: Path):
    """It waits for them, and a signal reaches it there."""
    with started(tmp_path, SOURCE, BLOCK="lock", FREE="bcd", ACCOUNTS="abcd", WORKERS="2") as process:
        wait_for(process, b"BLOCKED", 1)
        time.sleep(0.3)
        code, messages, stderr, seconds = ended(process, signal.SIGTERM)
    assert (code, seconds < 10) == (0, True), stderr
    assert rows_of(messages) == {"a": [0, 1, 2], **{name: list(range(6)) for name in "bcd"}}
    assert marks(messages[-1]["value"]) == {"a": 2, "b": 5, "c": 5, "d": 5}


def test_a_second_signal_ends_it_at_once(tmp_path: Path):
    with started(tmp_path, SOURCE, BLOCK="lock") as process:
        wait_for(process, b"BLOCKED", 4)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        process.wait(10)
        assert time.monotonic() - begun < 5
    assert process.returncode in (143, 0)


def test_no_new_partition_begins_after_a_signal(tmp_path: Path):
    with started(tmp_path, SOURCE, BLOCK="sleep", ACCOUNTS="abcdefghijkl", WORKERS="3") as process:
        wait_for(process, b"BLOCKED", 3)
        _code, messages, _stderr, _seconds = ended(process, signal.SIGTERM)
    assert set(rows_of(messages)) == set("abc")


@pytest.mark.parametrize(("workers", "block"), [pytest.param("1", "sleep", marks=pytest.mark.nightly), ("3", "lock")])
def test_a_list_of_partitions_that_blocks(tmp_path: Path, workers: str, block: str):
    """One thread is in the author's function, the others wait for it to give the next partition."""
    with started(tmp_path, SOURCE, BLOCK=block, ACCOUNTS="ab!cd", FREE="abcd", WORKERS=workers) as process:
        wait_for(process, b"BLOCKED", 1)
        time.sleep(0.3)
        code, messages, stderr, seconds = ended(process, signal.SIGTERM)
    assert (code, seconds < 10) == (0, True), stderr
    assert "Traceback" not in stderr
    assert rows_of(messages) == {"a": list(range(6)), "b": list(range(6))}
    assert marks(messages[-1]["value"]) == {"a": 5, "b": 5}


def test_streams_at_a_time_that_are_blocked(tmp_path: Path):
    with started(tmp_path, STREAMS, config={"workers": 3}, BLOCK="1") as process:
        wait_for(process, b"BLOCKED", 3)
        code, messages, stderr, seconds = ended(process, signal.SIGTERM)
    assert (code, seconds < 10) == (0, True), stderr
    assert rows_of(messages) == {name: [0, 1, 2] for name in "abc"}
    assert messages[-1]["value"]["bookmarks"] == {name: {"id": 2} for name in "abc"}
    state = tmp_path / "state.json"
    state.write_text(json.dumps(messages[-1]["value"]))
    rest = burler("run", tmp_path / "tap_x.py", "--state", state, cwd=tmp_path)
    assert rows_of(rest.messages) == {name: [2, 3, 4, 5] for name in "abc"}


def test_a_kill_loses_nothing(tmp_path: Path):
    """Rows since the last STATE come again, no row is missing."""
    with started(tmp_path, SOURCE, BLOCK="lock") as process:
        wait_for(process, b"BLOCKED", 4)
        process.kill()
        out, _err = process.communicate(timeout=30)
    whole = out[: out.rindex(b"\n") + 1]
    messages = messages_of(whole)
    states = [message["value"] for message in messages if message["type"] == "STATE"]
    state = tmp_path / "state.json"
    state.write_text(json.dumps(states[-1] if states else {}))
    rest = burler("run", tmp_path / "tap_x.py", "--state", state, cwd=tmp_path)
    before, after = rows_of(messages), rows_of(rest.messages)
    assert {name: set(before.get(name, ())) | set(after[name]) for name in "abcd"} == {
        name: set(range(6)) for name in "abcd"
    }


def test_a_reader_that_goes_away_ends_all_workers(tmp_path: Path):
    with started(tmp_path, SOURCE, BLOCK="lock") as process:
        wait_for(process, b"BLOCKED", 1)
        assert process.stdout is not None
        process.stdout.close()
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(15) in (0, 4)
