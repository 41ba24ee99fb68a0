"""SIGTERM while a tap waits for its source: the run ends at once, with its STATE, whoever waits."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest
from faultserver import FaultServer

TAP = """
import burler

tap = burler.tap("tap-things", config_spec=["base_url"])
ROW = {"properties": {"id": {"type": "integer"}, "stream": {"type": "string"}, "text": {"type": "string"}}}


@tap.client
def client(config):
    return burler.http.Client(config["base_url"], max_wait_seconds=10_000, timeout_seconds=600)


@tap.partitions("things")
def partitions():
    yield from ({"name": name} for name in ("good", "waits", "also"))


@tap.sync("things", key_properties=["stream", "id"], schema=ROW, workers=WORKERS)
def things(client, partition):
    yield from client.pages("/rows/" + partition["name"])
"""


@pytest.mark.parametrize(("workers", "kind"), [(1, "429-long"), (2, "silent"), (2, "stalls")])
def test_a_tap_that_waits_for_its_source_ends_at_once(tmp_path, workers, kind):
    (tmp_path / "tap_things.py").write_text(TAP.replace("WORKERS", str(workers)))
    (tmp_path / "out").touch()
    streams = {"good": 100, "waits": 100, "also": 100}
    lasting = {"waits": kind, "also": kind}
    with FaultServer(streams=streams, lasting=lasting, stall_seconds=120) as server:
        (tmp_path / "config.json").write_text(json.dumps({"base_url": server.url}))
        command = [sys.executable, "-m", "burler", "run", "tap_things.py", "--config", "config.json"]
        with open(tmp_path / "out", "wb") as out, open(tmp_path / "err", "wb") as err:
            process = subprocess.Popen(command, cwd=tmp_path, stdout=out, stderr=err)
            try:
                deadline = time.monotonic() + 60
                while not server.faults[kind] or b'"RECORD"' not in (tmp_path / "out").read_bytes():
                    assert process.poll() is None, (tmp_path / "err").read_text()
                    assert time.monotonic() < deadline, "the tap never got to where it waits"
                    time.sleep(0.02)
                process.send_signal(signal.SIGTERM)
                began = time.monotonic()
                code = process.wait(60)
                took = time.monotonic() - began
            finally:
                process.kill()
                process.wait()
        messages = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert code == 0, (tmp_path / "err").read_text()
    assert took < 30, "the wait was sat out"
    assert [m["record"] for m in messages if m["type"] == "RECORD"] == server.rows("good")
    assert messages[-1]["type"] == "STATE"
