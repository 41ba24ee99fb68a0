"""A page for each rule of `burler verify`."""

from __future__ import annotations

from burler.spec.explain import rule_page, rules_index
from burler.spec.table import RULES


def pages() -> dict[str, str]:
    """The pages by the names of their files."""
    found = {f"{code.lower()}.md": rule_page(rule) for code, rule in RULES.items()}
    return {**found, "index.md": rules_index(RULES.values())}
