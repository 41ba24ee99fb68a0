"""docs/packaging.md: its commands build wheels of burler and of a tap, and run the tap in an environment made for them.

There is no index: what the wheels need is found on PYTHONPATH, where burler itself is not.
"""

from __future__ import annotations

import importlib.metadata
import shutil
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


@pytest.mark.skipif(_setuptools() < 77, reason="building wheels needs setuptools 77 or newer: pip install setuptools")
def test_the_page_on_packaging_does_what_it_says(tmp_path, borrowed, clone):
    work = tmp_path / "work"
    work.mkdir()
    pip = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "false", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    shell = Shell(work, PYTHONPATH=str(borrowed), BURLER=str(clone), **pip)
    typed = 0
    try:
        for kind, what, text in steps((ROOT / "docs" / "packaging.md").read_text(encoding="utf-8")):
            assert kind == "type"
            said = shell.type(what)
            assert matches(text, said), f"$ {what}\n{said}\n--- the page shows:\n{text}"
            typed += 1
    finally:
        shell.close()
    assert typed == 9
    (package,) = (work / "fresh").glob("lib/python3*/site-packages/burler/__init__.py")
    assert package.is_file()  # it was this one that ran
