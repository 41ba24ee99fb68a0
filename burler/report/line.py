"""A line that is drawn on a terminal, of a run or of other work."""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    """A line and how it looks: "" or a style that rich knows."""

    text: str
    style: str = ""
