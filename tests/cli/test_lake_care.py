"""The commands that care for a lake, as a person types them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import cli

LINES = (
    '{"type":"SCHEMA","stream":"users","schema":{"type":"object","properties":{"id":{"type":"integer"}}},'
    '"key_properties":["id"]}',
    *(
        json.dumps(
            {"type": "RECORD", "stream": "users", "record": {"id": at}, "time_extracted": f"2024-05-01T00:00:0{at}Z"},
            separators=(",", ":"),
        )
        for at in range(6)
    ),
)


def burler(*args: Any, stdin: str = "") -> cli.Ended:
    return cli.burler("lake", *args, stdin=stdin.encode())


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    path = tmp_path / "lake"
    text = "\n".join(LINES) + "\n"
    done = burler("write", path, "--tap-id", "tap-x", "--max-file-records", 2, stdin=text)
    assert done.code == 0, done.stderr
    return path


def files(lake: Path) -> list[Path]:
    return sorted(lake.rglob("*.singer.gz"))


def test_ls_shows_a_table_and_json(lake: Path) -> None:
    done = burler("ls", lake, "--files")
    assert done.code == 0
    head, columns, users, *named = done.text.splitlines()
    assert head.startswith("tap-x")
    assert columns.split() == ["stream", "version", "files", "rows", "bytes", "newest", "time_extracted"]
    assert users.split() == ["users", "3", "6", "975", "bytes", "2024-05-01T00:00:05Z"]
    assert [line.split()[0] for line in named] == [path.relative_to(lake).as_posix() for path in files(lake)]

    stream = json.loads(burler("ls", lake, "--json", "--stream", "users").text)["taps"][0]["streams"][0]
    assert (stream["stream"], stream["records"], len(stream["all_files"])) == ("users", 6, 3)
    next(lake.rglob("manifest.json")).write_text("{")
    done = burler("ls", lake)
    assert done.code == 1
    assert "manifest.json is broken" in done.text


def test_check_names_what_is_wrong_and_the_cure(lake: Path) -> None:
    assert burler("check", lake).text == "0 findings in 1 stream, 3 files (3 read to the end).\n"
    bad = files(lake)[0]
    bad.write_bytes(bad.read_bytes()[:-9])

    done = burler("check", lake, "--jobs", 2)

    assert done.code == 1
    assert f"torn: {bad.relative_to(lake)}\n" in done.text
    assert "  cure: Restore it from a copy." in done.text
    assert "Traceback" not in done.stderr
    done = burler("check", lake, "--fast", "--json")
    assert (done.code, [one["kind"] for one in json.loads(done.text)["findings"]]) == (1, ["torn"])


def test_rebuild_names_what_it_leaves_out(lake: Path) -> None:
    for path in lake.rglob("*.json"):
        path.unlink()
    done = burler("rebuild", lake)
    assert (done.code, done.text) == (0, "tap-x/users: 3 files, 6 rows, 1 schema version, 0 left out\n")
    assert (lake / "raw/singerlake.json").exists()
    assert (lake / "raw/tap-x/catalogue.json").exists()

    bad = files(lake)[0]
    bad.write_bytes(b"")
    done = burler("rebuild", lake, "--tap", "tap-x")
    assert done.code == 1
    assert done.text.startswith("tap-x/users: 2 files, 4 rows, 1 schema version; 0 files taken in, 1 left out\n")
    assert str(bad) in done.text


def test_compact_then_vacuum(lake: Path) -> None:
    done = burler("compact", lake)
    assert (done.code, done.text) == (0, "tap-x/users: 3 files (725 bytes) became 1\n")
    assert burler("compact", lake).text == "Nothing to put together.\n"
    before = files(lake)

    done = burler("vacuum", lake, "--older-than", "0")

    assert done.code == 0
    assert done.text.count("would remove raw/") == 3
    assert done.text.rstrip().endswith("Nothing was removed: add --yes.")
    assert files(lake) == before
    said = "0 files, 0 bytes. 3 files more: unreferenced, but younger than 7 days (--older-than).\n"
    assert burler("vacuum", lake, "--yes").text == said
    assert burler("vacuum", lake, "--older-than", "0", "--yes").text.count("removed raw/") == 3
    assert len(files(lake)) == 1


def test_an_age_needs_a_unit(lake: Path) -> None:
    for command in ("vacuum", "compact"):
        done = burler(command, lake, "--older-than", "7")
        assert done.code == 2
        assert "'7' has no unit" in done.stderr
    assert len(files(lake)) == 3


def test_describe_prints_and_changes(lake: Path) -> None:
    done = burler(
        "describe", lake, "--tap", "tap-x", "--owner", "crm team", "--status-link", "https://jobs.example.com"
    )
    assert done.code == 0
    lines = dict(line.split(None, 1) for line in done.text.splitlines()[1:])
    assert lines["owner"] == "crm team"
    assert lines["log"] == "https://jobs.example.com"
    assert lines["status"].startswith("complete, ")
    done = burler("describe", lake, "--tap", "tap-z")
    assert done.code == 2
    assert "It has: tap-x" in done.stderr


@pytest.mark.parametrize("command", ["ls", "check", "rebuild", "compact", "vacuum", "describe"])
def test_a_lake_that_is_not_there_is_not_made(tmp_path: Path, command: str) -> None:
    done = burler(command, tmp_path / "nope", *(["--tap", "x"] if command == "describe" else []))
    assert done.code == 2
    assert "no lake" in done.stderr
    assert not (tmp_path / "nope").exists()


def test_the_snippet_of_the_docs_runs() -> None:
    page = Path(__file__).parents[2] / "docs" / "lake-care.md"
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(block, "docs/lake-care.md", "exec"), {"__name__": "snippet"})


def test_the_docs_name_every_command() -> None:
    page = (Path(__file__).parents[2] / "docs" / "lake-care.md").read_text(encoding="utf-8")
    for command in re.findall(r"^## ([a-z]+)$", page, re.MULTILINE):
        assert burler(command, "--help").code == 0, command


def test_sizes_have_units(lake: Path) -> None:
    for given in ("7", "1_000", "64MiB", "500kb", "1.5 KiB", "2GB", "1 kB"):
        assert burler("compact", lake, "--below-bytes", given).code == 0, given
    for given in ("1.5 XB", "0", "-1", "9 TiBs", "1e9", "99999999999TB"):
        done = burler("compact", lake, "--below-bytes", given)
        assert done.code == 2
        assert "is no size" in done.stderr and "64MiB" in done.stderr


def test_an_age_shorter_than_a_read_is_warned_of(lake: Path) -> None:
    burler("compact", lake)
    done = burler("vacuum", lake, "--older-than", "1s")
    assert "a read of the lake that runs now may miss files" in done.stderr
    assert "may miss" not in burler("vacuum", lake).stderr


def test_a_link_must_be_an_address(lake: Path) -> None:
    for given in ("notaurl", "javascript:alert(1)", "https://", "http:// a"):
        done = burler("describe", lake, "--tap", "tap-x", "--documentation", given)
        assert (done.code, done.text) == (2, "")
        assert "is no address of a page" in done.stderr
    done = burler("describe", lake, "--tap", "tap-x", "--documentation", "https://wiki.example.com/x")
    assert done.code == 0 and "https://wiki.example.com/x" in done.text
    assert burler("describe", lake, "--tap", "tap-x", "--documentation", "").code == 0


def test_names_in_errors_do_nothing_to_the_terminal(lake: Path) -> None:
    text = "\n".join(LINES).replace("users", "a\\u001b[31mred\\u0007\\u009b") + "\n"
    assert burler("write", lake, "--tap-id", "tap-x", stdin=text).code == 0
    for command in ("read", "check"):
        done = burler(command, lake, "--stream", "nope")
        assert done.code == 2
        assert "a\\x1b[31mred\\x07\\x9b, users" in done.stderr
        assert done.stderr.replace("\n", "").isprintable()
    shown = burler("ls", lake).text
    assert "a\\x1b[31mred\\x07\\x9b" in shown and shown.replace("\n", "").isprintable()


COMMAND_LINES = [("ls",), ("check", "--json")]


@pytest.mark.parametrize("command", COMMAND_LINES, ids=" ".join)
def test_a_report_that_cannot_be_printed_is_an_error(lake: Path, command: tuple[str, ...]) -> None:
    line = [sys.executable, "-m", "burler", "lake", command[0], str(lake), *command[1:]]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr[24:]) == (1, " CRITICAL stdout can't be written: No space left on device.\n")
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(line, stdout=write_end, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    os.close(write_end)
    assert (done.returncode, done.stderr[24:]) == (4, " WARNING the reader of stdout has gone\n")


def test_the_work_is_done_although_nobody_can_read_of_it(lake: Path) -> None:
    text = "\n".join(LINES).replace("users", "orders") + "\n"
    assert burler("write", lake, "--tap-id", "tap-x", "--max-file-records", 2, stdin=text).code == 0
    for path in lake.rglob("manifest.json"):
        path.unlink()
    for command in ("rebuild", "compact"):
        with open("/dev/full", "wb") as full:
            line = [sys.executable, "-m", "burler", "lake", command, str(lake)]
            assert (
                subprocess.run(line, stdout=full, stderr=subprocess.DEVNULL, timeout=120, check=False).returncode == 1
            )
    found = json.loads(burler("ls", lake, "--json").text)["taps"][0]["streams"]
    assert [(one["stream"], one["manifest"], one["files"]) for one in found] == [
        ("orders", True, 1),
        ("users", True, 1),
    ]
