"""Where a replay goes on: a position is never ahead of what is out, and with it comes exactly what is new."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burler.lake import DataFile, FileStats, Snapshot
from support.internals import reading_choice, replay_state

FOLDER = "raw/tap/s"
HASHES = ("1" * 11, "2" * 11)
NOON = "2024-01-02T12:00:00.000000Z"


def file(name: str, sequence: int, **more: Any) -> DataFile:
    stats = FileStats(records=1, bytes=1, first=NOON, last=NOON, sequence=sequence, **more)
    return DataFile(f"{FOLDER}/{name}", stats)


def snapshot(files: list[DataFile], sequence: int, replaced: list[DataFile] | None = None) -> Snapshot:
    return Snapshot(
        tap_id="tap",
        stream="s",
        folder=FOLDER,
        files=tuple(sorted(files, key=lambda one: one.order)),
        generation="g",
        sequence=sequence,
        replaced=tuple(replaced or ()),
    )


@dataclass
class Model:
    """A stream that writers and ``compact`` work on."""

    sequence: int = 0
    made: int = 0
    files: list[DataFile] = field(default_factory=list)
    replaced: list[DataFile] = field(default_factory=list)
    points: dict[str, int] = field(default_factory=dict)

    def name(self, digest: str, n: int) -> str:
        return f"{digest}/s-20240102T120000Z-20240102T120000Z-{n}.singer.gz"

    def commit(self, hashes: list[int]) -> None:
        """Some files in one commit."""
        self.sequence += 1
        for one in hashes:
            self.made += 1
            # Names don't rise with commits: times of extraction needn't.
            made = file(self.name(HASHES[one], 2 + self.made * 7919 % 9973), self.sequence)
            self.points[made.path] = self.sequence
            self.files.append(made)

    def compact(self, digest: int, first: int, count: int) -> None:
        """Files of one schema version into one; those that were compacted before as well."""
        of_hash = sorted((one for one in self.files if one.hash == HASHES[digest]), key=lambda one: one.order)
        parts = of_hash[first : first + count]
        if len(parts) < 2:
            return
        self.sequence += 1
        self.made += 1
        replaces: dict[str, int] = {}
        for one in parts:
            assert one.stats is not None
            replaces |= one.stats.replaces or {one.path[len(FOLDER) + 1 :]: one.stats.sequence}
        made = file(
            self.name(HASHES[digest], 100_000_000 + self.made),
            self.sequence,
            rank=max(replaces.values()),
            replaces=replaces,
        )
        self.replaced += [one for one in parts if one.stats and not one.stats.replaces]
        self.files = [one for one in self.files if one not in parts] + [made]

    def snapshot(self) -> Snapshot:
        return snapshot(self.files, self.sequence, self.replaced)


def rows_of(one: DataFile) -> list[str]:
    """The committed files whose rows a file holds."""
    assert one.stats is not None
    return [f"{FOLDER}/{name}" for name in one.stats.replaces] if one.stats.replaces else [one.path]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.lists(st.integers(0, 1), min_size=1, max_size=3)),
        st.tuples(st.just("compact"), st.integers(0, 1), st.integers(0, 4), st.integers(2, 5)),
        st.tuples(st.just("read"), st.integers(0, 12)),
        st.tuples(st.just("read"), st.just(99)),
        st.tuples(st.just("vacuum"), st.integers(0, 3)),
    ),
    max_size=14,
)


@given(steps)
def test_nothing_is_missed_and_nothing_comes_twice_without_a_reason(steps: list[Any]) -> None:
    model, position, out = Model(), replay_state.START, Counter[str]()
    may_repeat = False
    for step in [*steps, ("read", 99)]:
        if step[0] == "commit":
            model.commit(step[1])
        elif step[0] == "compact":
            model.compact(*step[1:])
        elif step[0] == "vacuum":
            model.replaced = model.replaced[step[1] :]
        else:
            made = replay_state.plan(model.snapshot(), reading_choice.Choice(), position)
            may_repeat = may_repeat or bool(made.again)
            for part, after in zip(made.parts[: step[1]], made.after, strict=False):
                out.update(rows_of(part.file))
                if after is not None:
                    assert after.limit(FOLDER) >= position.limit(FOLDER)
                    position = after
                check_covered(model, position, out)
            compacted = any(one.stats and one.stats.replaces for one in model.files)
            if step[1] >= len(made.parts):
                position = made.end
            elif compacted:
                may_repeat = True  # the position may have to wait for a file that holds older rows
            check_covered(model, position, out)
    assert set(out) == set(model.points)
    if not may_repeat:
        assert set(out.values()) <= {1}
    assert not replay_state.plan(model.snapshot(), reading_choice.Choice(), position).parts


def check_covered(model: Model, position: replay_state.Position, out: Counter[str]) -> None:
    """All that a position covers is out."""
    for path, sequence in model.points.items():
        whole = position.sequence if position.file is None else position.sequence - 1
        if sequence <= whole:
            assert out[path], (position, path, sequence)
    if position.file is not None:
        assert out[f"{FOLDER}/{position.file}"]


def test_a_position_inside_of_a_commit_names_the_file() -> None:
    model = Model()
    model.commit([0])
    model.commit([0, 0, 0])
    made = replay_state.plan(model.snapshot(), reading_choice.Choice(), replay_state.START)
    assert made.after[0] == replay_state.Position(1)
    inside = [one for one in made.after[1:3] if one is not None]
    assert [(one.sequence, one.file) for one in inside] == [
        (2, part.file.path[len(FOLDER) + 1 :]) for part in made.parts[1:3]
    ]
    assert made.after[3] == made.end == replay_state.Position(2)
    rest = replay_state.plan(model.snapshot(), reading_choice.Choice(), inside[0])
    assert [one.file.path for one in rest.parts] == [one.file.path for one in made.parts[2:]]


def test_of_a_compacted_file_only_the_new_part_is_read_while_it_is_there() -> None:
    model = Model()
    for _ in range(3):
        model.commit([0])
    old = {one.path: one.sequence for one in model.files}
    model.compact(0, 0, 3)
    made = replay_state.plan(model.snapshot(), reading_choice.Choice(), replay_state.Position(2))
    assert [old[one.file.path] for one in made.parts] == [3]
    assert (made.again, made.end) == ((), replay_state.Position(4))
    model.replaced.clear()
    made = replay_state.plan(model.snapshot(), reading_choice.Choice(), replay_state.Position(2))
    assert [one.file for one in made.parts] == model.files
    assert made.again == (model.files[0].path,)
    assert not replay_state.plan(model.snapshot(), reading_choice.Choice(), replay_state.Position(3)).parts


def test_the_new_parts_of_a_compacted_file_stand_where_they_were_committed() -> None:
    model = Model()
    for digest in (0, 0, 1, 0):
        model.commit([digest])
    sequences = dict(model.points)
    model.compact(0, 0, 3)
    made = replay_state.plan(model.snapshot(), reading_choice.Choice(), replay_state.Position(1))
    assert [sequences[one.file.path] for one in made.parts] == [2, 3, 4]
    assert made.after == (replay_state.Position(2), replay_state.Position(3), replay_state.Position(4))


def test_a_position_never_goes_back() -> None:
    model = Model()
    for n in range(6):
        model.commit([n % 2])
    model.compact(0, 0, 3)  # of commits 1, 3, 5
    model.compact(1, 0, 3)  # of commits 2, 4, 6
    model.replaced.clear()
    made = replay_state.plan(model.snapshot(), reading_choice.Choice(), replay_state.Position(4))
    assert len(made.again) == 2
    assert made.after == (replay_state.Position(5), replay_state.Position(6))


def test_parts_that_are_removed_keep_their_place() -> None:
    """A position inside of a commit of two files, of which the first is compacted and then removed."""
    names = [f"{HASHES[0]}/s-20240102T120000Z-20240102T120000Z{n}.singer.gz" for n in ("", "-2")]
    compacted = file(names[0].replace("Z.", "Z-100000001."), 2, rank=1, replaces={names[0].replace("/s", "/~s"): 1})
    made = replay_state.plan(
        snapshot([compacted, file(names[1], 1)], 2), reading_choice.Choice(), replay_state.Position(1, names[0])
    )
    assert [one.file.path for one in made.parts] == [f"{FOLDER}/{names[1]}"]


def test_of_the_new_part_only_files_in_the_window_are_read() -> None:
    model = Model()
    for _ in range(3):
        model.commit([0])
    later = replace(model.files[2].stats, first="2025-01-01T00:00:00.000000Z", last="2025-01-01T00:00:00.000000Z")
    model.files[2] = replace(model.files[2], stats=later)
    model.compact(0, 0, 3)
    model.files[0] = replace(model.files[0], stats=replace(model.files[0].stats, last=later.last))
    choice = reading_choice.Choice(times=reading_choice.Window("2024-12-01T00:00:00.000000Z"))
    assert [one.file.path for one in replay_state.plan(model.snapshot(), choice, replay_state.Position(1)).parts] == [
        model.replaced[2].path
    ]


def test_a_file_of_which_nothing_is_known_always_comes() -> None:
    stranger = DataFile(f"{FOLDER}/{HASHES[0]}/s-20240102T120000Z-20240102T120000Z-9.singer.gz")
    there = snapshot([file(f"{HASHES[0]}/s-20240102T120000Z-20240102T120000Z.singer.gz", 1), stranger], 1)
    made = replay_state.plan(there, reading_choice.Choice(), replay_state.Position(1))
    assert [one.file for one in made.parts] == [stranger]
    assert made.end == replay_state.Position(1)


ENTRY = {"generation": "g", "sequence": 3}


@pytest.mark.parametrize(
    ("entry", "only", "reason"),
    [
        ({**ENTRY, "generation": "old"}, {}, "made anew"),
        ({**ENTRY, "sequence": 9}, {}, "commit 9, the lake only 5"),
        ({**ENTRY, "only": {"schema": "v2"}}, {}, "another --schema"),
        (ENTRY, {"since": NOON}, "another --schema"),
        ({"updated_at": NOON}, {}, "nothing that this lake's reader has written"),
        ({**ENTRY, "sequence": True}, {}, "nothing that this lake's reader has written"),
        ({**ENTRY, "sequence": "3"}, {}, "nothing that this lake's reader has written"),
        ({**ENTRY, "file": 7}, {}, "nothing that this lake's reader has written"),
    ],
)
def test_a_bookmark_that_does_not_fit_begins_at_the_start(entry: Any, only: Any, reason: str) -> None:
    position, why = replay_state.position_of(entry, snapshot([], 5), only)
    assert position == replay_state.START
    assert why is not None
    assert reason in why


def test_a_bookmark_that_fits() -> None:
    there = snapshot([], 5)
    assert replay_state.position_of({}, there, {}) == (replay_state.START, None)
    assert replay_state.position_of(ENTRY, there, {}) == (replay_state.Position(3), None)
    narrowed = replay_state.Position(3, "h/f").to_wire(there, {"since": NOON})
    assert narrowed == {**ENTRY, "file": "h/f", "only": {"since": NOON}}
    assert replay_state.position_of(narrowed, there, {"since": NOON}) == (replay_state.Position(3, "h/f"), None)
    _, why = replay_state.position_of(ENTRY, replace(there, generation=None), {})
    assert why is not None
    assert "no manifest" in why
