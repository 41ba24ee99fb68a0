"""The file that ``acknowledge_state_file`` names: how it is read, and when."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from confirming import LATER, Looking, message, state
from hypothesis import given, settings
from hypothesis import strategies as st

from burler.errors import StateError
from burler.singer import merge_states, parse_state


@pytest.fixture(params=[False, True], ids=["full", "touched"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Looking:
    return Looking(tmp_path / "state.json", merge=request.param)


@pytest.fixture
def full(tmp_path: Path) -> Looking:
    return Looking(tmp_path / "state.json")


@pytest.fixture
def touched(tmp_path: Path) -> Looking:
    return Looking(tmp_path / "state.json", merge=True)


# ---- what is read -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(state(5)),
        json.dumps(state(5)) + "\n",
        "\ufeff" + json.dumps(state(5)),
        json.dumps(state(5), indent=2),
        json.dumps(state(5), indent=0) + "\n",
        json.dumps({"type": "STATE", "value": state(5)}, indent=4),
        message(5),
        message(5).replace("STATE", "state"),
        (message(4) + message(5)).replace("STATE", "state"),
        "".join(f"  {line}\n" for line in (message(4) + message(5)).splitlines()),
        message(3) + message(4) + message(5),
        json.dumps(state(4)) + "\n" + json.dumps(state(5)) + "\n",
        message(4) + message(5) + "\n\n",
        (message(4) + message(5)).replace("\n", "\r\n"),
        message(4) + message(5) + message(6)[:30],  # torn
        message(4) + message(5) + LATER + "\nTraceback: no JSON\n",
        message(4) + message(5).rstrip(),  # whole, its end is to come
    ],
)
def test_it_is_read_as_a_state_that_a_run_is_given(either: Looking, text: str):
    either.write(text)
    assert either.look() == state(5)


def test_of_full_states_the_last_one_counts_and_touched_ones_add_up(full: Looking, tmp_path: Path):
    other = Looking(tmp_path / "other", merge=True)
    first, then = {"bookmarks": {"a": {"id": 1, "x": 2}, "b": {"id": 7}}}, {"bookmarks": {"a": {"id": 2, "x": None}}}
    for one in (full, other):
        one.write(json.dumps(first) + "\n" + json.dumps(then) + "\n")
    assert full.look() == then
    assert other.look() == {"bookmarks": {"a": {"id": 2}, "b": {"id": 7}}}


def test_it_stays_the_same_file_when_user_code_goes_to_another_folder(tmp_path: Path, monkeypatch: Any):
    monkeypatch.chdir(tmp_path)
    here = Looking(Path("state.json"))
    (tmp_path / "state.json").write_text(message(1))
    monkeypatch.chdir("/")
    assert here.look() == state(1)


# ---- when ---------------------------------------------------------------------------------------------------


def test_it_is_looked_at_each_10_seconds(full: Looking):
    assert full.confirmed.is_due
    full.confirmed.look()
    for _ in range(9):
        full.clock.advance(1)
        assert not full.confirmed.is_due
    full.clock.advance(1)
    assert full.confirmed.is_due


def test_a_file_that_stays_as_it_is_is_read_twice_and_then_no_more(either: Looking, monkeypatch: Any):
    reads = []
    content = type(either.confirmed._lines).read

    def read(self: Any, file: Any, there: Any) -> Any:
        reads.append(there.st_size)
        return content(self, file, there)

    monkeypatch.setattr(type(either.confirmed._lines), "read", read)
    either.write(message(1))
    assert [either.look() for _ in range(5)] == [state(1), state(1), None, None, None]
    assert len(reads) == 2


def test_a_change_that_its_time_and_size_do_not_show_is_seen(either: Looking):
    """A second writing within one tick of the file system's clock."""
    either.write(message(1))
    before = either.path.stat()
    assert either.look() == state(1)
    either.write(message(2))
    os.utime(either.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert either.look() == state(2)


# ---- what is done to it ---------------------------------------------------------------------------------


def test_it_grows(either: Looking):
    for number in range(1, 30):
        either.add(message(number) + LATER.strip() + "\n")
        assert either.look() == state(number)


def test_it_grows_by_halves_of_lines(either: Looking):
    either.add(message(1))
    for number in range(2, 20):
        half = len(message(number)) // 2
        either.add(message(number)[:half])
        assert either.look() == state(number - 1)
        either.add(message(number)[half:])
        assert either.look() == state(number)


def test_it_is_replaced_rotated_truncated_and_written_anew(either: Looking):
    either.write(message(1) * 100)
    assert either.look() == state(1)
    either.replace(json.dumps(state(2)))
    assert either.look() == state(2)
    either.path.rename(either.path.with_suffix(".1"))
    assert either.look() is None
    either.write(message(3))
    assert either.look() == state(3)
    either.write(message(4) * 200)  # the same file, longer than what was read of it
    assert either.look() == state(4)
    either.write(json.dumps(state(5)))
    assert either.look() == state(5)


def test_what_is_gone_from_a_file_of_one_state_is_gone(either: Looking):
    either.write(json.dumps({"bookmarks": {"a": {"id": 1}, "b": {"id": 1}}}))
    either.look()
    either.write(json.dumps(state(2)))
    assert either.look() == state(2)


def test_a_growing_file_is_not_read_from_its_beginning_each_time(either: Looking, monkeypatch: Any):
    """It may have grown for years."""
    either.write(message(1) * 40_000)
    assert either.path.stat().st_size > 2_000_000
    assert either.look() == state(1)
    read = 0

    class Counting:
        def __init__(self, file: Any) -> None:
            self.file = file

        def seek(self, *args: int) -> int:
            return int(self.file.seek(*args))

        def read(self, *args: int) -> bytes:
            nonlocal read
            content = self.file.read(*args)
            read += len(content)
            return bytes(content)

    reader = type(either.confirmed._lines).read
    monkeypatch.setattr(
        type(either.confirmed._lines), "read", lambda self, file, there: reader(self, Counting(file), there)
    )
    for number in range(2, 12):
        either.add(message(number))
        assert either.look() == state(number)
    assert 0 < read < 1_000_000


@pytest.mark.parametrize("rows", [1, 3000])
def test_a_line_longer_than_a_block_and_a_state_far_in_front_of_the_end(either: Looking, rows: int):
    big = {"bookmarks": {"a": {"id": 7, "stream_state": {"seen": ["x" * 50] * 20_000}}}}
    row = json.dumps({"type": "RECORD", "stream": "a", "record": {"text": "y" * 1000, "bookmarks": 1}}) + "\n"
    either.write(json.dumps({"type": "STATE", "value": big}) + "\n" + row * rows)
    assert either.look() == big


ENTRIES = st.dictionaries(st.sampled_from("ab"), st.none() | st.fixed_dictionaries({"id": st.integers(0, 9)}))
CHANGES = st.fixed_dictionaries({"bookmarks": ENTRIES})


@settings(max_examples=60)
@given(changes=st.lists(CHANGES, min_size=1, max_size=12), cuts=st.lists(st.integers(0, 400), max_size=8))
def test_touched_states_add_up_wherever_the_looks_fall(
    tmp_path_factory: Any, changes: list[dict[str, Any]], cuts: list[int]
):
    """As one reading of the whole lines would."""
    here = Looking(tmp_path_factory.mktemp("touched") / "state", merge=True)
    content = "".join(json.dumps({"type": "STATE", "value": one}) + "\n" for one in changes).encode()
    latest = None
    for cut in [*sorted(cuts), len(content)]:
        here.add(content[here.path.stat().st_size if here.path.exists() else 0 : cut].decode())
        latest = here.look() or latest
        with contextlib.suppress(StateError):  # nothing whole yet
            assert (latest or {}) == parse_state(content[:cut], source="file", merge=True)
    assert (latest or {}) == merge_states(changes)
