"""burler's wheel and sdist: built of a copy of this tree, and what is in them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_TOP = ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "pyspark_burler.py", "pyspark_singerlake.py")


def copy_of_tree(folder: Path) -> Path:
    """What of this tree distributions are made of, in a new folder: building leaves files behind. tests/ is there as
    well, since it must stay out of them."""
    folder.mkdir(parents=True)
    for name in _TOP:
        shutil.copy(ROOT / name, folder)
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "burler", folder / "burler", ignore=without)
    (folder / "tests").mkdir()
    for test in (ROOT / "tests").glob("*.py"):
        shutil.copy(test, folder / "tests")
    return folder


def build(kind: str, source: Path, out: Path) -> Path:
    """Build ``source``, a source tree, as pip does without isolation: with the setuptools that is installed.

    Args:
        kind: ``wheel`` or ``sdist``.

    Raises:
        subprocess.CalledProcessError: it can't be built.
    """
    out.mkdir(parents=True, exist_ok=True)
    code = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(out)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=source, check=True, capture_output=True, text=True)
    return out / done.stdout.splitlines()[-1]


def unpacked(sdist: Path, into: Path) -> Path:
    """Unpack an sdist; gives its one folder."""
    with tarfile.open(sdist) as archive:
        archive.extractall(into, filter="data")
    (folder,) = into.iterdir()
    return folder


def wheel_files(wheel: Path) -> dict[str, bytes]:
    """Name -> content of each file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def sdist_files(sdist: Path) -> set[str]:
    """The names of an sdist's files, without the folder they all are in."""
    with tarfile.open(sdist) as archive:
        return {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}


def metadata(wheel: Path) -> str:
    """The text of a wheel's METADATA."""
    (name,) = (name for name in wheel_files(wheel) if name.endswith(".dist-info/METADATA"))
    return wheel_files(wheel)[name].decode()


def version_of(text: str) -> str:
    """The version that a METADATA or PKG-INFO says."""
    found = re.search(r"^Version: (.+)$", text, re.MULTILINE)
    assert found, text[:500]
    return found[1]
