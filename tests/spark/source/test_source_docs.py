"""The snippets of docs/spark-sources.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from reading import source

from burler.errors import UsageError

PAGE = Path(__file__).parents[3] / "docs" / "spark-sources.md"


def test_snippets_run_in_order(spark):
    scope = {"__name__": "__main__"}
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(found) == 2
    for block in found:
        exec(compile(block, "docs/spark-sources.md", "exec"), scope)
    assert scope["spark"] is spark
    assert sorted(map(tuple, scope["warm"])) == [("bonn", 3), ("oslo", 3)]


def test_every_option_stands_in_the_table():
    table = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    with pytest.raises(UsageError) as told:
        source(app="x", nothing="y").schema()
    assert sorted(str(told.value).partition("Options: ")[2].rstrip(".").split(", ")) == sorted(table)
