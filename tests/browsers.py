"""Pages in a real browser: Debian's chromium, headless, driven by playwright. Nothing is downloaded."""

from __future__ import annotations

import importlib.resources
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest


def chromium() -> Iterator[Any]:
    """A browser, for a fixture of a module."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e '.[test]'")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no chromium here: apt-get install chromium")
    with api.sync_playwright() as playwright:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = playwright.chromium.launch(executable_path=found, args=flags, timeout=120_000)
        yield started
        started.close()


def opened(context: Any, url: str, *allowed: str) -> Any:
    """A page; ``.wrong`` has what went wrong on it, and what it asked for beside itself and ``allowed`` beginnings."""
    tab = context.new_page()
    tab.set_default_timeout(60_000)
    tab.wrong = wrong = []

    def asked(request: Any) -> None:
        if request.url.partition("#")[0] != url and not request.url.startswith(allowed):
            wrong.append(f"asks: {request.url}")

    tab.on("console", lambda message: wrong.append(f"console: {message.text}"))
    tab.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    tab.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
    tab.on("requestfailed", lambda request: wrong.append(f"failed: {request.url}"))
    tab.on("request", asked)
    tab.goto(url)
    return tab


def violations(tab: Any, *rules: str) -> list[str]:
    """What axe-core finds, of any impact, with the first place of each; by all of its rules, or by these."""
    package = pytest.importorskip("axe_playwright_python", reason="axe is not installed: pip install -e '.[test]'")
    script = importlib.resources.files(package.__name__).joinpath("axe.min.js").read_text(encoding="utf-8")
    tab.evaluate(script)
    options = {"preload": False, "resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = tab.evaluate("options => axe.run(document, options)", options)  # preload would fetch the style sheet
    return [f"{item['impact']} {item['id']}: {item['nodes'][0]['html'][:200]}" for item in found["violations"]]


def sideways(tab: Any) -> int:
    """So many pixels a page is wider than the screen."""
    wider: int = tab.evaluate("() => document.documentElement.scrollWidth - window.innerWidth")
    return wider
