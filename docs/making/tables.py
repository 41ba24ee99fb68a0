"""Tables that pages written by hand include: settings, options of streams, and what is measured."""

from __future__ import annotations

import re

from burler import measures, settings
from burler.cli import exposing
from burler.declare.options import OPTIONS, StreamOptions


def pages() -> dict[str, str]:
    """The tables by the names of their files."""
    return {
        "counts.md": measures.counts_table(),
        "metric-lines.md": measures.lines_table(),
        "prometheus.md": exposing.markdown_table(),
        "options.md": _options(),
        "settings.md": settings.markdown_table(),
    }


def _options() -> str:
    """The options of a stream: what each takes, and its words for editors."""
    said = re.findall(r"^ {8}(\w+): (.*(?:\n {9,}.*)*)", StreamOptions.__doc__ or "", re.MULTILINE)
    rows = ["| option | takes | says |", "|---|---|---|"]
    for name, words in said:
        option = OPTIONS[name]
        takes = ", ".join(f"`{word}`" for word in option.words) or option.takes
        rows.append(f"| `{name}` | {takes} | {' '.join(words.split()).replace('``', '`')} |")
    return "\n".join(rows) + "\n"
