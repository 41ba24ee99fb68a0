"""Commands, flags, help, exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tapprocess import SMALL, write_tap

import burler as package
from support.cli import burler, burler_process, python, script, shell

SCRIPT = SMALL + "\nif __name__ == '__main__':\n    tap.cli()\n"


@pytest.fixture(autouse=True)
def tap(tmp_path: Path) -> None:
    write_tap(tmp_path, SCRIPT)


COMMANDS = ["discover", "run", "about", "infer", "lake", "export"]


def test_help_lists_the_commands_and_the_exit_codes(tmp_path: Path):
    for flag in ("--help", "-h"):
        text = burler(flag, cwd=tmp_path).stdout.decode()
        assert all(command in text for command in COMMANDS)
        assert "143/130" in text
    for command in ([c] for c in COMMANDS):
        ended = burler(*command, "--help", cwd=tmp_path)
        assert ended.code == 0
        assert ended.stdout.startswith(b"Usage: burler ")
        assert ended.stderr == ""
    text = burler("run", "--help", cwd=tmp_path).stdout.decode()
    for option in ("--config", "--catalog", "--properties", "--state", "--select", "--sink", "-o, --out-file"):
        assert option in text
    assert "--tap-id" in burler("lake", "write", "--help", cwd=tmp_path).stdout.decode()


def test_help_of_a_taps_own_script(tmp_path: Path):
    text = script("tap_x.py", "--help", cwd=tmp_path).stdout.decode()
    assert "A small tap." in text
    flags = ("--config", "--discover", "--catalog", "--properties", "--state", "--select", "--about", "--version")
    assert all(option in text for option in flags)
    assert "143/130" in text


def test_versions(tmp_path: Path):
    assert burler("--version", cwd=tmp_path).stdout.decode().strip() == f"burler, version {package.__version__}"
    ended = script("tap_x.py", "--version", cwd=tmp_path)
    assert ended.stdout.decode().strip() == f"tap-small 1.2.3 (burler {package.__version__})"
    assert (ended.code, ended.stderr) == (0, "")


@pytest.mark.parametrize("flags", [["--about=json"], ["--about", "json"], ["--about", "--format=json"]])
def test_about(tmp_path: Path, flags: list[str]):
    about = json.loads(script("tap_x.py", *flags, cwd=tmp_path).stdout)
    assert about["name"] == "tap-small"
    assert about["version"] == "1.2.3"
    assert [(one["name"], one["replication_method"], one["key_properties"]) for one in about["streams"]] == [
        ("rows", "INCREMENTAL", ["id"])
    ]
    assert about["settings"]["properties"]["page_max_rows"]["default"] == 1000


def test_about_in_three_forms_and_for_any_app(tmp_path: Path):
    text = script("tap_x.py", "--about", cwd=tmp_path).stdout.decode()
    markdown = script("tap_x.py", "--about=markdown", cwd=tmp_path).stdout.decode()
    assert "tap-small" in text and "delivery" in text.lower() and not text.startswith("{")
    assert markdown.startswith("# ") and "| `page_max_rows` |" in markdown
    assert burler("about", "tap_x.py", cwd=tmp_path).stdout.decode() == text


def test_discover_is_the_same_both_ways(tmp_path: Path):
    first, second = script("tap_x.py", "--discover", cwd=tmp_path), burler("discover", "tap_x.py", cwd=tmp_path)
    assert first.stdout == second.stdout
    assert [s["tap_stream_id"] for s in json.loads(first.stdout)["streams"]] == ["rows"]
    assert first.stderr == second.stderr == ""


def test_the_script_takes_the_singer_flags(tmp_path: Path):
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "s.json").write_text('{"bookmarks": {"rows": {"id": 9}}}')
    (tmp_path / "c.json").write_bytes(script("tap_x.py", "--discover", cwd=tmp_path).stdout)
    ended = script(
        "tap_x.py", "--config", "a.json", "--config", "a.json", "--state", "s.json", "--select", "rows", cwd=tmp_path
    )
    assert [m["type"] for m in ended.messages] == ["SCHEMA", "RECORD", "STATE"]
    assert [m["type"] for m in script("tap_x.py", "--catalog", "c.json", cwd=tmp_path).messages] == ["STATE"]


def test_select_may_be_given_again(tmp_path: Path):
    """The first one is not lost; later ones win, as within one."""
    source = "import burler\ntap = burler.tap('tap-y')\n"
    for name in "abcd":
        schema = {"properties": {"id": {"type": "integer"}, "n": {"type": "integer"}}}
        source += f"tap.sync({name!r}, key_properties='id', schema={schema})(lambda: [{{'id': 1, 'n': 2}}])\n"
    (tmp_path / "tap_y.py").write_text(source)
    ended = burler("run", "tap_y.py", "--select", "a,b", "--select", "c", "--select", "!b,!c.n", cwd=tmp_path)
    rows = [(m["stream"], m["record"]) for m in ended.messages if m["type"] == "RECORD"]
    assert rows == [("a", {"id": 1, "n": 2}), ("c", {"id": 1})]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["nosuch"], "No such command 'nosuch'"),
        (["exprot", "lake", "out"], "Did you mean: burler export?"),
        (["check", "lake"], "Did you mean: burler lake check?"),
        (["lake", "chekc", "lake"], "Did you mean: burler lake check?"),
        (["zzz"], "There are: about, batch, completion, discover"),
        (["new", "tap-x", "--kind", "rset"], "'rset' is not one of 'rest', 'database', 'file'. Did you mean 'rest'?"),
        (["run"], "Missing argument 'APP'"),
        (["run", "tap_x.py", "--nosuch"], "--nosuch"),
        (["run", "tap_x.py", "--sink", "kafka:x"], "--sink 'kafka:x' is unknown"),
        (["run", "tap_x.py", "--sink", "lake:"], "--sink 'lake:' is unknown"),
        (["run", "tap_x.py", "--sink", "./lake"], "Did you mean 'lake:./lake'?"),
        (["run", "tap_x.py", "--sink", "lakes:out"], "Did you mean 'lake:out'?"),
        (["run", "tap_x.py", "--sink", "batch"], "--batch"),
        (["run", "tap_x.py", "--config", '{"token": "hush"}'], "--config takes the name of a file, not the"),
        (["run", "tap_x.py", "--sink", "lake:tap_x.py"], "tap_x.py"),
        (["run", "tap_x.py", "--select", "nosuch"], "nothing is called 'nosuch'"),
        (["run", "tap_x.py", "--select", ""], "an empty part"),
        (["lake", "write", "lake"], "--tap-id"),
        (["lake", "write", "tap_x.py", "--tap-id", "x"], "tap_x.py"),
        (["lake", "write", "lake", "--tap-id", "x", "--max-file-bytes", "0"], "--max-file-bytes"),
        (["export", "nolake", "out"], "there is no lake at nolake"),
    ],
)
def test_usage_errors(tmp_path: Path, args: list[str], says: str):
    ended = burler(*args, cwd=tmp_path)
    assert ended.code == 2, ended.stderr
    assert says in ended.one_critical()
    assert ended.stdout == b""


def test_no_command_shows_the_help(tmp_path: Path):
    ended = burler(cwd=tmp_path)
    assert ended.code == 2
    assert "Commands:" in ended.stderr
    assert ended.stdout == b""


def test_a_lake_that_can_not_be_written(tmp_path: Path):
    ended = burler("run", "tap_x.py", "--sink", "lake:/proc/nolake", cwd=tmp_path)
    assert ended.code in (1, 2)
    assert "/proc/nolake" in ended.one_critical()
    assert ended.stdout == b""
    message = (
        b'{"type":"SCHEMA","stream":"s","schema":{"type":"object"},"key_properties":[]}\n{"type":"STATE","value":{}}\n'
    )
    ended = burler("lake", "write", "/proc/nolake", "--tap-id", "x", cwd=tmp_path, stdin=message)
    assert ended.code in (1, 2)
    assert "/proc/nolake" in ended.one_critical()
    assert ended.stdout == b""


def test_a_run_into_a_lake(tmp_path: Path):
    ended = burler("run", "tap_x.py", "--sink", "lake:lake", "-o", "state.json", cwd=tmp_path)
    assert ended.code == 0, ended.stderr
    assert [m["type"] for m in ended.messages] == ["STATE"]
    assert len(list(tmp_path.glob("lake/raw/tap-small/rows/*/rows-*.singer.gz"))) == 1
    assert json.loads((tmp_path / "state.json").read_text()) == ended.messages[-1]["value"]
    piped = shell("$BURLER run tap_x.py 2>/dev/null | $BURLER lake write lake --tap-id other", tmp_path)
    assert piped.messages == ended.messages
    named = burler("run", "tap_x.py", "--sink", "lake:lake", cwd=tmp_path, TAP_SMALL_TAP_ID="named")
    assert named.code == 0
    assert (tmp_path / "lake" / "raw" / "named").is_dir()


def test_broken_messages_into_a_lake(tmp_path: Path):
    ended = burler("lake", "write", "lake", "--tap-id", "x", cwd=tmp_path, stdin=b'{"type":"SCHEMA"\n')
    assert ended.code == 1
    assert "line 1" in ended.one_critical()


def test_lake_write_without_stdin(tmp_path: Path):
    ended = shell("$BURLER lake write lake --tap-id x <&-", tmp_path)
    assert ended.code == 2
    assert "stdin is closed" in ended.one_critical()


def test_what_nobody_thought_of_is_one_line_and_1(tmp_path: Path):
    source = "class Odd(dict):\n    def items(self):\n        raise KeyError('oops')\n" + SMALL
    write_tap(tmp_path, source + "\ntap.discover(lambda: Odd(rows={}))\n")
    ended = burler("discover", "tap_x.py", cwd=tmp_path)
    assert ended.code == 1
    assert ended.one_critical().startswith("CRITICAL KeyError: 'oops' (tap_x.py:3)")
    assert "Traceback" in burler("discover", "tap_x.py", cwd=tmp_path, BURLER_LOG_LEVEL="DEBUG").stderr


def _loaded(folder: Path, *args: str) -> set[str]:
    ended = python("-X", "importtime", "-m", "burler", *args, cwd=folder)
    assert ended.code == 0
    return {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines() if line.startswith("import time:")}


HEAVY = {"pyspark", "pyarrow", "fsspec", "zeep", "rich", "singer", "jsonschema", "requests", "sqlalchemy", "orjson"}


def test_help_loads_little(tmp_path: Path):
    loaded = _loaded(tmp_path, "--help")
    assert not loaded & HEAVY
    assert not {"pipeline", "lake", "spark"} & {name.split(".")[1] for name in loaded if name.startswith("burler.")}


def test_a_run_loads_no_heavy_package(tmp_path: Path):
    loaded = _loaded(tmp_path, "run", "tap_x.py")
    assert not loaded & HEAVY
    assert not {name for name in loaded if name.startswith(("burler.lake", "burler.spark"))}


def test_the_module_and_the_script_are_the_same(tmp_path: Path):
    installed = Path(sys.executable).parent / "burler"
    if not installed.exists():
        pytest.skip("burler is not installed in this environment")
    assert shell(f"{installed} --version", tmp_path).stdout == burler_process("--version", cwd=tmp_path).stdout
