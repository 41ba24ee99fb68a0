"""However many workers there are: the same rows come, the same failures are told, the state at the end is the same."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from crashruns import DEAR
from hypothesis import given
from hypothesis import strategies as st

from burler.testing import TapRun, run_tap
from storm.crashlines import SHAPES, line_of
from storm.crashtaps import tap_of
from storm.crashworld import Line, uid

RANDOM = st.randoms(use_true_random=False)
SHARES = st.sampled_from([0.0, 0.1, 0.3])


def rows_of(run: TapRun) -> Counter[Any]:
    return Counter(uid(m["stream"], m["record"]) for m in run.messages if m["type"] == "RECORD")


def failures_of(run: TapRun) -> dict[str, list[tuple[str, str, str]]]:
    return {
        stream: sorted((one.stream, one.where, str(one.error)) for one in getattr(error, "failures", ()))
        or [(stream, "", str(error))]
        for stream, error in run.result.errors.items()
    }


def state_of(run: TapRun) -> Any:
    """The last state; of versions, which are times, only that they are there."""
    return _without_times(run.states[-1]) if run.states else None


def _without_times(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    return {key: "a time" if key == "version" else _without_times(value) for key, value in node.items()}


def alike(one: TapRun, other: TapRun) -> None:
    assert failures_of(one) == failures_of(other)
    assert rows_of(one) == rows_of(other)
    assert state_of(one) == state_of(other)
    assert one.result.exit_code == other.result.exit_code


def both(lines: list[Line], config: dict[str, Any], few: dict[str, int], many: dict[str, int], states: Any) -> Any:
    """The same run with one worker and with many, each from the state that the other one left."""
    with_one = run_tap(tap_of(lines), {**config, **few}, state=states[1])
    with_many = run_tap(tap_of(lines), {**config, **many, "nap": 0.003}, state=states[0])
    alike(with_one, with_many)
    return with_one.states[-1] if with_one.states else states[0], with_many.states[-1] if with_many.states else states[
        1
    ]


@DEAR
@given(
    rng=RANDOM,
    shares=st.lists(SHARES, min_size=1, max_size=3),
    page=st.sampled_from([1, 3, 1000]),
    buffer=st.sampled_from([1, 3, 100]),
)
def test_eight_workers_on_partitions_give_what_one_gives(
    rng: random.Random, shares: list[float], page: int, buffer: int
):
    # Where a function fails, stream.state is that of the last page, and where pages end is a matter of time.
    still = {"position": False} if any(shares) else {}
    line = line_of(rng, "s", shapes=("partitions", "partitions family"), big=False, signpost=False, **still)
    states: Any = (None, None)
    for number, share in enumerate(shares):
        config = {"grown": number, "run": number, "share": share, "page_max_rows": page, "parent_buffer_rows": buffer}
        states = both([line], config, {"partition_workers": 1}, {"partition_workers": 8}, states)


@DEAR
@given(rng=RANDOM, count=st.integers(1, 5), shares=st.lists(SHARES, min_size=1, max_size=3))
def test_streams_that_run_at_a_time_give_what_they_give_one_after_the_other(
    rng: random.Random, count: int, shares: list[float]
):
    still = {"position": False} if any(shares) else {}  # see above
    lines = [line_of(rng, f"s{i}", shapes=SHAPES, big=False, signpost=False, **still) for i in range(count)]
    states: Any = (None, None)
    for number, share in enumerate(shares):
        config = {"grown": number, "run": number, "share": share}
        states = both(lines, config, {"workers": 1}, {"workers": 3, "partition_workers": 2}, states)


@DEAR
@given(rng=RANDOM)
def test_each_partitions_rows_stay_in_order(rng: random.Random):
    line = line_of(rng, "s", shapes=("partitions",), big=False, late=False, retry="", workers=8, order="asc")
    out = run_tap(tap_of([line]), {"nap": 0.003, "page_max_rows": 3})
    by_part: dict[int, list[dict[str, Any]]] = {}
    for row in out.records("s"):
        by_part.setdefault(row["part"], []).append(row)
    for rows in by_part.values():
        keys = [row["key"] for row in rows]
        assert keys == sorted(keys)
