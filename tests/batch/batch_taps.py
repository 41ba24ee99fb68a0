"""Taps for tests of BATCH: rows of all kinds in every form that a function may give, and what a run may do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from batch_rows import MOMENT, ODD, ORDER, TEXT, TEXTS, UNKNOWN, WHOLE

import burler
from burler import StreamRun


def shop(rows: Callable[..., Any] | list[Any], **options: Any) -> burler.Tap:
    """A tap with the full table ``orders``."""
    tap = burler.tap("tap-shop")
    tap.sync("orders", **{"key_properties": "id", "schema": ORDER, **options})(
        rows if callable(rows) else lambda: iter(rows)
    )
    return tap


def hooked() -> burler.Tap:
    """A hook that changes rows, and leaves some out."""
    tap = shop([*ODD, *UNKNOWN])

    @tap.post_transform("orders")
    def change(record):
        if record["id"] % 4 == 0:
            return None
        record["text"] = f"seen: {record.get('text')}"
        record["added"] = "no such field"
        return record

    return tap


def as_bytes() -> list[Any]:
    """The rows as pages of JSON: an array, lines, and spellings that only a source has."""
    plain = [row for row in ODD if row["id"] >= 4]
    text = [json.dumps(row, default=float, ensure_ascii=False) for row in plain]
    return [
        f"[{', '.join(text[:5])}]".encode(),
        "\n".join(text[5:]).encode(),
        b'{"id": 95, "price": 1.50, "open": {"a":  [1.0,2.50]}, "colour": 1}\n'
        b'{"id": 96, "ratio": 0.30000000000000004}\n',
    ]


def as_arrow() -> list[Any]:
    """Typed columns: a table in several parts, one with other columns, one that the schema does not know."""
    import pyarrow

    first = pyarrow.table(
        {
            "id": pyarrow.array([1, 2, 3, 4], pyarrow.int32()),
            "text": pyarrow.array(TEXTS[:4]).dictionary_encode(),
            "price": pyarrow.array(
                [Decimal("1.50"), None, Decimal("0.01"), Decimal("-2.00")], pyarrow.decimal128(10, 2)
            ),
            "ratio": [0.5, None, 1e300, -0.0],
            "at": pyarrow.array([0, None, 1, -1], pyarrow.timestamp("us", "Europe/Berlin")),
            "day": pyarrow.array([0, 1, None, -1], pyarrow.date32()),
            "paid": [True, False, None, True],
            "list": [[1, None], [], None, [3]],
            "owner": [
                {"name": "Ann", "home": {"city": "Bern"}},
                None,
                {"name": None, "home": None},
                {"name": "", "home": {"city": None}},
            ],
            "blob": pyarrow.array([b"\x00", None, b"", b"abc"]),
            "colour": ["red", None, "blue", None],
        }
    )
    second = pyarrow.record_batch({"text": ["five", None], "id": [5, 6]})
    third = pyarrow.table({"id": ["7"], "count": ["12"], "items": [[{"sku": "a", "price": 1.5}]]})
    return [
        pyarrow.concat_tables([first, first.slice(1, 2).set_column(0, "id", pyarrow.array([8, 9], pyarrow.int32()))]),
        second,
        third,
    ]


def odd_arrow() -> list[Any]:
    """Columns of other types than a file has: each must become exactly what the RECORD says."""
    import pyarrow as pa

    decimals = [Decimal("7.4700"), Decimal("-0.0001"), None, Decimal("9999999999999999.9999")]
    return [
        pa.table(
            {
                "id": pa.array([1, 2, 3, 4], pa.uint8()),
                "text": pa.array(TEXTS[4:8], pa.large_string()),
                "count": pa.array([0, None, 2**63 - 1, 7], pa.uint64()),
                "huge": pa.array([10**29, None, -(10**29), 0], pa.decimal128(31, 0)),
                "ratio": pa.array([0.1, None, 1e30, -0.0], pa.float32()),
                "price": pa.array([Decimal("1.50"), Decimal("2.00"), None, Decimal("0.10")], pa.decimal256(40, 2)),
                "exact": pa.array(decimals, pa.decimal128(20, 4)),
                "at": pa.array([0, 1, None, -1], pa.timestamp("ms", "UTC")),
                "clock": pa.array([0, 1, None, 86_399_999_999], pa.time64("us")),
                "blob": pa.array([b"", b"\xff", None, b"x"], pa.large_binary()),
                "mixed": pa.array([1, None, 3, 4], pa.int64()),
                "open": pa.array([{"a": 1, "b": [1.5]}, None, {"a": None, "b": None}, {"a": 2, "b": []}]),
                "loose": pa.array([[1], [], None, [2, 3]]),
                "labels": pa.array([[("a", "1")], [], None, [("b", None)]], pa.map_(pa.string(), pa.string())),
                "items": pa.array([[{"price": 1, "sku": "a"}], [], None, [{"price": 2, "sku": None}]]),
            }
        ),
        pa.table({"id": pa.array([5, 6], pa.int64()), "ratio": pa.array([Decimal("0.47"), None], pa.decimal128(9, 2))}),
    ]


def bad_rows() -> list[dict[str, Any]]:
    """Some do not fit."""
    return [{"id": 1, "count": 1}, {"id": 2, "count": "x"}, {"id": 3, "at": "yesterday"}, {"id": 4, "count": 4}]


# ---- what a run may do --------------------------------------------------------------------------------------

ITEM = {"type": "object", "properties": {"id": {"type": "integer"}, "of": WHOLE, "at": MOMENT, "text": TEXT}}


def item(number: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "at": f"2024-05-{number % 28 + 1:02}T00:00:00Z", "text": f"item {number}", **more}


def family() -> burler.Tap:
    """A parent, its children, theirs; a stream that the parent's function emits; one that fails in the middle."""
    tap = burler.tap("tap-family")

    @tap.sync(
        "parents", key_properties="id", replication_key="id", order="asc", bookmark_strategy="every_n(2)", schema=ITEM
    )
    def parents(stream: StreamRun) -> Iterator[Any]:
        for number in range(stream.bookmark or 1, 12):
            yield item(number)
            stream.emit_record(item(number * 100), stream="beside")

    @tap.sync("children", parent="parents", key_properties="id", schema=ITEM)
    def children(parent: dict[str, Any]) -> list[dict[str, Any]]:
        if parent["id"] == 9:
            raise ConnectionError("gone")
        return [item(parent["id"] * 10 + number, of=parent["id"]) for number in range(3)]

    @tap.sync("grandchildren", parent="children", key_properties="id", schema=ITEM)
    def grandchildren(parent: dict[str, Any]) -> list[dict[str, Any]]:
        return [item(parent["id"] * 10, of=parent["id"])] if parent["id"] % 2 else []

    @tap.sync("broken", key_properties="id", replication_key="id", order="asc", schema=ITEM)
    def broken() -> Iterator[Any]:
        yield from map(item, range(5))
        raise ConnectionError("gone")

    tap.stream("beside", emitted_by="parents", key_properties="id", schema=ITEM)
    tap.sync("empty", key_properties="id", schema=ITEM)(lambda: [])
    return tap


def parted(order: str = "none") -> burler.Tap:
    """Partitions, each with a bookmark; one fails."""
    tap = burler.tap("tap-parts")

    @tap.partitions("tickets", key="account")
    def accounts() -> list[dict[str, Any]]:
        return [{"account": name} for name in "abcd"]

    often = "every_n(2)" if order == "asc" else "end_of_sync"

    @tap.sync("tickets", key_properties="id", replication_key="at", order=order, bookmark_strategy=often, schema=ITEM)
    def tickets(partition: dict[str, Any]) -> Iterator[Any]:
        start = 100 * "abcd".index(partition["account"])
        yield from (item(start + number) for number in range(5))
        if partition["account"] == "c":
            raise ConnectionError("gone")

    return tap


def strategy(name: str) -> burler.Tap:
    """One stream with a bookmark strategy."""
    tap = burler.tap("tap-often")

    @tap.sync("tickets", key_properties="id", replication_key="id", order="asc", bookmark_strategy=name, schema=ITEM)
    def tickets(stream: StreamRun) -> Iterator[Any]:
        for low in range(stream.bookmark or 0, 40, 4):
            yield [item(number) for number in range(low, low + 4)]
            if name == "manual":
                stream.save_bookmark(low + 3)

    return tap


def table(fail_at: int | None = None) -> burler.Tap:
    """A full table that can go on, and breaks off."""
    tap = burler.tap("tap-table")

    @tap.sync("things", key_properties="id", resumable_by="id", bookmark_strategy="every_n(2)", schema=ITEM)
    def things(stream: StreamRun) -> Iterator[Any]:
        for number in range(stream.bookmark or 0, 12):
            if number == fail_at:
                raise ConnectionError("gone")
            yield item(number)

    return tap


def polled() -> burler.Tap:
    """For a tail: an incremental stream that grows, and a full table that is read again."""
    tap = burler.tap("tap-polled")
    known = [item(1)]

    @tap.sync("events", key_properties="id", replication_key="id", order="asc", schema=ITEM)
    def events(stream: StreamRun) -> list[dict[str, Any]]:
        known.extend(item(len(known) + number) for number in (1, 2))
        return [one for one in known if one["id"] >= (stream.bookmark or 0)]

    @tap.sync("rates", key_properties="id", max_full_table_age_seconds=120, schema=ITEM)
    def rates() -> list[dict[str, Any]]:
        return [item(1, of=len(known)), item(2)]

    return tap


def several() -> burler.Tap:
    """Streams that run beside each other."""
    tap = burler.tap("tap-many")
    rising = {"key_properties": "id", "replication_key": "id", "order": "asc", "bookmark_strategy": "every_n(3)"}
    for name in ("one", "two", "three", "four"):
        tap.sync(name, **rising, schema=ITEM)(lambda: map(item, range(10)))
    return tap
