"""An extraction that is told to stop leaves nothing running."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from extracted import app

from burler.spark import extract
from support.clocks import until

HANGS = """
import os, time
import burler

tap = burler.tap("tap-hangs")

@tap.sync("rows", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
def rows():
    with open(%r, "a") as begun:
        begun.write(f"{os.getpid()}\\n")
    yield {"id": 1}
    time.sleep(600)
"""
COMMAND = """#!/bin/sh
case "$*" in
*--discover*) echo '{"streams": [{"tap_stream_id": "rows", "stream": "rows", "schema": {"properties": {"id": {}}}}]}';;
*--help*) echo "--catalog";;
*) echo $$ >> %s; exec sleep 600;;
esac
"""


@pytest.mark.parametrize("kind", ["app", "command"])
def test_what_runs_is_interrupted(spark: Any, tmp_path: Path, kind: str):
    """Else it would keep its slot, go on asking the source, and write into a lake that another run has by now."""
    begun = tmp_path / "begun"
    given: dict[str, Any] = {"app": app(tmp_path, HANGS % str(begun), "tap_hangs")}
    if kind == "command":
        command = tmp_path / "tap-hangs"
        command.write_text(COMMAND % begun)
        command.chmod(0o755)
        given = {"app": None, "exec": str(command)}

    def stop() -> None:
        until(begun.exists)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop).start()
    done = extract(spark, lake=tmp_path / "lake", **given)

    assert not done.rows and not done.errors and done.stopped_by == signal.SIGTERM
    tracker = spark.sparkContext.statusTracker()
    until(lambda: not tracker.getActiveJobsIds())
    for pid in begun.read_text().split():
        until(lambda pid=pid: not Path(f"/proc/{pid}").exists())
    assert spark.range(3).count() == 3
