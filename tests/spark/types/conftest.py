"""Lake files to rows, as an export does it, in one Spark job."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Read:
    """What came out: rows as plain Python values, the report, bad rows, and the columns."""

    rows: list[dict[str, Any]]
    report: Any
    bad: list[Any]
    united: Any
    second: list[str]
    """Names of files that were read a second time."""

    def by(self, name: str) -> dict[Any, dict[str, Any]]:
        """The rows by the value of one column, each of which comes once."""
        found = {row[name]: row for row in self.rows}
        assert len(found) == len(self.rows)
        return found


@pytest.fixture
def read_stream(spark: Any, lake: Any, tmp_path: Path) -> Any:
    """Reads a stream of the lake as ``burler.spark.export`` does."""
    from burler.lake import open_store
    from support import internals
    from support.internals import confs, lakefiles, quarantine, readoptions, readrows

    def read(stream: str = "s", *, as_json: tuple[str, ...] = (), watch: Any = None, **options: Any) -> Read:
        from pyspark.sql import functions as f

        store = open_store(str(lake.root), must_exist=True)
        found = lakefiles.load_stream(store, lake.tap_id, stream)
        chosen, files, second = readoptions.ReadOptions(**options), list(found.files), []
        with confs.job_confs(spark):
            while True:
                united = internals.united.unite_stream(stream, found.versions, chosen)
                try:
                    place = {"store": store, "stream": stream, "staging": tmp_path / "staging"}
                    made = readrows.read_rows(spark, files, united, options=chosen, watch=watch, **place)
                    frame = made.frame.withColumns({name: f.to_json(f.col(name)) for name in as_json})
                    rows = frame.toArrow().to_pylist()
                    report = made.verify()
                    break
                except readrows.Flagged as flagged:
                    assert flagged.files or flagged.as_text
                    ranks = {file.rank for file in flagged.files}
                    second += [file.name for file in flagged.files]
                    files = [replace(file, clean=file.clean and file.rank not in ranks) for file in files]
                    chosen = replace(chosen, as_text=chosen.as_text | flagged.as_text)
        bad = list(quarantine.read_bad(report.bad)) if report.bad else []
        assert len(bad) == report.quarantined
        assert len(rows) == report.rows
        return Read(rows, report, bad, united, second)

    return read


@pytest.fixture
def rewrite() -> Any:
    """Changes the lines of a data file behind the manifest's back."""

    def change(path: Path, old: bytes, new: bytes) -> None:
        lines = gzip.decompress(path.read_bytes())
        assert old in lines
        path.write_bytes(gzip.compress(lines.replace(old, new), 1))

    return change
