"""A verification as text and as JSON, and in the form that is asked for."""

from __future__ import annotations

import json

import pytest
from report_sample import FORMS, HOSTILE, HOSTILE_IDS, hostile, report, verification

from burler.spec import Finding
from burler.verify import RunFacts, StreamFacts


def as_text(verification):
    return report(verification, "text").decode()


def test_text_has_the_worst_first_and_a_summary():
    text = as_text(verification(baselined=2, ignored=1))
    lines = text.splitlines()
    assert lines[0] == "contacts"
    assert lines[1] == "  error   B302 updated_at: a STATE comes too early [sync; line 4, line 9] (x 12)"
    assert "  warning C113: the stream has no keys" in lines
    assert "1 error, 1 warning, 1 info; 2 known from the baseline; 1 ignored" in lines
    assert "not looked at: P606, P607: no rows came" in lines
    assert "burler verify --explain B302" in lines[-1]
    row = next(line for line in lines if line.startswith("contacts  "))
    assert " ".join(row.split()) == "contacts 1,200 600 none, 1 turn 43,200 s/s 15 - -> 2024-05-01T00:00:00Z"
    assert text.isascii() and "\x1b" not in text


def test_a_clean_tap_says_so():
    assert "clean: 5 rules looked at" in as_text(verification(findings=[]))


def test_no_line_is_wider_than_120():
    long = Finding("B302", "word " * 60 + "x" * 300, "error", "contacts" * 50, "a.b" * 90, "sync", ("line 1",))
    runs = [RunFacts("sync", streams={"s": StreamFacts("contacts" * 50, rows=10**9)})]
    text = as_text(verification(findings=[long], runs=runs))
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("text", HOSTILE, ids=HOSTILE_IDS)
def test_what_a_source_has_sent_does_no_harm(text):
    told = as_text(hostile(text))
    assert told.isascii() and "\x1b" not in told and "\x00" not in told
    for form in FORMS:
        report(hostile(text), form).decode()
    assert json.loads(report(hostile(text), "json"))["findings"][0]["code"] == "M205"


def test_json_is_the_whole():
    found = json.loads(report(verification(), "json"))
    assert found["counts"] == {"error": 1, "warning": 1, "info": 1}
    assert found["findings"][0]["fingerprint"] == "B302|contacts|updated_at"
    assert found["runs"][0]["streams"]["contacts"]["requests"]["GET /tags"]["requests"] == 3
    assert found["unchecked"]["H701"] == "behind a proxy"


def test_json_has_no_numbers_that_are_none():
    """``NaN`` and ``Infinity`` are Python's, and no JSON."""
    stream = StreamFacts("a", bookmark={"from": float("nan"), "to": float("inf")})
    written = report(verification(runs=[RunFacts("sync", streams={"a": stream})]), "json")
    found = json.loads(written, parse_constant=lambda word: pytest.fail(word))
    assert found["runs"][0]["streams"]["a"]["bookmark"] == {"from": "nan", "to": "inf"}
