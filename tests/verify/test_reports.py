"""A verification as text, JSON, JUnit XML and SARIF."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from burler.spec.finding import Finding
from burler.spec.table import RULES
from burler.verify.report import report_bytes
from burler.verify.report_junit import as_junit
from burler.verify.report_sarif import as_sarif
from burler.verify.report_text import as_text
from burler.verify.result import RunFacts, StreamFacts, Verification

HOSTILE = "]]></failure>\x1b[31m\x00\ud800<&>\u202e\n|x"


def verification(**more):
    """Two streams, three findings, two rules that were not looked at."""
    contacts = StreamFacts("contacts", "INCREMENTAL", ["id"], "updated_at", rows=1200, states=3, seconds=2.0)
    contacts.bookmark = {"from": None, "to": "2024-05-01T00:00:00Z", "advanced_seconds": 86400.0, "ratio": 43200.0}
    contacts.order = {"key": "updated_at", "direction": "none", "flips": 1, "first_flips": [], "map": []}
    contacts.requests = {"GET /contacts": {"requests": 12}, "GET /tags": {"requests": 3}}
    given = {
        "subject": "tap_crm.py",
        "started": "2024-05-01T00:00:00.000000Z",
        "seconds": 3.25,
        "findings": [
            Finding(
                "B302", "a STATE comes too early", "error", "contacts", "updated_at", "sync", ("line 4", "line 9"), 12
            ),
            Finding("C113", "the stream has no keys", "warning", "audits"),
            Finding("R503", "a field never came", "info", "audits", "note"),
        ],
        "runs": [RunFacts("sync", "succeeded", 0, 2.5, 1300, {"contacts": contacts, "audits": StreamFacts("audits")})],
        "checked": ["B302", "B303", "C113", "P601", "R503"],
        "unchecked": {"P606": "no rows came", "H701": "behind a proxy", "P607": "no rows came"},
    }
    return Verification(**{**given, **more})


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
    assert row.split() == [
        "contacts",
        "1,200",
        "600",
        "none,",
        "1",
        "turn",
        "43,200",
        "s/s",
        "15",
        "-",
        "->",
        "2024-05-01T00:00:00Z",
    ]
    assert text.isascii() and "\x1b" not in text


def test_a_clean_tap_says_so():
    assert "clean: 5 rules looked at" in as_text(verification(findings=[]))


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider(width):
    long = Finding("B302", "word " * 60, "error", "contacts" * 9, "a.b", "sync", ("line 1",))
    text = as_text(verification(findings=[long]), width=width)
    assert max(map(len, text.splitlines())) <= max(width, 72)  # a stream's name is not cut


def test_colours_are_asked_for():
    text = as_text(verification(), colour=True)
    assert "\x1b[31merror  \x1b[0m" in text and "\x1b[33mwarning\x1b[0m" in text


def test_what_a_source_has_sent_does_no_harm():
    found = verification(findings=[Finding("M205", HOSTILE, "error", HOSTILE, HOSTILE, "sync", (HOSTILE,))])
    text = as_text(found)
    assert text.isascii() and "\x1b" not in text and "\x00" not in text
    for form in ("text", "json", "junit", "sarif"):
        report_bytes(found, form).decode()
    assert ET.fromstring(as_junit(found, RULES)).get("failures") == "1"
    assert json.loads(report_bytes(found, "json"))["findings"][0]["code"] == "M205"


def test_json_is_the_whole():
    found = json.loads(report_bytes(verification(), "json"))
    assert found["counts"] == {"error": 1, "warning": 1, "info": 1}
    assert found["findings"][0]["fingerprint"] == "B302|contacts|updated_at"
    assert found["runs"][0]["streams"]["contacts"]["requests"]["GET /tags"] == {"requests": 3}
    assert found["unchecked"]["H701"] == "behind a proxy"


@pytest.mark.parametrize(("strict", "failures"), [(False, 1), (True, 2)])
def test_junit(strict, failures):
    root = ET.fromstring(as_junit(verification(), RULES, strict=strict))
    suites = root.findall("testsuite")
    assert [suite.get("name") for suite in suites] == ["tap", "audits", "contacts"]
    for suite in suites:
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases))
        assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
        assert suite.get("skipped") == str(len(suite.findall("testcase/skipped")))
        assert len({case.get("name") for case in cases}) == len(cases)
    assert root.get("tests") == str(len(root.findall(".//testcase")))
    assert (root.get("failures"), root.get("skipped")) == (str(failures), "3")
    case = root.find(".//testsuite[@name='contacts']/testcase[@name='B302 state-ahead']/failure")
    assert case.get("message") == "a STATE comes too early" and "line 4" in case.text
    warned = root.find(".//testsuite[@name='audits']/testcase[@name='C113 no-key']")
    assert (warned.find("failure") is not None) is strict
    assert (warned.find("system-out") is not None) is not strict


def test_sarif():
    (run,) = as_sarif(verification(), RULES)["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    first = run["results"][0]
    assert (first["level"], first["occurrenceCount"]) == ("error", 12)
    assert first["locations"][0]["physicalLocation"] == {"artifactLocation": {"uri": "tap_crm.py"}}
    assert first["locations"][0]["logicalLocations"] == [
        {"fullyQualifiedName": "contacts.updated_at", "kind": "member"}
    ]
    assert first["partialFingerprints"] == {"burlerFinding/v1": "B302|contacts|updated_at"}
    assert [result["level"] for result in run["results"]] == ["error", "warning", "note"]
    assert {rule["defaultConfiguration"]["level"] for rule in rules} <= {"error", "warning", "note"}


def test_sarif_of_messages_has_their_lines():
    (run,) = as_sarif(verification(subject="-"), RULES)["runs"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"] == {"startLine": 4}


def test_sarif_holds_against_the_standards_schema():
    """The parts that readers need; the standard's own schema is on no machine of ours."""
    document = as_sarif(verification(), RULES)
    assert document["version"] == "2.1.0"
    driver = document["runs"][0]["tool"]["driver"]
    assert driver["name"] and all({"id", "shortDescription", "help"} <= rule.keys() for rule in driver["rules"])
    assert all(result["message"]["text"] for result in document["runs"][0]["results"])
