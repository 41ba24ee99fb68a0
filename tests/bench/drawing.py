"""Bars of rows per second as an SVG whose colours can be read on white and on black."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from cases import RateRow
    from results import Results

WIDTH, LABEL, BAR, GAP, HEAD = 760, 200, 16, 6, 26
TEXT, OWN, FLOOR, PEER = "#7a7a7a", "#d9730d", "#8f8f8f", "#4a86c5"  # each at least 3:1 on white and on black


def svg(results: Results, rows: list[RateRow]) -> str:
    """One group of bars for each row of the table that was measured, all to one scale."""
    shown = [(row, bars) for row in rows if (bars := _bars(results, row))]
    most = max((rate for _row, bars in shown for _name, rate, _colour in bars), default=1.0)
    parts: list[str] = []
    y = 4
    for row, bars in shown:
        y += HEAD
        parts.append(_text(0, y - 8, row.title.replace("`", ""), weight="bold"))
        for name, rate, colour in bars:
            length = max(1.0, rate / most * (WIDTH - LABEL - 90))
            parts.append(_text(LABEL - 8, y + BAR - 4, name, anchor="end"))
            parts.append(f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>')
            parts.append(_text(LABEL + length + 6, y + BAR - 4, f"{rate:,.0f}"))
            y += BAR + GAP
    height = y + 8
    begin = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'role="img" font-family="sans-serif" font-size="12">'
    )
    title = "<title>Rows per second of CPU: burler, the floor and other programs</title>"
    return "\n".join([begin, title, *parts, "</svg>"]) + "\n"


def _bars(results: Results, row: RateRow) -> list[tuple[str, float, str]]:
    wanted = [("burler", row.case, OWN), ("floor", row.floor, FLOOR)]
    wanted += [(peer.program.name, peer, PEER) for peer in row.peers]
    found = [(name, results.rates[case].rate, colour) for name, case, colour in wanted if case in results.rates]
    return found if row.case in results.rates else []


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{TEXT}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(text)}</text>"
    )
