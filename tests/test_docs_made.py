"""Pages that are made from the code leave nothing out; what any page links to or names is there.

Nothing here holds a wording: a text may change without a word to these tests.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import posixpath
import re
from pathlib import Path

import click

import burler
from burler import errors

PACKAGE = Path(burler.__file__).parent
DOCS = PACKAGE.parent / "docs"


def test_links_lead_somewhere(docs_pages):
    dead = []
    for page, text in docs_pages.items():
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            place = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
            there = place in docs_pages or (not place.startswith("reference/") and (DOCS / place).exists())
            if not target.startswith("http") and not there:
                dead.append(f"{page}: {target}")
    assert dead == []


def test_names_of_burler_on_a_page_are_there(docs_pages):
    """``burler.http.Client`` in text or code is something that can be imported."""
    no_names = re.compile(r"burler\.(?:sh|service|timer|io|md|json|toml|egg|prom|py)\b")
    named = re.compile(r"(?<![\w./@-])burler(?:\.[a-zA-Z_]\w*)+")
    found = {(name, page) for page, text in docs_pages.items() for name in named.findall(text)}
    there = {name: bool(no_names.match(name)) or _resolves(name) for name in {name for name, _ in found}}
    assert sorted(f"{page}: {name}" for name, page in found if not there[name]) == []


def _resolves(name):
    """A module, a public name, or a field of a class (dataclasses have no attribute for those without a default)."""
    try:
        pkgutil.resolve_name(name)
    except AttributeError:
        owner, _, last = name.rpartition(".")
        return last in getattr(pkgutil.resolve_name(owner), "__annotations__", {})
    except ImportError:
        return False
    return True


def test_each_command_has_a_page_with_each_of_its_options(docs_pages):
    from making import commands

    lacking = []
    every = {**{" ".join(words): command for words, command in commands.commands()}, commands.TAP: commands.script()}
    assert len(every) > 20
    for name, command in every.items():
        page = docs_pages[f"reference/cli/{name.removeprefix('burler ').replace(' ', '-')}.md"]
        for param in command.params:
            for option in param.opts if isinstance(param, click.Option) and not param.hidden else ():
                if not re.search(rf"`[^`]*{re.escape(option)}\b", page):
                    lacking.append(f"{name} {option}")
    assert lacking == []


def test_each_class_of_error_says_its_exit_code_and_what_to_do(docs_pages):
    from making.errors import CLASSES, cure, meaning

    classes = [cls for cls in vars(errors).values() if inspect.isclass(cls) and issubclass(cls, errors.BurlerError)]
    assert list(CLASSES.values()) == classes and len(classes) > 30
    parts = dict(part.split("\n", 1) for part in docs_pages["reference/errors.md"].split("\n## ")[1:])
    assert set(parts) == set(CLASSES)
    for name, cls in CLASSES.items():
        assert meaning(cls) in parts[name] and f"Exit code {cls.exit_code}." in parts[name], name
        assert len(" ".join(cure(cls)).split()) > 10, f"{name}: its docstring does not say what to do"
        assert all(text in parts[name] for text in cure(cls)), name


def test_every_public_name_of_every_package_is_documented(docs_pages):
    """A package's ``__all__`` is what it makes public; each name stands on some page with its package."""
    text = "\n".join(docs_pages.values())
    listed = set(re.findall(r"\bburler\.\w+\.\w+\b", text))
    for package, members in re.findall(r"automodule:: (\S+)\n   :members: ((?:.|\n {6})*)", text):
        listed |= {f"{package}.{name}" for name in re.findall(r"\w+", members)}
    packages = [importlib.import_module(f"burler.{found.name}") for found in pkgutil.iter_modules(burler.__path__)]
    public = [package for package in packages if hasattr(package, "__all__")]
    assert len(public) >= 15
    assert {f"{package.__name__}.{name}" for package in public for name in package.__all__} - listed == set()


def test_the_places_that_contributors_are_sent_to_are_there():
    page = (DOCS / "contributing.md").read_text(encoding="utf-8")
    way, _, table = page.partition("## Where do I add or change X?")
    places = re.findall(r"`((?:burler|runtime|examples|tests|docs|\.ci)/[\w/.]+)`", page)
    rows = [row.split("|") for row in re.findall(r"^\| .*$", table, re.MULTILINE)]
    assert len(rows) > 50
    for _, _, cell, _ in rows:
        where = cell.partition(". ")[0]  # behind it stands what else is to be done
        places += set(re.findall(r"`([\w/*.]+)`", where)) - {"load", "base.Target"}
    places.remove("docs/reference")  # made
    roots = (DOCS.parent, PACKAGE)
    assert [
        one for one in places if not any([*root.glob(one.rstrip("/")), *root.glob(f"{one}.py")] for root in roots)
    ] == []
    code = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    named = set(re.findall(r"`([A-Z][a-z]\w+)(?:\.\w+)?`", way.partition("## Set-up")[0]))
    assert len(named) >= 3 and [name for name in named if f"\nclass {name}" not in code] == []


def test_the_stops_of_the_walks_are_there():
    """Each stop of the walk of a row, and of a bookmark, names one function."""
    walks = (
        (DOCS / "concepts.md").read_text(encoding="utf-8").partition("## The walk of a row")[2].partition("\n## ")[0]
    )
    stops = re.findall(r"^\d\. `([\w/]+)\.py` `(?:(\w+)\.)?(\w+)`:", walks, re.MULTILINE)
    assert len(stops) == len(re.findall(r"^\d\. ", walks, re.MULTILINE)) >= 10
    for module, cls, function in stops:
        found: ast.Module | ast.ClassDef = ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))
        if cls:
            found = next(node for node in found.body if isinstance(node, ast.ClassDef) and node.name == cls)
        assert function in {one.name for one in found.body if isinstance(one, ast.FunctionDef)}, (module, cls, function)
