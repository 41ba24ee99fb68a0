"""Writes a page for each rule of `burler verify`: `python docs/make_rules.py`. A test says if they are not current."""

from __future__ import annotations

from pathlib import Path

from burler.spec.explain import rule_page, rules_index
from burler.spec.table import RULES

FOLDER = Path(__file__).parent / "rules"


def pages() -> dict[str, str]:
    """The pages by the names of their files."""
    found = {f"{code.lower()}.md": rule_page(rule) for code, rule in RULES.items()}
    return {**found, "index.md": rules_index(RULES.values())}


def main() -> None:
    """Write them; pages of rules that are gone go."""
    FOLDER.mkdir(exist_ok=True)
    made = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
