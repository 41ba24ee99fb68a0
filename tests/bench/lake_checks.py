"""What burler writes into a lake, held against the slow reference; files are read by gzip and json alone. And what it
reads out of one, beside what the programs read that it is compared with."""

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
from cases import Case
from checks import CHECKED_ROWS, Wrong
from lake_cases import RATES

if TYPE_CHECKING:
    from measure import Bench

CHECKED = ("lake",)
READ = ("readlines", "readpages", "readrows", "readarrow")


def check(bench: Bench, case: Case) -> int:
    """Compare a lake with the reference; how many records were compared.

    Raises:
        Wrong: there is a difference.
        Failed: the program ends with an error.
    """
    wanted = checks.reference(bench, "pages", CHECKED_ROWS)
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


def check_reading(bench: Bench, case: Case) -> int:
    """Compare what is read from a lake, by burler and by those of its rivals that run in the same Python, with the
    reference; how many records were compared.

    Raises:
        Wrong: there is a difference.
        Failed: a program ends with an error.
    """
    wanted = checks.reference(bench, "pages", CHECKED_ROWS)
    [row] = [row for row in RATES if row.case.work == case.work]
    bench.environment["BENCH_SHOW"] = "1"
    try:
        for one in (row.case, *(one for one in row.cases if one != row.case and one.program.environment is None)):
            found = checks.parse(bench.output(one, CHECKED_ROWS))
            compare_read(found, wanted, case.work, replayed=one == row.case)
    finally:
        del bench.environment["BENCH_SHOW"]
    return len(wanted)


def compare_read(found: list[dict[str, Any]], wanted: list[dict[str, Any]], work: str, *, replayed: bool) -> None:
    """Hold what was read against the records that are in the lake.

    Args:
        found: messages, or rows.
        replayed: they come from burler, which ends with a STATE and has one SCHEMA for all files.

    Raises:
        Wrong: there is a difference.
    """
    if work in ("readlines", "readpages"):
        if work == "readlines" and replayed:
            _compare_ends(found)
        others = {message.get("type") for message in found} - {"RECORD"}
        if work == "readpages" and replayed and others:
            raise Wrong(f"among the pages are messages of other types: {sorted(map(str, others))}")
        found = [message["record"] for message in found if message["type"] == "RECORD"]
    batch_checks.compare_rows(sorted(found, key=lambda row: row["id"]), wanted)


def _compare_ends(messages: list[dict[str, Any]]) -> None:
    first, last = (messages[0], messages[-1]) if messages else ({}, {})
    if first.get("type") != "SCHEMA" or first.get("schema") != standard.SCHEMA:
        raise Wrong(f"the first message is not the stream's SCHEMA: {first!r:.200}")
    if sum(message["type"] == "SCHEMA" for message in messages) != 1:
        raise Wrong("there is more than one SCHEMA")
    if last.get("type") != "STATE" or standard.STREAM not in last["value"].get("bookmarks", {}):
        raise Wrong(f"the last message is no STATE of the stream: {last!r:.200}")
