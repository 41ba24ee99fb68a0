"""The rules of area P: each has a page that can be made of it, and both of its examples are Python."""

from __future__ import annotations

import ast

import pytest

from support.internals import rules_program


@pytest.mark.parametrize("rule", rules_program.PROGRAM_RULES, ids=lambda rule: rule.code)
def test_a_rule_says_everything_and_its_examples_are_python(rule):
    assert rule.title.endswith(".")
    assert all(len(text) > 40 for text in (rule.what, rule.why, rule.mend))
    assert all(not text.endswith(" ") for text in (rule.what, rule.why, rule.mend))
    for example in (rule.breaks, rule.keeps):
        ast.parse(example if not example.startswith("except") else "try:\n    pass\n" + example)
    assert rule.breaks != rule.keeps


def test_codes_are_in_order_and_each_once():
    codes = [rule.code for rule in rules_program.PROGRAM_RULES]
    assert codes == sorted(set(codes))
    assert len({rule.name for rule in rules_program.PROGRAM_RULES}) == len(codes)
