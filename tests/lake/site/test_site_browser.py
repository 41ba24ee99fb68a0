"""The pages in a real browser, opened from the disk: nothing is fetched, nothing fails, everybody can read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import browsers
from tests.browsers import sideways, violations

BOOKS = "taps/tap-library/books.html"
DEMO = ("index.html", "taps/tap-library/index.html", BOOKS, "taps/tap-library/books.1.html")
PHONE = {"width": 360, "height": 740}


@pytest.fixture
def opened(browser):
    """``opened(site, page, **context)``: a page, and what went wrong on it."""
    contexts = []

    def open_page(site, page, **options):
        contexts.append(browser.new_context(**options))
        return browsers.opened(contexts[-1], (site.out / page).as_uri(), site.out.as_uri() + "/", "data:")

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("page", DEMO)
def test_pages_open_without_errors_and_are_accessible(demo, opened, page, scheme):
    """In the dark by night: in a push two other tests look at its colours."""
    tab = opened(demo, page, color_scheme=scheme)
    tab.evaluate("() => document.querySelectorAll('details').forEach(part => part.open = true)")
    assert violations(tab, *(["color-contrast"] if scheme == "dark" else [])) == []  # the rest is the same in both
    assert tab.wrong == []


def test_an_open_search_is_accessible_too(demo, opened):
    tab = opened(demo, BOOKS, color_scheme="dark")
    tab.locator("#search").fill("pub")
    tab.locator("#found a").first.wait_for()
    assert violations(tab) == []


def test_a_page_that_does_not_speak_of_names_is_found_by_axe(demo, opened):
    """The check itself can fail: a picture without words, a grey on grey."""
    tab = opened(demo, "index.html")
    tab.evaluate("() => document.querySelector('main').insertAdjacentHTML('beforeend', '<img src=\"data:,\">')")
    assert any("image-alt" in found for found in violations(tab))


def test_a_phone_scrolls_no_page_sideways(demo, opened):
    tab = opened(demo, DEMO[0], viewport=PHONE)
    for page in DEMO:
        tab.goto((demo.out / page).as_uri())
        tab.evaluate("() => document.querySelectorAll('details').forEach(part => part.open = true)")
        assert sideways(tab) <= 0, page


def test_hostile_names_run_no_code_break_no_page_and_fit_a_phone(hostile, opened):
    pages = hostile.pages()
    tab = opened(hostile, "index.html", viewport=PHONE)
    for page in [*pages[:: max(1, len(pages) // 8)], *(page for page in pages if "script" in page)][:16]:
        tab.goto((hostile.out / page).as_uri())
        tab.evaluate("() => document.querySelectorAll('details').forEach(part => part.open = true)")
        assert tab.evaluate("() => document.body.dataset.pwned") is None, page
        assert sideways(tab) <= 0, page
    tab.locator("#search").fill("<script>")
    tab.locator("#found a").first.wait_for()
    assert tab.evaluate("() => document.body.dataset.pwned") is None
    assert tab.wrong == []


def test_a_hostile_page_is_accessible(hostile, opened):
    index = hostile.index()
    tap, _, page, _ = index["streams"][5]
    tab = opened(hostile, f"taps/{index['taps'][tap][1]}/{page}.html")
    assert violations(tab) == []


def test_the_search_finds_a_nested_field_and_leads_to_its_row(demo, opened):
    tab = opened(demo, "index.html")
    tab.keyboard.press("/")
    tab.keyboard.type("address.cit")
    tab.locator("#found a").first.wait_for()
    assert tab.locator("#found .hit").all_inner_texts() == ["publisher.address.city"]
    assert "tap-library / books" in tab.locator("#found .in").first.inner_text()
    assert tab.locator("[role=status]").inner_text() == "1 hit"
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/books.html#*")
    row = tab.locator("tr:target")
    assert row.locator("th").inner_text() == "publisher.address.city"
    assert row.is_visible()
    assert tab.wrong == []


def test_the_search_puts_taps_and_streams_before_fields_and_works_by_keyboard(demo, opened):
    tab = opened(demo, BOOKS)
    tab.locator("#search").fill("branch")
    tab.locator("#found a").first.wait_for()
    sorts = tab.locator("#found .sort").all_inner_texts()
    assert sorts[0] == "field"  # loans.branch is called exactly so
    assert "stream" in sorts
    tab.locator("#search").fill("tap-library")
    tab.wait_for_function("document.querySelector('#found .sort').textContent === 'tap'")
    tab.keyboard.press("ArrowDown")
    assert tab.evaluate("() => document.activeElement.closest('#found li').previousElementSibling") is None
    tab.keyboard.press("Escape")
    assert tab.locator("#found").is_hidden()
    tab.locator("#search").fill("no such thing at all")
    tab.wait_for_function("document.querySelector('.found-count').textContent.startsWith('Nothing')")
    assert tab.wrong == []


def test_without_javascript_pages_are_read_all_the_same(demo, opened):
    tab = opened(demo, BOOKS, java_script_enabled=False)
    assert tab.locator("form.search").is_hidden()
    assert tab.locator("button.theme").is_hidden()
    assert tab.get_by_role("heading", name="Schema versions").is_visible()
    assert tab.get_by_text("With its currency: 12.50 EUR.").first.is_visible()
    tab.get_by_text("The numbers").click()
    assert tab.get_by_role("cell", name="2024-01-08").or_(tab.locator("th", has_text="2024-01-08")).first.is_visible()


def test_the_button_turns_the_colours_and_the_choice_stays(demo, opened):
    tab = opened(demo, "index.html", color_scheme="light")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    light = tab.evaluate(ground)
    tab.get_by_role("button", name="Dark").click()
    dark = tab.evaluate(ground)
    assert light != dark
    tab.goto((demo.out / BOOKS).as_uri())
    assert tab.evaluate(ground) == dark
    assert violations(tab, "color-contrast") == []
    assert tab.get_by_role("button", name="Light").is_visible()


def test_the_list_of_streams_sorts_by_numbers(demo, opened):
    tab = opened(demo, "taps/tap-library/index.html")
    names = tab.locator(".list tbody th a")
    assert names.all_inner_texts() == ["books", "branches", "closed_days", "loans"]
    tab.get_by_role("button", name="Rows").click()
    assert names.all_inner_texts() == ["loans", "books", "branches", "closed_days"]
    assert tab.locator("th[aria-sort=descending]").inner_text().startswith("Rows")
    tab.get_by_role("button", name="Rows").click()
    assert names.all_inner_texts() == ["closed_days", "branches", "books", "loans"]


def test_paper_gets_the_text_without_the_bar_and_with_what_is_folded(demo, opened, tmp_path: Path):
    tab = opened(demo, BOOKS, color_scheme="dark")
    tab.emulate_media(media="print")
    assert tab.locator("header.top").is_hidden()
    assert tab.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    tab.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    assert tab.locator("#samples ~ details:not([open])").count() == 0
    assert tab.get_by_text("The numbers").is_hidden()  # the plots are there
    tab.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    assert tab.locator("#samples ~ details:not([open])").count() == 1
    tab.pdf(path=tmp_path / "books.pdf")
    assert (tmp_path / "books.pdf").stat().st_size > 10_000


def test_a_plot_says_in_words_what_it_shows(demo, opened):
    tab = opened(demo, BOOKS)
    plot = tab.get_by_role("img").first
    assert plot.get_attribute("aria-label") == (
        "Rows per day from 2024-01-08 to 2024-03-17: 6,074 in all, most at 2024-03-15 with 189."
    )
    assert plot.bounding_box()["height"] > 100
    heights = [box.bounding_box()["height"] for box in tab.locator(".plot .value").all()[:64]]
    assert max(heights) < 145
    assert min(heights) > 0
