"""Each rule on messages: its example breaks it and no other; the same, mended, breaks none."""

from __future__ import annotations

import ast

import pytest
from rule_examples import NOT_BY_MESSAGES, run_example

from burler.spec import RULES

BESIDE = {"M207": {"C111"}, "B307": {"B324"}, "B318": {"B323"}, "B321": {"C124"}, "R504": {"C124"}}
"""What else an example breaks, of necessity."""
BY_MESSAGES = [code for code in RULES if code[0] in "MBOR" and code not in NOT_BY_MESSAGES]


@pytest.mark.parametrize("code", BY_MESSAGES)
def test_the_example_breaks_its_rule(code):
    found = {one.code for one in run_example(RULES[code], RULES[code].breaks)}
    assert found == {code} | BESIDE.get(code, set())


@pytest.mark.parametrize("code", BY_MESSAGES)
def test_the_mended_one_breaks_none(code):
    assert run_example(RULES[code], RULES[code].keeps) == []


@pytest.mark.parametrize("code", NOT_BY_MESSAGES)
def test_examples_in_python_compile(code):
    """What they show, tests/verify has."""
    for text in (RULES[code].breaks, RULES[code].keeps):
        ast.parse(text)
