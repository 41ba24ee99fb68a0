"""The peer's side of the tail storm: a tap of the Singer SDK, as its documentation has it, that polls for ever.

It runs in the SDK's own environment and knows nothing of burler. The SDK has no tail mode: its stream polls by itself.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

from singer_sdk import Stream, Tap
from tail_storm_source import PLAN, Client, given


class Rows(Stream):
    """The stream: sorted, so that the SDK's STATE may follow each row."""

    name = "rows"
    schema = {  # noqa: RUF012
        "type": "object",
        "properties": {"id": {"type": "integer"}, "text": {"type": ["null", "string"]}},
    }
    primary_keys = ("id",)
    replication_key = "id"
    is_sorted = True

    def get_records(self, context: Any) -> Iterator[dict[str, Any]]:
        """Rows from the bookmark on, and then those that come."""
        client = Client()
        at = self.get_starting_replication_key_value(context) or 0
        sys.stderr.write("BEGIN rows\n")
        try:
            while True:
                for row in given(client, "rows", at):
                    at = row["id"] + 1
                    yield row
                if PLAN["rest"]:
                    return
                time.sleep(PLAN["interval_ms"] / 1000)
        finally:
            sys.stderr.write("FINALLY rows\n")


class TapStorm(Tap):
    """The tap."""

    name = "tap-storm"
    config_jsonschema = {"properties": {}}  # noqa: RUF012

    def discover_streams(self) -> list[Stream]:
        """Its one stream."""
        return [Rows(self)]


if __name__ == "__main__":
    TapStorm.cli()
