"""What a rule says, for a terminal and as a page of the docs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from burler.spec.rule import AREAS, Rule

_WIDTH = 100
_PARTS = (("what", "What is looked at"), ("why", "Why it hurts"), ("mend", "How to mend it"))


def explain(rule: Rule) -> str:
    """A rule as text for a terminal."""
    lines = [f"{rule.code} {rule.name} ({rule.severity}, {rule.area})", "", rule.title]
    for name, heading in _PARTS:
        lines += ["", f"{heading}:", *_wrapped(getattr(rule, name))]
    for name, heading in (("breaks", "An example that breaks it"), ("keeps", "The same, mended")):
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


def rule_page(rule: Rule) -> str:
    """A rule as a page of the docs."""
    language = {"C": "json", "P": "python", "H": "python"}.get(rule.code[0], "text")
    if rule.code[0] not in "CPH" and not rule.breaks.lstrip().startswith(("{", "#")):
        language = "python"
    parts = [f"# {rule.code}: {rule.name}", f"{rule.title} Severity: **{rule.severity}**. Area: {rule.area}."]
    for name, heading in _PARTS:
        parts += [f"## {heading}", " ".join(getattr(rule, name).split())]
    for name, heading in (("breaks", "An example that breaks it"), ("keeps", "The same, mended")):
        parts += [f"## {heading}", f"```{language}\n{getattr(rule, name).strip(chr(10))}\n```"]
    return "\n\n".join(parts) + "\n"


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|")


def rules_index(rules: Iterable[Rule]) -> str:
    """The page that lists all rules."""
    rules = list(rules)
    parts = [
        "# Rules of verify",
        "What `burler verify` looks at: see [Verifying a tap](../verify.md). This page and those of the rules are made "
        "from `burler.spec.RULES` by `python docs/make_pages.py`; the examples are run by tests.",
    ]
    for letter, area in AREAS.items():
        own = [rule for rule in rules if rule.code[0] == letter]
        rows = [
            f"| [{rule.code}]({rule.code.lower()}.md) | {rule.name} | {rule.severity} | {_in_cell(rule.title)} |"
            for rule in own
        ]
        parts += [
            f"## {letter}: {area}",
            "\n".join(["| code | name | severity | what is wrong |", "|---|---|---|---|", *rows]),
        ]
    pages = "\n".join(rule.code.lower() for rule in rules)
    parts.append("```{toctree}\n:hidden:\n\n" + pages + "\n```")
    return "\n\n".join(parts) + "\n"
