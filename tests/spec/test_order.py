"""The order of rows, a page at a time, held against a loop over all of them."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from support.internals import spec_order


def slow(values):
    """Direction, and where it turns, by a plain loop."""
    direction, flips = "same", []
    for row, (one, other) in enumerate(pairwise(values), 2):
        step = "same" if one == other else "asc" if one < other else "desc"
        if step in ("same", direction):
            continue
        if direction != "same":
            flips.append((row, one, other))
        direction = step
    rises, falls = values == sorted(values), values == sorted(values, reverse=True)
    return "same" if rises and falls else "asc" if rises else "desc" if falls else "none", flips


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.lists(st.integers(0, 30), max_size=6))
def test_order_does_not_depend_on_pages(values, cuts):
    order = spec_order.OrderMap()
    places = sorted({min(cut, len(values)) for cut in cuts} | {0, len(values)})
    for start, end in pairwise(places):
        page = values[start:end]
        order.add(page, [10 * row for row in range(start + 1, end + 1)], [f"<{one}>" for one in page])
    direction, flips = slow(values)
    found = order.to_json("at")
    assert (found["direction"], found["flips"]) == (direction, len(flips))
    assert found["first_flips"] == [
        {"place": f"line {10 * row}", "before": f"<{one}>", "value": f"<{other}>"}
        for row, one, other in flips[: spec_order.FLIPS]
    ]
    starts = [1, *(row for row, _one, _other in flips)]
    ends = [*(row - 1 for row, _one, _other in flips), len(values)]
    assert [part[:2] for part in found["map"]] == [list(part) for part in zip(starts, ends, strict=True)]


def test_a_thousand_turns_are_counted_and_some_kept():
    order = spec_order.OrderMap()
    values = [1, 2] * 1000
    order.add(values, range(1, 2001), values)
    found = order.to_json("at")
    assert (found["flips"], len(found["first_flips"]), found["direction"]) == (1998, spec_order.FLIPS, "none")
    assert found["map"][-1] == [202, 2000, "none"]
