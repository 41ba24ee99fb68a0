"""``[tool.burler.verify]``."""

from __future__ import annotations

import json

import pytest

from support.cli import burler

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}}
MESSAGES = [{"type": "SCHEMA", "stream": name, "schema": SCHEMA, "key_properties": ["id"]} for name in ("a", "b")] + [
    {"type": "RECORD", "stream": name, "record": {"id": number, "other": "x"}}
    for name in ("a", "b")
    for number in (1, 1, 2)
]


@pytest.fixture(scope="module")
def given():
    """Rows whose keys come twice, with a field that no SCHEMA knows, of two streams."""
    return "".join(json.dumps(message) + "\n" for message in MESSAGES).encode()


def found(folder, given, *words):
    """The exit code, and what is found, as (code, stream)."""
    ended = burler("verify", "-", "--format", "json", *words, cwd=folder, stdin=given)
    told = json.loads(ended.stdout)
    return ended.code, {(one["code"], one["stream"]) for one in told["findings"]}, told


def project(folder, text):
    (folder / "pyproject.toml").write_text(f"[tool.burler.verify]\n{text}\n")


def test_what_it_chooses(tmp_path, given):
    _code, every, _told = found(tmp_path, given)
    assert {("R501", "a"), ("R501", "b")} <= every
    project(tmp_path, 'select = ["R"]')
    assert {one for one, _stream in found(tmp_path, given)[1]} == {"R501"}
    project(tmp_path, 'select = ["R"]\nper-stream-ignores = { a = ["R501"] }')
    assert found(tmp_path, given)[1] == {("R501", "b")}
    project(tmp_path, 'ignore = ["R501"]')
    assert found(tmp_path, given)[1] == every - {("R501", "a"), ("R501", "b")}
    project(tmp_path, 'select = ["R501"]\nstrict = true\nlimits = { min-advance-ratio = 10, keys-in-memory = 5 }')
    assert found(tmp_path, given)[0] == 1
    project(tmp_path, 'select = ["R501"]\nstrict = false')
    assert found(tmp_path, given)[0] == 0
    project(tmp_path, 'select = ["R501"]\nmax-records = 100\nmax-seconds = 2.5\nbaseline = "known.json"')
    found(tmp_path, given, "--write-baseline", "known.json")
    assert found(tmp_path, given)[2]["baselined"] == 2


def test_the_nearest_file_with_the_table_counts(tmp_path, given):
    project(tmp_path, 'select = ["R"]')
    below = tmp_path / "taps" / "crm"
    below.mkdir(parents=True)
    (below / "pyproject.toml").write_text("[project]\nname = 'crm'\n")
    assert {one for one, _stream in found(below, given)[1]} == {"R501"}
    project(below, 'select = ["C"]')
    assert "R501" not in {one for one, _stream in found(below, given)[1]}


BROKEN = [
    ("selct = ['B']", "Did you mean 'select'"),
    ("select = 'B'", "a list of codes"),
    ("select = ['Z1']", "no rule is called 'Z1'"),
    ("ignore = [1]", "a list of codes"),
    ("max-records = 0", "above 0"),
    ("max-records = true", "wrong kind"),
    ("max-records = 1.5", "wrong kind"),
    ("strict = 1", "wrong kind"),
    ("baseline = 3", "wrong kind"),
    ("per-stream-ignores = ['B']", "wrong kind"),
    ("per-stream-ignores = { a = 'B' }", "a list of codes"),
    ("limits = { future = 1 }", "Did you mean 'limits.future-seconds'"),
    ("limits = { future-seconds = -1 }", "a number above 0"),
    ("limits = { state-bytes = 1.5 }", "a whole number above 0"),
    ("limits = { state-bytes = true }", "a whole number above 0"),
]


def test_what_it_cannot_say_is_told_with_the_file(tmp_path, given):
    for line, told in BROKEN:
        project(tmp_path, line)
        ended = burler("verify", "-", cwd=tmp_path, stdin=given)
        assert ended.code == 2 and told in ended.one_critical(), line
    for text in ("[tool.burler", "[tool.burler]\nverify = 3\n", "\xff"):
        (tmp_path / "pyproject.toml").write_bytes(text.encode("latin-1"))
        ended = burler("verify", "-", cwd=tmp_path, stdin=given)
        assert ended.code == 2 and "pyproject" in ended.one_critical(), text
