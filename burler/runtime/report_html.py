"""The report of a run as one page: no network, no library, readable without its one small script, which sorts tables.

All that comes from outside (names, errors, bookmarks) goes through ``shown``; a policy in the page lets no script run
but its own, should that ever fail.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from typing import Any

from burler.runtime.report_plot import bookmark_plot, rows_plot
from burler.runtime.report_style import SCRIPT, STYLE
from burler.runtime.report_text import rows_of
from burler.runtime.report_ticks import length_text

_OPEN = 12  # so many streams' plots are unfolded from the start
_NAME = 120  # characters of a name, a place or a bookmark in a cell
_MESSAGE = 2000
# Control characters, and those that turn the direction of the text after them.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")

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


def shown(text: Any, most: int = _NAME) -> str:
    """A text for the page: cut, escaped, and what is not printed spelled out."""
    value = str(text)
    value = value if len(value) <= most else value[:most] + " ..."
    value = value.encode("utf-8", "backslashreplace").decode()
    return html.escape(_HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", value))


def one_line(text: Any, most: int = _NAME) -> str:
    """As :func:`shown`, without line ends."""
    return shown(text, most).replace("\n", "\\n").replace("\t", "\\t")


def page(report: dict[str, Any]) -> str:
    """A report (``Report.to_json``) as HTML."""
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    name = one_line(report["tap"] or "a tap")
    status = one_line(report["status"])
    body = "".join([_head(report, name, status), _run_error(report), _streams(report), _errors(report), _plots(report)])
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{name}: {status}</title><style>{STYLE}</style></head>\n"
        f"<body><main>\n{body}</main>\n<script>{SCRIPT}</script></body></html>\n"
    )


def _head(report: dict[str, Any], name: str, status: str) -> str:
    totals = report["totals"]
    code = report["exit_code"]
    facts = [
        f"started <time>{shown(report['started'][:19])}Z</time>",
        f"took {length_text(report['seconds'])}",
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
    cells = "".join(
        f'<div class="tile{" bad" if label in bad and count else ""}"><b>{count:,}</b> {label}</div>'
        for label, count in tiles
    )
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
    return f"<h2>Streams</h2>\n{_table(_HEADERS, rows)}"


def _table(headers: tuple[tuple[str, str], ...], rows: list[str]) -> str:
    head = "".join(f'<th class="{kind}" data-kind="{kind}">{label}</th>' for label, kind in headers)
    body = "\n".join(rows)
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>\n"


def _stream(number: int, one: dict[str, Any], plotted: bool) -> str:
    failed = one["error_count"] > 0 or one["status"] == "failed"
    name = one_line(one["stream"])
    seconds, rate = one["seconds"], one["rows_per_second"]
    cells = [
        _cell(f'<a href="#s{number}">{name}</a>' if plotted else name, "text"),
        _cell(one_line(one["replication_method"] or ""), "short"),
        _cell(f'<span class="badge {_class(one["status"])}">{one_line(one["status"])}</span>', "short"),
        _cell(rows_of([one]), "number", one["rows"]),
        _cell("" if one["updated"] is None else f"{one['updated']:,}", "number", one["updated"]),
        _cell(f"{one['skipped']:,}", "number", one["skipped"]),
        _cell(f"{seconds:,.1f}", "number", seconds),
        _cell("" if rate is None else f"{rate:,.0f}", "number", rate),
        _cell(f"{one['error_count']:,}", "number", one["error_count"]),
        *map(_bookmark, (one["bookmark_from"], one["bookmark_to"])),
    ]
    return f"<tr{' class=failed' if failed else ''}>{''.join(cells)}</tr>"


def _cell(content: str, kind: str, value: float | None = None) -> str:
    data = "" if value is None else f' data-value="{value}"'
    return f'<td class="{kind}"{data}>{content}</td>'


def _bookmark(value: Any) -> str:
    text = "" if value is None else one_line(value).replace(".000000Z", "Z")
    return _cell(text, "short mono" if len(text) < 36 else "text mono")


def _errors(report: dict[str, Any]) -> str:
    rows = [
        "<tr>"
        + _cell(one_line(one["stream"]), "text")
        + _cell(one_line(error["where"] or "", 300), "text mono")
        + _cell(one_line(error["type"]), "short")
        + _cell(_message(error), "text pre")
        + _cell(one_line(error["place"] or ""), "text mono")
        + "</tr>"
        for one in report["streams"]
        for error in one["errors"]
    ]
    left = sum(one["error_count"] for one in report["streams"]) - len(rows)
    if not rows:
        return ""
    headers = (("stream", "text"), ("where", "text"), ("type", "text"), ("message", "text"), ("place", "text"))
    more = f"<p class='none'>... and {left:,} more.</p>\n" if left else ""
    return f"<h2>Errors</h2>\n{_table(headers, rows)}{more}"


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
        rows = _figure("rows", rows_plot(one["seconds"], one["rows"]))
        bookmark = _figure("bookmark", bookmark_plot(one["seconds"], one["bookmark"]))
        began = f"<small>began {length_text(one['seconds'][0])} into the run</small>"
        parts.append(
            f'<details id="s{i}"{unfolded}><summary>{one_line(one["stream"])} {began}</summary>'
            f"<div class='plots'>{rows}{bookmark}</div></details>"
        )
    return "<h2>Over time</h2>\n" + "\n".join(parts) + "\n"


def _figure(caption: str, svg: str) -> str:
    return f"<figure><figcaption>{caption}</figcaption>{svg}</figure>" if svg else ""
