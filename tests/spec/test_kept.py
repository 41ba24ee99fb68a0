"""What is kept of a run to be held against another one, and where the limits lie."""

from __future__ import annotations

import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from said import codes, day, lines, row, schema, state

from burler.errors import StorageError
from burler.spec import Limits, check_messages

# --- rows ---

SMALL, MANY = Limits(keys_in_memory=1), 140_000
"""Keys are held by the 65,536 at least: of so many rows two parts stand in a file."""


def numbered(ids):
    return b"".join(b'{"type":"RECORD","stream":"a","record":{"id":%d}}\n' % one for one in ids)


def test_rows_that_came_long_before_are_found_again_in_a_file():
    again = check_messages(lines(schema(key=None)) + numbered([*range(MANY), 7, 80_000, MANY - 1]), limits=SMALL)
    (twice,) = [one for one in again if one.code == "M208"]
    assert sorted(twice.places) == [f"line {MANY + at}" for at in (2, 3, 4)]


def test_rows_that_a_second_run_lacks_are_found_in_a_file():
    head = lines(schema(key="id"), state({"bookmarks": {"a": {"id": 0}}}))
    tail = lines(state({"bookmarks": {"a": {"id": MANY}}}))
    lacking = head + numbered(one for one in range(MANY) if one not in (5, 100_000)) + tail
    found = check_messages(head + numbered(range(MANY)) + tail, resumed={1: lacking}, limits=SMALL)
    (lost,) = [one for one in found if one.code == "B312"]
    assert (lost.count, lost.places) == (2, ("line 8 of the first run",))


def test_a_full_disk_is_told_with_the_cure(monkeypatch):
    class Full:
        def seek(self, *_where):
            return 0

        def write(self, _data):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_given: Full())
    with pytest.raises(StorageError, match=r"No space left on device\. Name another folder by TMPDIR"):
        check_messages(lines(schema(key=None)) + numbered(range(MANY // 2)), limits=SMALL)


KEYS = st.one_of(
    st.integers(-3, 12), st.sampled_from(["a", "5", "", 1.5, None, True, False, [1], {"a": [1]}, 10**30, -(2**63)])
)


@given(st.lists(st.tuples(KEYS, st.sampled_from([1, "1", -1, -2])), max_size=30))
def test_keys_are_told_apart_as_json_tells_them(pairs):
    """1 is not true, and not "1"."""
    run = [schema(key=None, keys=("k", "l"), fields={"k": {}, "l": {}})]
    run += [{"type": "RECORD", "stream": "a", "record": {"k": one, "l": other}} for one, other in pairs]
    twice = [one.count for one in check_messages(lines(*run)) if one.code == "M208"]
    assert sum(twice) == len(pairs) - len(set(map(repr, pairs)))


# --- limits ---


@pytest.mark.parametrize(("count", "found"), [(4, []), (5, ["B311"])])
def test_from_how_many_rows_on_a_stream_that_comes_whole_is_told(count, found):
    run = [schema(), *(row(n, day(n)) for n in range(1, count + 1)), state(a=day(count))]
    assert codes(*run, resumed={1: lines(*run)}) == found


def test_a_stream_that_is_over_may_be_silent_in_the_run_behind_it():
    said = state({"bookmarks": {"a": {"version": 1}}})
    assert codes(schema(key=None), row(1), row(2), said, resumed={1: lines(said)}) == []
