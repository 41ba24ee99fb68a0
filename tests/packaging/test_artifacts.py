"""What is in the wheel and in the sdist, and that it has one version wherever it is said."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile

import burler
from tests.packaging.artifacts import ROOT, build, copy_of_tree, metadata, sdist_files, version_of, wheel_files

MODULES = {"pyspark_burler.py", "pyspark_singerlake.py"}
BESIDE = {"LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}


def _package() -> set[str]:
    """The files of burler/ that git knows of, or would take in."""
    asked = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "burler", *MODULES]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in done.stdout.splitlines() if (ROOT / name).is_file()}


def test_the_wheel_has_the_package_whole_and_nothing_else(wheel):
    files = wheel_files(wheel)
    info = f"singer_burler-{burler.__version__}.dist-info"
    own = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "top_level.txt", "licenses/LICENSE"}
    assert set(files) == _package() | {f"{info}/{name}" for name in own}
    assert "burler/py.typed" in files
    assert files[f"{info}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    for name in _package():
        assert files[name] == (ROOT / name).read_bytes()


def test_the_sdist_has_the_package_and_what_builds_it(sdist):
    files = {name for name in sdist_files(sdist) if not name.startswith("singer_burler.egg-info/")}
    assert files == _package() | BESIDE


def test_the_tree_builds_the_wheel_that_the_sdist_builds(wheel, tmp_path):
    direct = build("wheel", copy_of_tree(tmp_path / "tree"), tmp_path / "dist")
    apart = f"singer_burler-{burler.__version__}.dist-info/RECORD"  # its lines come in the disk's order
    ours, theirs = wheel_files(direct), wheel_files(wheel)
    assert sorted(ours.pop(apart).splitlines()) == sorted(theirs.pop(apart).splitlines())
    assert ours == theirs


def test_the_readme_is_the_long_description(wheel):
    head, _, body = metadata(wheel).partition("\n\n")
    assert "Description-Content-Type: text/markdown" in head
    assert body.strip() == (ROOT / "README.md").read_text(encoding="utf-8").strip()


def test_there_is_one_version(wheel, sdist, tmp_path):
    with tarfile.open(sdist) as archive:
        (name,) = (name for name in archive.getnames() if name.count("/") == 1 and name.endswith("/PKG-INFO"))
        found = archive.extractfile(name)
        assert found is not None
        said = version_of(found.read().decode())
    assert said == version_of(metadata(wheel)) == burler.__version__
    assert f"-{said}-py3" in wheel.name and f"-{said}.tar" in sdist.name
    # From a source tree, from another folder, whatever is installed: what the tree says.
    tree = copy_of_tree(tmp_path / "tree")
    init = tree / "burler" / "__init__.py"
    init.write_text(init.read_text().replace(f'__version__ = "{said}"', '__version__ = "9.8.7"'))
    shown = subprocess.run(
        [sys.executable, "-m", "burler", "--version"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "burler, version 9.8.7\n"


def test_it_asks_for_little_and_pins_nothing(wheel):
    """It goes into environments of others, JupyterLab's among them (with jsonschema 4; singer-python pins 2.6)."""
    wants = [line.partition(": ")[2] for line in metadata(wheel).splitlines() if line.startswith("Requires-Dist: ")]
    core = dict(re.fullmatch(r"([\w.-]+)(.*)", one).groups() for one in wants if "extra ==" not in one)
    assert set(core) == {"msgspec", "orjson", "click", "requests", "backoff", "jsonschema", "google-re2"}
    assert re.fullmatch(r"<0\.\d+,>=[\d.]+", core.pop("msgspec"))  # its words are read: tests/test_wordings.py
    assert not [one for one, versions in core.items() if not re.fullmatch(r">=[\d.]+", versions)]
