"""Whatever rows come, those that fit are in the files as they are in RECORDs, given as rows, as lists, or as bytes."""

from __future__ import annotations

import copy
import itertools
import tempfile
from pathlib import Path
from typing import Any

import pytest
from batch_rows import ORDER
from batch_same import FORMATS, both, check
from batch_taps import shop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.strategies import HELD, is_clean, json_page, rows_for, spelled


@st.composite
def items(draw: st.DrawFn) -> list[Any]:
    """What a sync function yields, ids from 1."""
    ids, out = itertools.count(1), []
    for form in draw(st.lists(st.sampled_from(["rows", "list", "lines", "array"]), min_size=1, max_size=4)):
        rows = [{**row, "id": next(ids)} for row in draw(rows_for(ORDER, world=HELD))]
        if form in ("rows", "list"):
            out += rows if form == "rows" else [rows]
            continue
        texts = [spelled({name: value for name, value in row.items() if name != "blob"}) for row in rows]
        out.append(json_page([text for text in texts if text is not None and is_clean(text)], form))
    return out


@pytest.mark.parametrize("encoding", FORMATS, ids="-".join)
@given(
    given=items(), rule=st.sampled_from(["error", "skip", "null"]), size=st.integers(1, 9), at_once=st.integers(1, 5)
)
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_whatever_fits_is_alike(encoding, given, rule, size, at_once):
    config = {"page_max_rows": at_once, "on_bad_record": rule}
    with tempfile.TemporaryDirectory() as folder:
        pair = both(
            lambda: shop(lambda: iter(copy.deepcopy(given)), schema=ORDER),
            encoding,
            Path(folder),
            config,
            batch_size=size,
        )
        check(pair)
