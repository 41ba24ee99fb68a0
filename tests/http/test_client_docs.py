"""docs/http.md: its snippets run, and it names every setting there is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from faultserver import FaultServer

from burler.http import Client, Request
from burler.testing import canary

PAGE = Path(__file__).parents[2] / "docs" / "http.md"


def test_snippets_of_the_page_run_in_order():
    text = PAGE.read_text(encoding="utf-8")
    with FaultServer(streams={"orders": 250}) as server:
        scope = {"__name__": "snippet", "server": server.url, "token": canary("docs")}
        blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        for block in blocks:
            exec(compile(block, "docs/http.md", "exec"), scope)
        assert len(blocks) == 4
        assert len(scope["out"].records("orders")) == 250
        scope["shop"].close()


def test_the_page_names_all_that_can_be_said():
    text = PAGE.read_text(encoding="utf-8")
    settings = set(inspect.signature(Client).parameters) | set(inspect.signature(Request).parameters) | {"check"}
    settings -= {"method", "path"}
    assert [name for name in sorted(settings) if f"`{name}`" not in text and f"`{name}=" not in text] == []
