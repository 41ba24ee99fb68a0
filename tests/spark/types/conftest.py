"""Lake files to rows of a table, by an export that Spark does, however few rows there are."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.internals import export_options


@dataclass
class Read:
    """What came out: rows as plain Python values, what the export said, and bad rows as the quarantine has them."""

    rows: list[dict[str, Any]]
    said: Any
    bad: list[Any]

    def by(self, name: str) -> dict[Any, dict[str, Any]]:
        """The rows by the value of one column, each of which comes once."""
        found = {row[name]: row for row in self.rows}
        assert len(found) == len(self.rows)
        return found


def _by_delta(place: str) -> list[dict[str, Any]]:
    import deltalake

    rows: list[dict[str, Any]] = deltalake.DeltaTable(place).to_pyarrow_table().to_pylist()
    return rows


@pytest.fixture
def read_stream(spark: Any, lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Reads all rows of a stream of the lake; those that no column can hold are left out and told."""
    from burler.spark import export

    monkeypatch.setattr(export_options, "SMALL_ROWS", 0)
    times = iter(range(100))

    def read(stream: str = "s", *, rows_in: Callable[[str], Any] = _by_delta, **options: Any) -> Read:
        out = tmp_path / f"out{next(times)}"
        options = {"mode": "append", "max_bad_rows": 1000, **options}
        (said,) = export(spark, str(lake.root), out, streams=[stream], **options)
        lines = [line for file in out.glob("_quarantine/**/*.jsonl") for line in file.read_bytes().splitlines()]
        rows, bad = rows_in(said.table), [SimpleNamespace(**json.loads(line)) for line in lines]
        assert (said.quarantined, said.rows_written, said.rows_read) == (len(bad), len(rows), len(rows) + len(bad))
        return Read(rows, said, bad)

    return read


@pytest.fixture
def rewrite() -> Any:
    """Changes the lines of a data file behind the manifest's back."""

    def change(path: Path, old: bytes, new: bytes) -> None:
        lines = gzip.decompress(path.read_bytes())
        assert old in lines
        path.write_bytes(gzip.compress(lines.replace(old, new), 1))

    return change
