"""The report of a run as one page: no network, no library, readable without its one small script (it sorts tables)."""

from __future__ import annotations

from typing import Any

from burler.report.counts import counts_part
from burler.report.parts import (
    bookmark_cell,
    cell,
    document,
    figure,
    name_text,
    one_line,
    place_cell,
    shown,
    table,
    tile,
)
from burler.report.plot import bookmark_plot, rows_plot
from burler.report.style import SCRIPT, STYLE
from burler.report.text import rows_of
from burler.words import long_time

_OPEN = 12  # so many streams' plots are unfolded from the start
_MESSAGE = 2000
_ERRORS_OPEN = 8  # more of them are folded, so that what follows is in sight
_HEADERS = (
    ("stream", "text"),
    ("method", "text"),
    ("status", "text"),
    ("rows", "number"),
    ("updated", "number"),
    ("skipped", "number"),
    ("seconds", "number"),
    ("rows/s", "number"),
    ("errors", "number"),
    ("bookmark from", "text"),
    ("bookmark to", "text"),
)


def page(report: dict[str, Any]) -> str:
    """A report (``Report.to_json``) as HTML."""
    name = one_line(report["tap"] or "a tap")
    status = one_line(report["status"])
    parts = [_run_error(report), _streams(report), _errors(report), counts_part(report), _plots(report)]
    body = "".join([_head(report, name, status), *parts])
    return document(f"{name}: {status}", body, style=STYLE, script=SCRIPT)


def _head(report: dict[str, Any], name: str, status: str) -> str:
    totals = report["totals"]
    code = report["exit_code"]
    facts = [
        f"started <time>{shown(report['started'][:19])}Z</time>",
        f"ended <time>{shown(report['ended'][:19])}Z</time>" if report["ended"] else "not ended",
        f"took {long_time(report['seconds'])}",
        f"exit code {'?' if code is None else code}",
        f"burler {shown(report['burler_version'])}",
    ]
    if report["limit"]:
        facts.append(f"<strong>limited to {report['limit']} rows of each stream</strong>")
    if report["schemas_only"]:
        facts.append("<strong>SCHEMA messages only</strong>")
    tiles = [
        ("streams", totals["streams"]),
        ("failed", totals["streams_failed"]),
        ("rows", totals["rows"]),
        ("updated", totals["updated"]),
        ("skipped", totals["skipped"]),
        ("errors", totals["errors"]),
        ("rows/s", round(totals["rows_per_second"] or 0)),
    ]
    bad = {"failed", "errors"}
    cells = "".join(tile(label, count, bad=label in bad and count > 0) for label, count in tiles)
    return (
        f'<header><h1>{name} <span class="badge {_class(report["status"])}">{status}</span></h1>'
        f"<p>{' · '.join(facts)}</p></header>\n<div class='tiles'>{cells}</div>\n"
    )


def _class(status: str) -> str:
    return {"succeeded": "good", "failed": "bad"}.get(status, "other")


def _run_error(report: dict[str, Any]) -> str:
    error = report["error"]
    if error is None:
        return ""
    place = f" <span class='place'>{one_line(error['place'])}</span>" if error["place"] else ""
    return f"<section class='fatal'><b>{one_line(error['type'])}</b>{place}<pre>{_message(error)}</pre></section>\n"


def _message(error: dict[str, Any]) -> str:
    return shown(error["message"], _MESSAGE)


def _streams(report: dict[str, Any]) -> str:
    plotted = {i for i, _ in _plotted(report)}
    rows = [_stream(i, one, i in plotted) for i, one in enumerate(report["streams"])]
    if not rows:
        return "<h2>Streams</h2>\n<p class='none'>No stream has begun.</p>\n"
    return f"<h2>Streams</h2>\n{table(_HEADERS, rows)}"


def _stream(number: int, one: dict[str, Any], plotted: bool) -> str:
    failed = one["error_count"] > 0 or one["status"] == "failed"
    name = name_text(one["stream"])
    seconds, rate = one["seconds"], one["rows_per_second"]
    cells = [
        cell(f'<a href="#s{number}">{name}</a>' if plotted else name, "text"),
        cell(one_line(one["replication_method"] or ""), "short"),
        cell(f'<span class="badge {_class(one["status"])}">{one_line(one["status"])}</span>', "short"),
        cell(rows_of([one]), "number", one["rows"]),
        cell("" if one["updated"] is None else f"{one['updated']:,}", "number", one["updated"]),
        cell(f"{one['skipped']:,}", "number", one["skipped"]),
        cell(f"{seconds:,.1f}", "number", seconds),
        cell("" if rate is None else f"{rate:,.0f}", "number", rate),
        cell(f"{one['error_count']:,}", "number", one["error_count"]),
        *map(bookmark_cell, (one["bookmark_from"], one["bookmark_to"])),
    ]
    return f"<tr{' class=failed' if failed else ''}>{''.join(cells)}</tr>"


def _errors(report: dict[str, Any]) -> str:
    rows = [
        "<tr>"
        + cell(name_text(one["stream"]), "text")
        + cell(one_line(error["where"] or "", 300), "text mono")
        + cell(one_line(error["type"]), "short")
        + cell(_message(error), "text pre")
        + place_cell(error["place"])
        + "</tr>"
        for one in report["streams"]
        for error in one["errors"]
    ]
    left = sum(one["error_count"] for one in report["streams"]) - len(rows)
    if not rows:
        return ""
    headers = (("stream", "text"), ("where", "text"), ("type", "text"), ("message", "text"), ("place", "text"))
    more = f"<p class='none'>... and {left:,} more.</p>\n" if left else ""
    first, rest = rows[:_ERRORS_OPEN], rows[_ERRORS_OPEN:]
    folded = f"<details><summary>{len(rest):,} more</summary>{table(headers, rest)}{more}</details>\n" if rest else more
    return f"<h2>Errors</h2>\n{table(headers, first)}{folded}"


def _plotted(report: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """The streams with something to plot, by their place in the table. Streams and series stand in the same order; a
    stream that never began has no series."""
    series = iter(report.get("series", ()))
    found: list[tuple[int, dict[str, Any]]] = []
    one = next(series, None)
    for i, stream in enumerate(report["streams"]):
        if one is not None and one["stream"] == stream["stream"]:
            if len(one["rows"]) > 1 and max(one["rows"]):
                found.append((i, one))
            one = next(series, None)
    return found


def _plots(report: dict[str, Any]) -> str:
    plotted = _plotted(report)
    if not plotted:
        return ""
    unfolded = " open" if len(plotted) <= _OPEN else ""
    parts = []
    for i, one in plotted:
        rows = figure("rows", rows_plot(one["seconds"], one["rows"]))
        bookmark = figure("bookmark", bookmark_plot(one["seconds"], one["bookmark"]))
        began = f"<small>began {long_time(one['seconds'][0])} into the run</small>"
        parts.append(
            f'<details id="s{i}"{unfolded}><summary>{one_line(one["stream"])} {began}</summary>'
            f"<div class='plots'>{rows}{bookmark}</div></details>"
        )
    return "<h2>Over time</h2>\n" + "\n".join(parts) + "\n"
