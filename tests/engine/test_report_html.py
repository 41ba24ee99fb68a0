"""The report as a page: whole, safe whatever a source calls its things, readable with many streams and with none."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reportruns import ANY, Streams

from burler.http import Client
from support.servers import serving

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
def web():
    with serving(lambda request: b"{}") as served:
        yield served


def test_a_page_of_two_streams_that_needs_nothing_from_anywhere():
    run = Streams()
    run.add("contacts", ["2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z", "2024-05-01T00:00:00Z"])
    run.add("orders", [5, 10, 200], error=ValueError("first\nsecond"))
    source = run.page(page_max_rows=1)
    page = Page(source)
    assert {"INCREMENTAL", "2024-05-01T00:00:00Z", "first\n  second"} <= set(page.texts["td"])
    assert page.texts["a"] == ["contacts", "orders"]
    assert [one["href"] for one in page.seen["a"]] == ["#s0", "#s1"]
    assert [one.get("id") for one in page.seen["details"]] == [None, "s0", "s1"]
    assert all("open" in one for one in page.seen["details"])
    assert len(page.seen["svg"]) == 4
    assert page.texts["title"][0] == "tap-crm: failed"
    assert "exit code 1" in page.texts["p"][0] and "took 0." in page.texts["p"][0]
    assert {"2024-01-01 00:00:00", "2024-05-01 00:00:00", "5", "200"} <= set(page.texts["text"])
    assert [one.get("class") for one in page.seen["tr"]].count("failed") == 1
    assert not re.search(r"https?:|//[a-z]|url\(|@import|src=", source)
    assert "prefers-color-scheme:dark" in page.texts["style"][0]
    (script,) = page.texts["script"]  # and no other may run
    (policy,) = [one["content"] for one in page.seen["meta"] if one.get("http-equiv") == "Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    kinds, cells = [one["data-kind"] for one in page.seen["th"]][:11], page.seen["td"][:11]
    values = [cell.get("data-value") for cell in cells]  # what the script sorts by: numbers as numbers
    assert [kind for kind, value in zip(kinds, values, strict=True) if value is not None] == ["number"] * 6
    assert values[3] == "2"
    assert "Asked of the source" not in source


def test_what_was_asked_of_the_source_has_a_table(web):
    run = Streams()
    for name, count in (("contacts", 8), ("notes", 2)):

        @run.tap.sync(name, schema=ANY)
        def rows(count=count):
            client = Client(web.url)
            for number in range(count):
                client.get(f"/{number}")
                yield {"id": number}

    run.add("quiet", [1, 2, 3])
    part = run.page().partition("<h2>Asked of the source</h2>")[2].partition("<h2>")[0]
    page = Page(part)
    assert page.texts["th"] == ["stream", "bytes", "requests"]
    assert page.texts["td"] == ["contacts", "16", "8", "notes", "4", "2"]
    assert "quiet" not in part


def test_errors_can_be_folded_and_of_very_many_a_thousand_are_kept():
    run = Streams()
    run.failing("contacts", {f"p{i}": ValueError(f"broken {i}") for i in range(12)})
    page = Page(run.page())
    assert "12 errors" in page.texts["summary"]
    assert [text for text in page.texts["td"] if text.startswith("broken")] == [f"broken {i}" for i in range(12)]
    many = Streams()
    many.failing("contacts", {f"p{i}": ValueError(f"broken {i}") for i in range(1500)})
    assert "... and 500 more" in many.page(max_failures=10_000)


def test_an_empty_run_has_a_page():
    run = Streams()
    run.add("rows")
    page = Page(run.page(page_max_rows=0))
    assert "No stream has begun." in page.texts["p"]
    assert page.texts["td"][0] == "the whole run" and "page_max_rows" in page.texts["td"][3]
    assert "svg" not in page.seen and len(page.seen["table"]) == 1


def test_a_stream_with_nothing_to_plot_has_no_link():
    """Plots stand with their own streams, though not all streams have some."""
    run = Streams()
    run.add("empty", [1])
    run.add("full", [1, 2])
    run.add("late", [1, 2])
    page = Page(run.page())
    assert list(zip([one["href"] for one in page.seen["a"]], page.texts["a"], strict=True)) == [
        ("#s1", "full"),
        ("#s2", "late"),
    ]
    assert [one["id"] for one in page.seen["details"]] == ["s1", "s2"]
    assert [text.split()[0] for text in page.texts["summary"]] == ["full", "late"]


def test_a_page_of_300_streams_folds_its_plots_and_stays_small():
    run = Streams()
    for i in range(300):
        run.add(f"stream_{i}", [1, 2])
    source = run.page()
    page = Page(source)
    assert len(page.seen["details"]) == 300
    assert not any("open" in one for one in page.seen["details"])
    assert len(page.seen["tr"]) == 301
    assert len(source) < 3_000_000


HOSTILE = [
    "<script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "'><img src=x onerror=alert(1)>",
    "</title></style></script></svg><b>out",
    "--><-- ",
    "&lt;b&gt; &#60;",
    "a\nb\tc\x00\x1b[31m\x85",
    "\u202eevil\u2066\ufeff",
    "x" * 1_000_000,
    "客户 ünï 😀",
    "toString",
]


def test_text_from_outside_is_text():
    """Names of streams and partitions, bookmarks, errors."""
    run = Streams()
    for text in HOSTILE:
        name = re.sub(r"[*?\[\]!]", "", text)
        run.add(name, [text, text + "1", text + "2"], error=type("E", (Exception,), {})(text))
    run.failing("parts", {text: ValueError(text) for text in HOSTILE})
    source = run.page()
    page = Page(source)
    assert len(source) < 300_000
    assert len(page.seen["script"]) == len(page.seen["style"]) == 1
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]", source)
    for text in HOSTILE:
        if len(text) < 100 and text.isprintable() and not set(text) & set("*?[]!"):
            assert text in page.texts["a"] and text in page.texts["td"]
    assert "a\\nb\\tc" in "".join(page.texts["a"]), "names stand on one line"


@settings(max_examples=15)
@given(st.lists(st.text(max_size=30), min_size=4, max_size=4), st.integers(-(2**60), 2**60))
def test_any_text_leaves_the_page_whole(texts: list[str], number: int):
    run = Streams()
    name = "s" + re.sub(r"[*?\[\]!]", "", texts[0]) + "s"
    run.add(name, [number, texts[1], texts[2]], error=ValueError(texts[3]))
    run.add(name + "x", [number, number + 1])
    page = Page(run.page())
    assert len(page.seen["script"]) == 1
    assert len(page.seen["td"]) == 2 * 11 + 5
