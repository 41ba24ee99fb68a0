"""airbyte-cdk's side: a Python source read through its entrypoint. Run as: tap_airbyte.py plain|shaping WORK ROWS.

``shaping`` turns on its type transformer, which is off unless a source asks for it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import clock
import standard
from airbyte_cdk.entrypoint import launch
from airbyte_cdk.models import ConnectorSpecification
from airbyte_cdk.sources import AbstractSource
from airbyte_cdk.sources.streams import CheckpointMixin, Stream
from airbyte_cdk.sources.utils.transform import TransformConfig, TypeTransformer

if TYPE_CHECKING:
    from collections.abc import Iterator

SHAPING, WORK, COUNT = sys.argv[1] == "shaping", sys.argv[2], int(sys.argv[3])


class Std(Stream):
    """The stream, read in full."""

    name = standard.STREAM
    primary_key = "id"
    if SHAPING:
        transformer = TypeTransformer(TransformConfig.DefaultSchemaNormalization)

    def get_json_schema(self) -> dict[str, Any]:
        """The schema; it is asked for with each record."""
        return standard.SCHEMA

    def read_records(self, *args: Any, **kwargs: Any) -> Iterator[dict[str, Any]]:
        """The rows."""
        yield from standard.rows(COUNT)


class Keyed(CheckpointMixin, Std):
    """The stream with a cursor that moves with every record, and a STATE after each 1,000."""

    cursor_field = "ts"
    state_checkpoint_interval = 1_000
    is_resumable = True
    _state: dict[str, Any]

    def __init__(self) -> None:
        super().__init__()
        self._state = {}

    @property
    def state(self) -> dict[str, Any]:
        """Where the stream stands."""
        return self._state

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        self._state = value

    def read_records(self, *args: Any, **kwargs: Any) -> Iterator[dict[str, Any]]:
        """The rows, with the cursor moved as its documentation has it."""
        for row in standard.rows(COUNT):
            self._state = {"ts": max(row["ts"], self._state.get("ts", ""))}
            yield row


class Source(AbstractSource):
    """The source with its one stream."""

    def check_connection(self, logger: Any, config: Any) -> tuple[bool, Any]:
        """Nothing to check."""
        return True, None

    def streams(self, config: Any) -> list[Stream]:
        """Its one stream."""
        return [Keyed() if WORK == "keyed" else Std()]

    def spec(self, logger: Any) -> ConnectorSpecification:
        """No configuration."""
        return ConnectorSpecification(connectionSpecification={"type": "object", "properties": {}})


def arguments(folder: Path) -> list[str]:
    """The command line of a read, with its files."""
    modes = ["full_refresh", "incremental"] if WORK == "keyed" else ["full_refresh"]
    stream = {"name": standard.STREAM, "json_schema": standard.SCHEMA, "supported_sync_modes": modes}
    entry = {"stream": stream, "sync_mode": modes[-1], "destination_sync_mode": "append", "cursor_field": ["ts"]}
    (folder / "config.json").write_text("{}")
    (folder / "catalog.json").write_text(json.dumps({"streams": [entry]}))
    return ["read", "--config", str(folder / "config.json"), "--catalog", str(folder / "catalog.json")]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        given = arguments(Path(folder))
        with clock.measured("airbyte-cdk"):
            launch(Source(), given)
