"""What a run has said, so that a file can confirm it."""

from __future__ import annotations

from support.internals import run_said


def said_of(*numbers: int, most: int = 100) -> run_said.Said:
    said = run_said.Said(most)
    for number in numbers:
        said.add("a", {None: (number, {})}, {})
    return said


def known(said: run_said.Said, most: int) -> list[int]:
    return [number for number in range(most) if said.has("a", None, (number, {}))]


def test_what_was_said_is_known_until_it_or_something_later_is_confirmed():
    said = said_of(1, 2, 3)
    assert known(said, 9) == [1, 2, 3]
    said.confirmed("a", None, (2, {}))
    assert known(said, 9) == [3]
    assert said.waits("a")
    said.confirmed("a", None, (3, {}))
    assert not said.waits("a")


def test_what_was_so_before_the_run_was_not_said_by_it():
    said = run_said.Said()
    said.add("a", {None: (1, {})}, {None: (1, {})})
    assert known(said, 9) == []


def test_a_bookmark_and_its_position_count_together():
    said = run_said.Said()
    said.add("a", {None: (1, {"lsn": "5", "x": [1.0, None]})}, {})
    assert said.has("a", None, (1, {"x": [1, None], "lsn": "5"}))
    assert said.has("a", None, (1.0, {"x": [1, None], "lsn": "5"}))
    assert not said.has("a", None, (1, {}))
    assert not said.has("a", "p", (1, {"lsn": "5", "x": [1.0, None]}))
    assert not said.has("a", None, (True, {"lsn": "5", "x": [1.0, None]}))


def test_the_oldest_are_forgotten_and_never_the_newest():
    said = said_of(*range(1000), most=50)
    assert known(said, 1000) == list(range(950, 1000))


def test_many_partitions_share_what_is_kept():
    said = run_said.Said(most=1000)
    for number in range(40):
        said.add("a", {f"p{part}": (number, {}) for part in range(100)}, {})
    kept = [sum(said.has("a", f"p{part}", (number, {})) for number in range(40)) for part in range(100)]
    assert min(kept) >= 16
    assert sum(kept) <= 1000 + 16 * 100
    assert said.has("a", "p99", (39, {}))


def test_values_of_a_state():
    given = {"bookmarks": {"a": {"id": 1, "stream_state": {"x": 1}, "partitions": {"p": {"id": 2}, "q": None}}}}
    assert run_said.values_of(given, "a", "id") == {None: (1, {"x": 1}), "p": (2, {})}
    assert run_said.values_of(given, "a", None) == {None: (None, {"x": 1}), "p": (None, {})}
    assert run_said.values_of({"bookmarks": {"a": None}}, "a", "id") == {None: (None, {})}
    assert run_said.values_of({}, "a", "id") == {None: (None, {})}
