"""STATE is never ahead of the data: any interleaving, any roll, any time."""

from __future__ import annotations

import datetime as dt
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from memory_lakes import in_memory

from burler.lake import LakeWriter, RollSettings, load, read_lines
from burler.singer.messages import Records, Schema, State

NOON = dt.datetime(2024, 1, 2, 12, 0, 0, tzinfo=dt.UTC)
STREAMS = ("a", "b", "c")


def test_a_state_with_nothing_before_it_goes_out_at_once(lake: Any) -> None:
    writer = lake.writer()
    writer.state(lake.state(0))
    assert lake.states == [{"at": 0}]


def test_a_state_waits_for_its_file_and_the_newest_wins(lake: Any) -> None:
    writer = lake.writer()
    writer.schema(lake.schema())
    for number in range(5):
        writer.records(lake.page("users", number))
        writer.state(lake.state(number))
    assert lake.states == []
    writer.flush()
    assert lake.states == [{"at": 4}]
    writer.close()
    assert lake.states == [{"at": 4}]


def test_a_roll_of_one_stream_does_not_free_a_state_that_covers_another(lake: Any) -> None:
    writer = lake.writer(max_file_records=2)
    for stream in ("a", "b"):
        writer.schema(lake.schema(stream))
    writer.records(lake.page("b", 1))
    writer.state(lake.state("b"))
    writer.records(lake.page("a", 1, 2))
    writer.state(lake.state("a"))
    assert lake.ids("a") == [1, 2]
    assert lake.states == []
    writer.records(lake.page("b", 2))
    assert lake.states == [{"at": "a"}]


def test_a_state_is_freed_although_its_neighbour_is_always_open(lake: Any) -> None:
    """Two streams whose files overlap for ever: with one held STATE none would ever come out."""
    writer = lake.writer(max_file_age_seconds=10.0)
    for stream in ("a", "b"):
        writer.schema(lake.schema(stream))
    for number in range(12):
        writer.records(lake.page(("a", "b")[number % 2], number))
        writer.state(lake.state(number))
        lake.clock.forward(6)
        writer.tick()
    assert len(lake.states) >= 4
    assert lake.states[-1]["at"] >= 8


def test_an_interrupted_run_gives_no_state_for_what_is_lost(lake: Any) -> None:
    writer = lake.writer()
    writer.schema(lake.schema())
    writer.records(lake.page("users", 1))
    writer.state(lake.state(1))
    writer.abort()
    writer.close()
    assert (lake.states, lake.files(), lake.hidden()) == ([], [], [])


class Story:
    """A lake that is filled by random steps; at each STATE everything before it must be readable."""

    def __init__(self, roll: RollSettings) -> None:
        self.store = in_memory()
        self.seconds = 0.0
        self.sent: dict[str, list[int]] = {stream: [] for stream in STREAMS}
        self.covered: dict[int, dict[str, int]] = {}
        self.seen: list[int] = []
        self.writer = LakeWriter(self.store, "t", emit_state=self.check, clock=self, settings=roll)

    def now(self) -> dt.datetime:
        return NOON

    def monotonic(self) -> float:
        return self.seconds

    def readable(self, stream: str) -> list[int]:
        files = load(self.store, "t", stream).files
        lines = [line for file in files for line in list(read_lines(self.store, file.path))[1:]]
        return [int(line.split(b'"id":')[1].split(b"}")[0]) for line in lines]

    def check(self, state: State) -> None:
        number = state.value["n"]
        assert not self.seen or number > self.seen[-1]
        self.seen.append(number)
        for stream, count in self.covered[number].items():
            if count:
                assert set(self.sent[stream][:count]) <= set(self.readable(stream))

    def schema(self, stream: str, variant: int) -> None:
        self.writer.schema(Schema(stream, {"properties": {"id": {"type": "integer"}}, "variant": variant}))

    def records(self, stream: str, count: int) -> None:
        start = len(self.sent[stream])
        numbers = list(range(start, start + count))
        self.sent[stream] += numbers
        lines = b"".join(
            b'{"type":"RECORD","stream":"%s","record":{"id":%d}}\n' % (stream.encode(), n) for n in numbers
        )
        self.writer.records(Records(stream, lines, count, NOON))

    def state(self) -> None:
        number = len(self.covered)
        self.covered[number] = {stream: len(sent) for stream, sent in self.sent.items()}
        self.writer.state(State({"n": number}))


steps = st.lists(
    st.one_of(
        st.tuples(st.just("records"), st.sampled_from(STREAMS), st.integers(1, 9)),
        st.tuples(st.just("schema"), st.sampled_from(STREAMS), st.integers(0, 1)),
        st.tuples(st.just("state")),
        st.tuples(st.just("state")),
        st.tuples(st.just("wait"), st.sampled_from((1.0, 4.0, 11.0))),
        st.tuples(st.just("flush")),
    ),
    max_size=25,
)


@given(steps, st.sampled_from((1, 4, 100)), st.sampled_from((150, 400, 10**6)), st.sampled_from((2, 200)))
def test_every_state_that_comes_out_is_covered(story: list[Any], records: int, size: int, files: int) -> None:
    run = Story(RollSettings(size, records, 10.0, files))
    for stream in STREAMS:
        run.schema(stream, 0)
    for step in story:
        match step:
            case ("wait", seconds):
                run.seconds += seconds
                run.writer.tick()
            case ("flush",):
                run.writer.flush()
                assert run.seen[-1:] == list(run.covered)[-1:]
            case (name, *arguments):
                getattr(run, name)(*arguments)
    run.writer.close()
    assert run.seen[-1:] == list(run.covered)[-1:]
    for stream in STREAMS:
        if run.sent[stream]:
            assert run.readable(stream) == run.sent[stream]
