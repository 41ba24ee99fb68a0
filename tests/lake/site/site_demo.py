"""A lake to make pages of: two taps over ten weeks, several schema versions, names and notes as people write them.

The same each time, to the byte of every row; only the manifests' random ids differ.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burler.lake import LakeWriter, Store, open_store, read_singerlake
from burler.singer.messages import Records, Schema, State, record_prefix_suffix

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
BEGIN = dt.datetime(2024, 1, 8, 6, 0, tzinfo=dt.UTC)
NOW = dt.datetime(2024, 3, 18, 9, 30, tzinfo=dt.UTC)
DAYS = 70


@dataclass
class Clock:
    """Time that stands where the demo puts it."""

    moment: dt.datetime = BEGIN

    def now(self) -> dt.datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.moment.timestamp()


def schema(name: str) -> dict[str, Any]:
    """A schema of an example tap: ``tap_library/books``."""
    folder, _, stream = name.partition("/")
    return json.loads((EXAMPLES / folder / "schemas" / f"{stream}.json").read_text())


def books() -> list[dict[str, Any]]:
    """The schema of books as it grew: three versions."""
    first = {**schema("tap_library/books"), "description": "Every book that the library owns, lent out or not."}
    second = json.loads(json.dumps(first))
    second["properties"] |= {
        "publisher": {
            "type": ["null", "object"],
            "description": "Who brought it out.",
            "properties": {
                "name": {"type": "string", "maxLength": 200},
                "address": {
                    "type": "object",
                    "properties": {"city": {"type": ["null", "string"]}, "country": {"type": "string", "maxLength": 2}},
                },
            },
        },
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Words of our librarians."},
    }
    third = json.loads(json.dumps(second))
    third["properties"]["price"] = {"type": "string", "description": "With its currency: 12.50 EUR."}
    third["properties"]["state"] = {"enum": ["new", "good", "worn", "lost", None], "description": "How it looks."}
    third["properties"]["updated_at"]["description"] = "When anybody last touched the entry."
    del third["properties"]["languages"]
    return [first, second, third]


def page(stream: str, rows: list[dict[str, Any]], at: dt.datetime) -> Records:
    """A page of rows, extracted at a time."""
    prefix, suffix = record_prefix_suffix(stream, at, None)
    lines = b"".join(prefix + json.dumps(row, separators=(",", ":")).encode() + suffix for row in rows)
    return Records(stream, lines, len(rows), at, None)


def book(number: int, at: dt.datetime, version: int) -> dict[str, Any]:
    """One book, as the version's schema has it."""
    row: dict[str, Any] = {
        "isbn": f"978-0-{number:06}-0",
        "title": ("The Sea & the Stars", "Ein Jahr im Süden", "猫の本", "<b>Bold</b> Moves")[number % 4],
        "author": number % 97,
        "year": 1950 + number % 70,
        "price": number % 40 + 0.5,
        "languages": '["en"]',
        "updated_at": at.isoformat(),
    }
    if version > 1:
        row["publisher"] = {"name": "Hill & Sons", "address": {"city": "York", "country": "GB"}}
        row["tags"] = ["old", "loved"] if number % 3 else []
    if version > 2:
        row |= {"price": f"{number % 40}.50 EUR", "state": "good"}
        del row["languages"]
    return row


def days(seed: int) -> Iterator[tuple[int, dt.datetime, int]]:
    """(day, moment, rows): few on Sundays, none in a week when nothing ran, more and more to the end."""
    chance = random.Random(seed)
    for day in range(DAYS):
        if 33 <= day < 39:
            continue
        rows = chance.randint(20, 60) + day * 2
        yield day, BEGIN + dt.timedelta(days=day, minutes=chance.randint(0, 50)), rows // (6 if day % 7 == 6 else 1)


def write_library(store: Store) -> None:
    """``tap-library``: books in three versions, loans, branches, and a stream without data."""
    clock = Clock()
    versions = books()
    loans = {**schema("tap_library/loans"), "description": "One row a loan; it changes when the book comes back."}
    with LakeWriter(store, "tap-library", emit_state=lambda state: None, clock=clock, writer_id="demo-1") as writer:
        for day, at, rows in days(1):
            clock.moment = at
            version = 1 if day < 20 else 2 if day < 45 else 3
            writer.schema(Schema("books", versions[version - 1], ("isbn",), ("updated_at",)))
            writer.records(page("books", [book(day * 300 + i, at, version) for i in range(rows)], at))
            writer.schema(Schema("loans", loans, ("id",), ("updated_at",)))
            row = {"id": 1, "isbn": "978-0-000001-0", "branch": 1, "member": "M-1", "updated_at": at.isoformat()}
            writer.records(page("loans", [{**row, "id": day * 900 + i} for i in range(rows * 3)], at))
            if day % 30 == 0:
                writer.schema(Schema("branches", schema("tap_library/branches"), ("id",)))
                writer.records(page("branches", [{"id": n, "name": f"Branch {n}"} for n in range(4)], at))
            if day == 0:
                writer.schema(Schema("closed_days", schema("tap_library/closed_days"), ("date",)))
            writer.state(State({"day": day}))
            clock.moment += dt.timedelta(minutes=5)
            writer.tick()


def write_git(store: Store) -> None:
    """``tap-git``: commits and what they changed."""
    clock = Clock()
    with LakeWriter(store, "tap-git", emit_state=lambda state: None, clock=clock, writer_id="demo-2") as writer:
        for day, at, rows in days(2):
            clock.moment = at
            for stream, times in (("commits", 1), ("file_changes", 5), ("refs", 0)):
                writer.schema(Schema(stream, schema(f"tap_git/{stream}"), ("sha",) if stream == "commits" else ()))
                if times:
                    found = [{"sha": f"{day:04x}{i:036x}", "subject": "Say it simply"} for i in range(rows * times)]
                    writer.records(page(stream, found, at))
            writer.state(State({"day": day}))
            clock.moment += dt.timedelta(minutes=5)
            writer.tick()


def notes(store: Store, path: Path) -> None:
    """What people say about the taps: owner, description, links; how the last run went."""
    document = read_singerlake(store)
    assert document is not None
    document["taps"]["tap-library"].update(
        owner="Reading room team <library@example.org>",
        description="Books, members' loans and branches of the town library. Asked for by the opening-hours project.",
        documentation="https://example.org/taps/library",
        status={
            "state": "complete",
            "writer-id": "host-1-abc",
            "started": "2024-03-18T06:00:00Z",
            "ended": "2024-03-18T06:07:12Z",
            "link": "https://example.org/jobs/41",
        },
    )
    document["taps"]["tap-git"].update(
        description="What happened in our repository.",
        status={"state": "failed", "started": "2024-03-18T06:10:00Z", "ended": "2024-03-18T06:10:09Z", "link": None},
    )
    (path / "raw" / "singerlake.json").write_text(json.dumps(document, default=str))


def write(lake: Any, stream: str = "users", rows: int = 1, at: dt.datetime = NOW, **fields: Any) -> None:
    """One commit of a stream of ``tap-x``, with an id and these fields."""
    properties = {"id": {"type": "integer"}, **fields}
    with LakeWriter(lake.store, "tap-x", emit_state=lambda state: None) as writer:
        writer.schema(Schema(stream, {"type": "object", "properties": properties}, ("id",)))
        writer.records(page(stream, [{"id": n} for n in range(rows)], at))


def make(path: Path) -> Store:
    """The demo lake in a folder; its store."""
    store = open_store(str(path))
    write_library(store)
    write_git(store)
    notes(store, path)
    return store


if __name__ == "__main__":
    import sys

    make(Path(sys.argv[1]))
