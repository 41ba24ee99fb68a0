"""APP: what it may be, and every way in which it may be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from tapprocess import SMALL, write_tap

from support.cli import burler, burler_process, python

DONE = (0, 12)


def _run(folder: Path, app: str, **env: str) -> tuple[int, int | str]:
    """The exit code, and the number of messages; what went wrong, if it did."""
    ended = (burler_process if "PYTHONPATH" in env else burler)("run", app, cwd=folder, **env)
    return ended.code, ended.stderr if ended.code else len(ended.messages)


def test_a_file(tmp_path: Path):
    path = write_tap(tmp_path, SMALL)
    assert _run(tmp_path, "tap_x.py") == DONE
    assert _run(tmp_path, "./tap_x.py") == DONE
    assert _run(tmp_path, str(path)) == DONE
    assert _run(tmp_path, "tap_x.py:tap") == DONE
    assert _run(Path("/"), str(path)) == DONE


def test_a_module_and_an_attribute(tmp_path: Path):
    write_tap(tmp_path, SMALL)
    assert _run(tmp_path, "tap_x") == DONE
    assert _run(tmp_path, "tap_x:tap") == DONE
    assert _run(Path("/"), "tap_x", PYTHONPATH=str(tmp_path)) == DONE
    write_tap(tmp_path, SMALL + "\nclass holder:\n    inner = tap\n", "deep/tap_y.py")
    assert _run(tmp_path, "deep.tap_y:holder.inner") == DONE


def test_a_folder_with_relative_imports(tmp_path: Path):
    write_tap(
        tmp_path,
        SMALL.replace("import burler", "import burler\nfrom .parts import ten").replace("10", "ten"),
        "pack/__init__.py",
    )
    write_tap(tmp_path, "ten = 10\n", "pack/parts.py")
    assert _run(tmp_path, "pack") == DONE
    assert _run(tmp_path, "./pack") == DONE
    assert _run(tmp_path, "pack/") == DONE
    assert _run(tmp_path / "pack", ".") == DONE
    assert _run(tmp_path, "pack/__init__.py") == DONE
    assert _run(tmp_path, "pack:tap") == DONE
    write_tap(tmp_path, "from . import tap\n", "pack/inner/../again.py")
    assert _run(tmp_path, "pack/again.py") == DONE
    assert _run(tmp_path, "pack.again") == DONE


def test_names_with_a_dash(tmp_path: Path):
    write_tap(tmp_path, SMALL, "tap-dash.py")
    assert _run(tmp_path, "tap-dash.py") == DONE
    assert _run(tmp_path, "tap-dash") == DONE
    write_tap(tmp_path, SMALL, "tap-pack/__init__.py")
    assert _run(tmp_path, "tap-pack") == DONE


def test_imports_from_the_files_own_folder(tmp_path: Path):
    write_tap(tmp_path, "from helper_of_x import *\n" + SMALL, "sub/tap_x.py")
    write_tap(tmp_path, "ten = 10\n", "sub/helper_of_x.py")
    assert _run(tmp_path, "sub/tap_x.py") == DONE


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages: ``tap-one`` and ``tap-two`` are commands."""
    site = tmp_path / "site"
    write_tap(site, SMALL, "tap_one.py")
    write_tap(site, SMALL + "\ndef main():\n    tap.cli()\n", "tap_two.py")
    write_tap(site, "import nosuchpackage\n", "tap_three.py")
    info = site / "tap_one-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tap-one\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[console_scripts]\ntap-one = tap_one:tap.cli\ntap-two = tap_two:main\ntap-three = tap_three:main\n"
    )
    return site


def test_an_installed_command(tmp_path: Path, site: Path):
    assert _run(tmp_path, "tap-one", PYTHONPATH=str(site)) == DONE
    assert _run(tmp_path, "tap-two", PYTHONPATH=str(site)) == DONE
    (tmp_path / "tap-one").mkdir()  # the clone that one stands beside
    assert _run(tmp_path, "tap-one", PYTHONPATH=str(site)) == DONE
    ended = burler_process("run", "tap-three", cwd=tmp_path, PYTHONPATH=str(site))
    assert ended.code == 2
    assert "tap_three.py:1): ModuleNotFoundError" in ended.one_critical()


TWO = SMALL + '\nother = burler.tap("tap-other")\nsame = tap\n'


@pytest.mark.parametrize(
    ("app", "source", "says"),
    [
        ("nosuch.py", None, ["there is no file nosuch.py"]),
        ("nosuch", None, ["no file, module or installed tap of that name"]),
        ("nosuch:tap", None, ["no file, module or installed tap of that name"]),
        ("no.such.module", None, ["no file, module or installed tap of that name"]),
        ("tap_y.py", SMALL, ["there is no file tap_y.py. Did you mean 'tap_x.py'?"]),
        ("tap_xx", SMALL, ["no file, module or installed tap of that name. Did you mean 'tap_x.py'?"]),
        ("tap_x.nosuch", SMALL, ["no file, module or installed tap of that name"]),
        ("", None, ["APP ''"]),
        ("folder", None, ["holds no __init__.py"]),
        ("folder/", None, ["holds no __init__.py"]),
        ("tap_x.py", "import nosuchpackage\n", ["fails to import (tap_x.py:1)", "No module named 'nosuchpackage'"]),
        ("tap_x", "import nosuchpackage\n", ["fails to import (tap_x.py:1)", "No module named 'nosuchpackage'"]),
        ("tap_x.py", "x = 1\n\n1 / 0\n", ["fails to import (tap_x.py:3)", "ZeroDivisionError"]),
        ("tap_x", "x = 1\n\n1 / 0\n", ["fails to import (tap_x.py:3)", "ZeroDivisionError"]),
        ("tap_x.py", "x = 1\nx = = 2\n", ["fails to import (tap_x.py:2)", "SyntaxError"]),
        ("tap_x", "x = 1\nx = = 2\n", ["fails to import (tap_x.py:2)", "SyntaxError"]),
        ("tap_x.py", "import sys\nsys.exit(0)\n", ["fails to import (tap_x.py:2)", "SystemExit: 0"]),
        ("tap_x.py", "raise ValueError('a\\n' * 99)\n", ["fails to import (tap_x.py:1)", "ValueError: a"]),
        ("tap_x.py", "x = 1\n", ["holds no tap", 'tap = burler.tap("tap-name")']),
        ("json", None, ["holds no tap"]),
        ("tap_x.py", TWO, ["holds 2 taps", "tap_x.py:tap", "tap_x.py:other"]),
        ("tap_x", TWO, ["holds 2 taps", "tap_x:tap, tap_x:other"]),
        ("tap_x.py:nosuch", SMALL, ["module tap_x has no 'nosuch'. Its taps: tap."]),
        ("tap_x:rows", SMALL, ["is function, not a burler.Tap"]),
        ("tap_x:tap.name", SMALL, ["is str, not a burler.Tap"]),
    ],
)
def test_apps_that_are_wrong(tmp_path: Path, app: str, source: str | None, says: list[str]):
    (tmp_path / "folder").mkdir()
    if source is not None:
        write_tap(tmp_path, source)
    for command in ("run", "discover"):
        ended = burler(command, app, cwd=tmp_path)
        assert ended.code == 2, ended.stderr
        for text in says:
            assert text in ended.one_critical()
        assert ended.stdout == b""


@pytest.mark.parametrize("app", ["tap-crm2", "tap-crm2/", "./tap-crm2", "."])
def test_the_folder_of_a_project(tmp_path: Path, app: str):
    """The tap is in the package inside of it, and the error says where; what it says can be run."""
    write_tap(tmp_path, SMALL, "tap-crm2/tap_crm2/__init__.py")
    where = tmp_path / "tap-crm2" if app == "." else tmp_path
    ended = burler("run", app, cwd=where)
    assert (ended.code, ended.stdout) == (2, b"")
    said = ended.one_critical()
    assert "holds no __init__.py; did you mean " in said
    assert _run(where, said.rpartition("did you mean ")[2].strip().removesuffix("?")) == DONE


def test_an_import_error_above_the_module(tmp_path: Path):
    write_tap(tmp_path, "import nosuchpackage\n", "pack/__init__.py")
    write_tap(tmp_path, SMALL, "pack/tap_y.py")
    for app in ("pack.tap_y", "pack/tap_y.py"):
        ended = burler("run", app, cwd=tmp_path)
        assert ended.code == 2
        assert "__init__.py:1): ModuleNotFoundError: No module named 'nosuchpackage'" in ended.one_critical()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("tap.sync('a')(lambda cleint: 1)", "unknown parameter 'cleint'"),
        ("tap.sync('a', bookmark_strategy='every_n(0)')(lambda: 1)", "every_n(0)"),
        ("tap.sync('a')(lambda: 1)", "has no schema"),
        ("tap.sync('a')(lambda: 1); tap.schema('a', burler.json_file('nosuch.json'))", "nosuch.json"),
        ("tap.sync('a', key_properties='x')(lambda: 1); tap.schema('a', SCHEMA)", "'x' is not in the schema"),
        ("tap.sync('a')(lambda client: 1); tap.schema('a', SCHEMA)", "no @tap.client is declared"),
        ("tap.sync('a')(lambda: 1); tap.schema('a')(lambda: 1 / 0)", "schema function"),
    ],
)
def test_declarations_that_are_wrong(tmp_path: Path, source: str, says: str):
    write_tap(tmp_path, f"import burler\ntap = burler.tap('tap-x')\n{source}\n")
    ended = burler("run", "tap_x.py", cwd=tmp_path)
    assert ended.code == 2, ended.stderr
    assert says in ended.one_critical()
    assert ended.stdout == b""


def test_the_taps_own_script(tmp_path: Path):
    write_tap(tmp_path, SMALL + "\nif __name__ == '__main__':\n    tap.cli()\n")
    assert len(python("tap_x.py", cwd=tmp_path).messages) == 12


def test_a_modules_own_use_of_the_running_stream_has_its_place(tmp_path: Path):
    write_tap(tmp_path, SMALL + "\nprint(tap.get_bookmark())\n")
    ended = burler("run", "tap_x.py", cwd=tmp_path)
    line = 1 + (tmp_path / "tap_x.py").read_text().splitlines().index("print(tap.get_bookmark())")
    assert ended.code == 2
    assert f"(tap_x.py:{line})" in ended.one_critical()
    assert "tap.get_bookmark() was called outside a running stream" in ended.stderr
