"""A tail run as a service: as PID 1 of a container, behind the script of docs/running.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.clocks import until

PAGE = Path(__file__).parents[2] / "docs" / "running.md"
OWN_NAMESPACE = ["unshare", "--user", "--map-root-user", "--fork", "--pid", "--kill-child"]
SECONDS = 120.0  # a limit, not a time that is waited: three programs begin, beside whatever else the machine does

TAP = """
import sys
import time

import burler

tap = burler.tap("tap-crm", config_spec={"type": "object", "properties": {"sleep_seconds": {"type": "number"}}})
SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}}


@tap.client
def client(config):
    print("client made", file=sys.stderr, flush=True)
    time.sleep(config.get("sleep_seconds") or 0)


@tap.sync("a", key_properties="id", replication_key="id", order="asc", schema=SCHEMA)
def rows(client, stream):
    first = stream.bookmark or 0
    for n in range(first, first + 3):
        yield {"id": n}


if __name__ == "__main__":
    tap.cli()
"""

# Stores rows when a STATE comes, and at the end; it is slow to end, and a signal would end it before that.
TARGET = """
import json
import os
import sys
import time

held = 0
stored, seen = open("stored.txt", "a"), open("seen.txt", "a")
for line in sys.stdin:
    seen.write(line)
    message = json.loads(line)
    if message["type"] == "RECORD":
        held = message["record"]["id"]
    elif message["type"] == "STATE":
        print(held, file=stored, flush=True)
        print(json.dumps(message["value"]), flush=True)
time.sleep(0.3)
while os.path.exists("busy"):
    time.sleep(0.02)
print("end", held, file=stored, flush=True)
"""


def _may_have_a_namespace() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*OWN_NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


as_pid_1 = pytest.mark.skipif(not _may_have_a_namespace(), reason="this system gives no PID namespace")


def _children(pid: int) -> list[int]:
    try:
        return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


class Service:
    """A process that is PID 1 of a namespace of its own, with its output in files."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self.out, self.log = folder / "out.txt", folder / "log.txt"
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        with self.out.open("wb") as out, self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*OWN_NAMESPACE, *command], cwd=folder, stdout=out, stderr=log, env={**os.environ, "PATH": path}
            )

    def send(self, number: int) -> None:
        """To PID 1, as a container's engine does it: from outside."""
        os.kill(self.first(), number)

    def first(self) -> int:
        """PID 1, as the outside calls it."""
        return int(until(lambda: _children(self.process.pid), "PID 1")[0])

    def said(self, text: str, times: int = 1) -> None:
        until(lambda: self.log.read_text().count(text) >= times, f"{text!r} is in the log", self.log.read_text)

    def ended(self) -> int:
        return self.process.wait(SECONDS)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    begun: list[Service] = []
    (tmp_path / "bin").mkdir()
    for name, text in (("tap-crm", TAP), ("target-x", TARGET)):
        script = tmp_path / "bin" / name
        script.write_text(f"#!{sys.executable}\n{text}")
        script.chmod(0o755)
    said = {"new_record_polling_interval_ms": 50, "state_message_min_interval_ms": 100}
    (tmp_path / "config.json").write_text(json.dumps(said))
    (tmp_path / "target.json").write_text("{}")

    def begin(*command: str) -> Service:
        begun.append(Service(tmp_path, list(command)))
        return begun[-1]

    yield begin
    for one in begun:
        if one.process.poll() is None:
            one.process.kill()  # --kill-child: the namespace ends with it
        one.process.wait(SECONDS)


def _messages(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


TAIL = ("tap-crm", "--config", "config.json", "--tail")


@as_pid_1
@pytest.mark.parametrize(("number", "shell"), [(signal.SIGTERM, False), (signal.SIGINT, True)])
def test_a_tap_that_is_pid_1_ends_at_a_signal_with_its_last_state(service: Any, number: int, shell: bool):
    command = ["sh", "-c", "true; exec tap-crm --config config.json --tail"] if shell else TAIL
    one = service(*command)
    until(lambda: one.out.read_text().count('"RECORD"') > 3, "rows of a second poll")
    one.send(number)
    assert one.ended() == 0
    messages = _messages(one.out)
    rows = [message["record"]["id"] for message in messages if message["type"] == "RECORD"]
    assert messages[-1] == {"type": "STATE", "value": {"bookmarks": {"a": {"id": rows[-1]}}}}


@as_pid_1
def test_a_signal_before_the_run_has_begun_ends_pid_1_too(service: Any, tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps({"sleep_seconds": 600}))
    one = service(*TAIL)
    one.said("client made")
    one.send(signal.SIGTERM)
    assert one.ended() == 143
    assert one.out.read_text() == ""


@as_pid_1
def test_hangup_renews_the_client_of_pid_1_and_the_run_goes_on(service: Any):
    one = service(*TAIL)
    until(lambda: '"RECORD"' in one.out.read_text(), "rows")
    one.send(signal.SIGHUP)
    one.said("client made", 2)
    before = one.out.read_text().count('"RECORD"')
    until(lambda: one.out.read_text().count('"RECORD"') > before + 3, "rows of the new client")
    one.send(signal.SIGTERM)
    assert one.ended() == 0
    ids = [message["record"]["id"] for message in _messages(one.out) if message["type"] == "RECORD"]
    assert sorted(set(ids)) == list(range(ids[-1] + 1))


# ---- the script of the page ------------------------------------------------------------------------


def _script() -> str:
    found = re.findall(r"^```sh\n(#!/bin/sh\n.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    return found[0]


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "tail-crm.sh"
    path.write_text(_script())
    path.chmod(0o755)
    return str(path)


# Debian's sh is dash: once is enough.
SHELLS = {os.path.realpath(path): name for name in ("sh", "dash", "bash", "busybox") if (path := shutil.which(name))}
NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGTERM, signal.SIGTERM)
TOLD = list(zip(SHELLS.values(), NUMBERS, strict=False))


def _states(folder: Path) -> list[dict[str, Any]]:
    """What the target has printed so far: whole lines."""
    path = folder / "state.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def _stored(folder: Path) -> list[str]:
    return (folder / "stored.txt").read_text().splitlines() if (folder / "stored.txt").exists() else []


@as_pid_1
@pytest.mark.parametrize(("shell", "number"), TOLD)
def test_the_script_tells_the_tap_alone_and_waits_for_the_target(
    service: Any, script: str, tmp_path: Path, shell: str, number: int
):
    one = service(shell, *(["sh"] if shell == "busybox" else []), script)
    until(lambda: len(_stored(tmp_path)) > 2, "three STATEs that the target has stored")
    one.send(number)
    assert one.ended() == 0
    last = _states(tmp_path)[-1]["bookmarks"]["a"]["id"]
    assert _stored(tmp_path)[-2:] == [str(last), f"end {last}"]  # all that the tap wrote, and the target's own end


@as_pid_1
def test_the_script_goes_on_from_the_state_that_the_target_has_printed(service: Any, script: str, tmp_path: Path):
    for least in (3, 6):
        one = service("sh", script)
        until(lambda least=least: len(_states(tmp_path)) >= least, "STATEs")
        one.send(signal.SIGTERM)
        assert one.ended() == 0
    ids = [state["bookmarks"]["a"]["id"] for state in _states(tmp_path)]
    assert ids == sorted(ids) and len(set(ids)) > 3
    first = [message["record"]["id"] for message in _messages(tmp_path / "seen.txt") if message["type"] == "RECORD"]
    assert sorted(set(first)) == list(range(ids[-1] + 1))


@as_pid_1
def test_a_second_signal_does_not_cut_the_target_short(service: Any, script: str, tmp_path: Path):
    (tmp_path / "busy").touch()
    one = service("sh", script)
    until(lambda: _stored(tmp_path), "a STATE that the target has stored")
    one.send(signal.SIGTERM)
    one.said("tap-crm: stopped")
    until(lambda: len(_children(one.first())) == 1, "the end of the tap")
    one.send(signal.SIGTERM)
    time.sleep(0.2)
    (tmp_path / "busy").unlink()
    assert one.ended() == 0
    assert _stored(tmp_path)[-1].startswith("end ")


@as_pid_1
def test_the_script_hands_hangups_on(service: Any, script: str, tmp_path: Path):
    one = service("sh", script)
    for times in (2, 3):
        until(lambda: len(_stored(tmp_path)) > 1, "STATEs that the target has stored")
        one.send(signal.SIGHUP)
        one.said("client made", times)
    one.send(signal.SIGTERM)
    assert one.ended() == 0
    assert _stored(tmp_path)[-1].startswith("end ")


@as_pid_1
def test_the_script_ends_with_the_code_of_what_failed(service: Any, script: str, tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps({"tail_max_rounds": 0}))
    assert service("sh", script).ended() == 2
    (tmp_path / "config.json").write_text(json.dumps({"tail_max_rounds": 2, "new_record_polling_interval_ms": 5}))
    assert service("sh", script).ended() == 0
    (tmp_path / "bin" / "target-x").write_text("#!/bin/sh\nhead -n 3 > /dev/null\nexit 7\n")
    (tmp_path / "config.json").write_text(json.dumps({"new_record_polling_interval_ms": 50}))
    assert service("sh", script).ended() == 7
    (tmp_path / "bin" / "target-x").write_text("#!/bin/sh\nhead -n 3 > /dev/null\n")
    assert service("sh", script).ended() == 4
