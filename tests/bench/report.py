"""The results as Markdown: for the terminal and, between two markers, for docs/performance.md."""

from __future__ import annotations

import os
import platform
import statistics
from pathlib import Path
from typing import TYPE_CHECKING

from results import MB

if TYPE_CHECKING:
    from cases import Case, MemoryRow, RateRow, StartRow
    from measure import Bench
    from results import Results

BEGIN, END = "<!-- written by tests/bench/run.py: begin -->", "<!-- written by tests/bench/run.py: end -->"


def markdown(
    results: Results,
    bench: Bench,
    *,
    rates: list[RateRow],
    more: list[str],
    memory: list[MemoryRow],
    starts: list[StartRow],
    said: str,
) -> str:
    """All tables that have rows, with the machine, the versions, and what was left out.

    Args:
        more: tables that are made elsewhere; they stand behind the rates.
    """
    parts = [f"{machine()}. {said}"]
    if bench.versions:
        parts.append("Versions: " + ", ".join(f"{name} {number}" for name, number in sorted(bench.versions.items())))
    if rates:
        parts += [_rates(results, rates), _figures(results)]
    parts += more
    if memory:
        parts.append(_memory(results, memory))
    if starts:
        parts.append(_starts(results, starts))
    compared = sum(results.checked.values())
    parts.append(
        f"Compared with the reference before timing: {compared:,} records of {len(results.checked)} kinds of output."
    )
    told = [*results.notes, *(f"**error**: {name}: {text}" for name, text in results.problems.items())]
    if told:
        parts.append("\n".join(f"- {text}" for text in told))
    return "\n\n".join(parts) + "\n"


def machine() -> str:
    """The machine in a few words."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        named = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = named[0] if named else model
    return f"{os.cpu_count()} cores ({model}), {platform.system()}, {platform.python_implementation()} " + (
        platform.python_version()
    )


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def times(value: float) -> str:
    """A ratio as people read it."""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _rates(results: Results, rows: list[RateRow]) -> str:
    made = []
    for row in rows:
        own, floor = results.rates.get(row.case), results.rates.get(row.floor)
        to_floor = results.ratio(row.case, row.floor)
        peers = [(peer, results.ratio(row.case, peer)) for peer in row.peers]
        bars = []
        for bar in row.bars:
            ratio = results.ratio(row.case, bar.against)
            bars.append(f"{bar.said}: {times(ratio) if ratio is not None else 'not measured'}")
        made.append(
            [
                row.title,
                f"{own.rate:,.0f}" if own else "-",
                f"{floor.rate:,.0f}" if floor else "-",
                times(to_floor) if to_floor is not None else "-",
                "; ".join(f"{peer.program.name} {times(ratio)}" for peer, ratio in peers if ratio is not None) or "-",
                "; ".join(bars),
                results.rate_verdict(row),
            ]
        )
    head = ["work", "burler, rows/s of CPU", "floor", "x floor", "times as fast as", "must reach: reached", ""]
    return table(head, made)


COMPARED = {
    "burler: pages": "burler, checked against the schema, as RECORD lines",
    "singer-sdk: rows": "Singer SDK",
    "singer-sdk, msgspec writer: rows": "Singer SDK, its optional msgspec writer",
    "dlt: pages": "dlt, JSON lines in files",
    "airbyte-cdk, no shaping: rows": "Airbyte CDK, rows as they are",
    "airbyte-cdk, shaping: rows": "Airbyte CDK, with its type transformer",
}
"""What docs/comparison.md calls the cases that it shows."""


def comparison(results: Results) -> str | None:
    """The table of docs/comparison.md: rates with three digits; None where one of its cases was not measured."""
    found = {case.label: summary for case, summary in results.rates.items()}
    if not COMPARED.keys() <= found.keys():
        return None
    ours = found["burler: pages"].rate
    rows = []
    for label, title in COMPARED.items():
        rate, peak = found[label].rate, found[label].peak
        ratio = ours / rate
        said = "" if rate == ours else f"{ratio:.0f} times" if ratio >= 10 else f"{ratio:.1f} times"
        rows.append([title, f"{float(f'{rate:.3g}'):,.0f}", said, f"{peak / MB:.0f} MB"])
    return table(["", "rows/s", "burler is so many times as fast", "peak memory"], rows)


def _figures(results: Results) -> str:
    made = []
    for case, summary in results.rates.items():
        least, most = summary.spread
        made.append(
            [
                case.label,
                f"{summary.rows:,}",
                f"{summary.rate:,.0f}",
                f"{summary.cpu:.3f} ({least:.3f} to {most:.3f})",
                f"{summary.wall:.3f}",
                f"{summary.peak / MB:.0f}",
            ]
        )
    head = ["measured", "rows", "rows/s of CPU", "CPU s, median (least to greatest)", "wall s", "peak MB"]
    return table(head, made)


def _memory(results: Results, rows: list[MemoryRow]) -> str:
    made = []
    for row in rows:
        peaks = results.peaks(row)
        peers = [_peer_memory(results, row, case) for case, _many in row.peers]
        made.append(
            [
                row.title,
                f"{results.few(row):,}: {peaks[0]:.1f} MB" if peaks else "-",
                f"{results.many(row):,}: {peaks[1]:.1f} MB" if peaks else "-",
                "flat" + (f", {row.most:.0f} MB" if row.most is not None else ""),
                results.memory_verdict(row),
                "; ".join(filter(None, peers)) or "-",
            ]
        )
    head = ["peak memory of the process", "few rows", "many rows", "at most", "", "peers (rows: MB)"]
    return table(head, made)


def _peer_memory(results: Results, row: MemoryRow, case: Case) -> str:
    found = [
        f"{rows:,}: {summary.peak / MB:.0f}"
        for (one, rows), summary in results.memory.items()
        if one == case and row.case != case
    ]
    return f"{case.program.name} {', '.join(found)}" if found else ""


def _starts(results: Results, rows: list[StartRow]) -> str:
    made = []
    for row in rows:
        value = results.start_value(row)
        unit = "x" if row.over is not None else "s"
        shown = "; ".join(
            f"{name} {statistics.median(results.starts[name]):.3f} s" for name in row.commands if name in results.starts
        )
        made.append(
            [
                row.title,
                f"{value:.3f} {unit}" if value is not None else "-",
                f"{row.most:.2f} {unit}",
                results.start_verdict(row),
                shown,
            ]
        )
    return table(["start-up, wall", "burler", "at most", "", "medians"], made)


def into_docs(page: Path, text: str) -> None:
    """Put the text between the page's markers.

    Raises:
        ValueError: the page has no such markers.
    """
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page.name} has no lines {BEGIN!r} and {END!r} to write between")
    page.write_text(f"{before}{BEGIN}\n\n{text.strip()}\n\n{END}{after}", encoding="utf-8")
