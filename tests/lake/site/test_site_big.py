"""Big lakes: pages stay small enough to open, and making them takes seconds, not minutes."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import Any

from site_demo import NOW
from site_reading import describe, make_site

from burler.lake import FileStats, open_store
from burler.singer.messages import format_time

MOST_BYTES = 4_000_000


def fields(count: int, kind: str = "string") -> dict[str, Any]:
    text = "What this field says, in some words that are as long as such words usually are."
    return {f"field_{n}": {"type": ["null", kind], "description": text} for n in range(count)}


def put(lake: Path, stream: str, versions: list[dict[str, Any]], files: int) -> None:
    """A stream with a file each hour."""
    hours = [format_time(NOW - dt.timedelta(hours=files - n)) for n in range(files)]
    stats = [FileStats(1000, 200_000, at, at, sequence=n) for n, at in enumerate(hours)]
    schemas = [{"properties": properties, "type": "object"} for properties in versions]
    describe(lake, stream, schemas, stats, tap="tap-big")


def make(lake: Path, *, streams: int, files: int, width: int, versions: int) -> None:
    """A lake of many streams, of one with many files, and of one with many fields and versions."""
    for n in range(streams):
        put(lake, f"stream_{n:05}", [fields(20)], 10)
    put(lake, "many_files", [fields(5)], files)
    kinds = ("string", "integer", "number", "boolean")
    put(lake, "wide", [fields(width - n * 10, kinds[n % 4]) for n in range(versions)], versions)


def test_a_big_lake_is_described_in_seconds_on_pages_that_open(tmp_path):
    make(tmp_path / "lake", streams=150, files=10_000, width=2_000, versions=4)
    begun = time.process_time()
    site = make_site(open_store(str(tmp_path / "lake")), tmp_path / "site")
    assert time.process_time() - begun < 60  # some 3 s; a square would take minutes
    assert site.counted("stream") == 152
    assert site.problems == []
    sizes = {path.name: path.stat().st_size for path in site.out.rglob("*") if path.is_file()}
    assert max(sizes.values()) < MOST_BYTES, sizes
    assert "Files 10,000" in site.text("taps/tap-big/many_files.html")
    assert sizes["many_files.html"] < 100_000
    text = site.text("taps/tap-big/wide.html")
    assert "Since v3: 10 removed, 1,970 changed" in text
    assert "and 1,780 more" in text
    assert len(site.index()["fields"]) == 1970
