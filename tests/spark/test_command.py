"""`burler export` as a process: what it prints, what it ends with."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

SCHEMA = (
    '{"type":"SCHEMA","stream":"s","schema":{"type":"object","properties":{"id":{"type":"integer"}}},'
    '"key_properties":["id"]}'
)
ROW = '{"type":"RECORD","stream":"s","record":{"id":%d},"time_extracted":"2024-01-01T00:00:00Z"}'


def burler(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "burler", *arguments]
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, text=True, check=False)


def fill(cwd: Path, rows: int) -> Path:
    lines = [SCHEMA, *(ROW % n for n in range(rows)), '{"type":"STATE","value":{}}']
    done = burler("lake", "write", "lake", "--tap-id", "t", cwd=cwd, stdin="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    return next((cwd / "lake").rglob("*.singer.gz"))


def test_rows_and_seconds_of_each_stream_then_up_to_date(tmp_path: Path) -> None:
    fill(tmp_path, 5)
    done = burler("export", "lake", "tables", cwd=tmp_path)
    assert done.returncode == 0
    assert all(line.startswith(("INFO starting Spark", "INFO Spark started")) for line in done.stderr.splitlines())
    assert re.fullmatch(r"t/s +5 read +5 written +\d+\.\d s +\S*tables/t/s\n", done.stdout), done.stdout
    again = burler("export", "lake", "tables", cwd=tmp_path)
    assert again.returncode == 0 and re.fullmatch(r"t/s +up to date +0\.\d s +\S*tables/t/s\n", again.stdout)


def test_a_damaged_lake_file_is_one_clear_error(tmp_path: Path) -> None:
    file = fill(tmp_path, 2000)
    file.write_bytes(file.read_bytes()[:-20])
    done = burler("export", "lake", "tables", cwd=tmp_path)
    assert done.returncode == 1
    told = [line for line in done.stderr.splitlines() if not line.startswith("INFO")]
    assert told[0].startswith("CRITICAL") and file.name in told[0] and "Restore it" in told[1]
    assert len(told) <= 3 and "Traceback" not in done.stderr
    assert not list((tmp_path / "tables").rglob("*.parquet"))
