"""docs/patterns.md: its snippets run in order, the STATEs it shows are those of its runs, and nothing is left out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import burler.patterns

PAGE = (Path(__file__).parents[2] / "docs" / "patterns.md").read_text(encoding="utf-8")


def test_the_page_shows_what_its_runs_give():
    """A JSON block is a STATE of the run before it."""
    scope = {"__name__": "snippet"}
    states = 0
    for kind, block in re.findall(r"```(python|json)\n(.*?)```", PAGE, re.DOTALL):
        if kind == "python":
            ran = "out = run_tap(" in block
            exec(compile(block, "docs/patterns.md", "exec", dont_inherit=True), scope)
            assert not ran or scope["out"].result.exit_code == (scope.get("broken") == "c")
        else:
            states += 1
            assert ran
            assert json.loads(block) == scope["out"].states[-1]
    assert states == 6


def test_each_pattern_has_an_example_what_may_come_twice_and_its_reference():
    for name in burler.patterns.__all__:
        assert re.search(rf"auto(function|class):: burler.patterns.{name}\n", PAGE), name
    sections = [part for part in PAGE.split("\n## ")[1:] if not part.startswith("Reference")]
    shown = "".join(block for part in sections for block in re.findall(r"```python\n(.*?)```", part, re.DOTALL))
    for name in set(burler.patterns.__all__) - {"Window", "IdRange"}:
        assert f"import {name}" in shown or f", {name}" in shown, name
    for part in sections:
        for said in ("```python", "**Never lost**", "**May come twice**"):
            assert said in part, (said, part[:40])


def test_the_packages_names_are_all_there_and_lazy():
    import subprocess
    import sys

    package = burler.patterns
    assert list(package.__all__) == sorted(package.__all__, key=lambda name: (not name[0].isupper(), name))
    for name in package.__all__:
        assert getattr(package, name).__doc__, name
    present = {name for name in vars(package) if name[0] != "_" and not isinstance(vars(package)[name], type(re))}
    assert present - {"annotations", "lazy_names", "TYPE_CHECKING"} == set(package.__all__)
    folder = Path(package.__file__).parent
    assert not {path.stem for path in folder.iterdir()} & set(package.__all__)
    code = "import sys, burler.patterns; print([name for name in sys.modules if name.startswith('burler.patterns.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
