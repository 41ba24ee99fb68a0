"""The page of a verification in a real browser: nothing is fetched, nothing fails, boxes choose, everybody can read."""

from __future__ import annotations

import pytest
from report_sample import HOSTILE, hostile, report, verification

from tests import browsers
from tests.browsers import chromium, sideways, violations


@pytest.fixture(scope="module")
def browser():
    yield from chromium()


@pytest.fixture
def opened(browser, tmp_path):
    """``opened(verification, **context)``: its page, opened from the disk, and in ``wrong`` what went wrong on it."""
    contexts = []

    def open_page(shown, **options):
        path = tmp_path / "verify.html"
        path.write_bytes(report(shown, "html"))
        contexts.append(browser.new_context(**options))
        return browsers.opened(contexts[-1], path.as_uri())

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_without_errors_and_can_be_read(opened, scheme):
    tab = opened(verification(), color_scheme=scheme)
    tab.evaluate("() => document.querySelectorAll('details').forEach(part => part.open = true)")
    assert violations(tab) == []
    assert tab.get_by_text("GET /contacts").is_visible()
    assert tab.wrong == []


def test_boxes_choose_by_severity_without_a_script(opened):
    tab = opened(verification(), java_script_enabled=False)
    rows = [tab.locator(f"tr.{name}") for name in ("error", "warning", "info")]
    tab.get_by_label("1 warning").uncheck()
    assert [row.is_visible() for row in rows] == [True, False, True]
    tab.get_by_label("1 warning").check()
    tab.get_by_label("1 error").uncheck()
    assert [row.is_visible() for row in rows] == [False, True, True]
    tab.get_by_text("the stream has no keys").click()
    assert tab.locator("tr.warning dt").first.is_visible()
    assert tab.locator("button.copy").is_hidden()


def test_a_link_unfolds_the_stream_and_a_click_copies_its_patch(opened):
    tab = opened(verification(), permissions=["clipboard-read", "clipboard-write"])
    tab.evaluate("() => document.querySelector('#s0-0').open = false")
    tab.locator("tr.error a").click()
    tab.get_by_role("button", name="copy").click()
    tab.get_by_role("button", name="copied").wait_for()
    assert '"stars"' in tab.evaluate("() => navigator.clipboard.readText()")
    assert tab.wrong == []


def test_hostile_names_run_no_code_and_fit_a_phone(opened):
    for text in HOSTILE:
        tab = opened(hostile(text), viewport={"width": 360, "height": 740})
        tab.evaluate("() => document.querySelectorAll('details').forEach(part => part.open = true)")
        assert tab.evaluate("() => document.body.dataset.pwned") is None
        assert sideways(tab) <= 0, text[:20]
        assert tab.wrong == []
