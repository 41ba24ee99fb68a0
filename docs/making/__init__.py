"""Pages that are made from the code each time the docs are built: commands, errors, rules of verify, packages, tables.

They come into docs/reference, which git ignores.
"""

from __future__ import annotations

from pathlib import Path

from making import api, commands, errors, rules, tables


def pages() -> dict[str, str]:
    """All of them: the place below docs/reference -> the text."""
    found = {"errors.md": errors.page()}
    for folder, made in (("api", api), ("cli", commands), ("rules", rules), ("tables", tables)):
        found |= {f"{folder}/{name}": text for name, text in made.pages().items()}
    return found


def write(folder: Path) -> None:
    """Write them below a folder. What is as it was is left alone, what is no page any more goes."""
    made = {folder / place: text for place, text in pages().items()}
    for path in folder.rglob("*.md"):
        if path not in made:
            path.unlink()
    for path, text in made.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
