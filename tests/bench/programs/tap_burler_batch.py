"""burler's side with BATCH messages: the same tap, and a config that asks for files.

Run as: tap_burler_batch.py VARIANT WORK ROWS (VARIANT is not looked at); WORK is a format, or ``tables``: pyarrow
Tables to Parquet.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import clock
import filing
import standard

import burler

if TYPE_CHECKING:
    from collections.abc import Iterator

ENCODINGS = {
    "jsonl": {"format": "jsonl", "compression": "gzip"},
    "csv": {"format": "csv", "compression": "gzip"},
    "parquet": {"format": "parquet"},
    "tables": {"format": "parquet"},
}


def make_tap(work: str, count: int) -> burler.Tap:
    """A tap with one stream, whose function yields ``count`` rows in pages or in tables."""
    tap = burler.tap("tap-std")
    prepared = standard.tables(count) if work == "tables" else None

    @tap.sync(standard.STREAM, key_properties="id", schema=standard.SCHEMA)
    def std() -> Iterator[Any]:
        yield from prepared if prepared is not None else standard.pages(count)

    return tap


if __name__ == "__main__":
    work = sys.argv[2]
    tap = make_tap(work, int(sys.argv[3]))
    with filing.folder() as folder:
        batch = {"encoding": ENCODINGS[work], "storage": {"root": str(folder)}, **filing.small_files()}
        config = folder / "config.json"
        config.write_text(json.dumps({"batch_config": batch}))
        with clock.measured("burler", "msgspec"):
            tap.cli(["--config", str(config)])
