"""What a verification found, for a person at a terminal."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from burler.report.text import ascii_of, cut_in_two, table
from burler.spec.finding import Finding
from burler.verify.result import RATIO_SECONDS, StreamFacts, Verification
from burler.words import counted

_COLOURS = {"error": "31", "warning": "33", "info": "36"}
_DROPPED = ("requests", "ratio", "rows/s", "order", "rows")
_NEEDLESS = ("requests", "ratio", "order", "bookmark")
_LEAST_WIDTH = 40
_MEASURED_SECONDS = 0.05


def as_text(verification: Verification, *, width: int = 120, colour: bool = False) -> str:
    """Findings by stream, the worst first; the streams of the first run; and what it comes to. In plain ASCII but for
    colours; no line is longer than ``width``."""
    width = max(width, _LEAST_WIDTH)
    lines: list[str] = []
    for stream, found in _by_stream(verification.findings):
        lines.append(_painted(cut_in_two(stream, width), "1", colour))
        for one in found:
            lines += _finding(one, width, colour)
        lines.append("")
    lines += _streams(verification, width)
    lines += _ending(verification, width, colour)
    return "\n".join(lines) + "\n"


def _by_stream(findings: Iterable[Finding]) -> list[tuple[str, list[Finding]]]:
    """Streams with their findings; that with the first one, which is among the worst, first."""
    found: dict[str, list[Finding]] = defaultdict(list)
    for one in findings:
        found[ascii_of(one.stream) if one.stream else "the tap"].append(one)
    return list(found.items())


def _painted(text: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text


def _finding(one: Finding, width: int, colour: bool) -> list[str]:
    path = f" {ascii_of(one.path)}" if one.path else ""
    where = ", ".join(ascii_of(place) for place in one.places)
    run = ascii_of(one.run) if one.run and one.run not in one.places else ""
    behind = "; ".join(part for part in (run, where) if part)
    count = f" (x {one.count:,})" if one.count > 1 else ""
    head = f"  {one.severity:7} {one.code}{path}: "
    text = f"{head}{ascii_of(one.message)}{f' [{behind}]' if behind else ''}{count}"
    wrapped = textwrap.wrap(text, width, subsequent_indent=" " * 15, break_on_hyphens=False) or [text]
    if colour:
        wrapped[0] = wrapped[0].replace(
            f"  {one.severity:7}", f"  {_painted(f'{one.severity:7}', _COLOURS[one.severity], True)}", 1
        )
    return wrapped


def _streams(verification: Verification, width: int) -> list[str]:
    """The streams of the first run, a line each."""
    if not verification.runs or not verification.runs[0].streams:
        return []
    rows = [_row(facts) for facts in verification.runs[0].streams.values()]
    return [*(line.text for line in table(rows, [""] * len(rows), width, _DROPPED, _NEEDLESS)), ""]


def _row(facts: StreamFacts) -> dict[str, str]:
    bookmark: Mapping[str, Any] = facts.bookmark
    ratio = bookmark.get("ratio")
    order = facts.order.get("direction", "")
    flips = facts.order.get("flips", 0)
    begin, end = bookmark.get("from"), bookmark.get("to")
    return {
        "stream": ascii_of(facts.stream),
        "rows": f"{facts.rows:,}",
        "rows/s": f"{facts.rows / facts.seconds:,.0f}" if facts.seconds >= _MEASURED_SECONDS else "-",
        "order": f"none, {counted(flips, 'turn')}" if order == "none" else order,
        "ratio": "-" if facts.seconds < RATIO_SECONDS else _ratio(ratio),
        "requests": f"{sum(one.get('requests', 0) for one in facts.requests.values()):,}" if facts.requests else "-",
        "bookmark": ""
        if end is None and begin is None
        else f"{ascii_of('-' if begin is None else begin)} -> {ascii_of('-' if end is None else end)}",
    }


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:,.0f} s/s" if ratio >= 10 else f"{ratio:.2g} s/s"


def _ending(verification: Verification, width: int, colour: bool) -> list[str]:
    counts = verification.counts
    words = [f"{count:,} info" if word == "info" else counted(count, word) for word, count in counts.items() if count]
    if not words:
        looked = len(verification.checked)
        words = [f"clean: {counted(looked, 'rule')} looked at" if looked else "no rule was looked at"]
    said = ", ".join(words)
    worst = next((word for word in ("error", "warning") if counts[word]), None)
    further = []
    if verification.baselined:
        further.append(f"{verification.baselined:,} known from the baseline")
    if verification.ignored:
        further.append(f"{verification.ignored:,} ignored")
    summary = "; ".join([said, *further])
    painted = _painted(said, _COLOURS[worst] if worst else "32", colour)
    lines = [line.replace(said, painted, 1) for line in textwrap.wrap(summary, width)]
    for reason, codes in _reasons(verification.unchecked):
        shown = ", ".join(codes)
        lines += textwrap.wrap(f"not looked at: {shown}: {ascii_of(reason)}", width, subsequent_indent="  ")
    if verification.findings:
        lines.append(f"What a rule is about: burler verify --explain {verification.findings[0].code}"[:width])
    return lines


def _reasons(unchecked: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = defaultdict(list)
    for code, reason in unchecked.items():
        found[reason].append(code)
    return list(found.items())
