"""What burler writes into a lake, held against the slow reference; files are read by gzip and json alone."""

from __future__ import annotations

import gzip
import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import batch_checks
import checks
import standard
from cases import FLOOR, Case
from checks import CHECKED_ROWS, Wrong

if TYPE_CHECKING:
    from measure import Bench

CHECKED = ("lake",)


def check(bench: Bench, case: Case) -> int:
    """Compare a lake with the reference; how many records were compared.

    Raises:
        Wrong: there is a difference.
        Failed: the program ends with an error.
    """
    wanted = [message["record"] for message in checks.parse(bench.output(Case(FLOOR, "pages"), CHECKED_ROWS))]
    kept = bench.folder / "kept"
    bench.environment["BENCH_FILES"] = str(kept)
    try:
        states = checks.parse(bench.output(case, CHECKED_ROWS))
        return compare(kept / "lake", states, wanted)
    finally:
        del bench.environment["BENCH_FILES"]
        shutil.rmtree(kept, ignore_errors=True)


def compare(lake: Path, states: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> int:
    """Hold a lake's files, in the manifest's order, against the records they should hold.

    Raises:
        Wrong: there is a difference.
    """
    if {state.get("type") for state in states} != {"STATE"}:
        raise Wrong(f"stdout held other things than STATEs: {states[:2]!r:.200}")
    found = []
    manifests = list(lake.glob("raw/*/*/manifest.json"))
    if len(manifests) != 1:
        raise Wrong(f"{len(manifests)} manifests")
    manifest = json.loads(manifests[0].read_text())
    for name in manifest["files"]:
        text = gzip.decompress((manifests[0].parent / name).read_bytes()).decode()
        first, *lines = (json.loads(line, parse_float=Decimal) for line in text.splitlines())
        if first["type"] != "SCHEMA" or first["schema"] != standard.SCHEMA:
            raise Wrong(f"{name} does not begin with the stream's SCHEMA: {first!r:.200}")
        stats = manifest["file_stats"][name]
        records = [line["record"] for line in lines if line["type"] == "RECORD"]
        if stats["records"] != len(records) or not stats["clean"]:
            raise Wrong(f"{name} has {len(records)} records; the manifest says {stats!r:.200}")
        found += records
    found.sort(key=lambda row: row["id"])  # files of one second have no order of their own
    batch_checks.compare_rows(found, wanted)
    return len(found)
