"""``--report`` and the summary: what a user finds at the end of a run."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path

import pytest
from tapprocess import SMALL, write_tap

from burler.errors import Failure, PartialError
from support.cli import Ended, burler, script, shell

MIXED = """
import burler
tap = burler.tap("tap-mixed")

@tap.sync("good", key_properties="id", replication_key="id", order="asc")
def good():
    for i in range(2500):
        yield {"id": i}
tap.schema("good", SCHEMA)

@tap.sync("bad", key_properties="id")
def bad():
    yield {"id": 1}
    raise ValueError("the source said <no>")
tap.schema("bad", SCHEMA)
"""


@pytest.fixture(autouse=True)
def tap(tmp_path: Path) -> None:
    write_tap(tmp_path, SMALL)


def run(folder: Path, *args: str, **env: str) -> Ended:
    return burler("run", "tap_x.py", *args, cwd=folder, **env)


def table_of(ended: Ended) -> list[str]:
    return [line.removeprefix("| ") for line in ended.lines("INFO") if line.startswith("| ")]


# ---- the summary ---------------------------------------------------------------------------------


def test_a_run_of_one_stream_ends_with_a_summary(tmp_path: Path):
    ended = run(tmp_path)
    header, rule, line = table_of(ended)
    assert header.split() == ["stream", "rows", "updated", "skipped", "seconds", "errors", "bookmark"]
    assert set(rule) == {"-"}
    assert line.split()[:4] == ["rows", "10", "10", "0"]
    assert line.endswith("none -> 9")
    assert table_of(run(tmp_path, "--select", "nosuch*")) == []


def test_the_summary_is_silenced_as_the_rest_of_the_log(tmp_path: Path):
    assert run(tmp_path, BURLER_LOG_LEVEL="WARNING").stderr == ""


def test_no_line_of_the_summary_looks_like_a_metric(tmp_path: Path):
    write_tap(tmp_path, SMALL.replace('"rows"', '"METRIC: {}"'))
    ended = run(tmp_path)
    assert len(table_of(ended)) == 3
    for line in ended.lines("INFO"):
        if line.startswith("METRIC: "):
            assert json.loads(line.removeprefix("METRIC: "))["type"] in ("counter", "timer")


def test_the_errors_stand_below_the_summary(tmp_path: Path):
    write_tap(tmp_path, MIXED)
    ended = run(tmp_path)
    assert ended.code == 1
    assert [line.split()[:2] for line in table_of(ended)[2:]] == [["good", "2,500"], ["bad", "1"], ["total", "2,501"]]
    assert ended.stderr.index("INFO | total") < ended.stderr.index("CRITICAL bad (tap_x.py:14): ValueError")
    assert len(ended.lines("CRITICAL")) == 1


# ---- the lines of parts that failed --------------------------------------------------------------

PARTS = """
import burler
tap = burler.tap("tap-parts")

def declare(name, parts):
    tap.partitions(name)(lambda: [{"account": part} for part in parts])

    @tap.sync(name, key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
    def rows(partition):
        raise ValueError("no " + partition["account"][:5])
        yield

declare("ten", map(str, range(10)))
declare("eleven", map(str, range(11)))
declare("many", map(str, range(60)))
declare("long", ["a\\nb" + "x" * 10_000])

tap.sync("tickets", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})(lambda: [{"id": 5}])

@tap.sync("notes", key_properties="id", parent="tickets", schema={"properties": {"id": {"type": "integer"}}})
def notes(parent):
    raise ValueError("gone")
    yield
"""


def test_each_part_that_failed_has_its_line_and_of_many_ten(tmp_path: Path):
    write_tap(tmp_path, PARTS)
    ended = run(tmp_path)
    assert ended.code == 1
    failed: dict[str, list[str]] = {}
    for line in ended.lines("CRITICAL"):
        stream, _, text = line.partition(": ")
        failed.setdefault(stream, []).append(text)

    def lines(count: int) -> list[str]:
        return [f'partition {{"account":"{i}"}} (tap_x.py:10): ValueError: no {i}' for i in range(count)]

    assert failed["ten"] == lines(10)
    assert failed["eleven"] == [*lines(10), "... and 1 more; --report FILE lists them"]
    assert failed["many"] == [*lines(10), "... and 50 more; --report FILE lists them"]
    assert failed["notes"] == ["parent tickets id=5 (tap_x.py:22): ValueError: gone"]
    (line,) = failed["long"]
    assert line.startswith('partition {"account":"a') and line.endswith("ValueError: no a") and len(line) < 400


def test_a_partial_error_says_how_many_and_where_first():
    def partial(count: int) -> PartialError:
        parts = [Failure("tickets", f'partition {{"account":"{i}"}}', ValueError(f"no {i}")) for i in range(count)]
        return PartialError("tickets", parts)

    assert str(partial(3)) == 'stream \'tickets\': 3 parts failed, first partition {"account":"0"}'
    assert str(partial(1)) == 'stream \'tickets\': 1 part failed, first partition {"account":"0"}'
    with pytest.raises(ValueError, match="needs a failure"):
        PartialError("tickets", [])


# ---- the file ------------------------------------------------------------------------------------


def report_in(folder: Path, name: str = "report.json") -> dict:
    return json.loads((folder / name).read_text())


def test_a_report_in_json(tmp_path: Path):
    write_tap(tmp_path, MIXED)
    (tmp_path / "report.json").write_text("of yesterday")
    ended = run(tmp_path, "--report", "report.json")
    assert ended.code == 1
    report = report_in(tmp_path)
    assert (report["tap"], report["status"], report["exit_code"]) == ("tap-mixed", "failed", 1)
    assert (report["limit"], report["schemas_only"], report["error"]) == (None, False, None)
    good, bad = report["streams"]
    assert (good["stream"], good["rows"], good["bookmark_to"], good["errors"]) == ("good", 2500, 2499, [])
    (error,) = bad["errors"]
    assert error == {"where": None, "type": "ValueError", "message": "the source said <no>", "place": "tap_x.py:14"}
    first = report["series"][0]
    assert first["rows"][0] == 0 and first["rows"][-1] == 2500 and first["bookmark"][-1] == 2499
    text = (tmp_path / "report.json").read_text()
    assert text.startswith('{\n  "format_version": 1,\n') and text.endswith("\n  ]\n}\n")
    assert len([line for line in text.splitlines() if line.startswith('    {"stream":')]) == 2


@pytest.mark.parametrize("name", ["report.html", "report.HTM"])
def test_a_report_as_a_page(tmp_path: Path, name: str):
    write_tap(tmp_path, MIXED)
    assert run(tmp_path, "--report", name).code == 1
    page = (tmp_path / name).read_text()
    assert page.startswith("<!doctype html>")
    assert "the source said &lt;no&gt;" in page and "2,500" in page and "<svg" in page


def test_another_suffix_is_json(tmp_path: Path):
    run(tmp_path, "--report", "report.log")
    assert report_in(tmp_path, "report.log")["status"] == "succeeded"


def test_the_script_of_a_tap_takes_it_as_well(tmp_path: Path):
    write_tap(tmp_path, SMALL + "\ntap.cli()\n")
    assert script("tap_x.py", "--report", "report.json", cwd=tmp_path).code == 0
    assert report_in(tmp_path)["streams"][0]["rows"] == 10


def test_limited_runs_say_so(tmp_path: Path):
    for args, limit in ((["--limit", "3"], 3), (["--test"], 5)):
        run(tmp_path, *args, "--report", "report.json")
        report = report_in(tmp_path)
        assert (report["limit"], report["schemas_only"], report["totals"]["rows"]) == (limit, False, limit)
    run(tmp_path, "--test=schema", "--report", "report.json")
    report = report_in(tmp_path)
    assert (report["limit"], report["schemas_only"], report["streams"]) == (None, True, [])


def test_a_run_that_never_began_has_a_report(tmp_path: Path):
    """Else whoever reads the file finds the one of yesterday."""
    (tmp_path / "report.json").write_text('{"status": "succeeded"}')
    ended = run(tmp_path, "--state", "nosuch", "--report", "report.json")
    report = report_in(tmp_path)
    assert (ended.code, report["exit_code"], report["status"], report["streams"]) == (2, 2, "failed", [])
    assert (report["tap"], report["error"]["type"]) == ("tap-small", "StateError")
    assert "nosuch" in report["error"]["message"]
    ended = burler("run", "no_such_tap.py", "--report", "report.json", cwd=tmp_path)
    report = report_in(tmp_path)
    assert (ended.code, report["exit_code"], report["tap"]) == (2, 2, None)


def test_a_link_stays_and_the_mode_is_kept(tmp_path: Path):
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "real.json").chmod(0o600)
    (tmp_path / "link.json").symlink_to("real.json")
    run(tmp_path, "--report", "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert report_in(tmp_path, "real.json")["status"] == "succeeded"
    assert stat.S_IMODE((tmp_path / "real.json").stat().st_mode) == 0o600


def test_what_killed_runs_left_behind_goes(tmp_path: Path):
    left = [tmp_path / f".{name}.0123456789ab.tmp" for name in ("report.json", "state.json", "other.json")]
    for path in left:
        path.write_text("half")
        os.utime(path, (time.time() - 3600,) * 2)
    young = tmp_path / ".report.json.ba9876543210.tmp"
    young.write_text("of a run under way")
    run(tmp_path, "--report", "report.json", "-o", "state.json")
    assert [path.exists() for path in left] == [False, False, True]
    assert young.exists()


# ---- files that can't be -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("nosuch/report.json", "does not exist"),
        ("folder", "no plain file"),
        ("folder/", "no plain file"),
        ("new/", "no plain file"),
        ("", "needs the name of a file"),
        ("/dev/null", "no plain file"),
        ("/dev/stdout", "/dev/stdout"),
        ("/proc/report.json", "can't be written"),
        ("tap_x.py/report.json", "does not exist"),
        ("x" * 300, "can't be written: File name too long"),
        ("loop.json", "can't be written: Too many levels of symbolic links"),
    ],
)
@pytest.mark.parametrize("option", ["--report", "--out-file"])
def test_files_that_can_not_be_are_refused_before_the_run(tmp_path: Path, option: str, path: str, says: str):
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop.json").symlink_to("loop.json")
    ended = run(tmp_path, option, path)
    assert ended.code == 2
    assert option in ended.one_critical() and says in ended.one_critical()
    assert ended.stdout == b""


@pytest.mark.parametrize(
    "args",
    [
        ["--report", "./a.json", "--out-file", "a.json"],
        ["--report", "hard.json", "--out-file", "state.json"],
        ["--report", "link.json", "--state", "state.json"],
        ["--report", "state.json", "--config", "state.json"],
        ["--report", "state.json", "--catalog", "state.json"],
        ["--report", "state.json", "--properties", "state.json"],
        ["--out-file", "state.json", "--config", "state.json"],
        ["--out-file", "hard.json", "--catalog", "link.json"],
    ],
)
def test_an_output_never_takes_the_place_of_another_file(tmp_path: Path, args: list[str]):
    (tmp_path / "state.json").write_text('{"bookmarks": {}}')
    (tmp_path / "hard.json").hardlink_to(tmp_path / "state.json")
    (tmp_path / "link.json").symlink_to("state.json")
    ended = run(tmp_path, *args)
    assert ended.code == 2
    assert f"{args[0]} {args[1]} is the file of {args[2]}, too." in ended.one_critical()
    assert ended.stdout == b""
    assert (tmp_path / "state.json").read_text() == '{"bookmarks": {}}'
    assert not (tmp_path / "a.json").exists()


@pytest.mark.parametrize("option", ["--report", "-o"])
@pytest.mark.parametrize("redirected", [">", "2>"])
def test_an_output_is_not_where_messages_or_the_log_go(tmp_path: Path, option: str, redirected: str):
    ended = shell(f"$BURLER run tap_x.py {option} out.json {redirected} out.json", tmp_path)
    assert ended.code == 2
    assert "stdout" in (tmp_path / "out.json").read_text() + ended.stderr or redirected == "2>"
    assert "RECORD" not in (tmp_path / "out.json").read_text()
