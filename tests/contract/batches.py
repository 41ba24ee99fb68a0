"""BATCH in several formats and both dialects: the shop's rows in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from contract.files import HERE, burler

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


def make(name: str, folder: Path) -> tuple[list[Any], list[Any]]:
    """Run the shop with a ``batch_config``: its messages, and what ``expand`` makes of them."""
    folder.mkdir(parents=True)
    config = folder / "config.json"
    config.write_text(json.dumps({"batch_config": {**WAYS[name], "storage": {"root": str(folder), "prefix": "x-"}}}))
    done = burler("run", f"{HERE / 'apps.py'}:second", "--config", config)
    config.unlink()
    assert done.code == 0, done
    kept = done.out.replace(f"file://{folder}", HOME)
    assert str(folder) not in kept
    return [json.loads(line) for line in kept.splitlines()], expanded(done.out)


def expanded(messages: str) -> list[Any]:
    """Rows in place of files."""
    done = burler("batch", "expand", stdin=messages)
    assert done.code == 0, done
    return done.lines()
