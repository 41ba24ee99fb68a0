"""Something happens in the library: `python -m examples.tap_library.change books=3 loans=5`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .data import NAMES, Library


def main() -> None:
    """Change rows of some tables, and say which."""
    parser = argparse.ArgumentParser(prog="python -m examples.tap_library.change", description=__doc__.split("\n")[0])
    parser.add_argument("tables", nargs="+", metavar="TABLE=COUNT", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--database", type=Path, default=Path("library.db"))
    given = parser.parse_args()
    if not given.database.exists():
        parser.error(f"{given.database} is not there: start the server once, it makes it")
    for asked in given.tables:
        table, _, count = asked.partition("=")
        if table not in NAMES or not (count or "1").isdecimal():
            parser.error(f"{asked}: say TABLE=COUNT with a table of {', '.join(NAMES)}")
        changed = Library(given.database).change(table, int(count or "1"))
        sys.stdout.write(f"{table}: {', '.join(map(str, changed))}\n")


if __name__ == "__main__":
    main()
