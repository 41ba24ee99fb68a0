"""Environments with burler's wheel and exactly what an extra asks for, without an index: what they need is linked from
the environment that runs the tests. What it lacks, or what nobody asked for, is not there."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator
from email.parser import Parser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.packaging.artifacts import metadata


def needed(wheel: Path, extras: tuple[str, ...]) -> dict[str, importlib.metadata.Distribution]:
    """What pip would install beside the wheel: name -> the distribution, as this environment has it.

    Raises:
        importlib.metadata.PackageNotFoundError: this environment lacks one.
    """
    asked = Parser().parsestr(metadata(wheel), headersonly=True).get_all("Requires-Dist") or []
    found: dict[str, importlib.metadata.Distribution] = {}
    seen: set[tuple[str, str]] = set()
    todo = [("singer-burler", extra) for extra in ("", *extras)]
    while todo:
        name, extra = todo.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        if name == "singer-burler":
            lines = asked
        else:
            found[name] = importlib.metadata.distribution(name)
            lines = found[name].requires or []
        todo += _asked(lines, extra)
    return found


def _asked(lines: list[str], extra: str) -> Iterator[tuple[str, str]]:
    for line in lines:
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
            yield from ((canonicalize_name(wanted.name), more) for more in ("", *wanted.extras))


def environment(folder: Path, wheel: Path, *extras: str) -> Path:
    """A virtual environment in ``folder`` with the wheel and its extras; gives its folder of programs."""
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    lend(needed(wheel, extras).values(), packages)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, "install", "-q", "--no-index", "--no-deps", str(wheel)], check=True, capture_output=True)
    return folder / "bin"


def lend(distributions: Iterable[importlib.metadata.Distribution], packages: Path) -> None:
    """Link distributions into ``packages``, a folder that an environment finds them in."""
    for found in distributions:
        _link(found, packages)


def _link(found: importlib.metadata.Distribution, packages: Path) -> None:
    """Link a distribution's files: whole folders, but for namespaces, which others put files into as well."""
    for file in found.files or ():
        if ".." in file.parts or "__pycache__" in file.parts:
            continue
        depth = 1
        while depth < len(file.parts) and _is_namespace(Path(str(found.locate_file("/".join(file.parts[:depth]))))):
            depth += 1
        place = packages.joinpath(*file.parts[:depth])
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(str(found.locate_file("/".join(file.parts[:depth]))))


def _is_namespace(folder: Path) -> bool:
    return folder.is_dir() and not folder.name.endswith(("-info", ".libs")) and not (folder / "__init__.py").exists()


def pip_check(folder: Path) -> str:
    """What ``pip check`` says of the environment."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder / "bin" / "python")]
    return subprocess.run([*pip, "check"], capture_output=True, text=True, check=False).stdout
