"""Rules of area P: how a tap behaves as a program."""

from __future__ import annotations

from burler.spec.rule import Rule
from burler.spec.rules_program_discovery import DISCOVERY_RULES
from burler.spec.rules_program_ends import END_RULES
from burler.spec.rules_program_failures import FAILURE_RULES
from burler.spec.rules_program_given import GIVEN_RULES
from burler.spec.rules_program_sigterm import SIGTERM_RULES

PROGRAM_RULES: tuple[Rule, ...] = tuple(
    sorted((*GIVEN_RULES, *FAILURE_RULES, *DISCOVERY_RULES, *END_RULES, *SIGTERM_RULES), key=lambda rule: rule.code)
)
