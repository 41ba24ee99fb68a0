"""What a tap changes in its config during a run is in its file before the run ends: real processes."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest
from tapprocess import PYTHON, environment, python, write_tap

from burler.testing import canary

FIRST, NEXT = canary("first"), canary("next")
REFRESHES = """
import time
import burler

tap = burler.tap("tap-fresh", config_spec={"type": "object", "required": ["token"],
                 "properties": {"token": {"type": "string", "secret": True},
                                "limit": {"type": "integer", "default": 3}}})

@tap.client
def client(config):
    config["made"] = True
    return object()

@tap.sync("rows", key_properties="id", replication_key="id", order="asc", schema=SCHEMA)
def rows(config, client):
    for i in range(config["limit"]):
        if i == 2:
            config["token"] = config["next"]
        yield {"id": i}
        time.sleep(config.get("pause", 0))

if __name__ == "__main__":
    tap.cli()
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    write_tap(tmp_path, REFRESHES)
    path = tmp_path / "config.json"
    path.write_text(f'{{"other":  1.50, "token": "{FIRST}", "next": "{NEXT}"}}')
    path.chmod(0o640)
    return path


def test_a_whole_run(config: Path):
    ended = python("tap_x.py", "--config", "config.json", cwd=config.parent)
    assert ended.code == 0, ended.stderr
    assert json.loads(config.read_text()) == {"other": 1.5, "token": NEXT, "next": NEXT, "made": True}
    assert stat.S_IMODE(config.stat().st_mode) == 0o640
    assert "1.50" in config.read_text(), "what the tap did not change stays as it was written"


def test_a_run_that_fails_and_a_discovery_save_it_too(config: Path):
    write_tap(config.parent, REFRESHES.replace('yield {"id": i}', "raise ValueError(config['token'])"))
    ended = python("tap_x.py", "--config", "config.json", cwd=config.parent)
    assert ended.code == 1
    assert json.loads(config.read_text())["made"] is True
    assert FIRST not in ended.stderr + ended.stdout.decode()


def test_a_slow_tap_that_is_killed_has_saved_its_token(config: Path):
    """A first page may take for ever to fill; a token that works only once must not wait for it."""
    more = {"limit": 1000, "pause": 0.2, "page_max_age_seconds": 0.3}
    config.write_text(json.dumps({"token": FIRST, "next": NEXT, **more}))
    command = [PYTHON, "tap_x.py", "--config", "config.json"]
    process = subprocess.Popen(
        command, cwd=config.parent, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 30
        while json.loads(config.read_text())["token"] == FIRST and time.monotonic() < until:
            assert process.poll() is None
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    assert json.loads(config.read_text())["token"] == NEXT


def test_the_new_token_is_masked_in_the_log(config: Path):
    source = REFRESHES.replace("import time\n", "import time, logging\nimport singer\n").replace(
        'yield {"id": i}', "yield {\"id\": i}; logging.getLogger('mine').warning('now %s', config['token'])"
    )
    write_tap(config.parent, source)
    ended = python("tap_x.py", "--config", "config.json", cwd=config.parent, PYTHONWARNINGS="default")
    assert ended.code == 0, ended.stderr
    assert ended.stderr.count("now ***") == 3, ended.stderr
    assert NEXT not in ended.stderr and FIRST not in ended.stderr


def test_defaults_of_the_spec_hold_for_the_sink_too(tmp_path: Path):
    write_tap(
        tmp_path,
        """
        import burler
        tap = burler.tap("tap-def", config_spec={"type": "object", "properties": {
            "tap_id": {"type": "string", "default": "my-own-id"},
            "max_file_records": {"type": "integer", "default": 2}}})
        tap.sync("rows", key_properties="id", schema=SCHEMA)(lambda: [{"id": i} for i in range(5)])
        tap.cli()
        """,
    )
    assert python("tap_x.py", "--sink", "lake:lk", cwd=tmp_path).code == 0
    assert len(list((tmp_path / "lk/raw/my-own-id").rglob("*.singer.gz"))) == 3


def test_all_that_is_wrong_with_config_and_settings_comes_at_once(config: Path):
    config.write_text('{"limit": "x", "start_date": "yesterday", "page_max_rows": 0}')
    ended = python("tap_x.py", "--config", "config.json", cwd=config.parent, TAP_FRESH_CURRENTLY_SYNCING="perhaps")
    assert ended.code == 2
    for fact in ("'token'", "'limit'", "'start_date'", "'page_max_rows'", "TAP_FRESH_CURRENTLY_SYNCING must"):
        assert fact in ended.stderr, (fact, ended.stderr)
    assert "yesterday" not in ended.stderr
