"""What each run did, stream by stream, on the page of a verification."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from burler.config.secrets import masked
from burler.report.page import bookmark_cell, bookmark_plot, cell, figure, one_line, rows_plot, shown, table
from burler.spec.states import moment_of
from burler.verify.result import RATIO_SECONDS, RunFacts, StreamFacts, Verification
from burler.words import long_time

_OPEN = 6  # so many streams of the first run are unfolded from the start
_MEASURED_SECONDS = 0.05
_PATCH = 200_000
_FLIPS = 10
_STRIP_WIDTH = 1000.0
_STRIP = {"asc": ("up", 2, 14), "desc": ("down", 20, 14), "same": ("level", 16, 4), "none": ("level", 2, 32)}
"""Class, top and height of a stretch of rows: rising ones stand above falling ones, for those who see no colours."""

_HEADERS = (
    ("stream", "text"),
    ("method", "text"),
    ("keys", "text"),
    ("rows", "number"),
    ("rows/s", "number"),
    ("STATEs", "number"),
    ("bookmark from", "text"),
    ("bookmark to", "text"),
    ("advance", "number"),
    ("order", "text"),
    ("requests", "number"),
)


@dataclass(slots=True)
class _Room:
    """What is left for plots and tables of fields, so that a tap of 1,000 streams gives a page that opens."""

    points: int = 200_000
    fields: int = 20_000


def runs(verification: Verification) -> str:
    """All runs."""
    room = _Room()
    return "".join(_run(at, run, room) for at, run in enumerate(verification.runs))


def _run(number: int, run: RunFacts, room: _Room) -> str:
    facts = [run.ended] if run.ended else []
    if run.exit_code is not None:
        facts.append(f"exit code {run.exit_code}")
    facts += [f"took {long_time(run.seconds)}", f"{run.lines:,} {'line' if run.lines == 1 else 'lines'}"]
    head = f"<h2>Run: {one_line(run.name)}</h2>\n<p class='facts'>{' · '.join(map(one_line, facts))}</p>\n"
    streams = list(run.streams.values())
    if not streams:
        return f"{head}<p class='none'>No stream has begun.</p>\n"
    unfolded = number == 0 and len(streams) <= _OPEN
    rows = [_row(f"s{number}-{at}", one) for at, one in enumerate(streams)]
    parts = [_stream(f"s{number}-{at}", one, room, unfolded=unfolded) for at, one in enumerate(streams)]
    return f"{head}{table(_HEADERS, rows)}{''.join(parts)}"


def _row(place: str, one: StreamFacts) -> str:
    rate = one.rows / one.seconds if one.seconds >= _MEASURED_SECONDS else None
    ratio = one.bookmark.get("ratio") if one.seconds >= RATIO_SECONDS else None
    asked = sum(each.get("requests", 0) for each in one.requests.values()) if one.requests else None
    cells = [
        cell(f'<a href="#{place}">{one_line(one.stream)}</a>', "text"),
        cell(one_line(one.replication_method or ""), "short"),
        cell(one_line(", ".join(map(str, one.key_properties))), "text mono"),
        cell(f"{one.rows:,}", "number", one.rows),
        cell("" if rate is None else f"{rate:,.0f}", "number", rate),
        cell(f"{one.states:,}", "number", one.states),
        *(bookmark_cell(one.bookmark.get(name)) for name in ("from", "to")),
        cell("" if ratio is None else f"{ratio:,.3g} s/s", "number", ratio),
        cell(_direction(one.order), "short"),
        cell("" if asked is None else f"{asked:,}", "number", asked),
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _direction(order: Mapping[str, Any]) -> str:
    said = str(order.get("direction", ""))
    return f"{one_line(said)}, {_turns(order)}" if said == "none" else one_line(said)


def _turns(order: Mapping[str, Any]) -> str:
    flips = order.get("flips", 0)
    return f"{flips:,} {'turn' if flips == 1 else 'turns'}"


def _stream(place: str, one: StreamFacts, room: _Room, *, unfolded: bool) -> str:
    inside = [_plots(one, room), _order(one.order), _requests(one.requests), _fields(one.fields, room)]
    inside.append(_patch(one.patch))
    content = "".join(inside) or "<p class='none'>Nothing more is known of it.</p>"
    opened = " open" if unfolded else ""
    return (
        f'<details class="stream" id="{place}"{opened}><summary>{one_line(one.stream)} '
        f"<small>{one.rows:,} {'row' if one.rows == 1 else 'rows'}</small></summary>{content}</details>\n"
    )


def _plots(one: StreamFacts, room: _Room) -> str:
    points = one.series
    if len(points) < 2:
        return ""
    if len(points) > room.points:
        return "<p class='none'>There are too many plots for a page: see --format json.</p>"
    room.points -= len(points)
    seconds = [float(at) for at, _, _ in points]
    rows = figure("rows over time", rows_plot(seconds, [int(count) for _, count, _ in points]))
    marks = figure("bookmark over time", bookmark_plot(seconds, plotted([value for _, _, value in points])))
    return f"<div class='plots'>{rows}{marks}</div>" if rows or marks else ""


def plotted(values: Sequence[Any]) -> list[Any]:
    """Bookmarks, which are text here, as a plot takes them: moments with a zone, or numbers."""
    texts = [value for value in values if value is not None]
    moments = [moment_of(str(value)) for value in texts]
    if all(moment is not None for moment in moments):
        made: Iterable[Any] = (moment.isoformat() for moment in moments if moment is not None)
    else:
        try:
            made = [float(value) for value in texts]
        except (TypeError, ValueError):
            return [None] * len(values)
    given = iter(made)
    return [None if value is None else next(given) for value in values]


def _order(order: Mapping[str, Any]) -> str:
    """Where the order turns, as a strip of all rows."""
    stretches = order.get("map") or []
    last = stretches[-1][1] if stretches else 0
    if not last:
        return ""
    flips = order.get("first_flips") or []
    key = one_line(order.get("key", ""))
    strip = "".join(_stretch(first, end, str(direction), last) for first, end, direction in stretches)
    said = f"{_direction(order)}, of {last:,} rows. Above: rising. Below: falling."
    lines = [
        f"<tr>{''.join(cell(one_line(flip.get(name, '')), 'text mono') for name in ('place', 'before', 'value'))}</tr>"
        for flip in flips[:_FLIPS]
    ]
    turned = table((("first turns at", "text"), ("after", "text"), ("came", "text")), lines) if lines else ""
    return (
        f"<h3>Order by {key}</h3><p class='facts'>{said}</p><div class='order'>"
        f'<svg viewBox="0 0 {_STRIP_WIDTH:.0f} 36" preserveAspectRatio="none" role="img">'
        f"<title>Where the order of {key} turns</title>{strip}</svg></div>{turned}"
    )


def _stretch(first: int, end: int, direction: str, last: int) -> str:
    look, top, height = _STRIP.get(direction, _STRIP["none"])
    left = (first - 1) / last * _STRIP_WIDTH
    width = max((end - first + 1) / last * _STRIP_WIDTH, 1.5)  # a turn of one row in a million is seen as well
    return (
        f'<rect class="{look}" x="{min(left, _STRIP_WIDTH - width):.1f}" y="{top}" width="{width:.1f}" '
        f'height="{height}"><title>rows {first:,} to {end:,}: {one_line(direction)}</title></rect>'
    )


def _requests(requests: Mapping[str, Mapping[str, Any]]) -> str:
    if not requests:
        return ""
    rows = []
    for endpoint, one in requests.items():
        statuses = ", ".join(f"{status}: {count:,}" for status, count in (one.get("statuses") or {}).items())
        seconds = one.get("seconds", 0.0)
        cells = [
            cell(one_line(endpoint, 300), "text mono"),
            cell(f"{one.get('requests', 0):,}", "number", one.get("requests", 0)),
            cell(f"{seconds:,.2f}", "number", seconds),
            cell(one_line(statuses), "text"),
            *(cell(f"{one.get(name, 0):,}", "number", one.get(name, 0)) for name in ("repeated", "no_timeout")),
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    headers = (
        ("endpoint", "text"),
        ("requests", "number"),
        ("seconds", "number"),
        ("answers", "text"),
        ("repeated", "number"),
        ("without timeout", "number"),
    )
    return f"<h3>Requests</h3>{table(headers, rows)}"


def _fields(fields: Mapping[str, Mapping[str, Any]], room: _Room) -> str:
    if not fields:
        return ""
    listed = list(fields.items())[: room.fields]
    room.fields -= len(listed)
    left = len(fields) - len(listed)
    more = f"<p class='none'>... and {left:,} more: see --format json.</p>" if left else ""
    if not listed:
        return f"<h3>Fields</h3>{more}"
    headers = (
        ("field", "text"),
        ("declared", "text"),
        ("seen", "text"),
        ("values", "number"),
        ("nulls", "number"),
        ("remark", "text"),
    )
    return f"<h3>Fields</h3>{table(headers, [_field(name, one) for name, one in listed])}{more}"


def _field(name: str, one: Mapping[str, Any]) -> str:
    declared, seen = one.get("declared"), list(one.get("seen") or [])
    rows, nulls = one.get("rows", 0), one.get("nulls", 0)
    strange = remark(declared, seen, rows)
    cells = [
        cell(one_line(name), "text mono"),
        cell(one_line(" ".join(declared or [])), "text"),
        cell(one_line(" ".join(seen)), "text"),
        cell(f"{rows:,}", "number", rows),
        cell(f"{nulls:,}", "number", nulls),
        cell(strange, "text"),
    ]
    bad = strange and strange != "never came"
    return f"<tr{' class=failed' if bad else ''}>{''.join(cells)}</tr>"


def remark(declared: Sequence[str] | None, seen: Sequence[str], rows: int) -> str:
    """What is strange about a field; "" if nothing is."""
    if declared is None:
        return "not in the SCHEMA"
    if not rows:
        return "never came"
    takes = {*declared, "integer"} if "number" in declared else set(declared)
    other = [kind for kind in seen if kind not in takes]
    return f"was {' or '.join(other)} as well" if declared and other else ""


def _patch(patch: Mapping[str, Any]) -> str:
    if not patch:
        return ""
    return (
        "<h3>Schema patch</h3><p class='facts'>To be merged into the stream's schema; it then keeps and fits all that "
        'was seen. <button type="button" class="copy" hidden>copy</button></p>'
        f"{json_block(patch, _PATCH)}"
    )


def json_block(value: Any, most: int) -> str:
    """A value as JSON, which one click selects as a whole."""
    text = masked(json.dumps(value, indent=2, ensure_ascii=False, default=str))
    return f'<pre class="whole" tabindex="0">{shown(text, most)}</pre>'
