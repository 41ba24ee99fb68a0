"""The report of a run as one page: no network, no library, readable without its one small script (it sorts tables).

All that comes from outside (names, errors, bookmarks) goes through ``shown``; a policy in the page lets no script run
but its own, should that ever fail. The page of a verification is made of the same parts.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

from burler.report.stats import moment_of
from burler.report.text import has_failed, numbers, total_of
from burler.words import counted, long_time

NAME = 120
"""Characters of a name, a place or a bookmark in a cell."""

# Control characters, and those that turn the direction of the text after them.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
_JOINT = re.compile(r"([_./-])(?=\w)")
_OPEN = 12  # so many streams' plots are unfolded from the start
_MESSAGE = 2000
_CLASSES = {"succeeded": "good", "failed": "bad"}
_NUMBERS = ("rows", "updated", "skipped", "seconds", "rows/s", "errors")
_HEADERS = (
    *((name, "text") for name in ("stream", "method", "status")),
    *((name, "number") for name in _NUMBERS),
    *((name, "text") for name in ("bookmark from", "bookmark to")),
)


def page(report: dict[str, Any]) -> str:
    """A report (``burler.report.report.document``) as HTML."""
    name = one_line(report["tap"] or "a tap")
    places = {one["stream"]: f"s{i}" for i, one in enumerate(report["streams"])}
    series = [one for one in report["series"] if len(one["rows"]) > 1 and max(one["rows"])]
    linked = {one["stream"] for one in series}
    parts = [
        _head(report, name),
        "<h2>Streams</h2>\n",
        table(_HEADERS, [_stream(one, places[one["stream"]], one["stream"] in linked) for one in report["streams"]])
        if places
        else "<p class='none'>No stream has begun.</p>\n",
        _errors(report),
        _counts(report),
        _plots(series, places),
    ]
    return document(f"{name}: {report['status']}", "".join(parts))


def _head(report: dict[str, Any], name: str) -> str:
    totals, code = report["totals"], report["exit_code"]
    facts = [
        f"started <time>{report['started'][:19]}Z</time>",
        f"ended <time>{report['ended'][:19]}Z</time>" if report["ended"] else "not ended",
        f"took {long_time(report['seconds'])}",
        f"exit code {'?' if code is None else code}",
        f"burler {shown(report['burler_version'])}",
    ]
    if report["limit"]:
        facts.append(f"<strong>limited to {report['limit']} rows of each stream</strong>")
    if report["schemas_only"]:
        facts.append("<strong>SCHEMA messages only</strong>")
    tiles = [
        tile("streams", totals["streams"]),
        tile("failed", totals["streams_failed"], bad=totals["streams_failed"] > 0),
        *(tile(label, totals[label]) for label in ("rows", "updated", "skipped")),
        tile("errors", totals["errors"], bad=totals["errors"] > 0),
        tile("rows/s", round(totals["rows_per_second"] or 0)),
    ]
    return (
        f"<header><h1>{name} {_badge(report['status'])}</h1><p>{' · '.join(facts)}</p></header>\n"
        f"<div class='tiles'>{''.join(tiles)}</div>\n"
    )


def _badge(status: str) -> str:
    return f'<span class="badge {_CLASSES.get(status, "other")}">{status}</span>'


def _stream(one: dict[str, Any], place: str, plotted: bool) -> str:
    rate, name = one["rows_per_second"], name_text(one["stream"])
    texts = {**numbers(one), "rows/s": "" if rate is None else f"{rate:,.0f}"}
    values = {**one, "rows/s": rate, "errors": one["error_count"]}
    cells = [
        cell(f'<a href="#{place}">{name}</a>' if plotted else name, "text"),
        cell(one_line(one["replication_method"] or ""), "short"),
        cell(_badge(one["status"]), "short"),
        *(cell(texts[column], "number", values[column]) for column in _NUMBERS),
        *map(bookmark_cell, (one["bookmark_from"], one["bookmark_to"])),
    ]
    return f"<tr{' class=failed' if has_failed(one) else ''}>{''.join(cells)}</tr>"


def _errors(report: dict[str, Any]) -> str:
    found = [(one["stream"], error) for one in report["streams"] for error in one["errors"]]
    if report["error"]:
        found.insert(0, ("the whole run", {"where": None, **report["error"]}))
    rows = [
        "<tr>"
        + cell(name_text(stream), "text")
        + cell(one_line(error["where"] or "", 300), "text mono")
        + cell(one_line(error["type"]), "short")
        + cell(shown(error["message"], _MESSAGE), "text pre")
        + cell(name_text(error["place"] or ""), "text mono")
        + "</tr>"
        for stream, error in found
    ]
    if not rows:
        return ""
    count = report["totals"]["errors"]
    headers = [(name, "text") for name in ("stream", "where", "type", "message", "place")]
    more = f"<p class='none'>... and {count - len(rows):,} more.</p>" if count > len(rows) else ""
    return (
        f"<h2>Errors</h2>\n<details open><summary>{counted(count, 'error')}</summary>{table(headers, rows)}{more}"
        "</details>\n"
    )


def _counts(report: dict[str, Any]) -> str:
    """What was asked of the source: a row a stream and a column a count; nothing where nothing was counted."""
    streams = [one for one in report["streams"] if one["counts"]]
    columns = sorted({name for one in streams for name in one["counts"]})
    if not columns:
        return ""
    rows = [
        f"<tr>{cell(one_line(one['stream']), 'text')}"
        f"{''.join(_count(one['counts'].get(name, 0)) for name in columns)}</tr>"
        for one in streams
    ]
    headers = [("stream", "text"), *((one_line(name.replace("_", " ")), "number") for name in columns)]
    return f"<h2>Asked of the source</h2>\n{table(headers, rows)}"


def _count(count: int | dict[str, int]) -> str:
    """A number, with its reasons below it."""
    total, reasons = total_of(count)
    return cell(f"{total:,}{reasons and f'<small>{one_line(reasons, 600)}</small>'}", "number", total)


def _plots(series: list[dict[str, Any]], places: dict[str, str]) -> str:
    unfolded = " open" if len(series) <= _OPEN else ""
    parts = [
        f'<details id="{places[one["stream"]]}"{unfolded}><summary>{one_line(one["stream"])} '
        f"<small>began {long_time(one['seconds'][0])} into the run</small></summary>"
        f"<div class='plots'>{figure('rows', rows_plot(one['seconds'], one['rows']))}"
        f"{figure('bookmark', bookmark_plot(one['seconds'], one['bookmark']))}</div></details>\n"
        for one in series
    ]
    return f"<h2>Over time</h2>\n{''.join(parts)}" if parts else ""


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


def _file(name: str) -> str:
    return files("burler.report").joinpath(name).read_text(encoding="utf-8")


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
    return cell(text.replace("T", "<wbr>T") if moment_of(value) else text, "mono" if len(text) < 36 else "text mono")


def name_text(name: str) -> str:
    """A name or a place on one line, which may end where its words do."""
    return _JOINT.sub(r"\1<wbr>", one_line(name))


# ---- plots: a line over time as SVG, with colours from the page's style ----------------------------------


def figure(caption: str, svg: str) -> str:
    """A plot with what it shows; nothing without one."""
    return f"<figure><figcaption>{caption}</figcaption>{svg}</figure>" if svg else ""


def rows_plot(seconds: Sequence[float], rows: Sequence[int]) -> str:
    """Rows over time, from zero on; empty where there is nothing to see."""
    if len(seconds) < 2 or not max(rows):
        return ""
    return _svg("Rows over time", seconds, rows, {0: "0", max(rows): f"{max(rows):,}"}, seconds)


def bookmark_plot(seconds: Sequence[float], bookmarks: Sequence[Any]) -> str:
    """A bookmark over time; empty where it is neither a moment nor a number, or never was there."""
    present = [(at, *_place(value)) for at, value in zip(seconds, bookmarks, strict=True) if value is not None]
    if len(present) < 2 or {kind for _, kind, _, _ in present} not in ({"moment"}, {"number"}):
        return ""
    moments, _, places, texts = zip(*present, strict=True)
    ends = sorted(zip(places, texts, strict=True))
    return _svg("Bookmark over time", moments, places, dict([ends[0], ends[-1]]), seconds)


def _place(value: Any) -> tuple[str, float, str]:
    """What a bookmark is, where a plot shows it, and what an axis says of it there."""
    if (moment := moment_of(value)) is not None:
        return "moment", moment.timestamp(), moment.isoformat(" ")[:19]
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300:
        return "", 0.0, ""
    return "number", float(value), f"{value:,}" if abs(value) < 1e15 else f"{value:.6g}"


def _svg(
    title: str, seconds: Sequence[float], values: Sequence[float], ticks: dict[float, str], span: Sequence[float]
) -> str:
    """Steps, not slopes: a bookmark and a count stay where they are until the next point."""
    low, begin, end = min(ticks), span[0], span[-1]
    top, floor, right = 12, 166, 450
    left = 14 + 6.2 * max(map(len, ticks.values()))
    across = (right - left) / max(end - begin, 1e-9)
    down = (floor - top) / max(max(ticks) - low, 1e-300)
    xs = [f"{left + (at - begin) * across:.1f}" for at in seconds]
    ys = [f"{floor - (value - low) * down:.1f}" for value in values]
    steps = "".join(f"H{x}V{y}" for x, y in zip(xs[1:], ys[1:], strict=True))
    marks = [
        f'<path class="grid" d="M{left:.1f} {y:.1f}H{right}"/><text class="y" x="{left - 6:.1f}" y="{y + 3.5:.1f}">'
        f"{text}</text>"
        for text, y in ((text, floor - (value - low) * down) for value, text in ticks.items())
    ]
    return (
        f'<svg viewBox="0 0 480 190" role="img"><title>{title}</title>{"".join(marks)}'
        f'<text class="x" x="{left:.1f}" y="184">0 s</text>'
        f'<text class="x" x="{right}" y="184">{long_time(end - begin)}</text>'
        f'<path class="line" d="M{xs[0]} {ys[0]}{steps}H{right}"/></svg>'
    )
