"""A verification as JUnit XML: every reader counts the same, and warnings fail only where they shall."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from report_sample import HOSTILE, HOSTILE_IDS, hostile, report, verification

from burler.spec import Finding

# What the schemas in use allow: elements, their attributes, those that must be there, what stands in them.
GRAMMAR = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, set(), {"testsuite"}),
    "testsuite": (
        {"name", "time", "tests", "failures", "errors", "skipped", "timestamp"},
        {"name", "tests", "failures", "errors"},
        {"testcase"},
    ),
    "testcase": ({"name", "time", "classname"}, {"name"}, {"failure", "skipped", "system-out"}),
    "failure": ({"message", "type"}, set(), set()),
    "skipped": ({"message"}, set(), set()),
    "system-out": (set(), set(), set()),
}


def check(root: ET.Element) -> None:
    """The document keeps the grammar, and its counts are right."""
    for element in root.iter():
        allowed, needed, below = GRAMMAR[element.tag]
        assert needed <= set(element.keys()) <= allowed, element.tag
        assert {child.tag for child in element} <= below
    for suite in root.findall("testsuite"):
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases))
        assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
        assert suite.get("skipped") == str(len(suite.findall("testcase/skipped")))
    assert root.get("tests") == str(len(root.findall(".//testcase")))
    assert root.get("failures") == str(len(root.findall(".//failure")))
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("strict", "failures"), [(False, 1), (True, 2)], ids=["plain", "strict"])
def test_a_suite_is_a_stream_and_a_case_a_rule(strict, failures):
    root = ET.fromstring(report(verification(), "junit", *["--strict"] * strict))
    check(root)
    assert [suite.get("name") for suite in root] == ["tap", "audits", "contacts"]
    assert (root.get("failures"), len(root.findall(".//skipped"))) == (str(failures), 3)
    case = root.find(".//testsuite[@name='contacts']/testcase[@name='B302 state-ahead']/failure")
    assert case.get("message") == "a STATE comes too early" and "line 4" in case.text
    warned = root.find(".//testsuite[@name='audits']/testcase[@name='C113 no-key']")
    assert (warned.find("failure") is not None) is strict
    assert (warned.find("system-out") is not None) is not strict
    assert root.find(".//testcase[@name='B303 row-behind-state']/*") is None, "a rule that is kept passes"


def test_a_stream_may_be_called_as_the_whole_is():
    found = [Finding("C113", "no keys", "warning", "tap"), Finding("P601", "it failed", "error")]
    root = ET.fromstring(report(verification(findings=found), "junit"))
    check(root)
    assert [suite.get("name") for suite in root][:2] == ["the tap", "audits"]
    assert root.find("testsuite[@name='tap']/testcase[@name='C113 no-key']/system-out") is not None
    assert root.find("testsuite[@name='the tap']//failure").get("message") == "it failed"


@pytest.mark.parametrize("text", HOSTILE, ids=HOSTILE_IDS)
def test_what_xml_cant_hold_is_replaced(text):
    root = ET.fromstring(report(hostile(text), "junit"))
    check(root)
    (failure,) = root.iter("failure")
    assert failure.get("message")[:3] == text[:3]


def test_what_a_rule_of_behaviour_finds_of_a_stream_is_no_pass_of_the_tap():
    found = verification(findings=[Finding("P602", "a row came", "error", "contacts")], checked=["P601", "P602"])
    root = ET.fromstring(report(found, "junit"))
    check(root)
    cases = {case.get("name")[:4]: suite.get("name") for suite in root for case in suite}
    assert (cases["P601"], cases["P602"]) == ("tap", "contacts")
    assert root.get("failures") == "1"
