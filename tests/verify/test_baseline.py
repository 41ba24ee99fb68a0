"""Baselines: what is known does not count."""

from __future__ import annotations

import json

import pytest

from burler.errors import StorageError, UsageError
from burler.spec import Finding
from support.internals import verify_baseline

KNOWN = [Finding("B302", "early", "error", "b", "at"), Finding("C113", "no keys", "warning", "a", data={"x": 1})]


def test_it_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "known.json"
    verify_baseline.write_baseline(path, KNOWN)
    new = Finding("B302", "early", "error", "c", "at")
    again = Finding("B302", "another sentence", "error", "b", "at", count=9)
    assert verify_baseline.read_baseline(path).split([again, new]) == ([new], [again])
    assert verify_baseline.read_baseline(path).gone([again]) == ["C113|a|"]


def test_equal_findings_make_equal_files(tmp_path):
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    verify_baseline.write_baseline(one, KNOWN)
    verify_baseline.write_baseline(other, KNOWN[::-1])
    assert one.read_bytes() == other.read_bytes()
    assert list(json.loads(one.read_text())["findings"]) == ["B302|b|at", "C113|a|"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "can't be read"),
        ("{", "no JSON"),
        ("[]", "no baseline"),
        ('{"findings": []}', "no baseline"),
        ('{"findings": {"a": 1}, "format": 1}', "no baseline"),
        ('{"findings": {}, "format": 2}', "format 2"),
    ],
    ids=["missing", "broken", "list", "no-findings", "no-entries", "later"],
)
def test_what_is_no_baseline_is_told(tmp_path, text, told):
    path = tmp_path / "known.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=told):
        verify_baseline.read_baseline(path)


def test_a_place_that_takes_no_file_is_told(tmp_path):
    with pytest.raises(StorageError, match="can't be written"):
        verify_baseline.write_baseline(tmp_path / "none" / "known.json", KNOWN)
