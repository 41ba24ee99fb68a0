"""docs/reports.md shows what a run really writes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tapprocess import ROOT, write_tap

from support.cli import burler, without_times

PAGE = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")

DESK = """\
import burler

tap = burler.tap("tap-desk")


@tap.partitions("tickets")
def accounts():
    return [{"account": name} for name in "abc"]


@tap.sync("tickets", key_properties=["account", "id"], replication_key="id")
def tickets(partition):
    if partition["account"] == "b":
        raise PermissionError("403 Forbidden")
    for number in (1, 2):
        yield {"account": partition["account"], "id": number}


@tap.sync("users", key_properties="id", replication_key="at")
def users(stream):
    for month in (4, 5, 5):
        yield {"id": month, "at": f"2024-{month:02}-01T00:00:00Z"}


tap.schema("tickets", {"properties": {"account": {"type": "string"}, "id": {"type": "integer"}}})
tap.schema("users", {"properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}})
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the run of the page has been made; its log is in ``log``."""
    made = tmp_path_factory.mktemp("desk")
    write_tap(made, DESK, "tap_desk.py")
    (made / "state.json").write_text('{"bookmarks": {"users": {"at": "2024-04-01T00:00:00Z"}}}')
    ended = burler("run", "tap_desk.py", "--state", "state.json", "--report", "report.json", cwd=made)
    assert ended.code == 1
    (made / "log").write_text(ended.stderr)
    return made


def block(kind: str) -> str:
    (found,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    return found


def untimed(value: Any) -> Any:
    """A report without what the clock says; of a series the ends alone, since the pages between depend on it."""
    if isinstance(value, list):
        return [untimed(item) for item in value]
    if not isinstance(value, dict):
        return value
    left = {key: untimed(item) for key, item in value.items()}
    for key in ("started", "ended", "seconds", "rows_per_second"):
        if key in left:
            left[key] = type(left[key]).__name__
    if "bookmark" in left:
        left.update(
            rows=value["rows"][:: len(value["rows"]) - 1], bookmark=[value["bookmark"][0], value["bookmark"][-1]]
        )
    return left


def test_the_json_is_what_is_written(folder: Path):
    shown, written = json.loads(block("json")), json.loads((folder / "report.json").read_text())
    assert untimed(shown) == untimed(written)
    assert list(shown) == list(written)
    assert list(shown["streams"][0]) == list(written["streams"][0])


def test_the_table_is_what_is_shown(folder: Path):
    log = (folder / "log").read_text()
    shown = [line for line in log.splitlines() if line.startswith(("INFO | ", "CRITICAL "))]
    assert [re.sub(r"\d+\.\d", "0.0", line) for line in without_times(block("text")).splitlines()] == [
        re.sub(r"\d+\.\d", "0.0", line) for line in shown
    ]


def test_every_key_is_explained():
    keys = set(json.loads(block("json"))) - {"burler_version", "seconds", "schemas_only", "streams"}
    table = "\n".join(line for line in PAGE.splitlines() if line.startswith("| `"))
    for key in keys:
        assert f"`{key}`" in table or f"`{key}s`" in table, key
    assert "`schemas_only`" in PAGE


def lines_beginning_with(program: str) -> list[str]:
    return re.findall(rf"^    ({program} .*)$", PAGE, re.MULTILINE)


def test_the_python_line_tells_the_exit_code(folder: Path):
    (line,) = lines_beginning_with("python")
    code = re.fullmatch(r"python -c '(.*)'", line)[1]
    assert subprocess.run([sys.executable, "-c", code], cwd=folder, check=False).returncode == 1


def test_the_jq_lines_say_what_they_should(folder: Path):
    """Where jq is not installed they are only known to be these four."""
    expected = [("false", 1), ("true", 0), ("true", 0), ('tickets\tpartition {"account":"b"}\t', 0)]
    lines = lines_beginning_with("jq")
    assert len(lines) == len(expected)
    for line, (says, code) in zip(lines, expected, strict=True):
        if shutil.which("jq"):
            done = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (code, ""), line
            assert done.stdout.startswith(says), line
