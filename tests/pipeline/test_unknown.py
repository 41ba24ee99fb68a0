"""Fields that a schema does not know: counted whatever comes, remembered in little room, and never a row's trouble."""

from __future__ import annotations

import datetime as dt
import json
import logging
import re
import tracemalloc
from decimal import Decimal
from typing import Any

import pytest

import burler
from burler.testing import run_tap

ID = {"type": "integer"}


@pytest.fixture
def dropped(caplog: pytest.LogCaptureFixture) -> Any:
    """What is said of pages of several streams: (what was dropped, and the schema that keeps it) of each."""

    def dropped(*streams: Any, known: Any = None, config: Any = None) -> list[tuple[str, Any]]:
        tap = burler.tap("tap-x")
        for number, pages in enumerate(streams):
            schema = {"type": "object", "properties": {"id": ID, **(known or {})}}
            tap.sync(f"s{number}", schema=schema)(lambda pages=pages: iter(pages))
        caplog.clear()
        with caplog.at_level(logging.DEBUG):
            assert not run_tap(tap, config).result.errors
        found = []
        for number in range(len(streams)):
            said = [text for text in caplog.messages if text.startswith(f"stream 's{number}': ")]
            (fields,) = [text.partition("were dropped: ")[2] for text in said if "were dropped: " in text] or [""]
            schemas = [re.search(r"\(from samples\): (.*)", text) for text in said if "this keeps" in text]
            found.append((fields, next((json.loads(one[1]) for one in schemas if one), None)))
        return found

    return dropped


def objects(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def arrays(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def test_counts_add_up_over_pages_under_dotted_paths(dropped: Any) -> None:
    known = {"a": objects(b=arrays(objects(q={}))), "t": arrays(arrays(objects()))}

    def row() -> dict[str, Any]:
        return {"a": {"b": [{"q": 1, "c": 1}, {"c": 2}]}, "t": [[{"u": 1}]]}

    ((fields, schema),) = dropped([[row() for _ in range(3)], [row() for _ in range(3)], row()], known=known)
    assert sorted(re.findall(r"\S+ \(\d+", fields)) == ["a.b[].c (14", "t[][].u (7"]
    inner = {"properties": {"c": {"type": ["null", "integer"]}}}
    assert schema["properties"]["a"] == {"properties": {"b": {"items": inner}}}


def test_nothing_is_said_where_nothing_was_dropped(dropped: Any) -> None:
    assert dropped([{"id": 1}]) == [("", None)]


def test_beyond_a_thousand_names_they_are_counted_together(dropped: Any) -> None:
    ((fields, schema),) = dropped([[{f"f{i}": i for i in range(1005)} for _ in range(2)]])
    assert fields.endswith("and 980 more, (further fields) (10 times)")
    assert len(schema["properties"]) == 1000


WIDE = {f"f{i}": i for i in range(1000)}
DEEP: Any = 1
for _ in range(50):
    DEEP = {"d": DEEP}
NEST: Any = 1
for _ in range(9):
    NEST = [NEST] * 20


class Hostile(dict):  # type: ignore[type-arg]
    """Bears no look."""

    def items(self) -> Any:
        raise RuntimeError("dictionary changed size during iteration")


SEEN: list[tuple[list[Any], dict[str, Any]]] = [
    ([1, 2**80], {"type": ["null", "integer"]}),
    ([1, 1.5, Decimal("1.25")], {"type": ["null", "number"]}),
    ([True, "a"], {"type": ["null", "boolean", "string"]}),
    (["2024-01-02T03:04:05Z"], {"type": ["null", "string"], "format": "date-time"}),
    ([dt.date(2024, 1, 2)], {"type": ["null", "string"], "format": "date"}),
    (["2024-01-02", "then"], {"type": ["null", "string"]}),
    ([b"\x00"], {"type": ["null", "string"], "contentEncoding": "base64"}),
    ([b"\x00", "text"], {}),
    ([None], {}),
    ([[]], {"type": ["null", "array"], "items": {}}),
    ([{}], {"type": ["null", "object"]}),
    ([float("nan"), 1], {"type": ["null", "number"]}),
    ([10**5000], {"type": ["null", "integer"]}),
    ([dt.timedelta(1)], {"type": ["null", "string"]}),
    ([object(), 1], {}),
    (["\ud800"], {"type": ["null", "string"]}),
    ([{1: 2}], {"type": ["null", "object"]}),
    ([{"a": object()}], {"type": ["null", "object"]}),
    # With too many fields or too deep they are kept as they are: a schema of some of them would drop the others.
    *[([big], {"type": ["null", "object"]}) for big in (WIDE, DEEP, {"o": WIDE})],
    *[([{"a": 1}, big], {"type": ["null", "object"]}) for big in (WIDE, DEEP, {"o": WIDE})],
    ([WIDE, []], {"type": ["null", "array", "object"], "items": {}}),
    ([NEST], {"type": ["null", "array"], "items": {}}),  # twenty to the ninth items, and six bytes a list
    ([Hostile(a=1)], {}),
    ([[Hostile(a=1)]], {}),
    ([{"z": 1}, {"z": "a", "y": [1]}], {
        "type": ["null", "object"],
        "properties": {
            "z": {"type": ["null", "integer", "string"]},
            "y": {"type": ["null", "array"], "items": {"type": "integer"}},
        },
    }),
]  # fmt: skip


@pytest.mark.parametrize("paged", [False, True])
def test_the_schema_of_what_was_seen(dropped: Any, paged: bool) -> None:
    """And each is counted, whatever it is."""
    streams = [[{"id": i, "x": value} for i, value in enumerate(values)] for values, _ in SEEN]
    found = dropped(*([rows] if paged else rows for rows in streams))
    for (values, wanted), (fields, schema) in zip(SEEN, found, strict=True):
        assert fields.startswith(f"x ({len(values)} of {len(values)} row"), values
        assert schema == {"properties": {"x": wanted}}, values


def test_a_type_that_comes_late_is_still_seen(dropped: Any) -> None:
    pages = [[{"x": page if page < 40 else f"v{page}"} for _ in range(1000)] for page in range(50)]
    ((fields, schema),) = dropped(pages)
    assert fields.startswith("x (50,000 of 50,000 rows")
    assert schema["properties"]["x"] == {"type": ["null", "integer", "string"]}


def test_no_value_is_kept(dropped: Any) -> None:
    """Of hundreds of fields with tens of megabytes, kilobytes."""
    held = []

    def pages() -> Any:
        yield {"id": 1, "x": 1}
        tracemalloc.start()
        for i in range(100):
            wide = {f"{i}name{j}": {"k": [j] * 100} for j in range(40)}
            yield [{f"t{i}": "x" * 300_000, f"w{i}": wide, f"l{i}": [wide] * 2, f"e{i}": "\U0001f600" * 50_000}]
        held.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()

    dropped(pages(), config={"page_max_rows": 1})
    assert held[0] < 10_000_000
