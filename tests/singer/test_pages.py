"""docs/selecting.md and docs/without-the-framework.md: snippets run, and every public name has its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import burler.config
import burler.schema
import burler.singer

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "without-the-framework.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", [burler.singer, burler.config, burler.schema], ids=lambda module: module.__name__)
def test_every_public_name_has_its_line(module):
    part = PAGE.split(f"## `{module.__name__}`")[1].split("\n## ")[0]
    listed = set(re.findall(r"`(\w+)", part.split("|---|---|")[1]))
    assert set(module.__all__) <= listed


def test_the_snippet_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(block, "docs/without-the-framework.md", "exec"), {})
    assert capsys.readouterr().out == "customers {'type': 'object', 'properties': {'id': {'type': 'integer'}}}\n"
