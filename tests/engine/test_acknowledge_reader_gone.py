"""``acknowledge_state_file`` once the program behind stdout is gone: what that has stored is told, and no more."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tapprocess import PYTHON, write_tap

from support.cli import environment

SOURCE = """
import pathlib, sys, time
import burler
tap = burler.tap("tap-x")

@tap.HOW("rows", key_properties="id", replication_key="id", order="asc", bookmark_strategy="every_n(1)", schema=SCHEMA)
def rows(stream):
    for number in range(1, 100_000):
        while number == 4 and not pathlib.Path("gone").exists():
            time.sleep(0.01)
        yield [{"id": number, "text": "x" * 1000}]

@tap.acknowledge("rows")
def acknowledge(bookmark):
    print("TOLD", bookmark, file=sys.stderr, flush=True)
"""


@pytest.mark.parametrize("how", ["sync", "tail"])
def test_what_it_has_stored_is_told_and_no_more(how: str, tmp_path: Path):
    """The state file is written by whoever ran it, perhaps only after its end: 2 is stored, 3 was lost with it."""
    config = {"acknowledge_state_file": "stored.json", "state_message_min_interval_ms": 1, "page_max_age_seconds": 0.02}
    (tmp_path / "config.json").write_text(json.dumps({**config, "tail": how == "tail"}))
    app = write_tap(tmp_path, SOURCE.replace("HOW", how))
    command = [PYTHON, "-m", "burler", "run", str(app), "--config", "config.json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), **pipes) as process:
        for line in process.stdout:
            message = json.loads(line)
            if message["type"] == "STATE" and message["value"]["bookmarks"]["rows"]["id"] == 3:
                break
        process.stdout.close()
        (tmp_path / "new").write_text(json.dumps({"bookmarks": {"rows": {"id": 2}}}))
        (tmp_path / "new").rename(tmp_path / "stored.json")
        (tmp_path / "gone").touch()
        said = process.stderr.read().decode()
        assert process.wait(30) == 4, said
    assert [line for line in said.splitlines() if line.startswith("TOLD")] == ["TOLD 2"]
