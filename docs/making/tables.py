"""Tables that pages written by hand include: settings, and what is measured."""

from __future__ import annotations

from burler import measures, settings
from burler.cli import exposing


def pages() -> dict[str, str]:
    """The tables by the names of their files."""
    return {
        "counts.md": measures.counts_table(),
        "metric-lines.md": measures.lines_table(),
        "prometheus.md": exposing.markdown_table(),
        "settings.md": settings.markdown_table(),
    }
