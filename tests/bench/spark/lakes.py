"""Lakes of standard records, written by burler's own lake writer and kept in a folder by size.

Run as: lakes.py LAKE STREAM FIRST ROWS KEYS FILES; adds one run of a tap to a lake.

Two streams: ``std`` has the key ``id``, and one row in six is a newer row of a key that was there before; ``log`` has
no key. Each lake comes twice: with its rows, and with 1 % more in one further commit, of which every second row has a
key that is spread over all those before (the dearest case for a table that is changed by key).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
TAP = "tap-std"
STREAMS = {"std": ["id"], "log": []}
_FILES = 20  # as many as a full export of a million rows may have, at some 4 MB each
_STEP = 7_919  # a prime, so that updates fall on keys all over the table


@dataclass(frozen=True)
class Lakes:
    """Two states of one lake: ``base`` with all its rows, ``more`` with 1 % added. ``rows`` of the first."""

    folder: Path
    stream: str
    rows: int

    @property
    def base(self) -> Path:
        """The lake."""
        return self.folder / "base"

    @property
    def more(self) -> Path:
        """The same with the 1 %."""
        return self.folder / "more"

    @property
    def added(self) -> int:
        """How many rows the second has more."""
        return max(1, self.rows // 100)


def made(folder: Path, stream: str, rows: int) -> Lakes:
    """The lakes of a size, written now if they are not there yet.

    Raises:
        subprocess.CalledProcessError: the tap that writes them failed.
    """
    lakes = Lakes(folder / f"{stream}-{rows}", stream, rows)
    if not lakes.folder.exists():
        writing = lakes.folder.with_name(f"{lakes.folder.name}.{os.getpid()}.tmp")
        keys = max(1, rows * 5 // 6)
        for name, first, count, files in (("base", 0, rows, _FILES), ("more", rows, lakes.added, 1)):
            if name == "more":
                shutil.copytree(writing / "base", writing / "more")
            command = [sys.executable, __file__, str(writing / name), stream, *map(str, (first, count, keys, files))]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        writing.rename(lakes.folder)  # a run that was stopped leaves no half lake behind under the name
    return lakes


def data_files(lake: Path) -> list[str]:
    """The data files of a lake, in the order of their names."""
    return sorted(map(str, lake.rglob("*.singer.gz")))


def rows_of(first: int, count: int, keys: int) -> Iterator[list[dict[str, Any]]]:
    """Pages of standard rows from the ``first`` on (a multiple of 1,000), with keys as the module's text tells."""
    import standard

    for at in range(first, first + count, standard.PAGE_ROWS):
        page = standard.page(at // standard.PAGE_ROWS, min(standard.PAGE_ROWS, first + count - at))
        for row in page:
            number = row["id"]
            if number >= keys and (first == 0 or number % 2 == 0):
                row["id"] = number * _STEP % keys
        yield page


def _write(lake: str, stream: str, first: int, count: int, keys: int, files: int) -> None:
    sys.path.insert(0, str(PROGRAMS))
    import standard

    import burler

    folder = Path(lake)
    folder.mkdir(parents=True, exist_ok=True)
    config = folder.parent / "config.json"
    config.write_text(json.dumps({"max_file_records": max(500, -(-count // files))}))
    tap = burler.tap(TAP)

    @tap.sync(stream, key_properties=STREAMS[stream], replication_key="ts", order="asc", schema=standard.SCHEMA)
    def rows() -> Iterator[list[dict[str, Any]]]:
        """The rows."""
        yield from rows_of(first, count, keys)

    tap.cli(["--config", str(config), "--sink", f"lake:{lake}"])


if __name__ == "__main__":
    _write(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:7]))
