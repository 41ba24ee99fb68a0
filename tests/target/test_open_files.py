"""The order in which open files end, whatever they are files of."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from support.internals import target_open_files


@dataclass
class HandClock:
    seconds: float = 0.0

    def now(self) -> dt.datetime:
        return dt.datetime(2024, 1, 2, tzinfo=dt.UTC)

    def monotonic(self) -> float:
        return self.seconds


@dataclass
class Note:
    name: str
    begun: int
    opened: float
    dropped: bool = False

    def discard(self) -> None:
        self.dropped = True


class Notes(target_open_files.OpenFiles[Note]):
    def __init__(self, clock: HandClock) -> None:
        super().__init__(clock, most=3, age_seconds=60)
        self.clock = clock
        self.ended: list[str] = []

    def begin(self, name: str, place: int) -> Note:
        self._make_place()
        self._open[name] = Note(name, place, self.clock.seconds)
        return self._open[name]

    def end(self, file: Note) -> None:
        self.ended.append(file.name)
        del self._open[file.name]


def test_files_end_in_the_order_in_which_they_were_begun():
    notes = Notes(HandClock())
    for name, place in (("b", 2), ("c", 3), ("a", 1)):
        notes.begin(name, place)
    notes.begin("d", 4)
    assert notes.ended == ["a"]
    assert sorted(notes.begun) == [2, 3, 4]
    notes.end_all()
    assert notes.ended == ["a", "b", "c", "d"]
    assert notes.begun == []


def test_a_file_is_due_by_its_age_and_no_other_ends_with_it():
    clock = HandClock()
    notes = Notes(clock)
    assert notes.next_due_seconds is None
    notes.begin("a", 1)
    clock.seconds = 50
    notes.begin("b", 2)
    assert notes.next_due_seconds == 10
    notes.end_old()
    assert notes.ended == []
    clock.seconds = 60
    assert notes.next_due_seconds == 0
    notes.end_old()
    assert notes.ended == ["a"]
    assert notes.next_due_seconds == 50


def test_what_is_dropped_is_not_published():
    notes = Notes(HandClock())
    file = notes.begin("a", 1)
    notes.discard()
    assert (file.dropped, notes.ended, notes.begun) == (True, [], [])
