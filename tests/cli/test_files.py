"""``--state``, ``--out-file``, ``--catalog``, ``--properties``, ``--config``."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tapprocess import SMALL, write_tap

from support.cli import PYTHON, Ended, burler, environment
from support.clocks import until


@pytest.fixture(autouse=True)
def tap(tmp_path: Path) -> None:
    write_tap(tmp_path, SMALL)


def run(folder: Path, *args: str, **env: str) -> Ended:
    return burler("run", "tap_x.py", *args, cwd=folder, **env)


def ids(ended: Ended) -> list[int]:
    return [m["record"]["id"] for m in ended.messages if m["type"] == "RECORD"]


# ---- --state -------------------------------------------------------------------------------------

STATE = {"bookmarks": {"rows": {"id": 8}}}
LINE = json.dumps({"type": "STATE", "value": STATE})
EARLY = json.dumps({"type": "STATE", "value": {"bookmarks": {"rows": {"id": 1}}}})


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(STATE),
        json.dumps(STATE, indent=2),
        LINE,
        LINE.replace("STATE", "state"),
        f"{EARLY}\n{LINE}\n",
        f"{EARLY}\n{LINE}\n\n",
        f"{EARLY}\r\n{LINE}\r\n",
        f"{EARLY}\n{json.dumps(STATE)}\n",
        f'{EARLY}\n{LINE}\n{{"type": "STATE", "va',
    ],
)
def test_every_form_of_state(tmp_path: Path, text: str):
    (tmp_path / "state").write_text(text)
    assert ids(run(tmp_path, "--state", "state")) == [8, 9]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file"),
        ("", "empty"),
        ("  \n", "empty"),
        ("[]", "a list"),
        ('"x"', "text"),
        ("7", "a number"),
        ("{", "not JSON"),
        ("nonsense\n" + LINE, "line 1 is not JSON"),
        ('{"bookmarks": []}', "'bookmarks' must be an object"),
        ('{"bookmarks": {"rows": 7}}', "bookmarks.rows must be an object"),
        ('{"type": "STATE", "value": 7}', "a number"),
        ("folder", "Is a directory"),
    ],
)
def test_states_that_are_none(tmp_path: Path, content: str | None, says: str):
    if content == "folder":
        (tmp_path / "state").mkdir()
    elif content is not None:
        (tmp_path / "state").write_text(content)
    ended = run(tmp_path, "--state", "state")
    assert ended.code == 2
    assert says in ended.one_critical()
    assert "state" in ended.one_critical()
    assert ended.stdout == b""


# ---- --out-file ----------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["-o", "--out-file"])
def test_the_out_file_holds_the_last_state(tmp_path: Path, flag: str):
    ended = run(tmp_path, flag, "state.json")
    assert json.loads((tmp_path / "state.json").read_text()) == ended.messages[-1]["value"]
    assert ids(run(tmp_path, "--state", "state.json")) == [9]
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".state")]


def test_the_mode_is_kept_and_a_new_file_follows_the_umask(tmp_path: Path):
    path = tmp_path / "state.json"
    path.write_text("{}")
    path.chmod(0o600)
    run(tmp_path, "-o", "state.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    run(tmp_path, "-o", "new.json")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new.json").stat().st_mode) == 0o666 & ~mask


def test_a_link_stays_a_link(tmp_path: Path):
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "link.json").symlink_to("real.json")
    run(tmp_path, "-o", "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert "bookmarks" in (tmp_path / "real.json").read_text()


def test_the_same_file_in_and_out(tmp_path: Path):
    (tmp_path / "state.json").write_text(LINE)
    assert ids(run(tmp_path, "--state", "state.json", "-o", "state.json")) == [8, 9]
    assert json.loads((tmp_path / "state.json").read_text()) == {"bookmarks": {"rows": {"id": 9}}}


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("nosuch/state.json", "does not exist"),
        ("folder", "no plain file"),
        ("/dev/null", "no plain file"),
        ("/proc/state.json", "can't be written"),
        ("tap_x.py/state.json", "does not exist"),
    ],
)
def test_out_files_that_can_not_be(tmp_path: Path, path: str, says: str):
    (tmp_path / "folder").mkdir()
    ended = run(tmp_path, "-o", path)
    assert ended.code == 2
    assert says in ended.one_critical()
    assert ended.stdout == b""
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_an_out_file_that_fails_later_ends_the_run_before_the_state_line(tmp_path: Path):
    (tmp_path / "out").mkdir()
    source = """
    import burler, os
    tap = burler.tap("tap-x")
    @tap.sync("rows", key_properties="id", replication_key="id", order="asc")
    def rows():
        yield {"id": 1}
        os.rmdir("out")
    tap.schema("rows", SCHEMA)
    """
    write_tap(tmp_path, source)
    ended = run(tmp_path, "-o", "out/state.json")
    assert ended.code == 1
    assert "--out-file" in ended.one_critical()
    assert [m["type"] for m in ended.messages] == ["SCHEMA", "RECORD"]


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "state.json"
    path.write_text("{}")
    monkeypatch.setattr(os, "fsync", lambda fd: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    ended = run(tmp_path, "-o", "state.json")
    assert ended.code == 1 and "No space left on device" in ended.one_critical()
    assert path.read_text() == "{}"
    assert [p.name for p in tmp_path.iterdir() if "state" in p.name] == ["state.json"]


def test_a_kill_never_leaves_half_a_file_nor_one_ahead_of_the_rows(tmp_path: Path):
    source = """
    import burler
    tap = burler.tap("tap-x")
    @tap.sync("rows", key_properties="id", replication_key="id", bookmark_strategy="every_n(1)")
    def rows(stream):
        stream.state["filler"] = "x" * 200_000
        i = 0
        while True:
            yield {"id": i}
            i += 1
    tap.schema("rows", SCHEMA)
    """
    write_tap(tmp_path, source)
    for i in range(6):
        state = tmp_path / f"state-{i}.json"
        state.symlink_to(tmp_path / f"real-{i}.json")
        with (tmp_path / f"out-{i}").open("wb") as out:
            process = subprocess.Popen(
                [PYTHON, "-m", "burler", "run", "tap_x.py", "-o", str(state)],
                cwd=tmp_path,
                stdout=out,
                stderr=subprocess.DEVNULL,
                env=environment(),
            )
            until(state.exists, "there is a state")
            time.sleep(0.013 * i)
            process.send_signal(signal.SIGKILL)
            process.wait()
        value: Any = json.loads(state.read_text())
        lines = (tmp_path / f"out-{i}").read_bytes().split(b"\n")[:-1]
        records = [json.loads(line) for line in lines if line.startswith(b'{"type":"RECORD"')]
        assert records[-1]["record"]["id"] >= value["bookmarks"]["rows"]["id"]
        assert len(value["bookmarks"]["rows"]["stream_state"]["filler"]) == 200_000
        assert state.is_symlink()


# ---- --catalog, --properties ---------------------------------------------------------------------


def _selected(folder: Path) -> dict[str, Any]:
    wire: dict[str, Any] = json.loads(burler("discover", "tap_x.py", cwd=folder).stdout)
    wire["streams"][0]["metadata"][0]["metadata"]["selected"] = True
    return wire


def test_catalog_and_legacy_properties(tmp_path: Path):
    wire = _selected(tmp_path)
    (tmp_path / "catalog.json").write_text(json.dumps(wire))
    (tmp_path / "bom.json").write_text("\ufeff" + json.dumps(wire))
    del wire["streams"][0]["metadata"]
    wire["streams"][0]["schema"]["selected"] = True
    (tmp_path / "properties.json").write_text(json.dumps(wire))
    (tmp_path / "none.json").write_text('{"streams": []}')
    for args in (["--catalog", "catalog.json"], ["-p", "properties.json"], ["--catalog", "bom.json"]):
        ended = run(tmp_path, *args)
        assert len(ids(ended)) == 10, args
        assert ended.lines("WARNING") == []
    both = run(tmp_path, "--catalog", "catalog.json", "--properties", "none.json")
    assert len(ids(both)) == 10
    assert both.lines("WARNING") == ["--catalog and --properties are both given; --properties is not read"]
    assert ids(run(tmp_path, "--catalog", "none.json", "--properties", "properties.json")) == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file"),
        ("{", "not JSON"),
        ("[]", "streams"),
        ('{"streams": [{}]}', "tap_stream_id"),
        ('{"streams": [{"stream": "nosuch", "schema": {}, "selected": true}]}', "'nosuch', which this tap does not"),
        ('{"streams": [{"stream": "rows", "schema": 7}]}', "schema"),
        ('{"streams": [{"stream": "rows", "metadata": 7}]}', "metadata"),
        ('{"streams": [{"stream": "rows", "schema": {}, "selected": "perhaps"}]}', "true or false"),
    ],
)
def test_catalogs_that_are_none(tmp_path: Path, content: str | None, says: str):
    if content is not None:
        (tmp_path / "c.json").write_text(content)
    ended = run(tmp_path, "--catalog", "c.json")
    assert ended.code == 2, ended.stderr
    assert says in ended.one_critical()
    assert ended.stdout == b""


# ---- --config ------------------------------------------------------------------------------------

CONFIGURED = """
import burler
tap = burler.tap("tap-x", config_spec={"url": "x", "depth": 1})
@tap.sync("rows", key_properties="id")
def rows(stream):
    return [{"id": stream.config["depth"], "text": stream.config["url"]}]
tap.schema("rows", SCHEMA)
if __name__ == "__main__":
    tap.cli()
"""


def test_config_from_several_files_and_the_environment(tmp_path: Path):
    write_tap(tmp_path, CONFIGURED)
    (tmp_path / "a.json").write_text('{"url": "a", "depth": 1}')
    (tmp_path / "b.json").write_text('{"depth": 2}')
    ended = run(tmp_path, "--config", "a.json", "-c", "b.json", TAP_X_URL="env")
    assert [m["record"] for m in ended.messages if m["type"] == "RECORD"] == [{"id": 2, "text": "env"}]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, ["c.json", "does not exist"]),
        ("folder", ["c.json", "directory"]),
        ('{"url": "x",\n "depth" 1}', ["c.json", "not JSON", "line 2, column 10"]),
        ("[]", ["c.json", "JSON object"]),
        ("", ["c.json", "is empty", "{}"]),
        ('{"depth": 1}', ["config lacks 'url'", "TAP_X_URL"]),
        ('{"url": "x", "depth": "deep"}', ["config 'depth' must be a whole number, not text"]),
        ('{"url": "x", "depth": 1, "page_max_rows": 0}', ["page_max_rows"]),
    ],
)
def test_configs_that_are_wrong(tmp_path: Path, content: str | None, says: list[str]):
    write_tap(tmp_path, CONFIGURED)
    if content == "folder":
        (tmp_path / "c.json").mkdir()
    elif content is not None:
        (tmp_path / "c.json").write_text(content)
    for command in ("run", "discover"):
        ended = burler(command, "tap_x.py", "--config", "c.json", cwd=tmp_path)
        assert ended.code == 2, ended.stderr
        for text in says:
            assert text in ended.one_critical()
        assert ended.stdout == b""
