"""docs/installing.md does what it says and names all extras; what docs/releasing.md asks for exists."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tomllib

import pytest

from tests.console_pages import Shell, matches, steps
from tests.packaging.artifacts import ROOT, copy_of_tree
from tests.packaging.borrowed import lend, needed
from tests.packaging.checks import FOR_DEVELOPERS

INSTALLING = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
RELEASING = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")


def test_the_table_of_extras_is_whole():
    rows = re.findall(r"^\| ((?:`[a-z0-9-]+`(?:, )?)+|none) \|", INSTALLING, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"[a-z0-9-]+", row)]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert sorted(named) == sorted({"none", *project["optional-dependencies"]} - set(FOR_DEVELOPERS))


def test_an_install_out_of_the_clone(tmp_path, wheel):
    packages, work = tmp_path / "packages", tmp_path / "work"
    packages.mkdir(), work.mkdir()
    lend([*needed(wheel, ()).values(), importlib.metadata.distribution("setuptools")], packages)
    pip = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "false", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    shell = Shell(work, PYTHONPATH=str(packages), BURLER=str(copy_of_tree(tmp_path / "clone")), **pip)
    typed = 0
    try:
        for kind, what, text in steps(INSTALLING):
            if kind == "type":
                said = shell.type(what)
                assert matches(text, said), f"$ {what}\n{said}\n--- the page shows:\n{text}"
                typed += 1
    finally:
        shell.close()
    assert typed == 4


def test_what_the_checklist_asks_for_exists():
    commands = [
        command for line in RELEASING.splitlines() if line.startswith("| ") for command in re.findall("`([^`]+)`", line)
    ]
    targets = {command.split()[1] for command in commands if command.startswith("make ")}
    assert len(targets) >= 9
    for target in targets:  # -n: says what it would do, and does nothing
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True, timeout=60)
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run(["make", "-n", "no-such-target"], cwd=ROOT, check=True, capture_output=True)
    files = {word for command in commands for word in command.split() if "/" in word or word.endswith(".md")}
    assert {"tests/packaging/notebook.py", ".ci/run", "CHANGELOG.md", "burler/__init__.py"} <= files
    assert [name for name in files if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("script", ["extras.py", "notebook.py"])
def test_scripts_that_are_run_by_hand_begin(script):
    asked = [sys.executable, str(ROOT / "tests" / "packaging" / script), "--help"]
    assert "--python" in subprocess.run(asked, capture_output=True, text=True, check=True).stdout
