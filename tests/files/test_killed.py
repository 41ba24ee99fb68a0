"""Runs that end in the middle of a file: killed, stopped, or because nobody reads any more."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

FILES, ROWS = 6, 8_000

TAP = """
import burler, burler.files

tap = burler.tap("tap-files")
schema = {"properties": {"id": {"type": "integer"}, "_file": {"type": "string"},
                         "_modified": {"type": "string", "format": "date-time"}}}


@tap.sync("orders", key_properties="id", schema=schema, replication_key="_modified")
def orders(stream):
    yield from burler.files.read("in/*", stream=stream, add=("_file", "_modified"))
"""


@pytest.fixture(params=["csv.gz", "jsonl"])
def folder(request, box):
    ending = request.param
    for number in range(FILES):
        first = number * ROWS
        if ending == "jsonl":
            text = "".join(f'{{"id": {i}}}\n' for i in range(first, first + ROWS))
        else:
            text = "id\n" + "".join(f"{i}\n" for i in range(first, first + ROWS))
        box.put(f"in/{number}.{ending}", text)
    (box.folder / "tap_files.py").write_text(TAP)
    return box.folder


def start(folder, state=None):
    command = [sys.executable, "-m", "burler", "run", "tap_files.py"]
    if state is not None:
        (folder / "state.json").write_text(json.dumps(state))
        command += ["--state", "state.json"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def read(process, ends):
    """Messages until ``ends`` says so of one, or to the end. A line that was cut off by the kill is none."""
    found = []
    for line in process.stdout:
        if not line.endswith(b"\n"):
            break
        message = json.loads(line)
        found.append(message)
        if ends is not None and ends(message):
            break
    return found


def files_noted(state):
    entries = state.get("bookmarks", {}).get("orders", {}).get("source_state")
    return json.loads(entries[0]["value"])["files"] if entries else 0


def rows(messages):
    return [message["record"] for message in messages if message["type"] == "RECORD"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_what_was_noted_does_not_come_again_and_nothing_is_lost(folder, how):
    process = start(folder)
    try:
        first = read(process, lambda message: message["type"] == "STATE" and files_noted(message["value"]) >= 2)
        first += read(process, lambda message: message["type"] == "RECORD")
        os.kill(process.pid, how)
        first += read(process, None)
        process.wait(20)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    states = [message["value"] for message in first if message["type"] == "STATE"]
    noted = files_noted(states[-1])
    assert 2 <= noted < FILES, "it ended in the middle"
    last = max(i for i, message in enumerate(first) if message["type"] == "STATE")
    before = {row["_file"][0] for row in rows(first[:last])}
    assert before >= {str(number) for number in range(noted)}, "a state never speaks of rows that are not out"

    process = start(folder, states[-1])
    second = read(process, None)
    assert process.wait(20) == 0
    process.stdout.close()
    assert {row["_file"][0] for row in rows(second)} == {str(number) for number in range(noted, FILES)}
    assert {row["id"] for row in rows(first) + rows(second)} == set(range(FILES * ROWS))
    assert files_noted(second[-1]["value"]) == FILES
