"""Users' code under real mypy and real pyright: what is right is clean, what is wrong is told where it stands."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import burler
from burler.errors import DeclarationError

HERE = Path(__file__).parent
sys.path.append(str(HERE))
sys.path.append(str(HERE.parent / "peers"))

import checkers  # noqa: E402

ROOT = checkers.ROOT
TAPS = sorted((HERE / "taps").glob("*.py"))
WRONG = sorted((HERE / "wrong").glob("*.py"))
EXAMPLES = sorted(
    path
    for path in (ROOT / "examples").rglob("*.py")
    if "tests" not in path.parts and re.search(r"^(import|from) burler\b", path.read_text(), re.MULTILINE)
)
# Pages whose snippets are no tap of burler's, or stand there because something is wrong with them.
OTHER_PAGES = {
    "comparison": "programs on other frameworks",
    "from-singer-python": "the program before the move",
    "from-singer-sdk": "the program before the move",
    "endpoints": "methods that are made at run time",
    "failures": "looks into one kind of error",
    "mistakes": "mistakes",
    "references": "single calls, without the tap",
    "schemas": "one name for several schemas",
    "verify": "one name for several findings",
}
PAGES = {
    page.stem: "\n\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
    for page in sorted((ROOT / "docs").glob("*.md"))
}
# What the tests of the pages put there.
GIVEN = 'server, token = "https://api.example.com", "x"\n'


@pytest.fixture(scope="session")
def snippets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package with a module for each page: its snippets in order."""
    folder = tmp_path_factory.mktemp("snippets") / "pages"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name, text in PAGES.items():
        if text and name not in OTHER_PAGES:
            (folder / f"{name.replace('-', '_')}.py").write_text(GIVEN + text)
    return folder


@pytest.fixture(scope="session")
def program() -> Path:
    """The command pyright, in an environment of its own."""
    import peers_environment

    try:
        return peers_environment.make_pyright() / "pyright"
    except peers_environment.NotInstalled as error:
        pytest.skip(f"pyright can't be installed: {error}")


def told(found: Iterable[checkers.Found]) -> str:
    return "\n".join(f"{one.file}:{one.line}: {one.text} [{one.rule}]" for one in found)


def wrong_lines(which: int) -> dict[tuple[str, int], str]:
    """The lines marked as wrong, and what mypy (0) or pyright (1) calls them."""
    lines = {}
    for path in WRONG:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if marked := re.search(r"# wrong: (\S+) (\S+)", line):
                lines[path.name, number] = marked[which + 1]
    return lines


def split(found: Iterable[checkers.Found]) -> tuple[list[checkers.Found], dict[tuple[str, int], str]]:
    """What was found in files that are right, and in those that are wrong."""
    names = {path.name for path in WRONG}
    all_of_them = list(found)
    right = [one for one in all_of_them if one.file not in names]
    return right, {(one.file, one.line): one.rule for one in all_of_them if one.file in names}


def test_mypy(tmp_path, snippets):
    """Taps of each style, sources, readers and tests are clean, strictly; examples and pages as they stand. Each
    mistake is found, and nothing else."""
    modules = sorted({path.relative_to(ROOT / "examples").parts[0].removesuffix(".py") for path in EXAMPLES})
    files = [*TAPS, *WRONG, *EXAMPLES, *snippets.iterdir()]
    found = checkers.mypy(files, plain=[f"{module}.*" for module in ("pages", *modules)], work=tmp_path)
    right, wrong = split(found)
    assert not right, told(right)
    assert wrong == wrong_lines(0)


@pytest.mark.nightly
def test_pyright(tmp_path, snippets, program):
    """Strict on taps, basic on the rest. Half a minute and an installation of its own, and what mypy says of the same
    files is heard in each push."""
    folders = {HERE / "taps": "strict", HERE / "wrong": "basic", snippets: "basic"}
    folders |= dict.fromkeys(EXAMPLES, "basic")
    right, wrong = split(checkers.pyright(program, folders, {"reportRedeclaration": "none"}, work=tmp_path))
    assert not right, told(right)
    assert wrong == wrong_lines(1)


def test_all_that_is_wrong_is_marked_and_there_are_taps():
    assert len(wrong_lines(0)) > 30
    assert len(TAPS) > 5
    assert len(EXAMPLES) > 15
    assert PAGES.keys() >= OTHER_PAGES.keys() | {"tutorial", "taps", "styles", "http", "typing"}
    asserted = [node for path in TAPS for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    assert sum(ast.unparse(node.func) == "assert_type" for node in asserted) > 60


def test_the_page_shows_what_is_marked():
    """docs/typing.md: its taps run, and each mistake of its table is one of those that are checked."""
    from burler.testing import run_tap

    page = (ROOT / "docs" / "typing.md").read_text()
    scope = {"__name__": "snippet"}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "docs/typing.md", "exec"), scope)
    out = run_tap(scope["tap"], {"base_url": "http://127.0.0.1:9"}, select="contacts")
    assert not out.result.errors
    assert out.types == ["SCHEMA", "STATE"]  # the only row has no name
    assert scope["Crm"]("http://127.0.0.1:9").rows_contacts
    marked = {
        (code, *line.partition("# wrong: ")[2].split()[:2])
        for path in WRONG
        for line in path.read_text().splitlines()
        if (code := line.partition("  # wrong: ")[0].strip()) != line.strip()
    }
    rows = re.findall(r"^\| `(.+?)`(?: \(.*\))? \| `([a-z-]+)` \| `(report\w+)` \|$", page, re.MULTILINE)
    assert len(rows) == 8
    for code, of_mypy, of_pyright in rows:
        assert any(one.startswith(code) and rest == [of_mypy, of_pyright] for one, *rest in marked), code


def test_a_class_may_set_what_a_stream_takes():
    """``burler.Stream`` names each option for checkers, but those that may be methods."""
    with pytest.raises(DeclarationError) as caught:
        burler.tap("tap-x").sync("a", no_such_option=1)(lambda: [])  # type: ignore[call-arg]
    taken = str(caught.value).partition("Options: ")[2].rstrip(".").split(", ")
    tree = ast.parse(Path(inspect.getsourcefile(burler.Stream) or "").read_text())
    (stream,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Stream"]
    named = {node.target.id for node in ast.walk(stream) if isinstance(node, ast.AnnAssign)}
    assert named - {"name", "names", "emits", "partition_order", "overlap"} == set(taken) - {"schema", "setup_retry"}


def test_names_that_come_late_are_known_to_checkers():
    """Each name of a package's ``__getattr__`` is imported for checkers as well, and each package of burler's is."""
    for path in sorted((ROOT / "burler").rglob("__init__.py")):
        tree = ast.parse(path.read_text())
        tables = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        late = {
            key.value
            for call in ast.walk(tree)
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "lazy_names" and len(call.args) > 1
            for table in [tables[call.args[1].id] if isinstance(call.args[1], ast.Name) else call.args[1]]
            if isinstance(table, ast.Dict)
            for key in table.keys
        }
        late |= {
            one.value
            for call in ast.walk(tree)
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "lazy_names"
            for keyword in call.keywords
            if keyword.arg == "packages"
            for one in ast.walk(keyword.value)
            if isinstance(one, ast.Constant)
        }
        seen = {
            alias.asname or alias.name
            for block in tree.body
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
            for node in block.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        assert late <= seen, path
