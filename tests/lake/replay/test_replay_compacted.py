"""Reading on from a state in a lake that is compacted, vacuumed and rebuilt: what is new comes, once."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lake_reads import Out, replay
from memory_lakes import in_memory

from burler.lake import LakeDriver, PartWriter, care
from burler.singer.messages import Schema, record_prefix_suffix

TEXT = {"type": "string"}
MANIFEST = "raw/tap/s/manifest.json"


class Lake:
    """A lake in memory, ids that count up, and the state of its reader."""

    def __init__(self, clock: Any) -> None:
        self.store, self.clock = in_memory(), clock
        self.made = 0
        self.state: Any = None
        self.out = Counter[int]()
        self.states: list[tuple[int, Any]] = []
        """States of earlier runs, each with the number of rows that it covers."""

    def commit(self, *versions: int) -> None:
        """One commit of a file of one row for each of these schema versions."""
        files = []
        for version in versions:
            properties = {"id": {"type": "integer"}, **{f"f{n}": TEXT for n in range(version)}}
            prefix, suffix = record_prefix_suffix("s", self.clock.now())
            with PartWriter(self.store, "tap", clock=self.clock) as writer:
                writer.schema(Schema("s", {"type": "object", "properties": properties}, ("id",)))
                writer.record_line("s", prefix + b'{"id":%d}' % self.made + suffix, self.clock.now())
            files += writer.drain()
            self.made += 1
        with LakeDriver(self.store, "tap", clock=self.clock) as driver:
            driver.commit(files)

    def read(self) -> Out:
        out = replay(self, state=self.state)
        self.state = out.state
        self.states.append((self.made, out.state))
        self.out.update(out.ids)
        return out

    def manifest(self) -> dict[str, Any]:
        blob = self.store.read(MANIFEST)
        assert blob is not None
        return dict(json.loads(blob.data))


@pytest.fixture
def here(lake: Any) -> Lake:
    return Lake(lake.clock)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.lists(st.integers(0, 1), min_size=1, max_size=2)),
        st.just(("compact",)),
        st.just(("read",)),
        st.just(("vacuum",)),
    ),
    max_size=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_each_row_comes_once_however_the_lake_is_compacted(lake: Any, steps: list[Any]) -> None:
    here = Lake(lake.clock)
    here.commit(0)
    vacuumed = False
    for step in steps:
        if step[0] == "commit":
            here.commit(*step[1])
        elif step[0] == "compact":
            care.compact(here.store, below_bytes=100_000)
        elif step[0] == "vacuum":
            vacuumed |= bool(care.vacuum(here.store, older_than_seconds=0, yes=True, now=lambda: 4e9).files)
        else:
            here.read()
            assert set(here.out) == set(range(here.made))
    here.read()
    assert set(here.out) == set(range(here.made))
    if not vacuumed:  # else the old rows of a file that holds both come again, with a warning
        assert set(here.out.values()) == {1}
    assert here.read().ids == []
    for covered, state in here.states:  # from any earlier state as well
        ids = replay(here, state=state).ids
        assert set(range(covered, here.made)) <= set(ids)
        assert vacuumed or sorted(ids) == list(range(covered, here.made))


def test_a_state_inside_of_a_commit_names_the_file(here: Lake) -> None:
    """A run that was stopped there goes on behind it, also after the files were put together."""
    here.commit(0)
    here.commit(0, 0, 0)
    here.read()
    names = [name for name in here.manifest()["files"] if here.manifest()["file_stats"][name]["sequence"] == 2]
    entry = {**here.state["bookmarks"]["s"], "file": names[0]}
    state = {"bookmarks": {"s": entry}}
    assert replay(here, state=state).ids == [2, 3]
    care.compact(here.store, below_bytes=100_000)
    assert replay(here, state=state).ids == [2, 3]


def test_the_new_parts_of_a_compacted_file_stand_where_they_were_committed(here: Lake) -> None:
    here.commit(0)
    state = here.read().state
    for version in (0, 1, 0):
        here.commit(version)
    care.compact(here.store, below_bytes=100_000)
    assert replay(here, state=state).ids == [1, 2, 3]


def test_rows_whose_files_are_removed_come_again_rather_than_never(here: Lake) -> None:
    for _ in range(3):
        here.commit(0)
    here.read()
    here.commit(0)
    care.compact(here.store, below_bytes=100_000)
    care.vacuum(here.store, older_than_seconds=0, yes=True, now=lambda: 4e9)
    out = here.read()
    assert here.out == {0: 2, 1: 2, 2: 2, 3: 1}
    assert "was compacted of old and new rows; the old ones come again" in out.said
    here.read()
    assert here.out == {0: 2, 1: 2, 2: 2, 3: 1}


def test_a_compacted_lake_without_manifest_gives_each_row_once(here: Lake) -> None:
    for version in (0, 0, 1, 1):
        here.commit(version)
    care.compact(here.store, below_bytes=100_000)
    here.store.remove(MANIFEST)
    here.read()
    assert here.out == {0: 1, 1: 1, 2: 1, 3: 1}
    assert here.state == {"bookmarks": {}}


def test_a_lake_whose_manifest_was_lost_is_read_from_the_start(here: Lake) -> None:
    for _ in range(3):
        here.commit(0)
    here.read()
    here.store.remove(MANIFEST)
    care.rebuild(here.store)
    here.commit(0)
    out = here.read()
    assert here.out == {0: 2, 1: 2, 2: 2, 3: 1}
    assert "manifest was made anew" in out.said


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"generation": "old"}, "made anew"),
        ({"sequence": 9}, "commit 9, the lake only 3"),
        ({"only": {"schema": "v2"}}, "another --schema"),
        ({"sequence": None, "updated_at": "2024-01-02"}, "nothing that this lake's reader has written"),
        ({"sequence": True}, "nothing that this lake's reader has written"),
        ({"sequence": "3"}, "nothing that this lake's reader has written"),
        ({"file": 7}, "nothing that this lake's reader has written"),
    ],
)
def test_a_bookmark_that_does_not_fit_begins_at_the_start(here: Lake, changed: dict[str, Any], reason: str) -> None:
    for _ in range(3):
        here.commit(0)
    here.read()
    out = replay(here, state={"bookmarks": {"s": {**here.state["bookmarks"]["s"], **changed}}})
    assert out.ids == [0, 1, 2]
    assert reason in out.said
