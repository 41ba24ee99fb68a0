"""A finding that several lines show at once."""

from __future__ import annotations

from collections.abc import Sequence

from burler.spec.finding import PLACES, Findings


def say_lines(
    findings: Findings,
    code: str,
    message: str,
    lines: Sequence[int],
    *,
    stream: str | None = None,
    path: str | None = None,
    count: int | None = None,
) -> None:
    """Report something that was found in some lines: the first ones are named, all are counted.

    Args:
        count: how often it was found, where that is more than once a line.
    """
    named = list(dict.fromkeys(lines))[:PLACES]
    more = (len(lines) if count is None else count) - len(named)
    for at, line in enumerate(named):
        findings.add(code, message, stream=stream, path=path, place=f"line {line}", count=1 + more if not at else 1)
