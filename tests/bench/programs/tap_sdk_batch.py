"""singer-sdk's side with BATCH messages, as its documentation has it.

Run as: tap_sdk_batch.py VARIANT jsonl|parquet ROWS (VARIANT is not looked at). It packs JSON lines whatever its config
says, and guesses a Parquet schema for each file.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import clock
import filing
import standard
from singer_sdk import Stream, Tap

if TYPE_CHECKING:
    from collections.abc import Iterator

WORK, COUNT = sys.argv[2], int(sys.argv[3])
ENCODING = {"jsonl": {"format": "jsonl", "compression": "gzip"}, "parquet": {"format": "parquet"}}[WORK]


class Std(Stream):
    """The stream."""

    name = standard.STREAM
    schema = standard.SCHEMA
    primary_keys = ("id",)

    def get_records(self, context: object) -> Iterator[dict[str, Any]]:
        """The rows."""
        yield from standard.rows(COUNT)


class TapStd(Tap):
    """The tap."""

    name = "tap-std"
    config_jsonschema = {"properties": {}}  # noqa: RUF012

    def discover_streams(self) -> list[Stream]:
        """Its one stream."""
        return [Std(self)]


if __name__ == "__main__":
    with filing.folder() as folder:
        config = folder / "config.json"
        batch = {"encoding": ENCODING, "storage": {"root": f"file://{folder}"}}
        config.write_text(json.dumps({"batch_config": batch}))
        with clock.measured("singer-sdk"):
            TapStd.cli(["--config", str(config)])
