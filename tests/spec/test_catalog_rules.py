"""Each rule of catalogs, by the example on its page."""

import json

import pytest

from burler.spec import RULES, check_catalog
from support.internals import rules_catalog, spec_rule


def found(text):
    return {finding.code: finding for finding in check_catalog(json.loads(text))}


@pytest.mark.parametrize("rule", rules_catalog.CATALOG_RULES, ids=lambda rule: rule.code)
def test_what_breaks_a_rule_breaks_that_one_alone(rule):
    assert list(found(rule.breaks)) == [rule.code]
    finding = found(rule.breaks)[rule.code]
    assert (finding.severity, finding.run) == (rule.severity, "discovery")


@pytest.mark.parametrize("rule", rules_catalog.CATALOG_RULES, ids=lambda rule: rule.code)
def test_what_keeps_a_rule_keeps_all(rule):
    assert found(rule.keeps) == {}


@pytest.mark.parametrize("rule", rules_catalog.CATALOG_RULES, ids=lambda rule: rule.code)
def test_a_rule_says_what_is_to_be_said(rule):
    assert RULES[rule.code] is rule and rule.area == "catalog"
    assert rule.severity in spec_rule.SEVERITIES
    assert rule.title.endswith(".") and rule.name == rule.name.lower()
    for text in (rule.what, rule.why, rule.mend):
        assert text.endswith(".") and "  " not in text and len(text) > 40, text
    assert rule.breaks != rule.keeps


def test_codes_and_names_are_given_once():
    assert (
        len({rule.code for rule in rules_catalog.CATALOG_RULES})
        == len({rule.name for rule in rules_catalog.CATALOG_RULES})
        == len(rules_catalog.CATALOG_RULES)
    )
    assert [rule.code for rule in rules_catalog.CATALOG_RULES] == sorted(
        rule.code for rule in rules_catalog.CATALOG_RULES
    )
