"""Rules of area B: bookmarks and state."""

from __future__ import annotations

from burler.spec.rule import Rule
from burler.spec.rules_bookmarks_moving import MOVING_RULES
from burler.spec.rules_bookmarks_resuming import RESUMING_RULES
from burler.spec.rules_bookmarks_state import STATE_RULES
from burler.spec.rules_bookmarks_values import VALUE_RULES

BOOKMARK_RULES: tuple[Rule, ...] = tuple(
    sorted((*MOVING_RULES, *RESUMING_RULES, *STATE_RULES, *VALUE_RULES), key=lambda rule: rule.code)
)
