"""A tail as a process: signals, a reader that goes away, STATE while user code blocks."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import textwrap
import threading
import time
from pathlib import Path

import pytest
from tapprocess import PYTHON, environment, messages_of, write_tap

from support.cli import burler

NIGHTLY = pytest.mark.nightly
"""The same as the others here, by another way."""

POLLED = """
import sys, time, burler
tap = burler.tap("tap-x")
made = []

class Client:
    def close(self):
        print("CLOSED", file=sys.stderr, flush=True)

@tap.client
def client():
    made.append(1)
    print("CLIENT", len(made), file=sys.stderr, flush=True)
    return Client()

@tap.sync("rows", key_properties="id", replication_key="id", order="asc")
def rows(client, stream):
    yield {"id": (stream.bookmark or 0) + 1}
tap.schema("rows", SCHEMA)
"""
BLOCKED = """
import socket, sys, burler
tap = burler.tap("tap-x")

@tap.MODE("rows", key_properties="id", replication_key="id", order="asc")
def rows(stream):
    try:
        for i in range(10):
            yield {"id": i}
        a, b = socket.socketpair()
        with a, b:
            a.recv(1)
    finally:
        print("FINALLY", file=sys.stderr, flush=True)
tap.schema("rows", SCHEMA)
"""


class Process:
    """A tail of a tap, with what it has printed so far."""

    def __init__(self, folder: Path, source: str, **config: object) -> None:
        settings = {"tail": True, "new_record_polling_interval_ms": 100, "state_message_min_interval_ms": 200}
        path = folder / "config.json"
        path.write_text(json.dumps({**settings, **config}))
        command = [PYTHON, "-m", "burler", "run", str(write_tap(folder, source)), "--config", str(path)]
        self.errors = folder / "stderr"
        with self.errors.open("wb") as stderr:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=environment())
        self.lines: list[bytes] = []

    def until(self, *types: str, count: int = 1) -> list[dict]:
        """Read until so many messages of these types have come from here on."""
        assert self.process.stdout is not None
        seen = 0
        while seen < count:
            line = self.process.stdout.readline()
            assert line, self.said
            self.lines.append(line)
            seen += json.loads(line)["type"] in types
        return self.messages

    def end(self, number: int = signal.SIGTERM) -> int:
        """Stop it, read the rest."""
        assert self.process.stdout is not None
        self.process.send_signal(number)
        self.lines += self.process.stdout.readlines()
        return self.process.wait(20)

    def close(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process.kill()
        self.process.wait()

    @property
    def messages(self) -> list[dict]:
        return messages_of(b"".join(self.lines))

    @property
    def said(self) -> str:
        return self.errors.read_text()


@pytest.fixture
def tail(tmp_path):
    running: list[Process] = []

    def start(source: str, **config: object) -> Process:
        running.append(Process(tmp_path, source, **config))
        return running[-1]

    yield start
    for one in running:
        one.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=NIGHTLY)])
def test_a_signal_between_two_polls_ends_it_at_once_with_its_state(tail, number):
    one = tail(POLLED, new_record_polling_interval_ms=600_000, state_message_min_interval_ms=600_000)
    one.until("RECORD")
    time.sleep(0.2)
    begun = time.monotonic()
    assert one.end(number) == 0
    assert time.monotonic() - begun < 10
    assert one.messages[-1] == {"type": "STATE", "value": {"bookmarks": {"rows": {"id": 1}}}}
    assert one.said.count("CLOSED") == 1


def test_hangup_makes_a_new_client_and_polls_at_once(tail):
    one = tail(POLLED, new_record_polling_interval_ms=600_000)
    one.until("STATE")
    for n in (2, 3):
        one.process.send_signal(signal.SIGHUP)
        one.until("RECORD")
        assert one.said.count("CLIENT") == n
    assert one.end() == 0
    assert [m["record"]["id"] for m in one.messages if m["type"] == "RECORD"] == [1, 2, 3]
    assert one.said.count("CLOSED") == 3
    assert sum(m["type"] == "SCHEMA" for m in one.messages) == 1


OWN = POLLED + "\nif __name__ == '__main__':\n    tap.cli()\n"
COMMANDS = {"burler": ["-m", "burler", "run", "tap_x.py"], "own": ["tap_x.py"]}


def hung_up_early(folder: Path, command: str, *args: str) -> subprocess.Popen[bytes]:
    """A tap's process that gets a SIGHUP long before it runs: while its file is loaded, or a schema is asked for."""
    early = "import os, signal\nos.kill(os.getpid(), signal.SIGHUP)\n"
    source = OWN.replace("tap =", early + "tap =", 1)
    if command == "own" and "tail" in args:
        asked = textwrap.indent(early + "return SCHEMA\n", "    ")
        source = OWN.replace('tap.schema("rows", SCHEMA)', f'@tap.schema("rows")\ndef schema():\n{asked}')
    write_tap(folder, source)
    (folder / "config.json").write_text(json.dumps({"new_record_polling_interval_ms": 100, "tail": "tail" in args}))
    return subprocess.Popen(
        [PYTHON, *COMMANDS[command], "--config", "config.json", *(arg for arg in args if arg != "tail")],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )


@pytest.mark.parametrize(
    ("command", "how"), [("burler", "--tail"), pytest.param("burler", "tail", marks=NIGHTLY), ("own", "tail")]
)
def test_a_hangup_while_a_tail_begins_is_seen_to_once_it_runs(tmp_path, command, how):
    process = hung_up_early(tmp_path, command, how)
    assert process.stdout is not None
    try:
        begun = any(b"RECORD" in line for line in iter(process.stdout.readline, b""))
        process.terminate()
        out, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (begun, process.returncode) == (True, 0), said
    assert said.count(b"CLIENT") == 2
    assert messages_of(out)[-1]["type"] == "STATE"


@pytest.mark.parametrize("args", [[], pytest.param(["--discover"], marks=NIGHTLY)])
def test_what_is_no_tail_ends_by_a_hangup_while_it_begins(tmp_path, args):
    process = hung_up_early(tmp_path, "own", *args)
    out, said = process.communicate(timeout=60)
    assert (process.returncode, out) == (-signal.SIGHUP, b""), said


def test_a_hangup_at_the_very_end_changes_nothing(tail):
    one = tail(
        POLLED.replace('print("CLOSED"', 'import os, signal; os.kill(os.getpid(), signal.SIGHUP); print("CLOSED"')
    )
    one.until("STATE")
    assert one.end() == 0
    assert one.said.count("CLOSED") == 1


@pytest.mark.parametrize("mode", [pytest.param("sync", marks=NIGHTLY), "tail"])
def test_states_come_while_the_function_blocks_and_a_signal_ends_it(tail, mode):
    one = tail(BLOCKED.replace("MODE", mode))
    one.until("STATE")
    assert one.messages[-1]["value"]["bookmarks"]["rows"] == {"id": 9}
    assert one.end() == 0
    assert sum(m["type"] == "STATE" for m in one.messages) in (1, 2)
    assert "FINALLY" in one.said


def test_hangup_ends_a_function_that_blocks_and_calls_it_again(tail):
    one = tail(BLOCKED.replace("MODE", "tail"))
    one.until("STATE")
    one.process.send_signal(signal.SIGHUP)
    one.until("RECORD", count=5)
    assert "FINALLY" in one.said
    assert one.end() == 0


def test_in_a_thread_what_blocks_is_left_behind_and_nothing_that_came_is_lost(tail):
    one = tail(
        BLOCKED.replace("MODE", "tail") + BLOCKED.split("\n\n", 1)[1].replace("MODE", "tail").replace("rows", "more")
    )
    one.until("STATE", count=1)
    one.process.send_signal(signal.SIGHUP)
    one.until("STATE", count=1)
    assert one.end() == 0
    last = one.messages[-1]
    assert last["type"] == "STATE"
    assert last["value"]["bookmarks"] == {"rows": {"id": 9}, "more": {"id": 9}}


def test_a_reader_that_has_gone_is_noticed_where_nothing_is_written(tail):
    one = tail(BLOCKED.replace("MODE", "tail"), state_message_min_interval_ms=600_000)
    one.until("RECORD", count=10)
    assert one.process.stdout is not None
    one.process.stdout.close()
    assert one.process.wait(20) == 4
    one.process.stdout = None
    assert "Traceback" not in one.said


def test_a_process_that_was_stopped_goes_on_without_a_burst(tail):
    one = tail(POLLED, new_record_polling_interval_ms=300)
    one.until("RECORD", count=2)
    os.kill(one.process.pid, signal.SIGSTOP)
    time.sleep(2.5)
    os.kill(one.process.pid, signal.SIGCONT)
    one.until("RECORD", count=4)
    times = [m["time_extracted"] for m in one.messages if m["type"] == "RECORD"]
    seconds = [float(time[17:-1]) + 60 * int(time[14:16]) for time in times]
    steps = [(after - before) % 3600 for before, after in itertools.pairwise(seconds)]
    assert max(steps) > 1.5
    assert all(step > 0.25 for step in steps), steps
    assert one.end() == 0


def test_the_end_of_its_time_interrupts_a_function_that_blocks(tail):
    one = tail(BLOCKED.replace("MODE", "tail"), tail_max_seconds=1.5, state_message_min_interval_ms=600_000)
    assert one.process.stdout is not None
    one.lines += one.process.stdout.readlines()
    assert one.process.wait(20) == 0
    assert one.messages[-1]["value"]["bookmarks"]["rows"] == {"id": 9}
    assert "FINALLY" in one.said


def test_into_a_lake_each_state_is_committed_with_its_data(tail, tmp_path):
    source = POLLED
    path = tmp_path / "config.json"
    settings = {"tail": True, "new_record_polling_interval_ms": 50, "state_message_min_interval_ms": 300}
    # No file gets old enough here to be closed for its age: what closes it is the STATE that is due.
    path.write_text(json.dumps({**settings, "max_file_age_seconds": 3600}))
    command = [PYTHON, "-m", "burler", "run", str(write_tap(tmp_path, source)), "--config", str(path)]
    with subprocess.Popen(
        [*command, "--sink", f"lake:{tmp_path / 'lake'}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        too_long = threading.Timer(60, process.kill)
        too_long.start()
        lines = [process.stdout.readline() for _ in range(3)]
        too_long.cancel()
        process.kill()
    assert all(lines), "no STATE came within a minute"
    last = json.loads(lines[-1])
    read = burler("lake", "read", tmp_path / "lake")
    ids = sorted(message["record"]["id"] for message in read.messages if message["type"] == "RECORD")
    assert ids[: last["value"]["bookmarks"]["rows"]["id"]] == list(
        range(1, last["value"]["bookmarks"]["rows"]["id"] + 1)
    )


CLIENTS = """
import sys, threading, time, burler
tap = burler.tap("tap-x")
made, begun = [], threading.Event()

class Client:
    def close(self):
        WHEN_CLOSED

@tap.client
def client():
    made.append(1)
    if len(made) > 1:
        WHEN_MADE
    return Client()

@tap.sync("lost", key_properties="id", replication_key="id", order="asc")
def lost(client, stream):
    begun.wait(60)  # the other one has its client
    yield {"id": (stream.bookmark or 0) + 1}
    raise ConnectionResetError("gone")

@tap.tail("pushed", key_properties="id", replication_key="id", order="asc")
def pushed(client, stream):
    begun.set()
    for i in range(stream.bookmark or 0, 10**6):
        yield {"id": i}
        if stream.wait(0.02):
            return
tap.schema("lost", SCHEMA)
tap.schema("pushed", SCHEMA)
"""


@pytest.mark.parametrize("blocks", ["WHEN_CLOSED", pytest.param("WHEN_MADE", marks=NIGHTLY)])
def test_a_client_that_blocks_while_it_is_made_or_closed_stops_nobody_else(tail, blocks):
    source = CLIENTS.replace(blocks, "time.sleep(600)").replace("WHEN_CLOSED", "pass").replace("WHEN_MADE", "pass")
    one = tail(source)
    one.until("STATE", count=12)
    for number in (signal.SIGHUP, signal.SIGTERM):
        begun = time.monotonic()
        if number == signal.SIGHUP:
            one.process.send_signal(number)
            one.until("STATE", count=2) if blocks == "WHEN_CLOSED" else time.sleep(0.5)
        else:
            assert one.end() == 0
        assert time.monotonic() - begun < 15
    pushed = [m["record"]["id"] for m in one.messages if m["type"] == "RECORD" and m["stream"] == "pushed"]
    assert one.messages[-1]["value"]["bookmarks"]["pushed"]["id"] == pushed[-1]


STORM = """
import socket, sys, burler
tap = burler.tap("tap-x")
made = []

@tap.client
def client():
    made.append(1)
    print("CLIENT", len(made), file=sys.stderr, flush=True)
    return made

@tap.tail("pushed", key_properties="id", replication_key="id", order="asc")
def pushed(client):
    a, b = socket.socketpair()
    with a, b:
        a.recv(1)
    yield {"id": 1}

@tap.sync("table", key_properties="id")
def table(stream):
    for i in range(15):
        yield {"id": i}
        stream.wait(0.1)
tap.schema("pushed", SCHEMA)
tap.schema("table", SCHEMA)
"""


def whole(messages: list[dict]) -> bool:
    """Whether the last message activates a version of which all rows are there."""
    version = messages[-1].get("version")
    rows = [message for message in messages if message["type"] == "RECORD" and message.get("version") == version]
    return messages[-1]["type"] == "ACTIVATE_VERSION" and len(rows) == 15


def test_a_hangup_that_was_put_off_ends_what_blocks_once_the_table_is_whole(tail):
    one = tail(STORM)
    one.until("RECORD", count=2)
    over, made = threading.Event(), [0]

    def storm() -> None:
        while not over.wait(0.1):
            made[0] = one.said.count("CLIENT")
            one.process.send_signal(signal.SIGHUP)

    thread = threading.Thread(target=storm)
    thread.start()
    try:
        while not whole(one.until("RECORD", "ACTIVATE_VERSION")):
            pass
    finally:
        over.set()
        thread.join()
    limit = time.monotonic() + 60
    while one.said.count("CLIENT") == made[0] and time.monotonic() < limit:
        time.sleep(0.05)
    assert one.said.count("CLIENT") > made[0] >= 2  # the last one was seen to as well
    assert one.end() == 0


STUCK = """
import socket, sys, burler
tap = burler.tap("tap-x")

@tap.tail("rows", key_properties="id", replication_key="id", order="asc")
def rows(stream):
    a, b = socket.socketpair()
    with a, b:
        try:
            for i in range(stream.bookmark or 0, (stream.bookmark or 0) + 10):
                yield {"id": i}
            a.recv(1)
        finally:
            a.recv(1)
tap.schema("rows", SCHEMA)
"""


def test_a_finally_that_blocks_has_a_second(tail):
    one = tail(STUCK)
    one.until("STATE")
    one.process.send_signal(signal.SIGHUP)
    one.until("STATE")
    begun = time.monotonic()
    assert one.end() == 0
    assert time.monotonic() - begun < 12
    assert one.messages[-1]["value"]["bookmarks"]["rows"] == {"id": 18}


GROWING = """
import burler
tap = burler.tap("tap-x")
asked = []

@tap.discover
def discover():
    asked.append(1)
    fields = {"id": {"type": "integer"}, **({"text": {"type": "string"}} if len(asked) > 1 else {})}
    return {name: {"properties": fields} for name in ("rows", "more")[:len(asked)]}

@tap.sync("*", key_properties="id", replication_key="id", order="asc")
def rows(stream):
    yield {"id": (stream.bookmark or 0) + 1}
"""


def test_hangup_discovers_again(tail):
    one = tail(GROWING, new_record_polling_interval_ms=600_000)
    one.until("STATE")
    one.process.send_signal(signal.SIGHUP)
    one.until("STATE")
    assert one.end() == 0
    schemas = [(m["stream"], sorted(m["schema"]["properties"])) for m in one.messages if m["type"] == "SCHEMA"]
    assert schemas == [("rows", ["id"]), ("rows", ["id", "text"]), ("more", ["id", "text"])]


REVIVED = """
import burler, signal
tap = burler.tap("tap-x")
calls = []

@tap.sync("bad", key_properties="id", replication_key="id", order="asc")
def bad(stream):
    calls.append(1)
    if len(calls) == 1:
        raise RuntimeError("no luck")
    yield {"id": 1}

@tap.sync("good", key_properties="id", replication_key="id", order="asc")
def good(stream):
    yield {"id": (stream.bookmark or 0) + 1}
tap.schema("bad", SCHEMA)
tap.schema("good", SCHEMA)
"""


def test_hangup_revives_what_had_failed_for_good(tail):
    one = tail(REVIVED, tail_max_retries=0, tail_stop_on_failure=False)
    one.until("RECORD", count=3)
    one.process.send_signal(signal.SIGHUP)
    while not any(m["type"] == "RECORD" and m["stream"] == "bad" for m in one.messages):
        one.until("RECORD")
    assert one.end() == 0


EATS = """
import burler, time
tap = burler.tap("tap-x")

@tap.tail("rows", key_properties="id", replication_key="id", order="asc")
def rows(stream):
    yield {"id": 1}
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass
tap.schema("rows", SCHEMA)
"""


@pytest.mark.nightly
def test_a_function_that_eats_every_interruption_is_left_behind_with_its_state(tail):
    one = tail(EATS, state_message_min_interval_ms=600_000)
    one.until("RECORD")
    begun = time.monotonic()
    assert one.end() == 143
    assert 9 < time.monotonic() - begun < 25
    assert one.messages[-1]["value"]["bookmarks"]["rows"] == {"id": 1}


def test_a_function_that_eats_every_interruption_is_not_waited_for(tail):
    """The same with one second instead of ten."""
    one = tail("from support.internals import signals\nsignals.STUCK_SECONDS = 1\n" + EATS)
    one.until("STATE")
    late = threading.Timer(9, one.process.kill)
    late.start()
    assert one.end() == 143
    late.cancel()
    assert one.messages[-1]["value"]["bookmarks"]["rows"] == {"id": 1}


def test_the_same_signal_twice_in_one_moment_is_one(tail):
    one = tail(POLLED, new_record_polling_interval_ms=600_000, state_message_min_interval_ms=600_000)
    one.until("RECORD")
    one.process.send_signal(signal.SIGTERM)
    time.sleep(0.02)
    assert one.end() == 0
    assert one.messages[-1]["type"] == "STATE"
