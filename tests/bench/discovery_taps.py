"""The same 200 streams of 50 fields as a burler tap and as a singer-sdk tap; run as a script: NAME discover."""

from __future__ import annotations

import sys

STREAMS, FIELDS = 200, 50
KINDS = (
    {"type": ["integer", "null"]},
    {"type": ["string", "null"]},
    {"type": ["string", "null"], "format": "date-time"},
    {"type": ["number", "null"]},
    {"type": ["object", "null"], "properties": {"a": {"type": ["string", "null"]}, "b": {"type": ["integer", "null"]}}},
)


def schema() -> dict:
    """50 fields of five kinds."""
    properties = {f"field_{i}": dict(KINDS[i % len(KINDS)]) for i in range(FIELDS - 2)}
    return {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}, **properties},
    }


def burler_tap() -> None:
    """burler's side, as an author would write it."""
    import burler

    tap = burler.tap("tap-many")
    for number in range(STREAMS):

        @tap.sync(f"stream_{number}", key_properties="id", replication_key="at", schema=schema())
        def rows() -> list:
            return []

    tap.cli(["--discover"])


def sdk_tap() -> None:
    """The peer's side, as its documentation has it."""
    from singer_sdk import Stream, Tap

    class Many(Stream):
        primary_keys = ("id",)
        replication_key = "at"

        def get_records(self, context: object) -> list:
            return []

    class TapMany(Tap):
        name = "tap-many"
        config_jsonschema = {"properties": {}}  # noqa: RUF012

        def discover_streams(self) -> list:
            return [Many(self, schema=schema(), name=f"stream_{number}") for number in range(STREAMS)]

    TapMany.cli(["--discover"])


if __name__ == "__main__":
    {"burler": burler_tap, "singer-sdk": sdk_tap}[sys.argv[1]]()
