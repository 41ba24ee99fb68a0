"""Each rule has a page in the docs, made from the table, and says what a reader needs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from burler.spec.explain import explain
from burler.spec.rule import AREAS, SEVERITIES
from burler.spec.table import RULES

DOCS = Path(__file__).parents[2] / "docs"


def test_the_pages_are_current():
    made = runpy.run_path(str(DOCS / "make_rules.py"))["pages"]()
    there = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "rules").glob("*.md")}
    assert sorted(there) == sorted(made), "run: python docs/make_rules.py"
    assert [name for name in made if there[name] != made[name]] == [], "run: python docs/make_rules.py"


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
