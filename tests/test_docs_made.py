"""Pages and tables that are made from the code (packages, commands, errors, rules, settings, what is measured) are
current, and leave nothing out."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click
import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
sys.path.append(str(DOCS))

import make_pages  # noqa: E402
from making import blocks, commands, guidance, texts  # noqa: E402

import burler  # noqa: E402
from burler import errors, measures  # noqa: E402
from burler.cli.main import cli  # noqa: E402

CURE = "run: python docs/make_pages.py"


@pytest.fixture(scope="module")
def made():
    """What each folder should hold: folder -> name of a file -> text."""
    return {folder: pages() for folder, pages in make_pages.FOLDERS.items()}


@pytest.mark.parametrize("folder", sorted(make_pages.FOLDERS))
def test_the_pages_are_current(folder, made):
    there = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / folder).glob("*.md")}
    assert sorted(there) == sorted(made[folder]), CURE
    assert [name for name, text in made[folder].items() if there[name] != text] == [], CURE


def test_each_command_has_a_page_with_each_of_its_options(made):
    pages = made["cli"]
    found = dict.fromkeys(f"{'-'.join(words[1:])}.md" for words in _commands(cli, ["burler"]) if words != ["burler"])
    assert set(found) | {"tap-crm.md", "index.md"} == set(pages)
    for words, command in [*commands.commands(), ([commands.TAP], commands.script())]:
        page = pages["tap-crm.md" if words == [commands.TAP] else "-".join(words[1:]) + ".md"]
        for param in command.params:
            for option in param.opts if isinstance(param, click.Option) and not param.hidden else ():
                assert re.search(rf"`[^`]*{re.escape(option)}\b", page), f"{' '.join(words)} {option}"


def _commands(command, words):
    if not isinstance(command, click.Group):
        return [words]
    return [
        found for name, each in command.commands.items() if not each.hidden for found in _commands(each, [*words, name])
    ]


def test_every_public_name_of_every_package_is_documented():
    """A package's ``__all__`` is what it makes public; each name stands on some page with its package."""
    import importlib
    import pkgutil

    import burler

    text = "\n".join(page.read_text(encoding="utf-8") for page in [*DOCS.glob("*.md"), *(DOCS / "api").glob("*.md")])
    listed = set(re.findall(r"\bburler\.\w+\.\w+\b", text))
    for package, members in re.findall(r"automodule:: (\S+)\n   :members: ((?:.|\n {6})*)", text):
        listed |= {f"{package}.{name}" for name in re.findall(r"\w+", members)}
    packages = [importlib.import_module(f"burler.{found.name}") for found in pkgutil.iter_modules(burler.__path__)]
    public = [package for package in packages if hasattr(package, "__all__")]
    assert len(public) >= 15
    assert {f"{package.__name__}.{name}" for package in public for name in package.__all__} - listed == set()


def test_each_error_has_a_page_with_what_to_do(made):
    classes = {
        name for name, cls in vars(errors).items() if isinstance(cls, type) and issubclass(cls, errors.BurlerError)
    }
    assert set(guidance.CURES) == classes == set(texts.CLASSES)
    for name in classes:
        page = made["errors"][f"{name.lower()}.md"]
        assert f"| exit code | {vars(errors)[name].exit_code} |" in page
        assert len(guidance.CURES[name].split()) > 10


def test_an_error_that_burler_says_is_found_on_the_page_of_its_class(made, tmp_path):
    """As an operator does it: by the words of the text that do not change."""
    from burler.runtime import apps

    with pytest.raises(errors.AppError) as said:
        apps.load_app(str(tmp_path / "no_tap.py"))
    page = made["errors"]["apperror.md"]
    fixed = re.sub(r"\{[^}]*\}", "\0", page)
    pieces = [piece for line in fixed.splitlines() for piece in line.split("\0") if len(piece.split()) > 3]
    assert [piece for piece in pieces if piece in str(said.value)], str(said.value)


def test_every_word_of_an_error_that_is_put_together_is_on_a_page(made):
    """The commonest errors name the place, a fact and a cure that stand apart in the code."""
    from burler.config import check_config
    from burler.testing import run_tap

    tap = burler.tap("tap-x")
    schema = {"properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}}

    @tap.sync("rows", key_properties="id", replication_key="at", schema=schema)
    def rows():
        yield {"id": 1, "at": "2024-01-01 10:00:00"}

    said = [str(run_tap(tap).result.errors["rows"])]
    said.append(str(run_tap(tap, state={"bookmarks": {"rows": {"at": True}}}).result.errors["rows"]))
    with pytest.raises(errors.ConfigError) as lacking:
        check_config({"token": "a"}, {}, tap_name="tap-x")
    said.append(str(lacking.value))
    pages = "\n".join(made["errors"].values())
    known = {tuple(words) for line in re.sub(r"\{[^}]*\}", "\n", pages).splitlines() for words in _triples(line)}
    for text in said:
        found = [words for words in _triples(text) if words in known]
        assert len(found) >= 4, text


def _triples(line: str) -> list[tuple[str, ...]]:
    words = line.split()
    return [tuple(words[at : at + 3]) for at in range(len(words) - 2)]


def test_most_places_that_raise_give_a_text():
    """What is put together elsewhere can't be read from the code; that is to stay the exception."""
    raised = found = 0
    for path in sorted(texts.PACKAGE.rglob("*.py")):
        raised += len(
            re.findall(rf"raise (?:errors\.)?(?:{'|'.join(texts.CLASSES)})\(", path.read_text(encoding="utf-8"))
        )
    found = sum(text.kind in texts.CLASSES for text in texts.texts())
    assert found > 0.95 * raised, (found, raised)


def test_texts_are_read_from_the_code_as_people_see_them():
    import ast

    module = texts._Module("http")
    source = """
CURE = "Ask again later."
def why(name):
    return f"there is no {name} here" if name else "nothing was named here"
def go(url, tries):
    problems.append(f"{url}: is no address")
    logger.warning("asked %s %d times in vain", url, tries)
    text = f"'{url}' does not answer. " + CURE
    raise SourceError(text)
def other():
    raise PagingError(why("x"))
class A:
    def b(self):
        raise StreamError(self.stream, f"stream '{self.stream}': {len(self.rows)} rows were lost")
"""
    found = [(text.kind, text.text) for text in texts._of_module(ast.parse(source), module)]
    assert found == [
        ("gathered", "{url}: is no address"),
        ("warning", "asked {...} {...} times in vain"),
        ("SourceError", "'{url}' does not answer. Ask again later."),
        ("PagingError", "there is no {name} here"),
        ("PagingError", "nothing was named here"),
        ("StreamError", "stream '{stream}': {rows} rows were lost"),
    ]


@pytest.mark.parametrize("page", sorted(blocks.BLOCKS))
def test_the_tables_on_other_pages_are_current(page):
    assert (DOCS / page).read_text(encoding="utf-8") == blocks.pages(DOCS)[page], CURE


def test_a_page_without_the_marks_of_its_table_is_told(tmp_path):
    for page in blocks.BLOCKS:
        (tmp_path / page).write_text((DOCS / page).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "metrics.md").write_text("<!-- made from the code: lines -->\n\n<!-- end: counts -->\n", "utf-8")
    with pytest.raises(ValueError, match=r"^metrics\.md: '<!-- made from the code: lines -->' and its end must"):
        blocks.pages(tmp_path)


def test_all_that_the_code_measures_and_counts_is_in_the_tables():
    """A METRIC line has only tags that its measure names; what streams count under a name has an entry."""
    import ast

    declared = {value.name for value in vars(measures).values() if isinstance(value, measures.Measure)}
    used, counted = set(), {"passed_files", "uncounted_files", "repeated"}
    for path in sorted(texts.PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            first = node.args[0]
            if ast.unparse(node.func) in ("metric", "logs.metric"):
                measure = getattr(measures, ast.unparse(first))
                used.add(measure.name)
                assert {word.arg for word in node.keywords} - {None} <= set(measure.tags), path
            elif isinstance(first, ast.Constant) and ast.unparse(node.func).endswith(("self.count", "tally.add")):
                counted.add(first.value)
    assert used == {measure.name for measure in measures.MEASURES} == declared
    told = [count.name for count in measures.COUNTS]
    assert sorted(told) == sorted(word for word in counted if re.fullmatch(r"[a-z_]+", str(word)))


def test_the_places_that_contributors_are_sent_to_are_there():
    page = (DOCS / "contributing.md").read_text(encoding="utf-8")
    table = page.partition("## Where do I add X?")[2].partition("\n## ")[0]
    package = texts.PACKAGE
    rows = [row.split("|") for row in re.findall(r"^\| .*$", table, re.MULTILINE)[1:]]
    assert len(rows) > 15
    for _, what, where, also, _ in rows:
        for place in re.findall(r"`([\w/*.]+)`", where):
            root = package if not place.startswith(("examples", "tests")) else DOCS.parent
            found = [*root.glob(place.rstrip("/")), *root.glob(f"{place}.py")]
            assert found or place in {"load", "layout", "open_file", "base.Target"}, f"{what}: {place}"
        for place in re.findall(r"`((?:tests|docs)/[\w/.]+)`", also):
            assert (DOCS.parent / place).exists(), place


PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]
NO_NAMES = re.compile(r"burler\.(?:sh|service|timer|io|md|json|toml|egg|prom|py)\b")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_of_burler_on_a_page_are_there(page):
    """``burler.http.Client`` in text or code is something that can be imported."""
    from pkgutil import resolve_name

    text = page.read_text(encoding="utf-8")
    for name in sorted(set(re.findall(r"(?<![\w./@-])burler(?:\.[a-zA-Z_]\w*)+", text))):
        if not NO_NAMES.match(name):
            assert _resolves(name, resolve_name), f"{page.name}: {name}"


def _resolves(name, resolve_name):
    """A module, a public name, or a field of a class (dataclasses have no attribute for those without a default)."""
    try:
        resolve_name(name)
    except AttributeError:
        owner, _, last = name.rpartition(".")
        return last in getattr(resolve_name(owner), "__annotations__", {})
    except ImportError:
        return False
    return True


def test_the_way_round_the_tree_is_as_it_is_told():
    """docs/contributing.md, ten minutes: the files and names it goes to, and the README it begins with."""
    from burler.runtime.outlet import Outlet
    from burler.runtime.sync import Engine
    from burler.runtime.writing import Writing

    page = (DOCS / "contributing.md").read_text(encoding="utf-8").partition("## Set-up")[0]
    for place in re.findall(r"`((?:burler|runtime|examples|\.ci)/[\w/.]+)`", page):
        assert any(root.joinpath(place).exists() for root in (DOCS.parent, texts.PACKAGE)), place
    assert all(f"`{name}`" in page for name in ("Engine.run", "Writing.process", "Outlet"))
    assert Engine.run and Writing.process and Outlet
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert "user function -> pull -> shape -> bookmark -> sink" in readme[:4000]
    first = re.search(r"```python\n(.*?)```", readme, re.DOTALL)[1]
    assert len(first.splitlines()) <= 20


def test_each_decorator_fits_on_a_screen_and_ends_in_the_registry():
    import inspect

    from burler.declare.tap import Tap

    seen = 0
    for name, method in vars(Tap).items():
        if inspect.isfunction(method) and (method.__doc__ or "").startswith(("Decorator:", "A stream")):
            source = inspect.getsource(method)
            assert len(source.splitlines()) <= 40, name
            assert "self._registry." in source or "self._part(" in source, name
            seen += 1
    assert seen >= 8
