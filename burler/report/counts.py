"""The part of a report's page on what was asked of the source: requests, retries by reason, bytes, files, queries."""

from __future__ import annotations

from typing import Any

from burler.report.parts import cell, one_line, table

_FIRST = ("requests", "retries", "queries", "files", "bytes")
"""Counts that come before others, which follow by name."""


def counts_part(report: dict[str, Any]) -> str:
    """A table with a row a stream and a column a count; nothing where nothing was counted.

    Args:
        report: as ``Report.to_json`` gives it; ``counts`` of a stream hold numbers, or a number for each reason.
    """
    streams = [one for one in report["streams"] if one["counts"]]
    names = {name for one in streams for name in one["counts"]}
    if not names:
        return ""
    columns = [name for name in _FIRST if name in names] + sorted(names - set(_FIRST))
    most = {name: max(_sum(one["counts"].get(name, 0)) for one in streams) for name in columns}
    rows = [
        "<tr>"
        + cell(one_line(one["stream"]), "text")
        + "".join(_count(one["counts"].get(name), most[name]) for name in columns)
        + "</tr>"
        for one in streams
    ]
    headers = [("stream", "text"), *((one_line(name.replace("_", " ")), "number") for name in columns)]
    return f"<h2>Asked of the source</h2>\n{table(headers, rows)}"


def _sum(count: int | dict[str, int]) -> int:
    return sum(count.values()) if isinstance(count, dict) else count


def _count(count: int | dict[str, int] | None, most: int) -> str:
    """A number with its reasons below it, and a bar as long as its part of the greatest in the column."""
    if count is None:
        return cell("", "number")
    total = _sum(count)
    reasons = (
        ", ".join(f"{one_line(why)}: {times:,}" for why, times in count.items()) if isinstance(count, dict) else ""
    )
    width = round(100 * total / most) if most else 0
    bar = (
        '<svg class="bar" role="presentation" viewBox="0 0 100 4"><path class="rail" d="M0 0H100V4H0Z"></path>'
        f'<path class="fill" d="M0 0H{width}V4H0Z"></path></svg>'
    )
    return cell(f"{total:,}{bar}{f'<small>{reasons}</small>' if reasons else ''}", "number", total)
