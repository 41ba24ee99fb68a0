"""What burler writes in BATCH mode, held against the slow reference. Each format is read by a library that knows it."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import checks
import standard
from cases import Case
from checks import CHECKED_ROWS, Wrong

if TYPE_CHECKING:
    from measure import Bench

CHECKED = ("jsonl", "csv", "parquet", "tables")


def check(bench: Bench, case: Case) -> int:
    """Compare a case's messages and files with the reference; how many records were compared.

    Raises:
        Wrong: there is a difference.
        Failed: a program ends with an error.
    """
    wanted = checks.reference(bench, "arrow" if case.work == "tables" else "pages", CHECKED_ROWS)
    kept = bench.folder / "kept"
    bench.environment["BENCH_FILES"] = str(kept)
    try:
        return compare(checks.parse(bench.output(case, CHECKED_ROWS)), wanted)
    finally:
        del bench.environment["BENCH_FILES"]
        shutil.rmtree(kept, ignore_errors=True)


def compare(messages: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> int:
    """Hold messages, and the files that they name, against the records they should bring.

    Raises:
        Wrong: there is a difference.
    """
    first = messages[0] if messages else {}
    if first.get("type") != "SCHEMA" or first.get("schema") != standard.SCHEMA:
        raise Wrong(f"the first message is not the stream's SCHEMA: {first!r:.200}")
    batches = [message for message in messages if message["type"] == "BATCH"]
    if len(batches) < 2 or any(message["type"] == "RECORD" for message in messages):
        raise Wrong(f"{len(batches)} BATCH messages, and RECORDs beside them or too few: {messages[1:3]!r:.200}")
    found: list[dict[str, Any]] = []
    for message in batches:
        rows = [row for url in message["manifest"] for row in rows_of(url, message["format"]["name"])]
        if message["size"] != len(rows) or message["stream"] != standard.STREAM:
            raise Wrong(f"{len(rows)} rows of '{message['stream']}' where the message says {message['size']}")
        checks.moment(message["time_extracted"])
        found += rows
    compare_rows(found, wanted)
    _compare_state(messages[-1], batches)
    return len(found)


def compare_rows(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    """Each record against the one it should be.

    Raises:
        Wrong: there is a difference.
    """
    if len(found) != len(wanted):
        raise Wrong(f"{len(found)} records, not {len(wanted)}")
    for number, (row, right) in enumerate(zip(found, wanted, strict=True)):
        names = [name for name in {**row, **right} if not checks.same(row.get(name), right.get(name), key=name)]
        if names or row.keys() != right.keys():
            told = ", ".join(f"{name}: {row.get(name)!r:.80}, not {right.get(name)!r:.80}" for name in names)
            raise Wrong(f"record {number} differs in {told or 'its fields'}")


def _compare_state(last: dict[str, Any], batches: list[dict[str, Any]]) -> None:
    if last["type"] != "STATE":
        raise Wrong(f"the last message is a {last['type']}, not a STATE")
    version = last["value"].get("bookmarks", {}).get(standard.STREAM, {}).get("version")
    if {message.get("version") for message in batches} != {version}:
        raise Wrong(f"the last STATE is {last!r:.200}, the last BATCH {batches[-1]!r:.200}")


def rows_of(url: str, form: str) -> list[dict[str, Any]]:
    """The rows of a file, numbers with a point as exact decimals, date-times as text."""
    path = Path(unquote(urlsplit(url).path))
    if form == "parquet":
        import pyarrow.parquet as pq

        return [_plain(row) for row in pq.read_table(path).to_pylist()]
    text = gzip.decompress(path.read_bytes()).decode()
    if form == "jsonl":
        return [_json(line) for line in text.splitlines()]
    if form == "csv":
        return [{name: _of_text(name, cell) for name, cell in row.items()} for row in csv.DictReader(text.splitlines())]
    raise Wrong(f"a file of the format {form!r}")


def _json(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


def _plain(value: Any) -> Any:
    """A value as pyarrow gives it, as JSON has it."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return Decimal(repr(value))
    return value.isoformat() if hasattr(value, "isoformat") else value


def _of_text(name: str, cell: str) -> Any:
    """A cell by the standard schema."""
    kinds = standard.SCHEMA["properties"][name]["type"]
    return (cell if "string" in kinds else _json(cell)) if cell else None
