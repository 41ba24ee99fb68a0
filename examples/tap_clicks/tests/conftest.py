"""A Redis server for each test that asks for one, and the tap as a process.

One for all would save next to nothing, since it starts in a hundredth of a second; and tests stop it, kill it, give it
a password, and count its clients.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tap_clicks
from support.clocks import until
from tap_clicks import ids, server

FOLDER = Path(tap_clicks.__file__).parent
LIMIT_SECONDS = 30


class Shop(server.Server):
    """The server, what a test asks it, and the clicks it has had."""

    def __init__(self, folder, **options):
        super().__init__(folder, **options)
        self.ids = []

    def add(self, count):
        """More clicks, as many as go into one go; their ids."""
        with self.client() as client:
            self.ids += server.add_clicks(client, len(self.ids), count)
        return self.ids[-count:]

    def pending(self, group="tap-clicks"):
        """The ids that are handed out and not acknowledged."""
        with self.client() as client:
            found = client.xpending_range("clicks", group, "-", "+", 100_000)
        return [entry["message_id"] for entry in found]

    def handed_out(self):
        """The id of the last entry that the group was given."""
        with self.client() as client:
            return client.xinfo_groups("clicks")[0]["last-delivered-id"]

    def connections(self):
        """Of the tap, by the ids that Redis gives them: those that have used the group."""
        with self.client() as client:
            return {one["id"] for one in client.client_list() if one["cmd"].startswith("x")}

    def somebody_is_blocked(self):
        """Whether a client waits in XREADGROUP."""
        with self.client() as client:
            return client.info("clients")["blocked_clients"] > 0


class Tap:
    """The tap as a process. Its messages go to a file: what it has written can be looked at at once."""

    def __init__(self, folder, url, *flags, state=None, **config):
        self.folder = folder
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({"url": url, **config}))
        command = [sys.executable, "-m", "burler", "run", str(FOLDER), "--config", str(folder / "config.json"), *flags]
        if state is not None:
            (folder / "before.json").write_text(json.dumps(state))
            command += ["--state", str(folder / "before.json")]
        with open(folder / "out.jsonl", "wb") as out, open(folder / "said.txt", "wb") as said:
            self.process = subprocess.Popen(command, stdout=out, stderr=said, stdin=subprocess.DEVNULL)
        self._messages, self._read = [], 0

    @property
    def messages(self):
        """Those whose lines are whole, so far."""
        with open(self.folder / "out.jsonl", "rb") as out:
            out.seek(self._read)
            new = out.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        self._messages += [json.loads(line) for line in whole.splitlines()]
        return self._messages

    @property
    def said(self):
        return (self.folder / "said.txt").read_text(errors="replace")

    def rows(self, stream="clicks"):
        return [m["record"] for m in self.messages if m["type"] == "RECORD" and m["stream"] == stream]

    @property
    def ids(self):
        """Of the clicks that came, in their order."""
        return [row["entry_id"] for row in self.rows()]

    @property
    def state(self):
        """The last one that it wrote; None if it has written none."""
        return next((m["value"] for m in reversed(self.messages) if m["type"] == "STATE"), None)

    @property
    def covered(self):
        """The id of the last click that the last STATE covers."""
        return place(self.state)

    def until(self, condition, what):
        """Wait; the process must not end meanwhile."""

        def holds():
            ended = self.process.poll() is not None
            found = condition()
            assert found or not ended, f"the tap ended with {self.process.returncode}\n{self.said}"
            assert found or "failure 6 of" not in self.said, f"no use to wait until {what}\n{self.said}"
            return found

        return until(holds, what, lambda: self.said)

    def end(self, number):
        """Send a signal, and wait: the exit code."""
        self.process.send_signal(number)
        return self.process.wait(LIMIT_SECONDS)


def place(state):
    """The id that a STATE's bookmark stands for; 0-0 without one."""
    return ids.from_sortable(((state or {}).get("bookmarks", {}).get("clicks") or {}).get("bookmark"))


@pytest.fixture
def wait():
    """Waits until something is so."""
    return until


@pytest.fixture
def make_shop(tmp_path):
    """Starts servers, which end with the test."""
    running = []

    def make(**options):
        pytest.importorskip("redis", reason="the package redis is not installed")
        try:
            running.append(Shop(tmp_path / f"redis{len(running)}", **options))
        except server.MissingError as missing:
            pytest.skip(str(missing))
        running[-1].start()
        return running[-1]

    yield make
    for one in running:
        one.stop(kill=True)


@pytest.fixture
def shop(make_shop):
    """A server without a password, with the campaigns."""
    made = make_shop()
    with made.client() as client:
        server.fill(client)
    return made


@pytest.fixture
def start(tmp_path, shop):
    """Starts taps on the shop, which end with the test."""
    running = []

    def begin(*flags, url=None, state=None, **config):
        running.append(Tap(tmp_path / f"tap{len(running)}", url or shop.url, *flags, state=state, **config))
        return running[-1]

    yield begin
    for tap in running:
        if tap.process.poll() is None:
            tap.process.kill()
            tap.process.wait()


@pytest.fixture
def path_with_commands(tmp_path):
    """A PATH on which `python` and `burler` are those that run the tests."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, module in {"python": "", "burler": "-m burler"}.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n')
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"
