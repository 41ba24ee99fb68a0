"""Replays of a lake that is compacted, vacuumed and rebuilt between and during them."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from burler.lake import LakeWriter, RollSettings, care
from burler.singer.messages import Schema, parse_line, record_prefix_suffix
from support.internals import memory_store, replay_plan, replaying

TEXT = {"type": "string"}


class Lake:
    """A lake in memory, ids that count up, and the state of its reader."""

    def __init__(self) -> None:
        self.store = memory_store.MemoryStore()
        self.made = 0
        self.state: dict[str, Any] = {}
        self.out = Counter[int]()

    def commit(self, lake: Any, version: int) -> None:
        properties = {"id": {"type": "integer"}, **{f"f{n}": TEXT for n in range(version)}}
        prefix, suffix = record_prefix_suffix("s", lake.clock.now())
        with LakeWriter(
            self.store, "tap", emit_state=lambda _: None, clock=lake.clock, settings=RollSettings()
        ) as writer:
            writer.schema(Schema("s", {"type": "object", "properties": properties}, ("id",)))
            writer.record_line("s", prefix + b'{"id":%d}' % self.made + suffix, lake.clock.now())
        self.made += 1

    def read(self, stop_after: int | None = None) -> None:
        """One run; with ``stop_after`` it is told to stop in that file."""
        lines: list[bytes] = []

        def stop() -> bool:
            return stop_after is not None and sum(b"RECORD" in one for one in lines) > stop_after

        replaying.Replay(
            self.store,
            replay_plan.choose(self.store, replay_plan.Asked()),
            write=lines.append,
            monotonic=lambda: 0.0,
            state=self.state,
            should_stop=stop,
        ).run()
        messages = [parse_line(line) for page in lines for line in page.splitlines()]
        for message in messages:
            if message["type"] == "STATE":
                self.state = message["value"]
        self.out.update(one["record"]["id"] for one in messages if one["type"] == "RECORD")


steps = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.integers(0, 1)),
        st.tuples(st.just("commit"), st.just(0)),
        st.just(("compact",)),
        st.just(("read",)),
        st.tuples(st.just("stop"), st.integers(0, 3)),
    ),
    max_size=16,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_each_row_comes_once_however_the_lake_is_compacted(lake: Any, steps: list[Any]) -> None:
    here = Lake()
    here.commit(lake, 0)
    stopped = 0
    for step in steps:
        if step[0] == "commit":
            here.commit(lake, step[1])
        elif step[0] == "compact":
            care.compact(here.store, below_bytes=100_000)
        elif step[0] == "read":
            here.read()
            assert set(here.out) == set(range(here.made))
        else:
            here.read(stop_after=step[1])
            stopped += 1
    here.read()
    assert set(here.out) == set(range(here.made))
    # A run that is stopped has sent out the file that it was in, and sends it again: a whole compacted one at worst.
    assert max(here.out.values()) <= 1 + stopped
    if not stopped:
        assert set(here.out.values()) == {1}
    before = here.out.copy()
    here.read()
    assert here.out == before


def test_rows_whose_files_are_removed_come_again_rather_than_never(lake: Any, caplog: pytest.LogCaptureFixture) -> None:
    here = Lake()
    for _ in range(3):
        here.commit(lake, 0)
    here.read()
    here.commit(lake, 0)
    care.compact(here.store, below_bytes=100_000)
    care.vacuum(here.store, older_than_seconds=0, yes=True, now=lambda: 4e9)
    with caplog.at_level(logging.WARNING, logger="burler.lake"):
        here.read()
    assert here.out == {0: 2, 1: 2, 2: 2, 3: 1}
    assert "was compacted of old and new rows; the old ones come again" in caplog.text
    here.read()
    assert here.out == {0: 2, 1: 2, 2: 2, 3: 1}


def test_a_compacted_lake_without_manifest_gives_each_row_once(lake: Any) -> None:
    here = Lake()
    for version in (0, 0, 1, 1):
        here.commit(lake, version)
    care.compact(here.store, below_bytes=100_000)
    blob = here.store.read("raw/tap/s/manifest.json")
    assert blob is not None
    here.store.delete("raw/tap/s/manifest.json", tag=blob.tag)
    here.read()
    assert here.out == {0: 1, 1: 1, 2: 1, 3: 1}
    assert here.state == {"bookmarks": {}}


def test_a_lake_whose_manifest_was_lost_is_read_from_the_start(lake: Any, caplog: pytest.LogCaptureFixture) -> None:
    here = Lake()
    for _ in range(3):
        here.commit(lake, 0)
    here.read()
    here.store.remove("raw/tap/s/manifest.json")
    care.rebuild(here.store)
    here.commit(lake, 0)
    with caplog.at_level(logging.WARNING, logger="burler.lake"):
        here.read()
    assert here.out == {0: 2, 1: 2, 2: 2, 3: 1}
    assert "manifest was made anew" in caplog.text
