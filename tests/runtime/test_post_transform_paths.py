"""The fast path and the exact path give a post_transform function equal rows (property tests)."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import burler
from burler.testing import run_tap
from support.internals import shape, shape_exact

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
def test_the_fast_path_gives_the_hook_what_the_exact_path_gives(page: tuple[dict[str, Any], list[dict[str, Any]]]):
    schema, rows = page
    shaper = shape.Shaper("rows", schema)
    exact = shape_exact.Exact()
    expected, failed = [], False
    for row in rows:
        try:
            expected.append(exact.row(row, shaper.schema))
        except Exception:
            failed = True
            break
    fitted = shaper.fit(rows)
    assert (fitted.error is not None) == failed
    assert same(fitted.rows, expected), (fitted.rows, expected)
    assert shaper.unknown.counts == exact.unknown.counts


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


def test_a_page_that_takes_the_fast_path_for_sure():
    """So that the comparison above is one of two paths, whatever hypothesis finds."""
    names = {"i": "integer", "n": "number", "s": "string", "b": "boolean"}
    properties: dict[str, Any] = {name: {"type": ["null", kind]} for name, kind in names.items()}
    properties |= {"at": {"type": "string", "format": "date-time"}, "on": {"type": "string", "format": "date"}}
    inner = {"type": "object", "properties": dict(properties)}
    schema = {
        "type": "object",
        "properties": {**properties, "o": inner, "l": {"type": "array", "items": {"type": "integer"}}},
    }
    row = {"i": 2**70, "n": Decimal("1.10"), "s": "x", "b": True, "on": dt.date(2024, 1, 2)}
    row["at"] = dt.datetime(2024, 1, 2, 3, 4, 5, 60, tzinfo=dt.UTC)
    rows = [{**row, "o": dict(row), "l": [1, 2]}, {"i": None, "at": row["at"], "on": "2024-01-02", "unknown": 1}]
    shaper = shape.Shaper("rows", schema)
    fast = shaper._fit_page(rows)
    assert fast is not None
    assert same(fast, [shape_exact.Exact().row(one, shaper.schema) for one in rows])
    assert fast[0]["at"] == fast[0]["o"]["at"] == "2024-01-02T03:04:05.000060Z"
    assert fast[0]["on"] == "2024-01-02"
    assert isinstance(fast[0]["n"], Decimal)
    assert shaper.unknown.counts == {"unknown": 1}
