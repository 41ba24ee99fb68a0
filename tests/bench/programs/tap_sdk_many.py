"""singer-sdk's side where there is a lot of something. Run as: tap_sdk_many.py VARIANT WORK ROWS.

WORK is as in ``tap_burler_many``: ``parts-50`` uses the property ``partitions``, ``children-5`` a parent stream and its
child stream. VARIANT ``one-bookmark`` sets ``state_partitioning_keys = ()`` on the child stream, so that the state
has one entry for it and not one for each parent, which is the default.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import clock
import standard
from singer_sdk import Stream, Tap

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIANT, (KIND, EACH, *_), COUNT = sys.argv[1], sys.argv[2].split("-"), int(sys.argv[3])


class Std(Stream):
    """What all streams here have."""

    name = standard.STREAM
    schema = standard.SCHEMA
    primary_keys = ("id",)
    replication_key = "ts"
    is_sorted = True


class Parts(Std):
    """Partitions, each with a bookmark of its own."""

    @property
    def partitions(self) -> list[dict[str, Any]]:
        """The partitions: dicts with a field of their rows."""
        return [{"a": standard.account(number)} for number in range(COUNT // int(EACH))]

    def get_records(self, context: Any) -> Iterator[dict[str, Any]]:
        """The rows of one."""
        yield from standard.part(int(context["a"][3:]), int(EACH))


class Parents(Std):
    """The parent stream."""

    def get_records(self, context: Any) -> Iterator[dict[str, Any]]:
        """Its rows."""
        yield from standard.parents(COUNT // (1 + int(EACH)))

    def get_child_context(self, record: dict[str, Any], context: Any) -> dict[str, Any]:
        """What the child stream is told of a row; the child's rows have it, too."""
        return {"a": record["a"]}


class Children(Std):
    """The child stream, for each row of the other."""

    name = standard.CHILDREN
    parent_stream_type = Parents
    replication_key = None
    is_sorted = False
    if VARIANT == "one-bookmark":
        state_partitioning_keys = ()

    def get_records(self, context: Any) -> Iterator[dict[str, Any]]:
        """The rows below one row."""
        yield from standard.part(int(context["a"][3:]), int(EACH))


class TapStd(Tap):
    """The tap."""

    name = "tap-std"
    config_jsonschema = {"properties": {}}  # noqa: RUF012

    def discover_streams(self) -> list[Stream]:
        """Its streams."""
        return [Parts(self)] if KIND == "parts" else [Parents(self), Children(self)]


if __name__ == "__main__":
    with clock.measured("singer-sdk"):
        TapStd.cli([])
