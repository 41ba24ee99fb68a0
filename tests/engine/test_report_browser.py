"""The page of a run in a real browser: it sorts, unfolds, prints, fits a phone, and asks for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tapprocess import write_tap

from support.cli import burler
from tests.browsers import chromium, opened, sideways, violations

LONG = "every_order_line_of_the_northern_region_since_the_beginning_of_the_books"
TAP = f"""
import burler

tap = burler.tap("tap-desk")
AT = {{"type": "string", "format": "date-time"}}
FIELDS = {{"properties": {{"id": {{"type": "integer"}}, "account": {{"type": "string"}}, "at": AT}}}}

@tap.partitions("tickets", key="account")
def accounts():
    return [{{"account": name}} for name in "abc"]

@tap.sync("tickets", key_properties="id", replication_key="at", schema=FIELDS)
def tickets(partition):
    for i in range(4):
        yield {{"id": i, "account": partition["account"], "at": f"2024-05-01T0{{i}}:00:00.123456Z"}}
    if partition["account"] == "b":
        raise PermissionError("403 Forbidden: <script>document.title='pwned'</script> ask who may read tickets " * 3)

@tap.sync("{LONG}", key_properties="id", replication_key="at", order="asc", schema=FIELDS)
def lines():
    yield from ({{"id": i, "at": f"2024-05-01T00:{{i // 60:02}}:{{i % 60:02}}.123456Z"}} for i in range(500))

@tap.sync("users", key_properties="id", schema=FIELDS)
def users():
    yield from ({{"id": i}} for i in range(20))
"""


@pytest.fixture(scope="module")
def browser():
    yield from chromium()


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    assert burler("run", write_tap(folder, TAP), "--report", "report.html", cwd=folder).code == 1
    return folder / "report.html"


@pytest.fixture
def tab(browser, report, request):
    """The page; parameters say how it is shown."""
    context = browser.new_context(**getattr(request, "param", {}))
    yield opened(context, report.as_uri())
    context.close()


def names(tab) -> list[str]:
    return [text.strip() for text in tab.locator("table").first.locator("tbody td:first-child").all_inner_texts()]


@pytest.mark.parametrize("tab", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True)
def test_it_opens_without_errors_and_can_be_read(tab):
    tab.evaluate("() => document.querySelectorAll('details').forEach(part => part.open = true)")
    assert violations(tab) == []
    assert tab.title() == "tap-desk: failed"
    assert tab.wrong == []


def test_a_click_and_a_key_sort(tab):
    head = tab.locator("th", has_text="rows").first
    head.click()
    assert names(tab) == [LONG, "users", "tickets"]
    assert head.get_attribute("aria-sort") == "descending"
    head.press("Enter")
    assert names(tab) == ["tickets", "users", LONG]
    assert head.get_attribute("aria-sort") == "ascending"
    assert tab.wrong == []


def test_a_link_unfolds_the_plots_of_its_stream(tab):
    tab.evaluate("() => document.querySelectorAll('details').forEach(part => part.open = false)")
    tab.get_by_role("link", name=LONG).click()
    plots = tab.locator("details[open] svg")
    assert plots.count() == 2
    for at in range(2):
        box = plots.nth(at).bounding_box()
        assert box["width"] > 200 and box["height"] > 60


@pytest.mark.parametrize("tab", [{"viewport": {"width": w, "height": 740}} for w in (1200, 400)], indirect=True)
def test_no_column_is_out_of_reach(tab):
    assert sideways(tab) <= 0
    table = tab.locator(".scroll").first
    wide = table.evaluate("part => part.scrollWidth > part.clientWidth + 1")
    assert wide is (tab.viewport_size["width"] == 400)  # 1200 pixels have room for all
    table.evaluate("part => part.scrollLeft = 10000")
    shown, edge = tab.locator("td:first-child").first.bounding_box(), table.bounding_box()
    assert abs(shown["x"] - edge["x"]) <= 2  # which stream it is stays in sight
    last = table.locator("td").nth(10).bounding_box()
    assert last["x"] + last["width"] <= edge["x"] + edge["width"] + 1


def test_printed_it_has_all_columns(tab):
    tab.emulate_media(media="print")
    tab.set_viewport_size({"width": 1040, "height": 740})  # A4, across
    table = tab.locator(".scroll").first
    assert table.evaluate("part => part.querySelector('table').offsetWidth - part.clientWidth") <= 0
    assert tab.locator("th", has_text="bookmark to").is_visible()
