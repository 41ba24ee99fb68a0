"""Each rule says what a reader needs. Its page is made from the table (tests/test_docs_made.py)."""

from __future__ import annotations

import ast
import re

import pytest

from burler.spec import RULES
from support.cli import burler


def test_a_rule_says_all_that_it_must():
    lacking = []
    for code, rule in RULES.items():
        whole = {
            "code": re.fullmatch(r"[A-Z]\d{3}", code) and rule.code == code and code[0] in "BCHMOPR",
            "name": re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", rule.name),
            "severity": rule.severity in ("error", "warning", "info"),
            "title": rule.title.endswith(".") and len(rule.title) <= 100,
            "explained": rule.title in burler("verify", "--explain", code).text,
            **{part: len(getattr(rule, part).split()) >= 8 for part in ("what", "why", "mend")},
            "examples": rule.breaks.strip() and rule.keeps.strip() and rule.breaks.strip() != rule.keeps.strip(),
        }
        lacking += [f"{code}: {what}" for what, good in whole.items() if not good]
    assert lacking == []


@pytest.mark.parametrize("code", [code for code in RULES if code[0] == "P"])
def test_examples_of_programs_are_python(code):
    for example in (RULES[code].breaks, RULES[code].keeps):
        ast.parse(example if not example.startswith("except") else "try:\n    pass\n" + example)


def test_names_are_told_apart():
    assert len({rule.name for rule in RULES.values()}) == len(RULES)
