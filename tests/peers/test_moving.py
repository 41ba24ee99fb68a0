"""The pages on moving from singer-python and from the Singer SDK show what their commands print."""

from __future__ import annotations

import os
from pathlib import Path

import peers_environment
import pytest

from tests.console_pages import Shell, matches, steps

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# The pages say ports; the tutorial's may be in use by its own test.
PORTS = {"8321": "8341", "8322": "8342", "8777": "8343"}


def ports_of_our_own(text: str) -> str:
    for theirs, ours in PORTS.items():
        text = text.replace(theirs, ours)
    return text


@pytest.fixture
def folder(tmp_path, peers):
    """Where a reader would stand: in a clone, with the environments of the old taps beside him."""
    try:
        gitlab = peers_environment.make_tap("gitlab")
    except peers_environment.NotInstalled as error:
        pytest.skip(f"the old tap can't be installed: {error}")
    (tmp_path / "sdk").symlink_to(peers.parent)
    (tmp_path / "old").symlink_to(gitlab.parent)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for page, names in {"tutorial.md": ("shop.py",), "from-singer-python.md": ("same.py",)}.items():
        for kind, name, text in steps((DOCS / page).read_text(encoding="utf-8")):
            if kind == "save" and name in names:
                (tmp_path / name).write_text(ports_of_our_own(text), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", ["from-singer-python.md", "from-singer-sdk.md"])
def test_a_page_shows_what_its_commands_print(folder, name):
    where = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    shell = Shell(folder, PYTHONPATH=where, NO_PROXY="127.0.0.1")
    typed = 0
    try:
        for kind, what, text in steps(ports_of_our_own((DOCS / name).read_text(encoding="utf-8"))):
            if kind == "save":
                (folder / what).write_text(text, encoding="utf-8")
                continue
            said = shell.type(what)
            assert matches(text, said), f"$ {what}\n{said}\n--- the page shows:\n{text}"
            typed += 1
    finally:
        shell.close()
    assert typed > 5
