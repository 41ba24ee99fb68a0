"""A target on the Singer SDK's base classes: what it loads of each stream goes into ``<folder>/<stream>.jsonl``.

    python target_files.py --config config.json < messages

It runs in the peers' environment. A row is written as the SDK hands it over, whether it came in a RECORD or in a batch
file.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import simplejson
from singer_sdk import Target
from singer_sdk import typing as th
from singer_sdk.sinks import BatchSink

_READ = {"date-time": dt.datetime.fromisoformat, "date": dt.date.fromisoformat}


class FileSink(BatchSink):
    """One stream."""

    def process_batch(self, context: dict[str, Any]) -> None:
        """Rows that were gathered from RECORDs, or those of a batch file."""
        path = Path(self.config["folder"]) / f"{self.stream_name}.jsonl"
        with path.open("a", encoding="utf-8") as file:
            for row in context.get("records", ()):
                self._read_moments(row)
                file.write(simplejson.dumps(row, use_decimal=True, default=_plain) + "\n")

    def _read_moments(self, row: dict[str, Any]) -> None:
        """The SDK reads the texts of date-times in RECORDs, and leaves them as they are in files of JSON lines."""
        for name, field in self.schema["properties"].items():
            if isinstance(row.get(name), str) and field.get("format") in _READ:
                row[name] = _READ[field["format"]](row[name])


def _plain(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, dt.date):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__}: {value!r}")


class FileTarget(Target):
    """The target."""

    name = "target-files"
    config_jsonschema = th.PropertiesList(th.Property("folder", th.StringType, required=True)).to_dict()
    default_sink_class = FileSink


if __name__ == "__main__":
    FileTarget.cli()
