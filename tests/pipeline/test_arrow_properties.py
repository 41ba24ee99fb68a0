"""Arrow pages give what their rows would give as dicts: any Arrow type, any schema, any slice."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.internals import arrow_lines, arrow_rows, shape_exact, shape_rules, shape_schema, shape_values

pytest.importorskip("pyarrow")
sys.path.append(str(Path(__file__).resolve().parent))
from arrow_pages import pages

SLOW = settings(suppress_health_check=list(HealthCheck))
PREFIX, SUFFIX = b'{"type":"RECORD","stream":"caf\xc3\xa9","record":', b"}\n"


def by_rows(batch, schema, rules):
    """What the exact path writes, row by row; None if a row does not fit."""
    exact = shape_exact.Exact(rules)
    try:
        rows = [exact.row(row, shape_schema.shaping_form(schema)) for row in arrow_rows.batch_to_rows(batch)]
    except shape_values.Misfit:
        return None
    encoder = msgspec.json.Encoder(decimal_format="number")
    return [parsed(encoder.encode(row)) for row in rows]


def by_columns(batch, schema, rules, **options):
    shaper = arrow_lines.ArrowShaper(
        shape_schema.shaping_form(schema), shape_exact.Exact(rules), rules=rules, **options
    )
    made = shaper.lines(batch, PREFIX, SUFFIX)
    if made is None:
        return None
    data = bytes(made.data)
    lines = data.split(b"\n")
    assert lines.pop() == b"" and made.count == len(lines) == batch.num_rows
    assert all(line.startswith(PREFIX) and line.endswith(b"}") for line in lines)
    return [parsed(line)["record"] for line in lines]


def parsed(text):
    def no_constant(name):
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_float=Decimal, parse_int=Decimal, parse_constant=no_constant)


def same(one, other):
    """Equal as JSON: numbers by value, true is not 1."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@SLOW
@given(page=pages(), on_nan=st.sampled_from(["error", "null"]))
def test_a_page_gives_what_its_rows_give(page, on_nan):
    batch, schema = page
    rules = shape_rules.Rules(on_nan=on_nan)
    expected = by_rows(batch, schema, rules)
    got = by_columns(batch, schema, rules)
    if expected is None or got is None:
        assert got is expected
    else:
        assert same(got, expected), (got, expected)
