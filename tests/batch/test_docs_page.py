"""docs/batch.md: what it shows is so."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import burler
from burler.batch import message_schema
from burler.errors import BurlerError
from burler.testing import run_tap
from support import cli
from support.internals import batch_config

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "batch.md").read_text(encoding="utf-8")


@pytest.fixture
def scope(tmp_path, monkeypatch):
    """The names that all snippets together make, run in order in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "snippet"}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "docs/batch.md", "exec"), names)
    return names


def test_the_snippets_run_in_order(scope):
    assert scope["rows"] and not scope["out"].result.errors


def test_the_message_on_the_page_is_one_that_a_run_writes(scope):
    (block,) = re.findall(r"```js\n(.*?)```", PAGE, re.DOTALL)
    shown = json.loads(re.sub(r" // .*", "", block))
    jsonschema.Draft4Validator(message_schema()).validate(shown)
    jsonschema.Draft4Validator(message_schema()["definitions"]["both"]).validate(shown)
    real = scope["first"]
    assert list(shown) == list(real), "the same keys, in the same order"
    for key in ("format", "compression", "encoding", "size"):
        assert shown[key] == real[key]
    name = re.compile(r"file:///\S*/desk-tap-desk--tickets-[0-9a-f]{12}-00001\.jsonl\.gz")
    assert all(name.fullmatch(message["manifest"][0]) for message in (shown, real))


def table(title):
    """The rows of the first table below a heading, cell by cell."""
    below = PAGE.partition(f"{title}\n")[2]
    assert below, title
    rows = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)
    assert rows is not None
    lines = rows[0].splitlines()[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_the_table_of_batch_config_has_every_key_with_its_default():
    shown = {row[0].strip("`"): row[1] for row in table("### `batch_config`")}
    real = {}
    for prefix, kind in (
        ("", batch_config.BatchConfig),
        ("encoding.", batch_config.Encoding),
        ("storage.", batch_config.BatchStorage),
    ):
        for field in dataclasses.fields(kind):
            if field.name in ("encoding", "storage", "encoding_given"):
                continue
            default = field.default_factory() if field.default is dataclasses.MISSING else field.default
            real[prefix + field.name] = default
    assert set(shown) == set(real)
    for key, default in real.items():
        text = "none" if default in (None, "") else f"{default:g}" if isinstance(default, float) else str(default)
        assert key == "encoding.compression" or shown[key] in (text, f"`{text}`"), key


def test_each_word_that_a_key_may_be_stands_there():
    about = {row[0].strip("`"): row[2] for row in table("### `batch_config`")}
    for form in batch_config.FORMATS:
        assert f"`{form}`" in about["encoding.format"]
    for word in {*batch_config.PACKINGS, *batch_config.CODECS["parquet"], *batch_config.CODECS["arrow"]}:
        assert f"`{word}`" in about["encoding.compression"]
    for word in batch_config.DIALECTS:
        assert f"`{word}`" in about["dialect"]


def test_the_table_of_dialects_is_that_of_the_schema():
    columns = ("both", "sip", "meltano")
    seen = set()
    for names, *cells in table("One message can serve both:"):
        keys = re.findall(r"`(\w+)`", names.partition("(")[0].partition(",  with")[0])
        for key in keys:
            for dialect, cell in zip(columns, cells, strict=True):
                known = message_schema()["definitions"][dialect]["properties"]
                assert (key in known) == (cell == "yes"), (key, dialect)
            seen.add(key)
    assert seen == set(message_schema()["definitions"]["both"]["properties"])


def test_csv_options_are_all_there():
    shown = {row[0].strip("`") for row in table("With these `format_options`:")}
    encoding = batch_config.read_batch_config({"encoding": {"format": "csv"}}).encoding
    assert shown == set(encoding.format_options)


TARGET = """
import json, sys
rows = []
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "RECORD":
        rows.append((message["stream"], message["record"]))
    for url in message.get("manifest", []):
        with open(url.removeprefix("file://"), encoding="utf-8") as file:
            rows += [(message["stream"], json.loads(row)) for row in file]
    if message["type"] == "STATE":
        print(json.dumps(message["value"]))
with open("loaded.jsonl", "a", encoding="utf-8") as out:
    out.write(json.dumps(rows) + chr(10))
"""


def test_the_commands_on_a_real_tap_run_as_written(tmp_path):
    """In a small repository, with the folder of examples in it, and a target that knows files and rows."""
    block = PAGE.partition("## On a real tap\n")[2].partition("## ")[0]
    commands = [line.strip() for line in block.splitlines() if line.startswith("    ")]
    assert len(commands) == 7
    (tmp_path / "target.py").write_text(TARGET)
    (tmp_path / "bin").mkdir()
    for name, runs in (("burler", "-m burler"), ("target-x", tmp_path / "target.py")):
        shim = tmp_path / "bin" / name
        shim.write_text(f'#!/bin/sh\nexec {sys.executable} {runs} "$@"\n')
        shim.chmod(0o755)
    clone = tmp_path / "clone"
    (clone / "examples").mkdir(parents=True)
    (clone / "examples" / "tap_git").symlink_to(ROOT / "examples" / "tap_git")
    person = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], [*person, "commit", "-q", "--allow-empty", "-m", "one, two"]):
        subprocess.run(["git", *command], cwd=clone, check=True, capture_output=True)
    environment = {**os.environ, "PATH": f"{shim.parent}{os.pathsep}{os.environ['PATH']}"}
    script = "set -e -o pipefail\n" + "\n".join(commands)
    done = subprocess.run(
        ["bash", "-c", script], cwd=clone, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    types = [json.loads(line)["type"] for line in (clone / "messages.jsonl").read_text().splitlines()]
    assert types.count("SCHEMA") == 4 and types[-1] == "STATE" and "RECORD" not in types
    files = [line for line in done.stdout.splitlines() if line.startswith("tap-git--")]
    assert len(files) == types.count("BATCH") == 3, "a commit without files has no file_changes"
    assert '"one, two"' in done.stdout
    from_files, from_rows = (json.loads(line) for line in (clone / "loaded.jsonl").read_text().splitlines())
    assert from_files == from_rows and len(from_files) >= 3
    assert "bookmarks" in json.loads((clone / "state.jsonl").read_text())


def test_mistakes_are_answered_as_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = re.findall(r"```json\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert len(pairs) >= 4
    for config, text in pairs:
        tap = burler.tap("tap-desk")
        tap.sync("tickets", key_properties="id", schema={"properties": {"id": {}}})(lambda: [{"id": 1}])
        with pytest.raises(BurlerError) as error:
            run_tap(tap, json.loads(config))
        assert str(error.value).replace(str(tmp_path), "/path/to") == text.strip()
        assert error.value.exit_code == 2


def test_commands_and_options_on_the_page_are_there():
    said = cli.burler("batch", "--help").text.partition("Commands:")[2]
    seen = set()
    for line in re.findall(r"burler batch (.+?)(?:`|\||$)", PAGE, re.MULTILINE):
        name, *words = line.split()
        known = cli.burler("batch", name, "--help")
        assert known.code == 0, line
        assert all(word in known.text for word in words if word.startswith("--")), line
        seen.add(name)
    assert seen == set(re.findall(r"^  (\w+) ", said, re.MULTILINE))
