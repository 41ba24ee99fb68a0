"""singer-sdk's side of reading: a tap whose stream reads the lake's files, as taps for files of JSON lines do.

Run as: tap_sdk_lake_read.py default|msgspec WORK ROWS (WORK and ROWS are not looked at).
"""

from __future__ import annotations

import gzip
import json
import sys
from typing import TYPE_CHECKING, Any

import clock
import given
import standard
from singer_sdk import Stream, Tap

if TYPE_CHECKING:
    from collections.abc import Iterator


class Std(Stream):
    """The stream; its schema is known."""

    name = standard.STREAM
    schema = standard.SCHEMA
    primary_keys = ("id",)

    def get_records(self, context: object) -> Iterator[dict[str, Any]]:
        """The rows of all files."""
        for path in given.files():
            with gzip.open(path) as file:
                next(file)
                for line in file:
                    yield json.loads(line)["record"]


class TapStd(Tap):
    """The tap, with the writer that was asked for."""

    name = "tap-std"
    config_jsonschema = {"properties": {}}  # noqa: RUF012
    if sys.argv[1] == "msgspec":
        from singer_sdk.contrib.msgspec import MsgSpecWriter as message_writer_class

    def discover_streams(self) -> list[Stream]:
        """Its one stream."""
        return [Std(self)]


if __name__ == "__main__":
    with clock.measured("singer-sdk"):
        TapStd.cli([])
