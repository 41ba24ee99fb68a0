"""singer-sdk's side, as its documentation has it. Run as: tap_sdk.py default|msgspec WORK ROWS."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import clock
import standard
from singer_sdk import Stream, Tap

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITER, WORK, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3])


class Std(Stream):
    """The stream; ``get_records`` gives one dict at a time, which is all that the SDK takes."""

    name = standard.STREAM
    schema = standard.SCHEMA
    primary_keys = ("id",)
    replication_key = "ts" if WORK == "keyed" else None
    is_sorted = WORK == "keyed"

    def get_records(self, context: object) -> Iterator[dict[str, Any]]:
        """The rows."""
        yield from standard.big_rows(COUNT) if WORK == "big" else standard.rows(COUNT)


class TapStd(Tap):
    """The tap, with the writer that was asked for."""

    name = "tap-std"
    config_jsonschema = {"properties": {}}  # noqa: RUF012
    if WRITER == "msgspec":
        from singer_sdk.contrib.msgspec import MsgSpecWriter as message_writer_class

    def discover_streams(self) -> list[Stream]:
        """Its one stream."""
        return [Std(self)]


if __name__ == "__main__":
    with clock.measured("singer-sdk"):
        TapStd.cli([])
