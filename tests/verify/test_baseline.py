"""Baselines: what is known does not count. What else the command does with one: tests/cli/test_verify.py."""

from __future__ import annotations

import json

from support.cli import burler

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}}


def messages(*streams, text="x"):
    """Each stream has a field that its SCHEMA does not know, and no keys."""
    lines = []
    for name in streams:
        lines.append({"type": "SCHEMA", "stream": name, "schema": SCHEMA, "key_properties": []})
        lines.append({"type": "RECORD", "stream": name, "record": {"id": 1, "other": text}})
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def verify(folder, *words, given):
    return burler("verify", "-", *words, "--format", "json", cwd=folder, stdin=given)


def test_it_knows_what_was_written_by_rule_stream_and_field(tmp_path):
    assert verify(tmp_path, "--write-baseline", "known.json", given=messages("a", "b")).code == 0
    again = json.loads(verify(tmp_path, "--baseline", "known.json", given=messages("a", text=7)).stdout)
    assert again["findings"] == [] and "R501|b|other" in again["gone"]
    more = json.loads(verify(tmp_path, "--baseline", "known.json", given=messages("a", "b", "c")).stdout)
    assert {one["stream"] for one in more["findings"]} == {"c"}


def test_equal_findings_make_equal_files(tmp_path):
    verify(tmp_path, "--write-baseline", "one.json", given=messages("a", "b"))
    verify(tmp_path, "--write-baseline", "other.json", given=messages("b", "a"))
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "other.json").read_bytes()
    found = list(json.loads((tmp_path / "one.json").read_text())["findings"])
    assert found == sorted(found) and "R501|a|other" in found


def test_what_is_no_baseline_is_told(tmp_path):
    """What is missing: tests/cli/test_verify.py."""
    texts = {
        "{": "no JSON",
        "[]": "no baseline",
        '{"findings": []}': "no baseline",
        '{"findings": {"a": 1}, "format": 1}': "no baseline",
        '{"findings": {}, "format": 2}': "format 2",
    }
    for text, told in texts.items():
        (tmp_path / "known.json").write_text(text)
        ended = verify(tmp_path, "--baseline", "known.json", given=messages("a"))
        assert (ended.code, ended.stdout) == (2, b"")
        assert told in ended.one_critical(), text


def test_a_place_that_takes_no_file_is_told(tmp_path):
    (tmp_path / "known.json").mkdir()
    ended = verify(tmp_path, "--write-baseline", "known.json", given=messages("a"))
    assert ended.code == 2 and "is no plain file" in ended.one_critical()
