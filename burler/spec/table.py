"""All rules, by code."""

from __future__ import annotations

from burler.spec.rule import Rule
from burler.spec.rules_bookmarks import BOOKMARK_RULES
from burler.spec.rules_catalog import CATALOG_RULES
from burler.spec.rules_messages import MESSAGE_RULES
from burler.spec.rules_program import PROGRAM_RULES
from burler.spec.rules_requests import REQUEST_RULES
from burler.spec.rules_rows import ROW_RULES

RULES: dict[str, Rule] = {
    rule.code: rule
    for rules in (CATALOG_RULES, MESSAGE_RULES, BOOKMARK_RULES, ROW_RULES, PROGRAM_RULES, REQUEST_RULES)
    for rule in rules
}
"""Every rule there is, in the order of the areas."""
