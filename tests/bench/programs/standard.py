"""The standard record of the benchmark: its schema, and pages of it in every form that a tap yields.

Imported in every environment, so it asks for nothing but the standard library (pyarrow only for tables).
No two rows of a run have the same id or the same date-time, and date-times go up: what a replication key needs.
"""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow

STREAM = "std"
CHILDREN = "children"
PAGE_ROWS = 1_000
TABLE_ROWS = 10_000
BIG_BYTES = 1_000_000
_PREPARED_PAGES = 20  # different JSON pages that are sent round and round
_PREPARED_TABLES = 5
_START = dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


def _or_null(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": ["null", kind], **more}


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "a": _or_null("string"),
        "b": _or_null("string"),
        "c": _or_null("string"),
        "email": _or_null("string"),
        "long": _or_null("string"),
        "f1": _or_null("number"),
        "f2": _or_null("number"),
        "ok": _or_null("boolean"),
        "ts": {"type": "string", "format": "date-time"},
        "nested": _or_null(
            "object", properties={"x": _or_null("integer"), "y": _or_null("string"), "w": _or_null("number")}
        ),
        "arr": _or_null("array", items={"type": "integer"}),
    },
}

# The same, with a regular expression for each text but the longest one.
PATTERNS: dict[str, Any] = {
    **SCHEMA,
    "properties": {
        **SCHEMA["properties"],
        "a": _or_null("string", pattern=r"^[a-z]+[0-9]*$"),
        "b": _or_null("string", pattern=r"^[a-z]{3}$"),
        "c": _or_null("string", pattern=r"^(?:abc|def|ghi)$"),
        "email": _or_null("string", pattern=r"^[^@\s]+@[^@\s]+\.[a-z]{2,}$"),
    },
}

# What differs from row to row within a page, and the tail of the row's date-time.
_TEMPLATES = [
    (
        {
            "id": 0,
            "a": f"abc{i}",
            "b": "def",
            "c": "ghi",
            "email": f"x{i}@example.com",
            "long": "y" * 120,
            "f1": i * 1.5,
            "f2": i / 7,
            "ok": i % 2 == 0,
            "ts": "",
            "nested": {"x": i, "y": "z", "w": 2.5},
            "arr": [1, 2, i],
        },
        f".{i:06d}Z",
    )
    for i in range(PAGE_ROWS)
]


def page(number: int, size: int = PAGE_ROWS) -> list[dict[str, Any]]:
    """The first ``size`` rows of a page; each row is a new dict."""
    second = (_START + dt.timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%S")
    first = number * PAGE_ROWS
    return [dict(row, id=first + i, ts=second + tail) for i, (row, tail) in enumerate(_TEMPLATES[:size])]


def pages(count: int) -> Iterator[list[dict[str, Any]]]:
    """So many rows, in pages of 1,000; the last may be shorter."""
    for first in range(0, count, PAGE_ROWS):
        yield page(first // PAGE_ROWS, min(PAGE_ROWS, count - first))


def rows(count: int) -> Iterator[dict[str, Any]]:
    """So many rows, one by one."""
    for some in pages(count):
        yield from some


def account(number: int) -> str:
    """The name of a partition; the rows in it have it as ``a``."""
    return f"acc{number:06d}"


def part(number: int, size: int) -> list[dict[str, Any]]:
    """The rows of one partition, or of one parent: as many as ``size``, of which a page holds a whole number."""
    first = number * size
    second, at = divmod(first, PAGE_ROWS)
    begun = (_START + dt.timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S")
    name = account(number)
    some = _TEMPLATES[at : at + size]
    return [dict(row, id=first + i, a=name, ts=begun + tail) for i, (row, tail) in enumerate(some)]


def parents(count: int) -> Iterator[dict[str, Any]]:
    """So many rows, one by one, each with the name that the rows below it have."""
    for row in rows(count):
        row["a"] = account(row["id"])
        yield row


def big_rows(count: int) -> Iterator[dict[str, Any]]:
    """Rows of 1 MB each, one by one; every text is made anew, and nothing here holds on to it."""
    for row in rows(count):
        # A new dict: the one in ``row`` lives as long as its page of 1,000 does.
        yield dict(row, long=f"{row['id']:010d}" * (BIG_BYTES // 10))


def json_pages(count: int) -> list[bytes]:
    """So many rows as JSON arrays of 1,000: a list of pages, of which each but the last comes again and again."""
    whole, rest = divmod(count, PAGE_ROWS)
    made = [_json(page(number)) for number in range(min(whole, _PREPARED_PAGES))]
    last = [_json(page(whole, rest))] if rest else []
    return [made[number % _PREPARED_PAGES] for number in range(whole)] + last


def _json(some: list[dict[str, Any]]) -> bytes:
    return json.dumps(some, separators=(",", ":")).encode()


def tables(count: int) -> list[pyarrow.Table]:
    """So many rows as Arrow tables of 10,000, with typed columns; each but the last comes again and again."""
    whole, rest = divmod(count, TABLE_ROWS)
    made = [_table(number, TABLE_ROWS) for number in range(min(whole, _PREPARED_TABLES))]
    last = [_table(whole, rest)] if rest else []
    return [made[number % _PREPARED_TABLES] for number in range(whole)] + last


def arrow_schema() -> pyarrow.Schema:
    """The columns of the tables."""
    import pyarrow as pa

    text, whole, real = pa.string(), pa.int64(), pa.float64()
    types: dict[str, Any] = {
        "id": whole,
        **dict.fromkeys(("a", "b", "c", "email", "long"), text),
        "f1": real,
        "f2": real,
        "ok": pa.bool_(),
        "ts": pa.timestamp("us", tz="UTC"),
        "nested": pa.struct([("x", whole), ("y", text), ("w", real)]),
        "arr": pa.list_(whole),
    }
    return pa.schema(list(types.items()))


def _table(number: int, size: int) -> pyarrow.Table:
    import pyarrow as pa

    first = number * TABLE_ROWS // PAGE_ROWS
    some = [row for i in range(-(-size // PAGE_ROWS)) for row in page(first + i)][:size]
    for row in some:
        row["ts"] = dt.datetime.fromisoformat(row["ts"].replace("Z", "+00:00"))
    return pa.Table.from_pylist(some, schema=arrow_schema())
