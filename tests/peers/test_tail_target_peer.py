"""A tail in front of a target that others built on the Singer SDK: a tail that ends by itself, one that is told to."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

TAP = """
import json, os, pathlib
import burler

tap = burler.tap("tap-lines")
FILE = pathlib.Path(os.environ["LINES"])
ROW = {"type": "object", "properties": {"id": {"type": "integer"}, "text": {"type": "string"}}}


def since(number):
    with FILE.open() as file:
        return [row for line in file if line.endswith("\\n") and (row := json.loads(line))["id"] >= number]


@tap.sync("polled", key_properties="id", replication_key="id", order="asc", schema=ROW)
def polled(stream):
    FILE.with_suffix(".polled").touch()
    return since(stream.bookmark or 0)


@tap.tail("pushed", key_properties="id", schema=ROW, replication_method="LOG_BASED")
def pushed(stream):
    while not stream.stopping:
        for row in since(stream.state.get("last", 0) + 1):
            yield row
            stream.state = {"last": row["id"]}
        stream.wait(0.05)
"""


class Growing:
    """A file that gets a line each 20 ms, until told to stop."""

    def __init__(self, path):
        self.path, self.count, self.over = path, 0, threading.Event()
        self.thread = threading.Thread(target=self._grow, daemon=True)
        self.thread.start()

    def _grow(self):
        with self.path.open("ab", buffering=0) as file:
            while not self.over.wait(0.02):
                self.count += 1
                file.write(json.dumps({"id": self.count, "text": f"r{self.count}"}).encode() + b"\n")

    def stop(self):
        self.over.set()
        self.thread.join()


def test_a_tail_into_a_target_that_finalises_at_its_end(tmp_path, peers, postgres):
    tap, state, config = tmp_path / "tap_lines.py", tmp_path / "state.json", tmp_path / "config-target.json"
    tap.write_text(TAP)
    state.write_text("{}")
    config.write_text(json.dumps({**postgres.settings, "default_target_schema": "tailed"}))
    source = Growing(tmp_path / "lines")

    def pair(*flags, stop=False):
        """tap | target to their ends; the target's last STATE."""
        command = [sys.executable, "-m", "burler", "run", tap, "--state", state, "--tail"]
        command += ["--new-record-polling-interval-ms", "100", "--state-message-min-interval-ms", "300", *flags]
        environment = {**os.environ, "LINES": str(source.path)}
        with (
            (tmp_path / "log").open("wb") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment) as child,
        ):
            target = [peers / "target-postgres", "--config", config]
            with subprocess.Popen(target, stdin=child.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as behind:
                child.stdout.close()
                if stop:
                    polled = source.path.with_suffix(".polled")
                    while not polled.exists() and child.poll() is None:
                        time.sleep(0.05)
                    time.sleep(1)
                    child.send_signal(signal.SIGTERM)
                said, log_text = behind.communicate(timeout=60)
        assert child.returncode == 0, (tmp_path / "log").read_text()
        assert behind.returncode == 0, log_text.decode()
        state.write_bytes(said.splitlines()[-1])
        return json.loads(state.read_text())["bookmarks"]

    def stored(table):
        return [number for (number,) in postgres.ask(f"select id from tailed.{table} order by id")]

    def assert_stored(state):
        """What the STATE says, in both tables; a row more where the stop came between it and its ``stream.state``."""
        assert stored("polled") == list(range(1, state["polled"]["id"] + 1))
        pushed = stored("pushed")
        assert pushed == list(range(1, len(pushed) + 1))
        assert len(pushed) - state["pushed"]["stream_state"]["last"] in (0, 1)

    try:
        assert_stored(pair(stop=True))
    finally:
        source.stop()
    last = pair("--tail-max-seconds", "1")
    assert_stored(last)
    assert len(stored("pushed")) == source.count
    assert last["polled"]["id"] == last["pushed"]["stream_state"]["last"] == source.count > 0
