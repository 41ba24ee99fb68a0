"""The fast path and the exact path give a post_transform function equal rows (property tests)."""

from __future__ import annotations

import datetime as dt
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import burler
from burler.testing import run_tap

# ---- the fast path and the exact path ---------------------------------------------------------------------

SCALARS = st.sampled_from(
    [
        {"type": "integer"},
        {"type": "number"},
        {"type": "string"},
        {"type": "boolean"},
        {"type": "string", "format": "date-time"},
        {"type": "string", "format": "date"},
        {"type": ["null", "integer"]},
        {"type": ["null", "number"]},
        {"type": ["string", "null"], "format": "date-time"},
    ]
)
NAMES = st.sampled_from(["a", "b", "c", "Ä", "x y"])


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(NAMES, inner, max_size=4).map(lambda parts: {"type": "object", "properties": parts})


def _arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return inner.map(lambda node: {"type": "array", "items": node})


NODES = st.recursive(SCALARS, lambda inner: _objects(inner) | _arrays(inner), max_leaves=8)
SCHEMAS = st.dictionaries(NAMES, NODES, min_size=1, max_size=5).map(lambda p: {"type": "object", "properties": p})

ZONES = st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=2)), dt.timezone(dt.timedelta(hours=-5, minutes=-30))])
SECONDS = st.integers(-2_000_000_000, 4_000_000_000)
MOMENTS = st.builds(
    lambda second, micro, zone: dt.datetime.fromtimestamp(second, zone).replace(microsecond=micro),
    SECONDS,
    st.sampled_from([0, 0, 1, 500_000, 999_999]),
    ZONES,
)
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**25), max_value=10**25, places=3)
VALUES = {
    "integer": st.integers() | st.integers(-(10**30), 10**30) | st.integers(-99, 99).map(float) | st.just("12"),
    "number": st.integers() | st.floats(allow_nan=False, allow_infinity=False) | DECIMALS | st.just("1.50"),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.integers(0, 9) | DECIMALS,
    "boolean": st.booleans(),
    "date-time": MOMENTS | MOMENTS.map(dt.datetime.isoformat) | st.just("2024-01-01T00:00:00.1234567Z"),
    "date": st.dates() | st.dates().map(dt.date.isoformat),
}


UTC = MOMENTS.map(lambda moment: moment.astimezone(dt.UTC))
EASY = VALUES | {  # what the fast path takes
    "integer": st.integers(),
    "number": st.integers() | st.floats(allow_nan=False, allow_infinity=False) | DECIMALS,
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    "date-time": UTC | UTC.map(lambda moment: moment.isoformat().replace("+00:00", "Z")),
}


@st.composite
def value_of(draw: Any, node: dict[str, Any], *, easy: bool) -> Any:
    kinds = node["type"] if isinstance(node["type"], list) else [node["type"]]
    if "null" in kinds and draw(st.integers(0, 4)) == 0:
        return None
    kind = next(kind for kind in kinds if kind != "null")
    if kind == "object":
        row = {}
        for name, sub in node["properties"].items():
            if draw(st.integers(0, 3)):
                row[name] = draw(value_of(sub, easy=easy))
        if draw(st.integers(0, 5)) == 0:
            row["unknown"] = draw(st.integers())
        return row
    if kind == "array":
        return draw(st.lists(value_of(node["items"], easy=easy), max_size=3))
    if easy:
        return draw(EASY[node.get("format", kind)])
    if draw(st.integers(0, 60)) == 0:
        return object()  # what fits nowhere
    return draw(VALUES[node.get("format", kind)])


@st.composite
def pages(draw: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    schema = draw(SCHEMAS)
    return schema, draw(st.lists(value_of(schema, easy=draw(st.booleans())), max_size=6))


def same(left: Any, right: Any) -> bool:
    """Equal, of the same types at every depth, fields in the same order."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


@given(pages())
def test_a_hook_that_changes_nothing_changes_nothing(page: tuple[dict[str, Any], list[dict[str, Any]]]):
    schema, rows = page
    outcomes = []
    for hook in (False, True):
        tap = burler.tap("tap-hook")
        tap.sync("rows", schema=schema)(lambda rows=rows: list(rows))
        if hook:
            tap.post_transform("rows")(lambda record: record)
        run = run_tap(tap)
        outcomes.append((run.records("rows"), [str(error) for error in run.result.errors.values()]))
    assert outcomes[0] == outcomes[1]
