"""The page of a verification in a real browser: nothing is fetched, nothing fails, boxes choose, everybody can read."""

from __future__ import annotations

import importlib.resources
import os
import shutil

import pytest
from report_sample import HOSTILE, hostile, verification

from burler.verify.report import report_bytes


@pytest.fixture(scope="module")
def browser():
    """Debian's chromium, headless, driven by playwright. Nothing is downloaded."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e '.[test]'")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no chromium here: apt-get install chromium")
    with api.sync_playwright() as playwright:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        chromium = playwright.chromium.launch(executable_path=found, args=flags, timeout=120_000)
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser, tmp_path):
    """``opened(verification, **context)``: its page, opened from the disk, and in ``wrong`` what went wrong on it."""
    contexts = []

    def open_page(shown, **options):
        path = tmp_path / "verify.html"
        path.write_bytes(report_bytes(shown, "html"))
        context = browser.new_context(**options)
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(60_000)
        tab.wrong = wrong = []
        tab.on("console", lambda message: wrong.append(f"console: {message.text}"))
        tab.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        tab.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
        own = path.as_uri()
        tab.on(
            "request",
            lambda request: None if request.url.partition("#")[0] == own else wrong.append(f"asks: {request.url}"),
        )
        tab.goto(own)
        return tab

    yield open_page
    for context in contexts:
        context.close()


def violations(tab) -> list[str]:
    """What axe-core finds, of any impact."""
    package = pytest.importorskip("axe_playwright_python", reason="axe is not installed: pip install -e '.[test]'")
    script = importlib.resources.files(package.__name__).joinpath("axe.min.js").read_text(encoding="utf-8")
    tab.evaluate(script)
    found = tab.evaluate("() => axe.run(document, {preload: false, resultTypes: ['violations']})")
    return [f"{item['impact']} {item['id']}: {item['nodes'][0]['html'][:200]}" for item in found["violations"]]


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
        assert tab.evaluate("() => document.documentElement.scrollWidth - window.innerWidth") <= 0, text[:20]
        assert tab.wrong == []
