"""BATCH in several formats and both dialects: the shop's rows in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from contract.files import HERE, burler

import burler.batch as burler_batch

WAYS: dict[str, dict[str, Any]] = {
    "jsonl-gzip-sip": {"encoding": {"format": "jsonl", "compression": "gzip"}, "dialect": "sip", "batch_size": 3},
    "jsonl-gzip-meltano": {"encoding": {"format": "jsonl", "compression": "gzip"}, "dialect": "meltano"},
    "csv-sip": {"encoding": {"format": "csv", "format_options": {"delimiter": ";"}}, "dialect": "sip"},
    "csv-gzip-both": {"encoding": {"format": "csv", "compression": "gzip"}, "dialect": "both"},
    "parquet-sip": {"encoding": {"format": "parquet"}, "dialect": "sip", "batch_size": 5},
    "parquet-meltano": {"encoding": {"format": "parquet", "compression": "snappy"}, "dialect": "meltano"},
    "arrow-both": {"encoding": {"format": "arrow"}},
}
HOME = "file:///contract"
"""Stands in the messages that are kept for the folder that the files were in."""


def make(name: str, folder: Path) -> tuple[str, str]:
    """Run the shop with a ``batch_config``: its messages as they are kept, and as they came."""
    folder.mkdir(parents=True)
    config = folder / "config.json"
    config.write_text(json.dumps({"batch_config": {**WAYS[name], "storage": {"root": str(folder), "prefix": "x-"}}}))
    done = burler("run", f"{HERE / 'apps.py'}:second", "--config", config)
    config.unlink()
    assert done.code == 0, done
    kept = done.out.replace(f"file://{folder}", HOME)
    assert str(folder) not in kept
    return kept, done.out


def read(messages: str) -> list[Any]:
    """The rows as Python gets them, each with its stream; what is no value of JSON is spelled as Python does."""
    schemas, rows = {}, []
    for message in map(json.loads, messages.splitlines()):
        if message["type"] == "SCHEMA":
            schemas[message["stream"]] = message["schema"]
        elif message["type"] == "BATCH":
            found = burler_batch.read(message, schemas[message["stream"]]).rows()
            rows += [[message["stream"], json.loads(json.dumps(row, default=repr))] for row in found]
    return rows


def expanded(messages: str) -> list[Any]:
    """Rows in place of files."""
    done = burler("batch", "expand", stdin=messages)
    assert done.code == 0, done
    return done.lines()
