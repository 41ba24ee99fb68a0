"""Pages that are sessions in a shell show what the commands print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.console_pages import Shell, matches, steps

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = ("tutorial.md", "terminal.md")


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_shows_is_what_its_commands_print(name, tmp_path):
    shell = Shell(tmp_path)
    typed = 0
    try:
        for kind, what, text in steps((DOCS / name).read_text(encoding="utf-8")):
            if kind == "save":
                (tmp_path / what).write_text(text, encoding="utf-8")
            else:
                said = shell.type(what)
                assert matches(text, said), f"$ {what}\n{said}\n--- the page shows:\n{text}"
                typed += 1
    finally:
        shell.close()
    assert typed


def test_a_page_that_shows_something_else_is_told():
    assert matches("a ... c\n...\nend\n", "a b c\nmore\nand more\nend\n")
    assert matches("", "")
    assert not matches("a\n", "b\n")
    assert not matches("a\n", "a\nb\n")
    assert not matches("", "warning\n")
    assert matches('{"version":1795407403088}', '{"version":1795407403999}')
