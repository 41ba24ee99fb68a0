"""What a burler case writes, held against the slow reference: the floor's lines, read with json.loads."""

from __future__ import annotations

import datetime as dt
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cases import FLOOR, Case

sys.path.insert(0, str(Path(__file__).resolve().parent / "programs"))
import standard

if TYPE_CHECKING:
    from measure import Bench

CHECKED_ROWS = 2_500  # not a whole number of pages
CHECKED_BIG_ROWS = 12


class Wrong(Exception):
    """The output is not what it should be; the text says where."""


def check(bench: Bench, case: Case) -> int:
    """Compare a case's messages with the reference: SCHEMA, records, their number, the last STATE.

    Returns how many records were compared.

    Raises:
        Wrong: there is a difference.
        Failed: a program ends with an error.
    """
    count = CHECKED_BIG_ROWS if case.work == "big" else CHECKED_ROWS
    compare(case, parse(bench.output(case, count)), reference(bench, case.work, count))
    return count


def reference(bench: Bench, work: str, count: int) -> list[dict[str, Any]]:
    """The records of some work as the floor writes them, which is asked once.

    Raises:
        Wrong: there are more or fewer.
        Failed: the program ends with an error.
    """
    if (work, count) not in bench.references:
        found = [message["record"] for message in parse(bench.output(Case(FLOOR, work), count))]
        if len(found) != count:
            raise Wrong(f"the reference has {len(found)} records, not {count}")
        bench.references[work, count] = found
    return bench.references[work, count]


def parse(output: bytes) -> list[dict[str, Any]]:
    """The messages; numbers with a point as exact decimals."""
    return [json.loads(line, parse_float=Decimal) for line in output.splitlines()]


def compare(case: Case, messages: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> int:
    """Hold the messages of a burler case against the records they should carry; how many records were compared.

    Raises:
        Wrong: there is a difference.
    """
    first = messages[0] if messages else {}
    if first.get("type") != "SCHEMA" or first.get("schema") != (
        standard.PATTERNS if case.work == "patterns" else standard.SCHEMA
    ):
        raise Wrong(f"the first message is not the stream's SCHEMA: {first!r:.200}")
    records = [message for message in messages if message["type"] == "RECORD"]
    if len(records) != len(wanted):
        raise Wrong(f"{len(records)} records, not {len(wanted)}")
    for number, (message, right) in enumerate(zip(records, wanted, strict=True)):
        record = message["record"]
        if message["stream"] != standard.STREAM or not same(record, right):
            names = [name for name in {**record, **right} if not same(record.get(name), right.get(name), key=name)]
            told = ", ".join(f"{name}: {record.get(name)!r:.80}, not {right.get(name)!r:.80}" for name in names)
            raise Wrong(f"record {number} of '{message['stream']}' differs in {told or 'its fields'}")
        moment(message["time_extracted"])
    _compare_state(case, messages, records)
    return len(records)


def _compare_state(case: Case, messages: list[dict[str, Any]], records: list[dict[str, Any]]) -> None:
    last = messages[-1]
    if last["type"] != "STATE":
        raise Wrong(f"the last message is a {last['type']}, not a STATE")
    bookmark = last["value"].get("bookmarks", {}).get(standard.STREAM, {})
    if case.work in ("keyed", "tail"):
        states = sum(message["type"] == "STATE" for message in messages)
        if moment(bookmark.get("ts", "")) != moment(records[-1]["record"]["ts"]) or states < len(records) // 1000:
            raise Wrong(f"{states} STATEs, the last is {last!r:.200}")
        return
    versions = {message["version"] for message in messages if message["type"] in ("RECORD", "ACTIVATE_VERSION")}
    if versions != {bookmark.get("version")}:
        raise Wrong(f"versions {versions} in the messages, the last STATE is {last!r:.200}")


def same(one: Any, other: Any, *, key: str = "") -> bool:
    """Equal values of equal types. Numbers are equal if their values are, to the last digit: JSON has one type of them.
    Date-times are equal if they name the same moment."""
    if type(one) is not type(other):
        numbers = (int, Decimal)
        return type(one) in numbers and type(other) in numbers and one == other
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name], key=name) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if key == "ts" and one != other:
        return moment(one) == moment(other)
    return bool(one == other)


def moment(text: str) -> dt.datetime:
    """An RFC 3339 date-time.

    Raises:
        Wrong: it is none, or has no zone.
    """
    try:
        read = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise Wrong(f"not a date-time: {text!r:.80}") from error
    if read.tzinfo is None:
        raise Wrong(f"a date-time without a zone: {text!r:.80}")
    return read
