"""Each rule of catalogs, by the example on its page."""

import json

import pytest

from burler.spec import RULES, check_catalog

CATALOG_RULES = [rule for rule in RULES.values() if rule.area == "catalog"]


def found(text):
    return {finding.code: finding for finding in check_catalog(json.loads(text))}


@pytest.mark.parametrize("rule", CATALOG_RULES, ids=lambda rule: rule.code)
def test_what_breaks_a_rule_breaks_that_one_alone(rule):
    assert list(found(rule.breaks)) == [rule.code]
    finding = found(rule.breaks)[rule.code]
    assert (finding.severity, finding.run) == (rule.severity, "discovery")


@pytest.mark.parametrize("rule", CATALOG_RULES, ids=lambda rule: rule.code)
def test_what_keeps_a_rule_keeps_all(rule):
    assert found(rule.keeps) == {}


@pytest.mark.parametrize("rule", CATALOG_RULES, ids=lambda rule: rule.code)
def test_a_rule_says_what_is_to_be_said(rule):
    assert rule.code[0] == "C"
    assert rule.severity in ("error", "warning", "info")
    assert rule.title.endswith(".") and rule.name == rule.name.lower()
    for text in (rule.what, rule.why, rule.mend):
        assert text.endswith(".") and "  " not in text and len(text) > 40, text
    assert rule.breaks != rule.keeps


def test_codes_and_names_are_given_once():
    assert (
        len({rule.code for rule in CATALOG_RULES}) == len({rule.name for rule in CATALOG_RULES}) == len(CATALOG_RULES)
    )
    assert [rule.code for rule in CATALOG_RULES] == sorted(rule.code for rule in CATALOG_RULES)
