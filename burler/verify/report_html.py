"""A verification as one page, which needs nothing else: what was found and how it is mended, and what each run did.

Parts, plots and style are those of the page of a run (``burler.report.page``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from burler.report.page import cell, document, one_line, shown, table, tile
from burler.spec.finding import Finding
from burler.spec.rule import SEVERITIES, Rule
from burler.verify.report_html_look import SCRIPT, STYLE
from burler.verify.report_html_runs import json_block, runs
from burler.verify.result import Verification
from burler.words import counted, long_time

_FINDINGS = 2000  # on the page; the JSON has all
_MESSAGE = 2000
_DATA = 20_000
_CODES = 60  # that are named for one reason
_HEADERS = (
    ("severity", "text"),
    ("rule", "text"),
    ("stream", "text"),
    ("field", "text"),
    ("what was found", "text"),
    ("where", "text"),
    ("times", "number"),
)


def as_html(verification: Verification, rules: Mapping[str, Rule]) -> str:
    """The page."""
    subject = "messages on stdin" if verification.subject == "-" else one_line(verification.subject)
    word, look = _verdict(verification)
    body = [
        _head(verification, subject, word, look),
        _found(verification, rules),
        _unchecked(verification),
        _gone(verification),
        runs(verification),
    ]
    return document(f"{subject}: {word}", "".join(body), style=STYLE, script=SCRIPT)


def _verdict(verification: Verification) -> tuple[str, str]:
    """What it comes to, and the colour of that."""
    counts = verification.counts
    if counts["error"]:
        return counted(counts["error"], "error"), "bad"
    if counts["warning"]:
        return counted(counts["warning"], "warning"), "other"
    return "clean", "good"


def _head(verification: Verification, subject: str, word: str, look: str) -> str:
    from burler import __version__

    counts = verification.counts
    facts = [
        f"started <time>{shown(verification.started[:19])}Z</time>",
        f"took {long_time(verification.seconds)}",
        counted(len(verification.runs), "run"),
        f"burler {shown(__version__)}",
    ]
    tiles = [
        tile("errors", counts["error"], bad=counts["error"] > 0),
        tile("warnings", counts["warning"]),
        tile("infos", counts["info"]),
        tile("rules looked at", len(verification.checked)),
        tile("not looked at", len(verification.unchecked)),
    ]
    if verification.baselined:
        tiles.append(tile("known from the baseline", verification.baselined))
    if verification.ignored:
        tiles.append(tile("ignored", verification.ignored))
    return (
        f'<header><h1>{subject} <span class="badge {look}">{word}</span></h1>'
        f"<p>{' · '.join(facts)}</p></header>\n<div class='tiles'>{''.join(tiles)}</div>\n"
    )


def _found(verification: Verification, rules: Mapping[str, Rule]) -> str:
    """The table of findings, with boxes that choose by severity."""
    findings = verification.findings
    if not findings:
        return "<h2>Findings</h2>\n<p class='none'>No rule is broken.</p>\n"
    places = _places(verification)
    rows = [_row(one, rules[one.code], places) for one in findings[:_FINDINGS]]
    counts = verification.counts
    boxes = "".join(
        f'<input class="pick" type="checkbox" id="show-{name}" checked>'
        f'<label for="show-{name}">{counted(counts[name], name)}</label>'
        for name in SEVERITIES
        if counts[name]
    )
    left = len(findings) - len(rows)
    more = f"<p class='none'>... and {left:,} more: see --format json.</p>\n" if left else ""
    return f"<section><h2>Findings</h2>\n{boxes}{table(_HEADERS, rows)}{more}</section>\n"


def _places(verification: Verification) -> dict[str, str]:
    """Where the first run's streams stand on the page."""
    if not verification.runs:
        return {}
    return {facts.stream: f"s0-{at}" for at, facts in enumerate(verification.runs[0].streams.values())}


def _row(one: Finding, rule: Rule, places: Mapping[str, str]) -> str:
    stream = "" if one.stream is None else one_line(one.stream)
    if one.stream is not None and one.stream in places:
        stream = f'<a href="#{places[one.stream]}">{stream}</a>'
    where = [text for text in (one.run, *one.places) if text]
    cells = [
        cell(f'<span class="badge">{one.severity}</span>', "short"),
        cell(f"{rule.code}<br>{rule.name}", "short"),
        cell(stream, "text"),
        cell("" if one.path is None else one_line(one.path), "text mono"),
        cell(_message(one, rule), "text"),
        cell("<br>".join(one_line(text) for text in where), "text"),
        cell(f"{one.count:,}", "number", one.count),
    ]
    return f'<tr class="{one.severity}">{"".join(cells)}</tr>'


def _message(one: Finding, rule: Rule) -> str:
    """The fact, and behind it what the rule says."""
    parts = (("What is looked at", rule.what), ("Why it hurts", rule.why), ("How to mend it", rule.mend))
    said = "".join(f"<dt>{heading}</dt><dd>{shown(text, _MESSAGE)}</dd>" for heading, text in parts if text)
    data = "".join(
        f"<dt>{one_line(name)}</dt><dd>{json_block(value, _DATA)}</dd>" for name, value in one.data.items() if value
    )
    return (
        f"<details><summary>{shown(one.message, _MESSAGE)}</summary><p>{shown(rule.title)}</p>"
        f"<dl>{data}{said}</dl></details>"
    )


def _unchecked(verification: Verification) -> str:
    if not verification.unchecked:
        return ""
    reasons: dict[str, list[str]] = defaultdict(list)
    for code, reason in verification.unchecked.items():
        reasons[reason].append(code)
    rows = []
    for reason, codes in reasons.items():
        more = f" and {len(codes) - _CODES} more" if len(codes) > _CODES else ""
        rows.append(f"<tr>{cell(', '.join(codes[:_CODES]) + more, 'text')}{cell(shown(reason, 500), 'text')}</tr>")
    headers = (("rules", "text"), ("why", "text"))
    return f"<h2>Not looked at</h2>\n{table(headers, rows)}"


def _gone(verification: Verification) -> str:
    if not verification.gone:
        return ""
    listed = "".join(f"<li>{one_line(one)}</li>" for one in verification.gone[:_FINDINGS])
    left = len(verification.gone) - _FINDINGS
    more = f"<p class='none'>... and {left:,} more.</p>" if left > 0 else ""
    return (
        f"<h2>Gone</h2>\n<details><summary>No longer found, and still in the baseline: {len(verification.gone):,}"
        f"</summary><ul>{listed}</ul>{more}</details>\n"
    )
