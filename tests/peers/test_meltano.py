"""docs/meltano.md with the real Meltano: its commands are typed, and print what stands there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import jsonschema
import peers_environment
import pytest
import yaml

from support.cli import burler
from tests.console_pages import Shell, matches, steps

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "meltano.md"
COMMAND = """#!/bin/sh
PYTHONPATH={project}:{root} exec {python} -c 'from tap_drop import tap; tap.cli()' "$@"
"""


CRM = """
import msgspec

import burler

class Db(msgspec.Struct):
    host: str
    password: str
    port: int = 5432
    patience: float = 1.0

class Config(msgspec.Struct):
    url: str
    db: Db
    spare: Db | None = None
    pages: int | None = None
    ratio: float | None = None
    parts: list[str] = []
    refresh_token: str = ""

tap = burler.tap("tap-drop", Config)

@tap.sync("contacts", key_properties="id", schema={"properties": {"id": {"type": "integer"}, "config": {}}})
def contacts(config):
    yield {"id": 1, "config": dict(config)}
    config["refresh_token"] = "newer-one"
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


@pytest.fixture
def variables(tmp_path, programs):
    """Variables of a shell that finds these programs; Meltano asks nobody for anything."""
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {"MELTANO_SEND_ANONYMOUS_USAGE_STATS": "false", "HOME": str(tmp_path), "PATH": path}


def test_a_tap_gets_the_config_that_meltano_was_given(tmp_path, variables):
    """From meltano.yml, .env and variables: each value of the type that the tap asks for, and nothing else.

    What the tap changes goes into a file of its own, which a script gives to it.
    """
    package = tmp_path / "work" / "tap-drop" / "tap_drop"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(CRM)
    own = tmp_path / "own.json"
    own.write_text('{"refresh_token": "older-one"}')
    script = tmp_path / "programs" / "with-own-file"
    script.write_text(f'#!/bin/sh\nexec tap-drop --config {own} "$@"\n')
    script.chmod(0o755)
    made = subprocess.run(["tap-drop", "--about=meltano"], env=variables, capture_output=True, text=True, check=True)
    plugin = made.stdout.partition("\n")[2]  # without plugin_type, which meltano.yml says by the list
    plugin = plugin.replace("executable: tap-drop", "executable: with-own-file")
    written = "config: {url: 'http://crm', db: {host: here}}\n"
    project = tmp_path / "project"
    project.mkdir()
    (project / "meltano.yml").write_text(
        "plugins:\n  extractors:\n  - " + textwrap.indent(plugin + written, "    ").strip() + "\n"
    )
    (project / ".env").write_text("TAP_DROP_DB_PASSWORD=hush-hush\nTAP_DROP_DB_PATIENCE=2.5\n")
    given = {"TAP_DROP_PAGES": "7", "TAP_DROP_RATIO": "0.5", "TAP_DROP_PARTS": '["a"]'}
    ran = subprocess.run(
        ["meltano", "invoke", "tap-drop"],
        env=variables | given,
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    rows = [json.loads(line) for line in ran.stdout.splitlines() if '"RECORD"' in line]
    assert [row["record"]["config"] for row in rows] == [
        {
            "url": "http://crm",
            "db": {"host": "here", "password": "hush-hush", "patience": 2.5, "port": 5432},
            "spare": None,
            "pages": 7,
            "ratio": 0.5,
            "parts": ["a"],
            "refresh_token": "older-one",
        }
    ], ran.stderr[-3000:]
    assert "hush-hush" not in ran.stderr
    assert json.loads(own.read_text()) == {"refresh_token": "newer-one"}


@pytest.mark.nightly
def test_meltano_does_what_the_page_says(tmp_path, variables):
    work = tmp_path / "work"
    work.mkdir()
    shell = Shell(work, **variables)
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


def definition_of(folder, spec, description=None):
    """What ``burler about`` writes for Meltano, read by YAML and held against the schema that Meltano itself has."""
    (folder / "tap_crm.py").write_text(
        f"import burler\n\ntap = burler.tap('tap-crm', {spec!r}, description={description!r})\n"
        "tap.sync('contacts', key_properties='id', schema={'properties': {'id': {'type': 'integer'}}})(lambda: [])\n"
    )
    ended = burler("about", "tap_crm.py", "--format", "meltano", cwd=folder)
    assert ended.code == 0, ended.stderr
    made = yaml.safe_load(ended.text)
    (file,) = peers_environment.make_meltano()["meltano"].parent.glob("lib/*/site-packages/meltano/schemas/*.json")
    plugin = {key: value for key, value in made.items() if key != "plugin_type"}
    jsonschema.validate({"plugins": {"extractors": [plugin]}}, json.loads(file.read_text()))
    return made


def test_the_definition_that_a_tap_writes(tmp_path):
    """Secrets, choices, needed keys and defaults; of burler's own settings start_date alone."""
    made = definition_of(
        tmp_path,
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
        "Customers.",
    )
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


VALUES = [
    "plain", "two words", "", " ", "yes", "NO", "~", "null", "1", "1.0", "1e3", "0x1f", "012", "1_000", "12:30",
    "2024-01-01", "a: b", "a #b", "- a", "'", '"', "\\", "a\nb", "a\r\nb", "tab\there", "\x00\x1b[2J", "\x85",
    "\u2028", "\ufeff", "ünï 数", "😀", "*a", "&a", "!a", "%a", "@a", "`a", "{a", "[a", "a]", "=", "<<", ".", "...",
    "---", "a\t", "\x7f", "\u200b",
    0.0, -0.0, 1.0, 0.1, 1e16, 1e-7, 1.5e300, -2.5, 0, -1, 10**30, True, False,
]  # fmt: skip


def test_yaml_is_read_as_it_was(tmp_path):
    kinds = {str: "string", float: "number", int: "integer", bool: "boolean"}
    spec = {f"v{n}": {"type": kinds[type(value)], "default": value} for n, value in enumerate(VALUES)}
    spec["all"] = {"type": "array", "items": {}, "default": VALUES}
    made = definition_of(tmp_path, {"type": "object", "properties": spec})
    found = {one["name"]: one.get("value") for one in made["settings"]}
    assert [(value, type(value)) for value in found["all"]] == [(value, type(value)) for value in VALUES]
    assert [(found[f"v{n}"], type(found[f"v{n}"])) for n in range(len(VALUES))] == [(v, type(v)) for v in VALUES]


def test_what_lies_inside_objects_and_behind_references(tmp_path):
    account = {
        "type": "object",
        "required": ["id", "password"],
        "properties": {
            "id": {"type": "integer", "default": 1},
            "password": {"type": "string"},
            "share": {"type": "number"},
            "parent": {"$ref": "#/$defs/account"},
        },
    }
    spec = {
        "type": "object",
        "$defs": {"account": account},
        "required": ["main"],
        "oneOf": [
            {"required": ["key"], "properties": {"key": {"type": "string"}}},
            {"required": ["user"], "properties": {"user": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}},
        ],
        "properties": {
            "main": {"$ref": "#/$defs/account", "description": "Whose."},
            "spare": {"$ref": "#/$defs/account"},
            "others": {"type": "array", "items": {"$ref": "#/$defs/account"}},
            "labels": {"type": "object", "default": {}},
            "api.host": {"type": "string"},
            "source": {"type": "string", "default": "postgres://me:hush-hush@here/db"},
        },
    }
    made = definition_of(tmp_path, spec)
    assert "***" not in str(made)
    assert made["settings_group_validation"] == [
        ["main.id", "main.password", "key"],
        ["main.id", "main.password", "user"],
    ]
    settings = {one.pop("name"): one for one in made["settings"]}
    assert {name: one.get("kind") for name, one in settings.items()} == {
        "main.id": "integer", "main.password": "string", "main.share": None, "main.parent": "object",
        "spare.id": "integer", "spare.password": "string", "spare.share": None, "spare.parent": "object",
        "others": "array", "labels": "object", "api\\.host": "string", "source": "string", "key": "string",
        "user": "integer", "start_date": "date_iso8601",
    }  # fmt: skip
    assert settings["main.share"]["env"] == "TAP_CRM_MAIN__SHARE"
    secret = {name for name, one in settings.items() if one.get("sensitive")}
    assert secret == {"main.password", "spare.password", "main.parent", "spare.parent", "others", "key"}
    assert {name for name, one in settings.items() if "value" in one} == {"labels"}
