"""A verification as JUnit XML, as GitLab, Jenkins and others show it: a suite a stream, a case a rule.

Errors are failures. A warning is a case that passes with the finding in its ``system-out``: JUnit knows no warnings,
and a build must not fail for what exit code 0 says; ``--strict`` makes failures of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree as ET

from burler.spec.finding import Finding
from burler.spec.rule import Rule
from burler.verify.result import Verification

_REFUSED = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
WHOLE = "tap"
"""Stands for the stream where something is about the tap as a whole."""


def as_junit(verification: Verification, rules: Mapping[str, Rule], *, strict: bool = False) -> bytes:
    """The document."""
    root = ET.Element("testsuites", name=f"burler verify {_clean(verification.subject)}")
    by_stream: dict[str | None, list[Finding]] = {None: []}
    for one in verification.findings:
        by_stream.setdefault(one.stream, []).append(one)
    for name in (name for run in verification.runs for name in run.streams if name):
        by_stream.setdefault(name, [])
    tests = failures = 0
    for stream in sorted(by_stream, key=lambda name: (name is not None, name or "")):
        cases, failed = _suite(root, stream, by_stream, verification, rules, strict)
        tests, failures = tests + cases, failures + failed
    for name, value in (("tests", tests), ("failures", failures), ("errors", 0)):
        root.set(name, str(value))
    root.set("time", f"{verification.seconds:.3f}")
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _suite(
    root: ET.Element,
    stream: str | None,
    by_stream: Mapping[str | None, list[Finding]],
    verification: Verification,
    rules: Mapping[str, Rule],
    strict: bool,
) -> tuple[int, int]:
    """A suite; (cases, failures)."""
    by_code: dict[str, list[Finding]] = {}
    for one in by_stream[stream]:
        by_code.setdefault(one.code, []).append(one)
    elsewhere = {one.code for found in by_stream.values() for one in found} if stream is None else set()
    looked_at = [code for code in verification.checked if _belongs(code, stream) and code not in elsewhere - {*by_code}]
    left = list(verification.unchecked) if stream is None else []
    codes = list(dict.fromkeys([*by_code, *looked_at, *(code for code in left if code not in by_code)]))
    whole = WHOLE if WHOLE not in by_stream else f"the {WHOLE}"
    shown = whole if stream is None else _clean(stream)
    suite = ET.SubElement(root, "testsuite", name=shown, timestamp=verification.started[:19], errors="0")
    failures = skipped = 0
    for code in codes:
        name = f"{code} {rules[code].name}"
        case = ET.SubElement(suite, "testcase", classname=f"burler.verify.{shown}", name=name, time="0")
        findings = by_code.get(code, [])
        bad = [one for one in findings if one.severity == "error" or (strict and one.severity == "warning")]
        if bad:
            failures += 1
            failure = ET.SubElement(case, "failure", message=_clean(bad[0].message)[:500], type=bad[0].severity)
            failure.text = _clean("\n".join([*map(_line, findings), "", rules[code].mend]))
        elif findings:
            ET.SubElement(case, "system-out").text = _clean("\n".join(map(_line, findings)))
        elif code in left:
            skipped += 1
            ET.SubElement(case, "skipped", message=_clean(verification.unchecked[code]))
    for key, value in (("tests", len(codes)), ("failures", failures), ("skipped", skipped)):
        suite.set(key, str(value))
    suite.set("time", "0")
    return len(codes), failures


def _belongs(code: str, stream: str | None) -> bool:
    """Rules of behaviour are the tap's as a whole; the others every stream's."""
    return (code[0] == "P") == (stream is None)


def _line(one: Finding) -> str:
    path = f" {one.path}" if one.path else ""
    where = ", ".join(filter(None, (one.run, *one.places)))
    count = f" (x {one.count})" if one.count > 1 else ""
    return f"{one.severity} {one.code}{path}: {one.message}{f' [{where}]' if where else ''}{count}"


def _clean(text: str) -> str:
    """Text that XML can hold."""
    return _REFUSED.sub("\ufffd", text)
