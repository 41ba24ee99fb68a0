"""Tests reach burler as users do: by its public packages and the command line. What they need of its inner modules
they get from support.internals, so that a module can move without a test."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from pathlib import Path

import pytest

import burler
from support.internals import MODULES

MOST = 21
"""How many inner modules tests may reach. This number only falls."""

ROOT = Path(__file__).resolve().parents[1]
_PACKAGES = "http graphql soap sql files patterns batch lake lake.care spark verify spec config schema singer"
PUBLIC = {
    "burler",
    *(f"burler.{name}" for name in [*_PACKAGES.split(), "testing", "errors", "singer.messages", "singer.catalog"]),
}
_CODE = Path(burler.__file__).parent
ALL = {
    ".".join(("burler", *path.relative_to(_CODE).with_suffix("").parts)).removesuffix(".__init__")
    for path in _CODE.rglob("*.py")
}
INNER = ALL - PUBLIC - {"burler.__main__", "burler.pytest_plugin"}
TEXTS = {"burler.numbers": "a property of Iceberg tables", "burler.cli": "a logger"}
"""What looks like a module and is a word that users meet."""
# Type checkers read those of tests/typing: the names of classes that authors annotate with.
FREE = {
    "tests/support/internals.py",
    "tests/test_doors.py",
    "tests/typing/taps/handles.py",
    "tests/typing/taps/readers.py",
}
FILES = sorted(
    path
    for path in [*ROOT.glob("tests/**/*.py"), *ROOT.glob("examples/*/tests/**/*.py")]
    if path.relative_to(ROOT).as_posix() not in FREE
)

_DOTTED = re.compile(r"(?<![\w./-])burler(?:\.\w+)+")
_IMPORT = re.compile(r"\bimport (burler(?:\.\w+)+)")
_FROM = re.compile(r"\bfrom (burler(?:\.\w+)*) import \(?((?:\w+(?: as \w+)?,?\s*)+)")


@functools.cache
def exported(package: str) -> frozenset[str]:
    """The public names of a package."""
    return frozenset(getattr(importlib.import_module(package), "__all__", ()))


def reached(dotted: str) -> str | None:
    """The inner module that ``burler.a.b.c`` goes through, if it does."""
    module = "burler"
    for name in dotted.split(".")[1:]:
        if module in PUBLIC and name in exported(module):
            return None
        module += f".{name}"
        if module in INNER:
            return module
        if module not in ALL:
            return None
    return None


def imported(module: str, name: str) -> str | None:
    """The inner module that ``from module import name`` goes through."""
    if module in INNER:
        return module
    return reached(f"{module}.{name}")


def faults(source: str) -> list[tuple[int, str]]:
    """Where a file reaches an inner module: (line, module)."""
    found: list[tuple[int, str | None]] = []
    prose = set()
    for node in ast.walk(ast.parse(source)) if "burler" in source else ():
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found += [(node.lineno, imported(node.module, alias.name)) for alias in node.names if _ours(node.module)]
        elif isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names if alias.name in INNER]
        elif isinstance(node, ast.Attribute):
            found.append((node.lineno, reached(ast.unparse(node)) if _is_chain(node) else None))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            prose.add(node.value)
        elif isinstance(node, ast.Constant) and node not in prose and isinstance(node.value, str):
            found += [(node.lineno, module) for module in in_string(node.value)] if "burler" in node.value else []
    return sorted({(line, module) for line, module in found if module})


def in_string(text: str) -> list[str]:
    """What a program in a string imports, and whatever else names an inner module."""
    found = [name for name in _IMPORT.findall(text) if name in INNER]
    found += [reached(name) for name in _DOTTED.findall(_FROM.sub("", text)) if name not in TEXTS]
    for module, names in _FROM.findall(text):
        found += [imported(module, name.split()[0]) for name in names.split(",") if name.strip()]
    return [module for module in found if module]


def _ours(module: str) -> bool:
    return module.partition(".")[0] == "burler"


def _is_chain(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "burler"


def test_no_test_imports_an_inner_module():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in FILES
        for line, module in faults(path.read_text(encoding="utf-8"))
    ]
    assert not found, "tests reach inner modules by support.internals:\n" + "\n".join(found)


INSIDE, NAME = next(iter(MODULES.values())).rsplit(".", 1)
"""Some inner module, whatever it is called."""


@pytest.mark.parametrize(
    "source",
    [
        "from INSIDE import NAME",
        "from INSIDE.NAME import Thing",
        "import INSIDE.NAME",
        "import INSIDE.NAME as n",
        "from burler import __main__, settings",
        "def f():\n    from INSIDE import NAME",
        "import burler\nINSIDE.NAME.thing",
        "monkeypatch.setattr('INSIDE.NAME.thing', None)",
        "code = 'import sys; from INSIDE import NAME'",
        "code = f'{x}\\nfrom INSIDE.NAME import Thing'",
        "code = '''\nimport INSIDE.NAME\n'''",
        "'INSIDE.NAME' in sys.modules",
    ],
)
def test_each_way_in_is_found(source):
    assert faults(source.replace("INSIDE", INSIDE).replace("NAME", NAME))


@pytest.mark.parametrize(
    "source",
    [
        "from burler.lake import open_store",
        "from burler import http, errors, testing",
        "from burler.spark import export\nimport burler\nburler.spark.export()",
        "from burler.singer.messages import Record",
        "code = 'import burler; burler.http.Client; from burler.singer import catalog'",
        '"""As ``INSIDE.NAME`` does."""',
        "logging.getLogger('burler')",
        "python('-m', 'burler')",
        "from support.internals import shape",
    ],
)
def test_public_names_are_open(source):
    assert not faults(source.replace("INSIDE", INSIDE).replace("NAME", NAME))


def test_the_list_only_shrinks():
    """Two names may stand for one module: where two were merged, tests go on as they are."""
    count = len(set(MODULES.values()))
    assert count <= MOST, f"tests reach {count} inner modules, {MOST} at most"
    assert count == MOST, f"write {count} as MOST in tests/test_doors.py: the list only shrinks"


def test_the_list_names_what_is_there_and_what_is_used():
    assert sorted(set(MODULES.values()) - INNER) == [], "public, or not there"
    used = set()
    for path in FILES:
        source = path.read_text(encoding="utf-8")
        used.update(re.findall(r"\binternals\.(\w+)|\bMODULES\[.(\w+)", source) if "internals" in source else ())
        for node in ast.walk(ast.parse(source)) if "support.internals" in source else ():
            if isinstance(node, ast.ImportFrom) and node.module == "support.internals":
                used.update(alias.name for alias in node.names)
    used = {name for one in used for name in ([one] if isinstance(one, str) else one)}
    assert sorted(set(MODULES) - used) == [], "no test uses it any more: take it off the list"
