"""The tables of ``growth`` as Markdown."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import growth
from report import table, times
from results import MB

if TYPE_CHECKING:
    from growth import GrowthRow, WorkersRow
    from measure import Summary
    from results import Results


def growth_tables(results: Results, rows: list[GrowthRow]) -> list[str]:
    """What a row costs with few things and with many, and what was measured for that."""
    made = []
    for row in rows:
        few, many = row.counts(row.case, results.scale)
        found = [growth.summary(results, row.case, things) for things in (few, many)]
        costs = [growth.microseconds(results, row, row.case, things) for things in (few, many)]
        ratio = growth.grown(results, row, row.case)
        shares = [growth.state_share(one.states) if one is not None and one.states else None for one in found]
        made.append(
            [
                row.title,
                f"{few:,} and {many:,} {row.thing}",
                _both(costs, ".2f"),
                times(ratio) if ratio is not None else "-",
                _both(shares, ".2f"),
                _both([one.peak / MB if one is not None else None for one in found], ".1f"),
                _peers(results, row),
                growth.growth_verdict(results, row),
            ]
        )
    head = [
        "much of something: few and many",
        "of them",
        "CPU µs a row",
        f"grows, at most {growth.FLAT}",
        "STATE bytes for each other byte, at most 1",
        "peak MB",
        "times as fast as, with so many",
        "",
    ]
    return [table(head, made), _figures(results, rows)]


def _peers(results: Results, row: GrowthRow) -> str:
    """Rows/s of CPU over those of each peer, where both have the same number of things."""
    found = []
    for case, _counts in row.peers:
        for things in row.counts(case, results.scale):
            own, peer = growth.summary(results, row.case, things), growth.summary(results, case, things)
            if own is not None and peer is not None:
                found.append(f"{case.program.name} {times(own.rate / peer.rate)} ({things:,})")
    return "; ".join(found) or "-"


def _both(values: list[float | None], form: str) -> str:
    return "; ".join("-" if value is None else format(value, form) for value in values)


def _figures(results: Results, rows: list[GrowthRow]) -> str:
    made = []
    for row in rows:
        for case in row.cases:
            for things in row.counts(case, results.scale):
                one = growth.summary(results, case, things)
                if one is not None:
                    made.append(_figures_of(results, row, one, things))
    head = [
        "measured",
        "of them",
        "rows",
        "rows/s of CPU",
        "CPU s, median (least to greatest)",
        "wall s",
        "STATE lines",
        "STATE MB (other MB)",
        "bytes of the last STATE, for each",
        "peak MB",
    ]
    return table(head, made)


def _figures_of(results: Results, row: GrowthRow, one: Summary, things: int) -> list[str]:
    least, most = one.spread
    states = one.states
    return [
        one.case.label,
        f"{things:,} {row.thing}",
        f"{one.rows:,}",
        f"{one.rate:,.0f}",
        f"{one.cpu:.3f} ({least:.3f} to {most:.3f})",
        f"{one.wall:.2f}",
        f"{states.states:,}" if states else "-",
        f"{states.state_bytes / MB:.2f} ({states.other_bytes / MB:.2f})" if states else "-",
        f"{states.last_bytes / things:.1f}" if states else "-",
        f"{one.peak / MB:.0f}",
    ]


def workers_table(results: Results, row: WorkersRow) -> str:
    """Wall seconds with more and more workers."""
    bare, made = dict(row.bare), []
    for number, case in row.cases:
        found, beside = results.workers.get(case), results.workers.get(bare[number]) if number in bare else None
        ratio = growth.speed_up(results, row.cases, number)
        made.append(
            [
                str(number),
                _seconds(found),
                times(ratio * number) if ratio is not None else "-",
                times(ratio) if ratio is not None else "-",
                f"{statistics.median(run.cpu for run in found.runs):.2f}" if found else "-",
                _seconds(beside),
            ]
        )
    count = row.scaled_rows(results.scale)
    head = [
        f"workers: {count // 100} replies of 100 rows, {growth.REPLY_SECONDS * 1000:.0f} ms each",
        "wall s of the whole process (least to greatest)",
        "times as fast as one",
        f"for each worker, at least {growth.WORKERS_LEAST}: {growth.workers_verdict(results, row)}",
        "CPU s",
        "bare threads, wall s",
    ]
    return table(head, made)


def _seconds(one: Summary | None) -> str:
    if one is None:
        return "-"
    whole = [run.whole for run in one.runs]
    return f"{one.whole:.2f} ({min(whole):.2f} to {max(whole):.2f})"
