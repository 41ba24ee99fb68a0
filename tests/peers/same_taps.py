"""The same two streams as a burler tap and as a singer-sdk tap; run as a script: NAME, then Singer's flags."""

from __future__ import annotations

import sys
from copy import deepcopy

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "updated_at": {"type": "string", "format": "date-time"},
        "email": {"type": ["string", "null"]},
        "address": {
            "type": ["object", "null"],
            "properties": {"city": {"type": ["string", "null"]}, "zip": {"type": ["string", "null"]}},
        },
        "tags": {"type": "array", "items": {"type": "object", "properties": {"label": {"type": "string"}}}},
    },
}
ROWS = [
    {
        "id": number,
        "updated_at": f"2024-05-0{number}T00:00:00Z",
        "email": f"{number}@example.com",
        "address": {"city": "Bonn", "zip": "53111"},
        "tags": [{"label": "new"}],
    }
    for number in (1, 2, 3)
]


def burler_tap(args: list[str]) -> None:
    """burler's side."""
    import burler

    tap = burler.tap("tap-same")

    @tap.sync("contacts", key_properties="id", replication_key="updated_at", schema=SCHEMA)
    def contacts() -> list:
        return deepcopy(ROWS)

    @tap.sync("companies", key_properties="id", schema=SCHEMA)
    def companies() -> list:
        return deepcopy(ROWS)

    tap.cli(args)


def sdk_tap(args: list[str]) -> None:
    """The peer's side, as its documentation has it."""
    from singer_sdk import Stream, Tap

    class Contacts(Stream):
        name = "contacts"
        schema = SCHEMA
        primary_keys = ("id",)
        replication_key = "updated_at"

        def get_records(self, context: object) -> list:
            return deepcopy(ROWS)

    class Companies(Contacts):
        name = "companies"
        replication_key = None

    class TapSame(Tap):
        name = "tap-same"
        config_jsonschema = {"properties": {}}  # noqa: RUF012

        def discover_streams(self) -> list:
            return [Contacts(self), Companies(self)]

    TapSame.cli(args)


if __name__ == "__main__":
    {"burler": burler_tap, "singer-sdk": sdk_tap}[sys.argv[1]](sys.argv[2:])
