"""The report of a run as one page: no network, no library, readable without its one small script (it sorts tables).

All that comes from outside (names, errors, bookmarks) goes through ``shown``; a policy in the page lets no script run
but its own, should that ever fail. The page of a verification is made of the same parts.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from burler.report.plot import bookmark_plot, rows_plot
from burler.report.text import rows_of
from burler.words import long_time

NAME = 120
"""Characters of a name, a place or a bookmark in a cell."""

_TIME = re.compile(r"(?<=^\d{4}-\d\d-\d\d)T")
_JOINT = re.compile(r"([_.-])(?=\w)")
# Control characters, and those that turn the direction of the text after them.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
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
_FIRST = ("requests", "retries", "queries", "files", "bytes")
"""Counts that come before others, which follow by name."""


def page(report: dict[str, Any]) -> str:
    """A report (``burler.report.report.document``) as HTML."""
    name = one_line(report["tap"] or "a tap")
    status = one_line(report["status"])
    parts = [_run_error(report), _streams(report), _errors(report), _counts(report), _plots(report)]
    body = "".join([_head(report, name, status), *parts])
    return document(f"{name}: {status}", body)


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


def _counts(report: dict[str, Any]) -> str:
    """What was asked of the source: a row a stream and a column a count; nothing where nothing was counted."""
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


# ---- parts of pages ------------------------------------------------------------------------------------


def shown(text: Any, most: int = NAME) -> str:
    """A text for the page: cut, escaped, and what is not printed spelled out."""
    value = str(text)
    value = value if len(value) <= most else value[:most] + " ..."
    value = value.encode("utf-8", "backslashreplace").decode()
    return html.escape(_HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", value))


def one_line(text: Any, most: int = NAME) -> str:
    """As :func:`shown`, without line ends."""
    return shown(text, most).replace("\n", "\\n").replace("\t", "\\t")


def document(title: str, body: str, *, style: str = "", script: str = "") -> str:
    """A page; ``title`` and ``body`` are HTML. Style and script come behind those of all pages."""
    style, script = _file("page.css") + style, _file("page.js") + script
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{title}</title><style>{style}</style></head>\n"
        f"<body><main>\n{body}</main>\n<script>{script}</script></body></html>\n"
    )


def tile(label: str, count: int, *, bad: bool = False) -> str:
    """A number of the summary."""
    return f'<div class="tile{" bad" if bad else ""}"><b>{count:,}</b> {label}</div>'


def table(headers: Iterable[tuple[str, str]], rows: Iterable[str]) -> str:
    """A table that the page's script sorts; headers are (label, "text" or "number")."""
    head = "".join(f'<th class="{kind}" data-kind="{kind}">{label}</th>' for label, kind in headers)
    body = "\n".join(rows)
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>\n"


def cell(content: str, kind: str, value: float | None = None) -> str:
    """A cell; ``value`` is what it is sorted by, if that is a number."""
    data = "" if value is None else f' data-value="{value}"'
    return f'<td class="{kind}"{data}>{content}</td>'


def bookmark_cell(value: Any) -> str:
    """A bookmark in a cell; a date-time goes to two lines where there is no room for it."""
    text = "" if value is None else one_line(value).replace(".000000Z", "Z")
    return cell(_TIME.sub("<wbr>T", text), "mono" if len(text) < 36 else "text mono")


def name_text(name: str) -> str:
    """A name on one line, which may end where its words do."""
    return _JOINT.sub(r"\1<wbr>", one_line(name))


def place_cell(place: str | None) -> str:
    """File and line of code; the last part stays whole."""
    before, slash, last = one_line(place or "").rpartition("/")
    return cell(f'{before}{slash}<span class="short">{last}</span>', "text mono")


def figure(caption: str, svg: str) -> str:
    """A plot with what it shows; nothing without one."""
    return f"<figure><figcaption>{caption}</figcaption>{svg}</figure>" if svg else ""


def _file(name: str) -> str:
    return files("burler.report").joinpath(name).read_text(encoding="utf-8")
