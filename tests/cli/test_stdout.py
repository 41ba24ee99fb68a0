"""stdout of a real run: a reader that leaves, a full disk, none at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tapprocess import SMALL, burler, messages_of, shell, write_tap

ENDLESS = """
import burler
tap = burler.tap("tap-x")
@tap.sync("rows", key_properties="id", replication_key="id", order="asc", bookmark_strategy="every_n(100)")
def rows():
    i = 0
    while True:
        yield {"id": i, "text": "x" * 500}
        i += 1
tap.schema("rows", SCHEMA)
if __name__ == "__main__":
    tap.cli()
"""


@pytest.mark.parametrize(
    "pipe",
    ["$BURLER run tap_x.py | head -1", "$PYTHON tap_x.py | head -c 100000 >/dev/null", "$BURLER run tap_x.py | true"],
)
def test_a_reader_that_leaves(tmp_path: Path, pipe: str):
    write_tap(tmp_path, ENDLESS)
    ended = shell(pipe, tmp_path, PYTHON=sys.executable)
    assert ended.code == 4, ended.stderr
    others = [line for line in ended.stderr.splitlines() if not line.startswith("INFO ")]
    assert others == ["WARNING the program reading our output has gone; stopped."]


def test_discover_and_help_to_a_reader_that_leaves(tmp_path: Path):
    write_tap(tmp_path, SMALL)
    for command in ("discover tap_x.py", "--help", "run --help"):
        ended = shell(f"$BURLER {command} | true", tmp_path)
        assert ended.code in (0, 1, 4), command  # who is first is open
        assert "Traceback" not in ended.stderr
        assert "Exception" not in ended.stderr


def test_a_full_disk(tmp_path: Path):
    write_tap(tmp_path, ENDLESS)
    ended = shell("$BURLER run tap_x.py > /dev/full", tmp_path)
    assert ended.code == 1
    assert ended.one_critical() == "CRITICAL stdout can't be written: No space left on device."
    ended = shell("$BURLER discover tap_x.py > /dev/full", tmp_path)
    assert ended.code == 1
    assert ended.one_critical() == "CRITICAL stdout can't be written: No space left on device."


def test_no_stdout_at_all(tmp_path: Path):
    write_tap(tmp_path, SMALL)
    for command in ("run", "discover"):
        ended = shell(f"$BURLER {command} tap_x.py >&-", tmp_path)
        assert ended.code == 1
        assert "stdout is closed" in ended.one_critical()


def test_no_stderr(tmp_path: Path):
    write_tap(tmp_path, SMALL)
    ended = shell("$BURLER run tap_x.py 2>&-", tmp_path)
    assert ended.code == 0
    assert [m["type"] for m in messages_of(ended.stdout)] == ["SCHEMA", *["RECORD"] * 10, "STATE"]


def test_a_stdout_that_does_not_block(tmp_path: Path):
    write_tap(tmp_path, ENDLESS.replace("while True", "while i < 20000"))
    reader = "import os, time\nwhile c := os.read(0, 5000): os.write(1, c); time.sleep(0)"
    setter = "import fcntl, os; fcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK)"
    ended = shell(
        f"($PYTHON -c '{setter}'; $BURLER run tap_x.py) | $PYTHON -c '{reader}'", tmp_path, PYTHON=sys.executable
    )
    assert ended.code == 0, ended.stderr
    assert sum(m["type"] == "RECORD" for m in ended.messages) == 20_000


def test_unbuffered_and_to_a_file(tmp_path: Path):
    write_tap(tmp_path, ENDLESS.replace("while True", "while i < 2000"))
    plain = burler("run", "tap_x.py", cwd=tmp_path).messages
    shell("PYTHONUNBUFFERED=1 $BURLER run tap_x.py > out.jsonl", tmp_path)
    filed = messages_of((tmp_path / "out.jsonl").read_bytes())
    assert [m.get("record") for m in filed] == [m.get("record") for m in plain]


@pytest.mark.parametrize("command", ["discover tap_x.py", "infer rows.jsonl"])
def test_json_to_a_reader_that_has_gone(tmp_path: Path, command: str):
    """It has gone before the command begins."""
    (tmp_path / "rows.jsonl").write_text('{"id": 1}\n')
    write_tap(tmp_path, SMALL)
    ended = shell(f"(until [ -e gone ]; do sleep 0.01; done; $BURLER {command}) | (exec <&-; touch gone)", tmp_path)
    assert ended.code == 4, ended.stderr
    assert ended.stderr.startswith("WARNING ") and len(ended.stderr.splitlines()) == 1
