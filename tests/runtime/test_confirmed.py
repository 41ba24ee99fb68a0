"""The file that ``acknowledge_state_file`` names, whatever the program that writes it does to it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burler.errors import StateError
from burler.runtime.clock import FakeClock
from burler.runtime.confirmed import Confirmed
from burler.runtime.said import Said, values_of
from burler.settings import Settings
from burler.singer.state import merge_states, parse_state

LOGGER = "burler.runtime.confirmed"


def state(number: int, **more: Any) -> dict[str, Any]:
    return {"bookmarks": {"a": {"id": number}}, **more}


def message(number: int) -> str:
    return json.dumps({"type": "STATE", "value": state(number)}) + "\n"


class Looking:
    """A file, a clock, and who looks at it."""

    def __init__(self, path: Path, *, merge: bool = False) -> None:
        self.path = path
        self.clock = FakeClock()
        self.confirmed = Confirmed(str(path), merge=merge, clock=self.clock)

    def write(self, text: str | bytes) -> None:
        self.path.write_bytes(text.encode() if isinstance(text, str) else text)

    def add(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)

    def replace(self, text: str) -> None:
        beside = self.path.with_suffix(".new")
        beside.write_text(text)
        beside.rename(self.path)

    def look(self) -> Any:
        self.clock.advance(10)
        assert self.confirmed.is_due
        return self.confirmed.look()


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

LATER = "\n" + json.dumps({"type": "RECORD", "stream": "a", "record": {"id": 9, "bookmarks": 1}})


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


def test_the_settings_name_it(tmp_path: Path):
    assert Confirmed.of(Settings(), FakeClock()) is None
    (tmp_path / "x").write_text(message(1) + json.dumps({"bookmarks": {"b": {"id": 2}}}) + "\n")
    found = Confirmed.of(Settings(acknowledge_state_file=str(tmp_path / "x"), state_scope="touched"), FakeClock())
    assert found is not None
    assert found.look() == {"bookmarks": {"a": {"id": 1}, "b": {"id": 2}}}


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


# ---- what is wrong with it --------------------------------------------------------------------------------


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING and one.name == LOGGER]


def spoil(kind: str, path: Path) -> None:
    path.unlink(missing_ok=True)
    if kind == "missing":
        return
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "no rights":
        path.symlink_to(path)  # root reads everything, but no circle
    else:
        path.write_bytes(
            {
                "empty": b"",
                "blank": b" \n\n",
                "half": json.dumps(state(2)).encode()[:-3],
                "text": b"nothing of the kind\n",
                "binary": bytes(range(256)),
                "another object": b'{"id": 1}',
                "a state below": b'{"a": {"bookmarks": {"a": {"id": 1}}}}\n',
                "a list": b"[1, 2]",
                "null": b"null",
                "bad bookmarks": b'{"bookmarks": 5}\n',
                "deep": b'{"bookmarks":' * 20_000,
                "rows alone": (LATER * 5).encode(),
            }[kind]
        )


NO_STATE = [
    "empty",
    "blank",
    "half",
    "text",
    "binary",
    "another object",
    "a state below",
    "a list",
    "null",
    "bad bookmarks",
    "deep",
]
NO_FILE = ["missing", "folder", "pipe", "no rights"]


@pytest.mark.parametrize("kind", [*NO_FILE, *NO_STATE, "rows alone"])
def test_one_warning_until_it_is_good_again(either: Looking, kind: str, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, logger=LOGGER):
        either.write(message(1))
        assert either.look() == state(1)
        spoil(kind, either.path)
        for _ in range(20):
            assert either.look() is None
        [said] = warnings(caplog)
        assert said.startswith(f"acknowledge_state_file {either.path}: ")
        assert "Nothing is acknowledged until it holds a state" in said
        assert "--state" not in said
        either.path.rmdir() if kind == "folder" else either.path.unlink(missing_ok=True)
        either.write(message(2))
        assert either.look() == state(2)
        assert "holds a state now" in caplog.records[-1].getMessage()
        spoil(kind, either.path)
        for _ in range(4):
            either.look()
    assert len(warnings(caplog)) == 2


@pytest.mark.parametrize("kind", NO_FILE)
def test_a_wrong_path_is_told_at_once(full: Looking, kind: str, caplog: pytest.LogCaptureFixture):
    spoil(kind, full.path)
    full.look()
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize("kind", ["empty", "half"])
def test_a_moment_between_two_writes_is_not_worth_a_word(full: Looking, kind: str, caplog: pytest.LogCaptureFixture):
    for number in range(5):
        spoil(kind, full.path)
        assert full.look() is None
        full.write(message(number))
        assert full.look() == state(number)
    assert warnings(caplog) == []


def test_a_name_that_no_file_can_have(caplog: pytest.LogCaptureFixture):
    confirmed = Confirmed("a\0b", clock=FakeClock())
    assert confirmed.look() is None
    assert len(warnings(caplog)) == 1


def test_a_file_that_can_be_read_again_and_has_not_changed_meanwhile_is_good(either: Looking):
    either.write(message(1))
    assert [either.look(), either.look(), either.look()] == [state(1), state(1), None]
    aside = either.path.with_suffix(".aside")
    either.path.rename(aside)
    assert either.look() is None
    aside.rename(either.path)
    assert either.look() == state(1)


def test_a_file_that_is_written_while_it_is_read(either: Looking, monkeypatch: Any):
    """What was half the old and half the new one must not pass for either."""
    either.write(message(1))
    reader = type(either.confirmed._lines).read
    left = [2]

    def read(self: Any, file: Any, there: Any) -> Any:
        found = reader(self, file, there)
        if left[0]:
            left[0] -= 1
            either.write(message(100 + left[0]))
        return found

    monkeypatch.setattr(type(either.confirmed._lines), "read", read)
    assert either.look() == state(100)


def test_its_descriptors_are_closed(either: Looking):
    kinds = [*NO_FILE, *NO_STATE]
    before = len(list(Path("/proc/self/fd").iterdir()))
    for kind in kinds:
        spoil(kind, either.path)
        either.look()
        either.path.rmdir() if kind == "folder" else either.path.unlink(missing_ok=True)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


ENTRIES = st.dictionaries(st.sampled_from("ab"), st.none() | st.fixed_dictionaries({"id": st.integers(0, 9)}))
CHANGES = st.fixed_dictionaries({"bookmarks": ENTRIES})


@settings(max_examples=60, deadline=None)
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


# ---- what a run has said ------------------------------------------------------------------------------------


def said_of(*numbers: int, most: int = 100) -> Said:
    said = Said(most)
    for number in numbers:
        said.add("a", {None: (number, {})}, {})
    return said


def known(said: Said, most: int) -> list[int]:
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
    said = Said()
    said.add("a", {None: (1, {})}, {None: (1, {})})
    assert known(said, 9) == []


def test_a_bookmark_and_its_position_count_together():
    said = Said()
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
    said = Said(most=1000)
    for number in range(40):
        said.add("a", {f"p{part}": (number, {}) for part in range(100)}, {})
    kept = [sum(said.has("a", f"p{part}", (number, {})) for number in range(40)) for part in range(100)]
    assert min(kept) >= 16
    assert sum(kept) <= 1000 + 16 * 100
    assert said.has("a", "p99", (39, {}))


def test_values_of_a_state():
    given = {"bookmarks": {"a": {"id": 1, "stream_state": {"x": 1}, "partitions": {"p": {"id": 2}, "q": None}}}}
    assert values_of(given, "a", "id") == {None: (1, {"x": 1}), "p": (2, {})}
    assert values_of(given, "a", None) == {None: (None, {"x": 1}), "p": (None, {})}
    assert values_of({"bookmarks": {"a": None}}, "a", "id") == {None: (None, {})}
    assert values_of({}, "a", "id") == {None: (None, {})}
