"""docs/sql.md: its snippets run in order, as a reader would type them, and hold what they say."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"


def test_the_snippets_of_the_page_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {"__name__": "snippet"}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "docs/sql.md", "exec"), scope)
    scope["shop"].close()
    assert not scope["second"].result.errors


def test_the_options_that_the_page_names_are_those_there_are():
    import inspect

    from burler.sql import Database

    text = PAGE.read_text(encoding="utf-8")
    for function in (Database.__init__, Database.discover):
        for name in list(inspect.signature(function).parameters)[1:]:
            assert name == "url" or f"`{name}" in text, name
