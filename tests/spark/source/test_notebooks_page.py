"""docs/notebooks.md: its cells run in order, as in a kernel."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.tutorial_shop import DOCS, shop_in

PAGE = DOCS / "notebooks.md"
CELL = re.compile(r"^```python\n(.*?)^```$|^    !burler (run [^\n]*)$", re.DOTALL | re.MULTILINE)


def test_the_cells_run_in_order(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {"__name__": "__main__"}
    kinds = []
    with shop_in(tmp_path):
        for cell, command in CELL.findall(PAGE.read_text(encoding="utf-8")):
            kinds.append("command" if command else "python")
            if command:
                subprocess.run([sys.executable, "-m", "burler", *command.split()], check=True, capture_output=True)
            else:
                exec(compile(cell, "docs/notebooks.md", "exec"), scope)
    assert kinds.count("command") == 1 and len(kinds) == 9
    assert scope["session"] is spark
