"""docs/meltano.md with the real Meltano: its commands are typed, and print what stands there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import peers_environment
import pytest

from burler.cli import about, meltano
from tests.console_pages import Shell, matches, steps

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "meltano.md"
COMMAND = """#!/bin/sh
PYTHONPATH={project}:{root} exec {python} -c 'from tap_drop import tap; tap.cli()' "$@"
"""


@pytest.fixture
def programs(tmp_path):
    """A folder for PATH: the tap's command, as installing it would make it, Meltano and the target."""
    try:
        peers = peers_environment.make_meltano()
    except peers_environment.NotInstalled as error:
        pytest.skip(f"Meltano can't be installed: {error}")
    folder = tmp_path / "programs"
    folder.mkdir()
    tap = folder / "tap-drop"
    tap.write_text(COMMAND.format(project=tmp_path / "work" / "tap-drop", root=ROOT, python=sys.executable))
    tap.chmod(0o755)
    for name, place in peers.items():
        (folder / name).symlink_to(place / name)
    return folder


def test_meltano_does_what_the_page_says(tmp_path, programs):
    work = tmp_path / "work"
    work.mkdir()
    quiet = {"MELTANO_SEND_ANONYMOUS_USAGE_STATS": "false", "HOME": str(tmp_path)}
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    shell = Shell(work, **quiet, PATH=path)
    typed = 0
    try:
        for kind, what, text in steps(PAGE.read_text(encoding="utf-8")):
            if kind == "save":
                (work / what).write_text(text, encoding="utf-8")
                continue
            said = shell.type(what)
            log = work / "warehouse" / "log"
            told = log.read_text()[-2000:] if log.exists() else ""
            assert matches(text, said), f"$ {what}\n{said}\n--- the page shows:\n{text}\n--- the log:\n{told}"
            typed += 1
    finally:
        shell.close()
    assert typed > 15


def test_the_definition_that_a_tap_writes():
    """Secrets, choices, needed keys and defaults; of burler's own settings start_date alone."""
    import burler

    tap = burler.tap(
        "tap-crm",
        {
            "type": "object",
            "required": ["url", "token"],
            "properties": {
                "url": {"type": "string", "description": "Where: it is."},
                "token": {"type": "string", "secret": True, "default": "never shown"},
                "region": {"enum": ["eu", "us"], "default": "eu"},
                "since": {"type": ["null", "string"], "format": "date-time"},
                "pages": {"type": "integer", "default": 5},
                "on": {"type": "boolean", "default": False},
                "accounts": {"type": "array", "items": {"type": "string"}, "default": ["a", "b: c"]},
                "options": {"type": "object"},
            },
        },
        description="Customers.",
    )

    @tap.sync("contacts", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
    def contacts():
        yield {"id": 1}

    made = meltano.definition(about.about(tap))
    assert made["capabilities"] == [
        "properties", "catalog", "discover", "state", "about", "activate-version", "batch", "test",
    ]  # fmt: skip
    assert made["settings_group_validation"] == [["url", "token"]]
    kinds = {one["name"]: one["kind"] for one in made["settings"]}
    assert kinds == {
        "url": "string", "token": "string", "region": "options", "since": "date_iso8601", "pages": "integer",
        "on": "boolean", "accounts": "array", "options": "object", "start_date": "date_iso8601",
    }  # fmt: skip
    (token,) = [one for one in made["settings"] if one["name"] == "token"]
    assert token == {"name": "token", "label": "Token", "kind": "string", "sensitive": True}
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load(meltano.as_yaml(made)) == made
