"""A page for each rule of `burler verify`, and one that lists them."""

from __future__ import annotations

from burler.spec.explain import EXAMPLES, PARTS
from burler.spec.rule import AREAS, Rule
from burler.spec.table import RULES


def pages() -> dict[str, str]:
    """The pages by the names of their files."""
    return {**{f"{code.lower()}.md": _page(rule) for code, rule in RULES.items()}, "index.md": _index()}


def _page(rule: Rule) -> str:
    language = {"C": "json", "P": "python", "H": "python"}.get(rule.code[0], "text")
    if rule.code[0] not in "CPH" and not rule.breaks.lstrip().startswith(("{", "#")):
        language = "python"
    parts = [f"# {rule.code}: {rule.name}", f"{rule.title} Severity: **{rule.severity}**. Area: {rule.area}."]
    for name, heading in PARTS:
        parts += [f"## {heading}", " ".join(getattr(rule, name).split())]
    for name, heading in EXAMPLES:
        example = getattr(rule, name).strip("\n")
        parts += [f"## {heading}", f"```{language}\n{example}\n```"]
    return "\n\n".join(parts) + "\n"


def _index() -> str:
    parts = [
        "# Rules of verify",
        "What `burler verify` looks at: see [Verifying a tap](../../verify.md). On a terminal: `burler verify "
        "--rules`, and `burler verify --explain CODE`.",
    ]
    for letter, area in AREAS.items():
        rows = [
            f"| [{code}]({code.lower()}.md) | {rule.name} | {rule.severity} | {_in_cell(rule.title)} |"
            for code, rule in RULES.items()
            if code[0] == letter
        ]
        head = ["| code | name | severity | what is wrong |", "|---|---|---|---|"]
        parts += [f"## {letter}: {area}", "\n".join([*head, *rows])]
    parts.append("```{toctree}\n:hidden:\n\n" + "\n".join(code.lower() for code in RULES) + "\n```")
    return "\n\n".join(parts) + "\n"


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|")
