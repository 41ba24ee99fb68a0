"""Rules of area M: messages, one after the other."""

from __future__ import annotations

from burler.spec.rule import Rule
from burler.spec.rules_messages_form import FORM_RULES
from burler.spec.rules_messages_rows import RECORD_RULES
from burler.spec.rules_messages_streams import STREAM_RULES

MESSAGE_RULES: tuple[Rule, ...] = tuple(sorted((*FORM_RULES, *RECORD_RULES, *STREAM_RULES), key=lambda rule: rule.code))
