"""A verification as a page: whole, safe whatever a source calls its things, and readable however large it is."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from report_sample import HOSTILE, HOSTILE_IDS, contacts, hostile, report, verification

from burler.http import bearer
from burler.spec import RULES, Finding
from burler.testing import canary
from burler.verify import RunFacts

VOID = {"meta", "br", "wbr", "input"}
KNOWN = VOID | {
    "html", "head", "title", "style", "body", "main", "header", "section", "h1", "h2", "h3", "p", "b", "small", "span",
    "time", "div", "pre", "table", "thead", "tbody", "tr", "th", "td", "a", "details", "summary", "figure", "dl", "dt",
    "dd", "ul", "li", "figcaption", "svg", "path", "rect", "text", "script", "label", "button",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "class", "data-kind", "data-value", "href", "id", "open",
    "viewbox", "role", "d", "x", "y", "type", "checked", "for", "hidden", "tabindex", "preserveaspectratio", "width",
    "height",
}  # fmt: skip


class Page(HTMLParser):
    """A page taken apart: its elements, and the text in each kind of them. What is not known to be in it fails."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.seen: dict[str, list[dict[str, str | None]]] = {}
        self.texts: dict[str, list[str]] = {}
        self.feed(source)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        assert tag in KNOWN, tag
        assert {name for name, _ in attrs} <= ATTRIBUTES, attrs
        self.seen.setdefault(tag, []).append(dict(attrs))
        self.texts.setdefault(tag, []).append("")
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack:
            self.texts[self.stack[-1]][-1] += data

    def handle_comment(self, data):
        raise AssertionError(data)


def as_html(verification) -> str:
    return report(verification, "html").decode()


def page(**more) -> Page:
    return Page(as_html(verification(**more)))


def test_a_finding_unfolds_to_what_its_rule_says():
    found = page()
    assert found.texts["title"][0] == "tap_crm.py: 1 error"
    assert found.texts["summary"][0] == "a STATE comes too early"
    assert RULES["C113"].why in found.texts["dd"] and RULES["C113"].mend in found.texts["dd"]
    assert [one["class"] for one in found.seen["tr"] if one.get("class") in ("error", "warning", "info")] == [
        "error",
        "warning",
        "info",
    ]
    assert {"contacts", "updated_at", "12"} <= {*found.texts["a"], *found.texts["td"]}


def test_each_severity_that_is_there_has_a_box():
    assert [one["id"] for one in page().seen["input"]] == ["show-error", "show-warning", "show-info"]
    assert page().texts["label"] == ["1 error", "1 warning", "1 info"]
    none = page(findings=[])
    assert "input" not in none.seen
    assert none.texts["title"][0] == "tap_crm.py: clean"
    assert "No rule is broken." in none.texts["p"]


def test_a_stream_shows_all_that_is_known_of_it():
    found = page()
    titles = [text for text in found.texts["title"][1:] if not text.startswith("rows ")]
    assert titles == ["Rows over time", "Bookmark over time", "Where the order of updated_at turns"]
    assert [(one["class"], one["x"], one["width"]) for one in found.seen["rect"]] == [
        ("up", "0.0", "500.0"),
        ("down", "500.0", "500.0"),
    ]
    assert {"line 700", "GET /contacts", "200: 11, 429: 1", "none, 1 turn", "4.32e+04 s/s"} <= set(found.texts["td"])
    assert json.loads(found.texts["pre"][0]) == {"properties": {"stars": {"type": ["null", "integer"]}}}
    assert {"not in the SCHEMA", "never came", "was number as well"} <= set(found.texts["td"])
    assert [one.get("class") for one in found.seen["tr"]].count("failed") == 2


def test_links_lead_to_a_place():
    runs = [RunFacts("sync", streams={"a": contacts("a"), "b": contacts("b")}), RunFacts("resumed from STATE 1 of 3")]
    runs[1].streams = {"b": contacts("b")}
    found = page(runs=runs, findings=[Finding("C113", "x", "warning", "b"), Finding("C113", "x", "warning", "c")])
    ids = {one["id"] for one in found.seen["details"] if "id" in one}
    assert ids == {"s0-0", "s0-1", "s1-0"}
    assert [one["href"] for one in found.seen["a"]] == ["#s0-1", "#s0-0", "#s0-1", "#s1-0"]
    assert [("open" in one) for one in found.seen["details"] if "id" in one] == [True, True, False]


def test_what_was_not_looked_at_is_told_once_a_reason():
    found = page(gone=["C113|old|"])
    assert {"P606, P607", "no rows came", "H701", "behind a proxy"} <= set(found.texts["td"])
    assert "C113|old|" in found.texts["li"]


def test_a_large_verification_gives_a_page_that_opens():
    """Findings, plots and tables of fields have their limits; what is left out is told."""
    findings = [Finding("R501", "a field that nobody knows", "warning", "a", f"f{i}") for i in range(5000)]
    stream = contacts()
    stream.series = [[i / 10, i, str(i)] for i in range(500)]
    stream.fields = {f"field_{i}": {"declared": ["string"], "seen": [], "nulls": 0, "rows": 0} for i in range(100)}
    streams = {f"stream_{i}": stream for i in range(450)}
    source = as_html(verification(findings=findings, runs=[RunFacts("sync", streams=streams)]))
    assert len(source) < 20_000_000
    assert "... and 3,000 more: see --format json." in source
    assert "... and 100 more: see --format json." in source
    assert "There are too many plots for a page: see --format json." in source
    assert source.count('<details class="stream"') == 450


@pytest.mark.parametrize(
    ("texts", "plotted"),
    [
        ([None, "2024-01-01", "2024-01-02"], True),
        (["2024-01-01 10:00:00", "2024-01-01 11:00:00"], True),
        (["7", None, "8.5"], True),
        (["a", "2024-01-01"], False),
        (["7", "b"], False),
    ],
    ids=["date", "no-zone", "numbers", "mixed", "text"],
)
def test_bookmarks_as_text_become_points_of_a_plot(texts, plotted):
    stream = contacts()
    stream.series = [[float(number), number, text] for number, text in enumerate(texts)]
    found = page(runs=[RunFacts("sync", streams={"a": stream})])
    assert ("Bookmark over time" in found.texts["title"]) is plotted


@pytest.mark.parametrize(
    ("declared", "seen", "rows", "said"),
    [
        (None, [], 3, "not in the SCHEMA"),
        (["string"], [], 0, "never came"),
        (["integer"], ["integer", "string"], 3, "was string as well"),
        (["number"], ["integer"], 3, ""),
        ([], ["integer"], 3, ""),
    ],
    ids=["unknown", "never", "other", "number-takes-integer", "says-nothing"],
)
def test_a_field_is_remarked_on_where_it_is_strange(declared, seen, rows, said):
    stream = contacts()
    stream.fields = {"field": {"declared": declared, "seen": seen, "nulls": 0, "rows": rows}}
    cells = page(runs=[RunFacts("sync", streams={"a": stream})]).texts["td"]
    remarks = {"not in the SCHEMA", "never came", "was string as well", "was integer as well"}
    assert remarks & set(cells) == {said} - {""}


def test_no_secret_of_a_config_is_in_the_patch():
    """A value that a source sends back may be one."""
    secret = canary("patch")
    bearer(secret)
    stream = contacts()
    stream.patch = {"properties": {secret: {}}}
    assert secret not in as_html(verification(runs=[RunFacts("sync", streams={"a": stream})]))


@pytest.mark.parametrize("text", HOSTILE, ids=HOSTILE_IDS)
def test_text_from_outside_is_text(text):
    source = as_html(hostile(text))
    found = Page(source)
    assert len(found.seen["script"]) == len(found.seen["style"]) == 1
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]", source)
    assert not re.search(r"https?:|url\(|@import|src=[^x]", source.replace("&lt;img src=x", ""))
    assert json.loads(found.texts["pre"][-1]) == {"properties": {text: {"type": [text]}}}
    source.encode()
