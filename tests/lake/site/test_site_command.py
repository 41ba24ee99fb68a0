"""``burler lake docs``, and the page of the docs about it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from site_demo import write

from support.cli import burler, burler_process

DOCS = Path(__file__).resolve().parents[3] / "docs" / "lake-site.md"


def run(*arguments, **environment):
    return burler("lake", "docs", *arguments, **environment)


def test_the_command_makes_a_site_and_tells_where(lake, tmp_path: Path):
    write(lake)
    out = tmp_path / "site"
    done = run(lake.path, out, "--title", "My lake", SOURCE_DATE_EPOCH="1710754200")
    assert (done.code, done.text) == (0, f"{out}/index.html: 1 tap, 1 stream; the site has 8 files\n")
    assert "2024-03-18 09:30 UTC</time>; ages count from then" in (out / "index.html").read_text()
    lake.manifest_path().write_text("{")
    done = run(lake.path, out)
    assert done.code == 1
    assert "WARNING tap-x/users: raw/tap-x/users/manifest.json is broken" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("{none}", "{out}"), "there is no lake"),
        (("{lake}", ""), "needs a folder"),
        (("{lake}", "{lake}/raw/site"), "lies among the data"),
        (("{lake}", "{out}", "--samples", "-1"), "--samples"),
    ],
    ids=["no-lake", "no-folder", "inside-the-data", "negative"],
)
def test_wrong_use_ends_with_exit_code_2(lake, tmp_path, arguments, said):
    write(lake)
    places = {"lake": lake.path, "none": tmp_path / "none", "out": tmp_path / "out"}
    done = run(*(argument.format(**places) for argument in arguments))
    assert (done.code, said in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "out").exists()


def test_a_time_that_is_none_ends_with_exit_code_2(lake, tmp_path):
    write(lake)
    done = run(lake.path, tmp_path / "out", SOURCE_DATE_EPOCH="yesterday")
    assert (done.code, "SOURCE_DATE_EPOCH is 'yesterday'" in done.stderr) == (2, True)


def test_without_jinja2_it_says_what_to_install(lake, tmp_path):
    write(lake)
    (tmp_path / "blocked" / "jinja2").mkdir(parents=True)
    (tmp_path / "blocked" / "jinja2" / "__init__.py").write_text("raise ModuleNotFoundError(name='jinja2')")
    done = burler_process("lake", "docs", lake.path, tmp_path / "out", PYTHONPATH=str(tmp_path / "blocked"))
    assert done.code == 2
    assert "docs-site" in done.stderr
    assert not (tmp_path / "out" / "index.html").exists()


def test_the_snippet_of_the_docs_makes_a_site(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    scope: dict = {"__name__": "snippet"}
    exec(compile(block, str(DOCS), "exec"), scope)
    assert (scope["built"].streams, scope["built"].problems) == (1, ())
    assert "<h1>Our shop</h1>" in scope["built"].index.read_text()
    assert capsys.readouterr().out == ""


def test_every_option_stands_in_the_docs():
    text = DOCS.read_text()
    options = re.findall(r"^  (--[a-z-]+)", run("--help").text, re.MULTILINE)
    assert len(options) > 2
    assert [name for name in options if name != "--help" and name not in text] == []
