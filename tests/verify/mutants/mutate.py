"""Writes the correct tap once more for each bug: `python mutate.py FOLDER`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bugs import Bug
from bugs_program import PROGRAM_BUGS
from bugs_rows import ROW_BUGS
from bugs_state import STATE_BUGS

CORRECT = Path(__file__).with_name("shop_tap.py")
BUGS: tuple[Bug, ...] = (*STATE_BUGS, *ROW_BUGS, *PROGRAM_BUGS)


def mutant(bug: Bug) -> str:
    """The source of the tap with a bug. ValueError: a piece is not there once; SyntaxError: it is no Python."""
    source = bug.put_into(CORRECT.read_text(encoding="utf-8"))
    compile(source, f"{bug.name}.py", "exec")
    return source


def write(folder: Path, bugs: tuple[Bug, ...] = BUGS) -> dict[str, Path]:
    """Write `FOLDER/<bug>/shop_tap.py` for each bug. Gives the path by the bug's name."""
    paths = {}
    for bug in bugs:
        path = folder / bug.name / CORRECT.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(mutant(bug), encoding="utf-8")
        paths[bug.name] = path
    return paths


def main() -> int:
    """Write them all."""
    parser = argparse.ArgumentParser(description="Write the correct tap once more for each bug.")
    parser.add_argument("folder", type=Path)
    for name, path in write(parser.parse_args().folder).items():
        print(f"{name:34} {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
