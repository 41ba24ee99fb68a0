"""The figures of a tail storm, as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tail_storm_kill import Killed
from tail_storm_run import Told


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Columns, those of numbers to the right."""
    lines = [list(map(str, head)), *([_said(cell) for cell in row] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    made = []
    for line in lines:
        first, *others = zip(line, widths, strict=True)
        made.append("  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]).rstrip())
    made.insert(1, "-" * max(map(len, made)))
    return "\n".join(made)


def _said(cell: Any) -> str:
    return f"{cell:.2f}" if isinstance(cell, float) else str(cell)


def stopped(found: list[Told]) -> str:
    """For each mode, and for each kind of reader and signal: how many runs, how they ended, the worst times."""
    head = (
        "",
        "runs",
        "in code",
        "clean",
        "143/130",
        "torn",
        "failed",
        "rows",
        "again",
        "worst s",
        "own s",
        "kB after",
    )
    groups: dict[str, list[Told]] = {}
    for told in found:
        made = told.plan
        groups.setdefault(f"1 {made.mode}", []).append(told)
        groups.setdefault(f"2 {made.reader} reader, {made.signal}", []).append(told)
        groups.setdefault(f"3 rows of {made.size} B", []).append(told)
        groups.setdefault(f"4 {'PYTHONUNBUFFERED=1' if made.unbuffered else 'buffered'}", []).append(told)
    groups["5 all"] = found
    rows = []
    for name, some in sorted(groups.items()):
        good = [told for told in some if not told.failure]
        rows.append(
            (
                name[2:],
                len(some),
                sum(told.inside for told in some),
                sum(told.ended == "clean" for told in good),
                sum(told.ended.startswith("killed") for told in good),
                sum(told.torn for told in good),
                len(some) - len(good),
                sum(told.rows for told in good),
                sum(told.twice for told in good),
                max((told.seconds for told in good), default=0.0),
                max((told.own for told in good if told.ended == "clean"), default=0.0),
                max((told.behind // 1000 for told in good), default=0),
            )
        )
    return table(head, rows)


def killed(found: list[Killed]) -> str:
    """For each mode: how many stories and kills, how many lines were torn by them, how many rows came twice."""
    head = ("", "stories", "kills", "in code", "torn end", "reader cut", "failed", "STATEs", "rows", "again")
    groups: dict[str, list[Killed]] = {}
    for told in found:
        groups.setdefault(told.plan.mode, []).append(told)
    rows = []
    for name, some in [*sorted(groups.items()), ("all", found)]:
        counts = [sum(getattr(told, what) for told in some) for what in ("kills", "inside", "torn", "cut")]
        failed = sum(bool(told.failure) for told in some)
        came = [sum(getattr(told, what) for told in some) for what in ("states", "rows", "twice")]
        rows.append((name, len(some), *counts, failed, *came))
    return table(head, rows)
