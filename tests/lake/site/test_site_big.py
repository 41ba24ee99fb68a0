"""Big lakes: pages stay small enough to open, and making them takes seconds, not minutes."""

from __future__ import annotations

import datetime as dt
import json
import time
from pathlib import Path
from typing import Any

from site_demo import NOW
from site_reading import make_site

from burler.lake import FileStats, open_store
from burler.singer.messages import format_time
from support.internals import canonical, layout
from support.internals import manifest_document as doc

MOST_BYTES = 4_000_000


def fields(count: int, kind: str = "string") -> dict[str, Any]:
    text = "What this field says, in some words that are as long as such words usually are."
    return {f"field_{n}": {"type": ["null", kind], "description": text} for n in range(count)}


def put(lake: Path, stream: str, versions: list[dict[str, Any]], files: int) -> None:
    """A stream by its manifest alone: its data files are named, and need not be there."""
    document = doc.new_document("tap-big", stream)
    wire = {"bookmark_properties": ["field_1"], "key_properties": ["field_0"], "stream": stream, "type": "SCHEMA"}
    for number, properties in enumerate(versions):
        schema = {"properties": properties, "type": "object"}
        line = json.dumps({**wire, "schema": schema}, sort_keys=True, separators=(",", ":")).encode()
        doc.add_schema(document, line)
        share = files // len(versions)
        found = {}
        for n in range(share):
            at = NOW - dt.timedelta(hours=files - number * share - n)
            name = f"{canonical.schema_hash(line)}/{layout.file_name(stream, at, at)}"
            stats = FileStats(1000, 200_000, format_time(at), format_time(at), sequence=n)
            document["file_stats"][name] = stats.to_wire()
            found[name] = None
        document["files"] += found
    folder = lake / "raw" / "tap-big" / stream
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_bytes(doc.to_bytes(document))


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
    assert site.built.streams == 152
    assert site.built.problems == ()
    sizes = {path.name: path.stat().st_size for path in site.out.rglob("*") if path.is_file()}
    assert max(sizes.values()) < MOST_BYTES, sizes
    assert "Files 10,000" in site.text("taps/tap-big/many_files.html")
    assert sizes["many_files.html"] < 100_000
    text = site.text("taps/tap-big/wide.html")
    assert "Since v3: 10 removed, 1,970 changed" in text
    assert "and 1,780 more" in text
    assert len(site.index()["fields"]) == 1970


if __name__ == "__main__":
    import resource
    import sys

    base = Path(sys.argv[1])
    make(base / "lake", streams=2_000, files=100_000, width=2_000, versions=60)
    started = time.monotonic()
    made = make_site(open_store(str(base / "lake")), base / "site")
    print(f"{time.monotonic() - started:.1f} s, {made.built}")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB at most")
    largest = sorted((path.stat().st_size, path.as_posix()) for path in made.out.rglob("*") if path.is_file())[-5:]
    print(*largest, sep="\n")
