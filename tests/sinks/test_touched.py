"""``state_scope: touched``: STATEs carry only what has changed, and say no less than whole ones."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import burler
from burler.singer import merge_states
from burler.testing import run_tap

ROW = {"properties": {"id": {"type": "integer"}, "of": {"type": "string"}}}
NUMBERS = st.lists(st.integers(0, 9), max_size=4).map(sorted)
PARTITIONS = st.dictionaries(st.sampled_from("xyz"), NUMBERS, max_size=3)


def tap_of(parts: dict[str, list[int]], rows: list[int]) -> burler.Tap:
    """A stream with partitions and a plain one; each row is a STATE."""
    tap = burler.tap("tap-touched")
    given = {"key_properties": "id", "replication_key": "id", "order": "asc", "bookmark_strategy": "every_n(1)"}
    given["schema"] = ROW

    @tap.partitions("parted", key="of")
    def names() -> Any:
        return [{"of": name} for name in parts]

    @tap.sync("parted", **given)
    def parted(partition: Any) -> Any:
        return iter([{"id": number, "of": partition["of"]} for number in parts[partition["of"]]])

    @tap.sync("plain", **given)
    def plain() -> Any:
        return iter([{"id": number} for number in rows])

    return tap


def text(state: dict[str, Any]) -> str:
    """A state without empty objects, which say nothing; 1 and 1.0 and true differ in it."""
    out = copy.deepcopy(state)
    marks = {name: {k: v for k, v in entry.items() if v != {}} for name, entry in out.get("bookmarks", {}).items()}
    return json.dumps({**out, "bookmarks": {name: entry for name, entry in marks.items() if entry}}, sort_keys=True)


@given(PARTITIONS, NUMBERS, PARTITIONS, NUMBERS)
def test_merged_in_order_they_give_the_whole_at_every_moment(
    before_parts: dict[str, list[int]], before_rows: list[int], parts: dict[str, list[int]], rows: list[int]
) -> None:
    states = run_tap(tap_of(before_parts, before_rows)).states
    before = states[-1] if states else {}
    whole = run_tap(tap_of(parts, rows), {"page_max_rows": 1}, state=copy.deepcopy(before)).states
    config = {"page_max_rows": 1, "state_scope": "touched"}
    changes = run_tap(tap_of(parts, rows), config, state=copy.deepcopy(before)).states
    assert len(changes) == len(whole)
    for at, state in enumerate(whole, 1):
        assert text(merge_states([before, *changes[:at]])) == text(state)
        assert text(merge_states(changes[:at])) == text(state), "the first one says what the run began with"
    assert all(len(json.dumps(one)) <= len(json.dumps(other)) + 60 for one, other in zip(changes, whole, strict=True))
