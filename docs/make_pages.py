"""Writes the pages that are made from the code: `python docs/make_pages.py`. A test says which are not current."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))  # for those who load this file from elsewhere

from making import api, blocks, commands, errors, rules  # noqa: E402

FOLDERS = {"api": api.pages, "cli": commands.pages, "errors": errors.pages, "rules": rules.pages}
"""Folder of the docs -> what gives its pages, by the names of their files."""


def main() -> None:
    """Write them, and the tables on other pages; pages of what is gone go."""
    for folder, pages in FOLDERS.items():
        place = DOCS / folder
        place.mkdir(exist_ok=True)
        made = pages()
        for path in place.glob("*.md"):
            if path.name not in made:
                path.unlink()
        for name, text in made.items():
            (place / name).write_text(text, encoding="utf-8")
    for name, text in blocks.pages(DOCS).items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
