"""Whatever fits its schema is in the files as it is in RECORDs, given as rows, as lists, as bytes, or mixed."""

from __future__ import annotations

import datetime as dt
import json
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from batch_rows import ORDER
from batch_same import FORMATS, both, check
from batch_taps import shop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ZONES = st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=-5)), dt.timezone(dt.timedelta(minutes=345))])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
MOMENT = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30), timezones=ZONES)  # noqa: DTZ001
NUMBER = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
OWNER = st.fixed_dictionaries(
    {},
    optional={
        "name": st.none() | TEXT,
        "since": st.none() | MOMENT,
        "home": st.none() | st.fixed_dictionaries({}, optional={"city": st.none() | TEXT}),
        "unknown": ANY,
    },
)
ITEM = st.fixed_dictionaries(
    {}, optional={"sku": st.none() | TEXT, "price": NUMBER, "tags": st.lists(TEXT, max_size=3)}
)
FIELDS = {
    "text": TEXT,
    "count": st.integers(-(2**63), 2**63 - 1)
    | st.integers(-9, 9).map(float)
    | st.integers().map(lambda n: str(n % 99)),
    "huge": st.integers(-(10**30), 10**30),
    "ratio": NUMBER,
    "price": st.integers(-(10**9), 10**9).map(lambda cents: Decimal(cents) / 100),
    "exact": st.decimals(-(10**15), 10**15, places=9),
    "paid": st.booleans(),
    "at": MOMENT | MOMENT.map(lambda moment: moment.isoformat()),
    "day": st.dates() | st.dates().map(str),
    "blob": st.binary(max_size=5),
    "mixed": TEXT | st.integers(),
    "open": ANY,
    "list": st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=3),
    "loose": st.lists(ANY, max_size=3),
    "owner": OWNER,
    "items": st.lists(ITEM, max_size=2),
    "labels": st.dictionaries(TEXT, st.none() | TEXT, max_size=2),
    "unknown": ANY,
}
ROWS = st.lists(
    st.fixed_dictionaries({}, optional={name: st.none() | values for name, values in FIELDS.items()}), max_size=6
)
PAGES = st.lists(st.tuples(st.sampled_from(["rows", "list", "bytes"]), ROWS), min_size=1, max_size=4)


def in_json(value: Any) -> Any:
    """What a source would have written: bytes and dates have no JSON of their own."""
    return float(value) if isinstance(value, Decimal) else value.isoformat()


def as_given(pages: list[tuple[str, list[dict[str, Any]]]]) -> list[Any]:
    """The items that a sync function yields, ids from 1."""
    items: list[Any] = []
    number = 0
    for kind, rows in pages:
        page = [{"id": number + place, **row} for place, row in enumerate(rows, 1)]
        number += len(page)
        if kind == "rows":
            items += page
        elif kind == "list":
            items.append(page)
        else:
            plain = [{name: value for name, value in row.items() if name != "blob"} for row in page]
            items.append(json.dumps(plain, default=in_json, ensure_ascii=False).encode())
    return items


@pytest.mark.parametrize("encoding", FORMATS, ids="-".join)
@given(pages=PAGES, size=st.integers(1, 9), at_once=st.integers(1, 5))
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_whatever_fits_is_alike(encoding, pages, size, at_once):
    with tempfile.TemporaryDirectory() as folder:
        check(
            both(
                lambda: shop(lambda: iter(as_given(pages)), schema=ORDER),
                encoding,
                Path(folder),
                {"page_max_rows": at_once},
                batch_size=size,
            )
        )
