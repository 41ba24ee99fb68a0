"""Breaks burler in one place at a time, and says whether its tests notice: ``make mutations``.

    python tests/mutations.py                  all of tests/mutations.toml
    python tests/mutations.py signpost fence   those with a word in their name
    python tests/mutations.py --check          only whether each is still there to be made

Each mutation is made in a copy of the repository, never in the tree itself; its tests run there until the first one
fails. Exit code 0: each was caught. 1: one lived, or its tests fail without it. 2: one can't be made any more, since
the code has moved: give it its new place in tests/mutations.toml.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "mutations.toml"
_LIMIT_SECONDS = 900


@dataclass(frozen=True)
class Mutation:
    """``old`` stands once in ``file`` and becomes ``new``; ``breaks`` is the promise that is broken then, and ``tests``
    are files or folders, one of whose tests is to fail."""

    name: str
    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def made(self, root: Path) -> str:
        """The text of the file with the mutation in it.

        Raises:
            ValueError: it can't be made.
        """
        path = root / self.file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file}: the text to replace is there {text.count(self.old)} times")
        if missing := [place for place in self.tests if not (root / place).exists()]:
            raise ValueError(f"no such tests: {', '.join(missing)}")
        return text.replace(self.old, self.new)


def mutations() -> list[Mutation]:
    """All that are listed."""
    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))["mutation"]
    return [Mutation(**{**one, "tests": tuple(one["tests"])}) for one in listed]


def copy_to(folder: Path) -> None:
    """The repository as it stands in the work tree, without what is not part of it."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
    )
    for name in filter(None, names.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def tests_fail(folder: Path, tests: tuple[str, ...]) -> str | None:
    """The first test that fails in the copy; None where all pass.

    Raises:
        RuntimeError: they can't be run.
    """
    paths = f"{folder}{os.pathsep}{folder / 'tests'}"
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"]
    try:
        done = subprocess.run(
            [*command, *tests], cwd=folder, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True,
            timeout=_LIMIT_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"hangs for {_LIMIT_SECONDS} s"
    if done.returncode == 0:
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode != 1 or not failed:
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    return failed[0].partition(" - ")[0]


def main() -> int:
    """What the module's docstring says."""
    parser = argparse.ArgumentParser(description="Break burler in one place at a time; do its tests notice?")
    parser.add_argument("words", nargs="*", help="only mutations with one of these in their name")
    parser.add_argument("--check", action="store_true", help="run nothing: can each still be made?")
    given = parser.parse_args()
    wanted = [one for one in mutations() if not given.words or any(word in one.name for word in given.words)]
    gone = []
    for one in wanted:
        try:
            one.made(ROOT)
        except ValueError as error:
            gone.append(f"{one.name}: {error}")
    if gone or given.check:
        print(*gone, f"{len(wanted) - len(gone)} of {len(wanted)} can be made", sep="\n")
        return 2 if gone else 0
    with tempfile.TemporaryDirectory(prefix="mutations-") as made:
        folder = Path(made)
        copy_to(folder)
        sound: dict[tuple[str, ...], str | None] = {}
        lived = 0
        for one in wanted:
            if one.tests not in sound:
                sound[one.tests] = tests_fail(folder, one.tests)
            if sound[one.tests] is not None:
                print(f"BROKEN  {one.name}: its tests fail without it: {sound[one.tests]}", flush=True)
                lived += 1
                continue
            path, begun = folder / one.file, time.monotonic()
            text = path.read_text(encoding="utf-8")
            path.write_text(one.made(folder), encoding="utf-8")
            try:
                failed = tests_fail(folder, one.tests)
            finally:
                path.write_text(text, encoding="utf-8")
            lived += failed is None
            what = f"caught  {one.name}: {failed}" if failed else f"LIVED   {one.name}: {one.breaks}"
            print(f"{what} ({time.monotonic() - begun:.0f} s)", flush=True)
    print(f"{len(wanted) - lived} of {len(wanted)} were caught")
    return 1 if lived else 0


if __name__ == "__main__":
    sys.exit(main())
