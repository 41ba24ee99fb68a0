"""docs/packaging.md: its commands build wheels of burler and of a tap, and run the tap in an environment made for them.

There is no index: what the wheels need is found on PYTHONPATH, where burler itself is not.
"""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.console_pages import Shell, matches, steps

ROOT = Path(__file__).resolve().parents[1]


def _setuptools() -> int:
    try:
        return int(importlib.metadata.version("setuptools").split(".")[0])
    except importlib.metadata.PackageNotFoundError:
        return 0


@pytest.fixture
def borrowed(tmp_path):
    """A folder with the packages of this environment, without burler."""
    folder = tmp_path / "borrowed"
    folder.mkdir()
    for place in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for found in Path(place).iterdir():
            if not found.name.startswith(("burler", "singer_burler", "__")) and found.suffix != ".pth":
                (folder / found.name).symlink_to(found)
    return folder


@pytest.fixture
def clone(tmp_path):
    """What of this tree a wheel is made of: building leaves files behind."""
    folder = tmp_path / "burler"
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "pyspark_burler.py", "pyspark_singerlake.py"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "burler", folder / "burler", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


PAGE = list(steps((ROOT / "docs" / "packaging.md").read_text(encoding="utf-8")))
AT_NIGHT = ("pip wheel ", "ls wheels", "python3 -m venv ", "fresh/bin/pip ", "../fresh/bin/burler verify ")


def typed(shell, page):
    """Type what the page shows; how many commands that were."""
    try:
        for kind, what, text in page:
            assert kind == "type"
            said = shell.type(what)
            assert matches(text, said), f"$ {what}\n{said}\n--- the page shows:\n{text}"
    finally:
        shell.close()
    return len(page)


def test_a_new_tap_does_what_the_page_says(tmp_path):
    """Where a script stands for an environment with the wheels in it."""
    scripts = tmp_path / "fresh" / "bin"
    scripts.mkdir(parents=True)
    script = scripts / "tap-drop"
    place = str(tmp_path / "tap-drop")
    script.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {place!r})\nfrom tap_drop import tap\ntap.cli()\n"
    )
    script.chmod(0o755)
    assert typed(Shell(tmp_path), [step for step in PAGE if not step[1].startswith(AT_NIGHT)]) == 4


@pytest.mark.nightly
@pytest.mark.skipif(_setuptools() < 77, reason="building wheels needs setuptools 77 or newer: pip install setuptools")
def test_the_page_on_packaging_does_what_it_says(tmp_path, borrowed, clone):
    """All of it, at night: what the wheel of burler has in it is tested in tests/packaging."""
    work = tmp_path / "work"
    work.mkdir()
    pip = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "false", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    assert typed(Shell(work, PYTHONPATH=str(borrowed), BURLER=str(clone), **pip), PAGE) == 9
    (package,) = (work / "fresh").glob("lib/python3*/site-packages/burler/__init__.py")
    assert package.is_file()  # it was this one that ran
