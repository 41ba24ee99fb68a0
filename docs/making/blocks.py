"""Tables on pages that are written by hand, each between two marks: settings, and what is measured."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from burler import measures, settings
from burler.cli import exposing

BLOCKS: dict[str, dict[str, Callable[[], str]]] = {
    "metrics.md": {"lines": measures.lines_table, "counts": measures.counts_table},
    "reports.md": {"prometheus": exposing.markdown_table},
    "running.md": {"settings": settings.markdown_table},
}
"""Page -> the name of a block in its first mark -> what gives the block's text."""


def pages(docs: Path) -> dict[str, str]:
    """The pages as they should be, by the names of their files.

    Raises:
        ValueError: a page lacks the marks of a block.
    """
    found = {}
    for page, blocks in BLOCKS.items():
        text = (docs / page).read_text(encoding="utf-8")
        for name, make in blocks.items():
            between = rf"(?<=<!-- made from the code: {name} -->\n\n).*?(?=\n<!-- end: {name} -->)"
            parts = re.split(between, text, flags=re.DOTALL)
            if len(parts) != 2:
                raise ValueError(f"{page}: '<!-- made from the code: {name} -->' and its end must stand there once")
            text = make().join(parts)
        found[page] = text
    return found
