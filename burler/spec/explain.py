"""What a rule says, for a terminal; the docs make their pages of the same parts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from burler.spec.rule import Rule

_WIDTH = 100
PARTS = (("what", "What is looked at"), ("why", "Why it hurts"), ("mend", "How to mend it"))
EXAMPLES = (("breaks", "An example that breaks it"), ("keeps", "The same, mended"))
"""Attributes of a rule, with what stands over their texts."""


def explain(rule: Rule) -> str:
    """A rule as text for a terminal."""
    lines = [f"{rule.code} {rule.name} ({rule.severity}, {rule.area})", "", rule.title]
    for name, heading in PARTS:
        lines += ["", f"{heading}:", *_wrapped(getattr(rule, name))]
    for name, heading in EXAMPLES:
        lines += ["", f"{heading}:", "", textwrap.indent(getattr(rule, name).strip("\n"), "    ")]
    return "\n".join(lines)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), _WIDTH, initial_indent="  ", subsequent_indent="  ")


def rules_text(rules: Iterable[Rule]) -> str:
    """All rules, a line each, by area."""
    lines: list[str] = []
    area = ""
    for rule in rules:
        if rule.area != area:
            area = rule.area
            lines += [*([""] if lines else []), f"{rule.code[0]}: {area}"]
        lines.append(f"  {rule.code} {rule.severity:8}{rule.name}: {rule.title}")
    return "\n".join([*lines, "", "More of one: burler verify --explain CODE"])
