"""Each rule says what a reader needs. Its page is made from the table (tests/test_docs_made.py)."""

from __future__ import annotations

import re

import pytest

from burler.spec.explain import explain
from burler.spec.rule import AREAS, SEVERITIES
from burler.spec.table import RULES


@pytest.mark.parametrize("code", sorted(RULES))
def test_a_rule_says_all_that_it_must(code):
    rule = RULES[code]
    assert re.fullmatch(r"[A-Z]\d{3}", code) and rule.code == code and code[0] in AREAS
    assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", rule.name)
    assert rule.severity in SEVERITIES
    assert rule.title.endswith(".") and len(rule.title) <= 100
    for part in (rule.what, rule.why, rule.mend):
        assert len(part.split()) >= 8, f"{code} says too little"
    assert rule.breaks.strip() and rule.keeps.strip() and rule.breaks.strip() != rule.keeps.strip()
    assert rule.title in explain(rule)


def test_names_are_told_apart():
    assert len({rule.name for rule in RULES.values()}) == len(RULES)
