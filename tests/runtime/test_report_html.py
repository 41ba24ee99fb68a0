"""The report as a page: whole, safe whatever a source calls its things, readable with many streams and with none."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reportruns import Clock, ended, new_report

from support.internals import run_report

VOID = {"meta", "wbr"}
KNOWN = {
    "html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "p", "b", "strong", "small", "span",
    "time", "div", "section", "pre", "table", "thead", "tbody", "tr", "th", "td", "a", "details", "summary", "figure",
    "figcaption", "svg", "path", "text", "script", "wbr",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "class", "data-kind", "data-value", "href", "id", "open",
    "viewbox", "role", "d", "x", "y",
}  # fmt: skip


class Page(HTMLParser):
    """A page taken apart: which elements are in it, their attributes, and the text of each kind."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.seen: dict[str, list[dict[str, str | None]]] = {}
        self.texts: dict[str, list[str]] = {}
        self.feed(source)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in KNOWN, tag
        assert {name for name, _ in attrs} <= ATTRIBUTES, attrs
        self.seen.setdefault(tag, []).append(dict(attrs))
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack:
            self.texts[self.stack[-1]][-1] += data

    def handle_comment(self, data):
        raise AssertionError(data)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def report(clock: Clock) -> run_report.Report:
    return new_report(clock)


def stream(
    report: run_report.Report, clock: Clock, name: str, bookmarks: list, rows: int = 100, **given: object
) -> None:
    """A stream whose bookmark goes through some values, one a page."""
    report.stream_began(name, method="INCREMENTAL", bookmark=bookmarks[0])
    for i, value in enumerate(bookmarks[1:], 1):
        clock.seconds += 10
        report.page(name, rows * i, value)
    told = {"rows": rows * (len(bookmarks) - 1), "bookmark_from": bookmarks[0], "bookmark_to": bookmarks[-1]}
    ended(report, name, **{**told, **given})


def test_a_page_of_two_streams(report: run_report.Report, clock: Clock):
    stream(report, clock, "contacts", ["2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z", "2024-05-01T00:00:00Z"])
    stream(report, clock, "orders", [5, 10, 200])
    report.failed("orders", 'partition {"a":1}', ValueError("first\nsecond"))
    report.end("failed", 1)
    page = Page(report.to_html())
    cells = page.texts["td"]
    assert {"INCREMENTAL", "200", "2024-05-01T00:00:00Z", 'partition {"a":1}', "first\n  second"} <= set(cells)
    assert page.texts["a"] == ["contacts", "orders"]
    assert [one["href"] for one in page.seen["a"]] == ["#s0", "#s1"]
    assert [one["id"] for one in page.seen["details"]] == ["s0", "s1"]
    assert all("open" in one for one in page.seen["details"])
    assert len(page.seen["svg"]) == 4
    assert page.texts["title"][0] == "tap-crm: failed"
    assert "exit code 1" in page.texts["p"][0] and "took 40.0 s" in page.texts["p"][0]
    labels = page.texts["text"]
    assert {"2024-01", "2024-02", "2024-05", "50", "100", "150", "200", "0 s", "10 s", "20 s"} <= set(labels)
    assert [one.get("class") for one in page.seen["tr"]].count("failed") == 1


def test_what_was_asked_of_the_source_has_a_table(report: run_report.Report, clock: Clock):
    stream(
        report,
        clock,
        "contacts",
        [1, 2, 3],
        counts={"bytes": 500, "requests": 40, "retries": {"429": 3, "no answer": 1}},
    )
    stream(report, clock, "notes", [1, 2, 3], counts={"requests": 10, "refreshes": 1})
    stream(report, clock, "quiet", [1, 2, 3])
    report.end("succeeded", 0)
    source = report.to_html()
    part = source.partition("<h2>Asked of the source</h2>")[2].partition("<h2>")[0]
    page = Page(part)
    assert page.texts["th"] == ["stream", "requests", "retries", "bytes", "refreshes"]
    assert page.texts["td"] == ["contacts", "40", "4", "500", "", "notes", "10", "", "", "1"]
    assert page.texts["small"] == ["429: 3, no answer: 1"]
    bars = [one["d"] for one in page.seen["path"] if one["class"] == "fill"]
    assert bars == [f"M0 0H{width}V4H0Z" for width in (100, 100, 100, 25, 100)]
    assert "quiet" not in part


def test_a_run_that_asked_nothing_has_no_such_table(report: run_report.Report, clock: Clock):
    stream(report, clock, "contacts", [1, 2])
    report.end("succeeded", 0)
    assert "Asked of the source" not in report.to_html()


def test_many_errors_are_folded_behind_the_first(report: run_report.Report, clock: Clock):
    stream(report, clock, "contacts", [1, 2])
    for i in range(12):
        report.failed("contacts", f"parent id={i}", ValueError(f"broken {i}"))
    report.end("failed", 1)
    page = Page(report.to_html())
    assert "4 more" in page.texts["summary"]
    assert [text for text in page.texts["td"] if text.startswith("broken")] == [f"broken {i}" for i in range(12)]


def test_the_page_needs_nothing_from_anywhere(report: run_report.Report, clock: Clock):
    stream(report, clock, "contacts", [1, 2, 3])
    source = report.to_html()
    assert not re.search(r"https?:|//[a-z]|url\(|@import|src=", source)
    page = Page(source)
    assert "prefers-color-scheme:dark" in page.texts["style"][0]


def test_no_script_but_its_own_may_run(report: run_report.Report, clock: Clock):
    stream(report, clock, "contacts", [1, 2, 3])
    page = Page(report.to_html())
    (script,) = page.texts["script"]
    (policy,) = [one["content"] for one in page.seen["meta"] if one.get("http-equiv") == "Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def test_numbers_are_sorted_as_numbers(report: run_report.Report, clock: Clock):
    """What the script sorts by stands in the cells."""
    stream(report, clock, "a", [1, 2], rows=1234567, updated=None, seconds=1.25)
    page = Page(report.to_html())
    kinds = [one["data-kind"] for one in page.seen["th"]]
    cells = page.seen["td"]
    assert len(kinds) == len(cells)
    values = [cell.get("data-value") for cell in cells]
    assert values == [None, None, None, "1234567", None, "0", "1.25", "987653.6", "0", None, None]
    assert [kind for kind, value in zip(kinds, values, strict=True) if value is not None] == ["number"] * 5


def test_an_empty_run_has_a_page():
    report = run_report.Report()
    report.end("failed", 2, ValueError("the config lacks 'url'"))
    page = Page(report.to_html())
    assert "No stream has begun." in page.texts["p"]
    assert page.texts["pre"] == ["the config lacks 'url'"]
    assert "svg" not in page.seen and "table" not in page.seen
    Page(run_report.Report().to_html())


def test_a_stream_with_nothing_to_plot_has_no_link(report: run_report.Report, clock: Clock):
    """Plots stand with their own streams, though not all streams have some."""
    report.failed("gone", None, ValueError("x"))
    stream(report, clock, "empty", [1, 1], rows=0)
    stream(report, clock, "full", [1, 2])
    stream(report, clock, "late", [1, 2])
    page = Page(report.to_html())
    assert list(zip([one["href"] for one in page.seen["a"]], page.texts["a"], strict=True)) == [
        ("#s2", "full"),
        ("#s3", "late"),
    ]
    assert [one["id"] for one in page.seen["details"]] == ["s2", "s3"]
    assert [text.split()[0] for text in page.texts["summary"]] == ["full", "late"]


def test_names_stand_on_one_line(report: run_report.Report, clock: Clock):
    stream(report, clock, "a\nb\tc", [1, 2])
    report.end("failed", 1, KeyError("x"))
    page = Page(report.to_html())
    assert page.texts["a"] == ["a\\nb\\tc"]
    assert "KeyError" in page.texts["b"]


def test_a_page_of_500_streams_folds_its_plots_and_stays_small(report: run_report.Report, clock: Clock):
    for i in range(500):
        stream(report, clock, f"stream_{i}", list(range(60)))
    source = report.to_html()
    page = Page(source)
    assert len(page.seen["details"]) == 500
    assert not any("open" in one for one in page.seen["details"])
    assert len(page.seen["tr"]) == 501
    assert len(source) < 5_000_000


def test_a_limited_run_says_so(report: run_report.Report):
    report.limit = 5
    assert "limited to 5 rows of each stream" in Page(report.to_html()).texts["strong"]
    report.limit, report.schemas_only = None, True
    assert "SCHEMA messages only" in Page(report.to_html()).texts["strong"]


HOSTILE = [
    "<script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "'><img src=x onerror=alert(1)>",
    "</title></style></script></svg><b>out",
    "--><!-- ]]>",
    "&lt;b&gt; &#60;",
    "a\nb\tc\x00\x1b[31m\x85",
    "\u202eevil\u2066\ufeff",
    "half \ud800 pair",
    "x" * 1_000_000,
    "客户 ünï 😀",
    "toString",
    "",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:20]))
def test_text_from_outside_is_text(text: str, clock: Clock):
    report = run_report.Report(clock.now, clock.monotonic)
    report.begin(text)
    stream(report, clock, text, [text, text + "1", text + "2"], status=text, counts={text: 1, "retries": {text: 2}})
    report.failed(text, text, type("E", (Exception,), {})(text))
    report.end(text, 1, ValueError(text))
    source = report.to_html()
    page = Page(source)
    assert len(source) < 100_000
    assert len(page.seen["script"]) == len(page.seen["style"]) == 1
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]", source)
    source.encode()
    if text and len(text) < 100 and text.isprintable():
        assert text in page.texts["a"][0]
        assert text in page.texts["pre"][0]
        assert text in page.texts["td"]


@given(st.lists(st.text(st.characters(exclude_categories=[]), max_size=30), min_size=6, max_size=6), st.integers())
def test_any_text_leaves_the_page_whole(texts: list[str], number: int):
    clock = Clock()
    report = run_report.Report(clock.now, clock.monotonic)
    report.begin(texts[0])
    stream(report, clock, texts[1], [number, texts[2], texts[3]])
    stream(report, clock, texts[1] + "x", [number, number + 1])
    report.failed(texts[1], texts[4], ValueError(texts[5]))
    report.end(texts[2], 1, ValueError(texts[3]))
    page = Page(report.to_html())
    assert len(page.seen["script"]) == 1
    assert len(page.seen["td"]) == 2 * 11 + 5
