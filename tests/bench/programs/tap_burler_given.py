"""The lake that reading programs are given: one stream of standard records, in four files or more.

Run as: tap_burler_given.py FOLDER ROWS; makes ``FOLDER/lake``. Not measured. The stream has a replication key, so that
the files hold rows alone: loops that people write know nothing of ACTIVATE_VERSION.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import standard

import burler

if TYPE_CHECKING:
    from collections.abc import Iterator

if __name__ == "__main__":
    folder, rows = Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir(parents=True)
    config = folder / "config.json"
    config.write_text(json.dumps({"max_file_records": max(500, rows // 4)}))
    tap = burler.tap("tap-std")

    @tap.sync(standard.STREAM, key_properties="id", replication_key="ts", order="asc", schema=standard.SCHEMA)
    def std() -> Iterator[list[dict[str, Any]]]:
        """The rows."""
        yield from standard.pages(rows)

    tap.cli(["--config", str(config), "--sink", f"lake:{folder / 'lake'}"])
