"""The file that ``acknowledge_state_file`` names, where it is huge, wrong, or written in place."""

from __future__ import annotations

import json
import logging
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from confirming import Looking, message, state

from support.internals import confirmed

ROW = json.dumps({"type": "RECORD", "stream": "a", "record": {"id": 1, "at": 5}}) + "\n"
ROWS = ROW * (20_000_000 // len(ROW))
LONGEST_LINE = 64 * 1024 * 1024
WITH_WORD = json.dumps({"type": "RECORD", "stream": "a", "record": {"bookmarks": "x" * 100}}) + "\n"


class Counting:
    """A file, and how many bytes were read of it: in all, and at once."""

    def __init__(self) -> None:
        self.bytes = self.most = 0

    def read_by(self, monkeypatch: pytest.MonkeyPatch) -> Counting:
        monkeypatch.setattr(confirmed.Confirmed, "_state_in", self._wrapping(confirmed.Confirmed._state_in))
        return self

    def _wrapping(self, method: Any) -> Any:
        def state_in(this: Any, file: Any, there: Any) -> Any:
            self.file = file
            return method(this, self, there)

        return state_in

    def seek(self, *args: int) -> int:
        return int(self.file.seek(*args))

    def read(self, *args: int) -> bytes:
        content = bytes(self.file.read(*args))
        self.bytes += len(content)
        self.most = max(self.most, len(content))
        return content


@pytest.fixture(params=[False, True], ids=["full", "touched"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Looking:
    return Looking(tmp_path / "state.json", merge=request.param)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counting:
    return Counting().read_by(monkeypatch)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


def test_a_huge_file_without_a_state_is_read_once_by_pieces(
    either: Looking, read: Counting, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.INFO):
        either.write(ROWS)
        assert either.look() is None
        assert read.bytes < 1.2 * len(ROWS)
        assert read.most <= 4 * 1024 * 1024
        read.bytes = 0
        for _ in range(5):
            either.add(ROW)
            assert either.look() is None
        assert read.bytes < 12_000_000  # a megabyte each time, to see what kind of file it is
        assert len(warnings(caplog)) == 1
        assert "holds no line with a state" in warnings(caplog)[0]
        either.add(message(5) + ROW)
        assert either.look() == state(5)


def test_a_state_far_in_front_is_searched_once(either: Looking, read: Counting):
    either.write(message(5) + ROWS)
    assert either.look() == state(5)
    read.bytes = 0
    for _ in range(10):
        either.add(ROW)
        assert either.look() == state(5)
    assert read.bytes < 1_000_000


def test_a_huge_text_is_not_read_whole(either: Looking, read: Counting, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO):
        either.write("no JSON\n" * (20_000_000 // 8))
        for _ in range(5):
            assert either.look() is None
    assert read.most <= 4 * 1024 * 1024
    [said] = warnings(caplog)
    assert "more than 16 MiB" in said


def test_a_line_without_an_end_is_passed_over_and_not_held(either: Looking, read: Counting):
    """Longer than any that is waited for."""
    either.write(message(1))
    either.add('{"bookmarks": {"a": {"id": 7}}, "x": "' + "y" * (LONGEST_LINE + 8_000_000))
    tracemalloc.start()
    try:
        assert either.look() == state(1)
        assert tracemalloc.get_traced_memory()[1] < 2.2 * LONGEST_LINE
    finally:
        tracemalloc.stop()
    assert read.most <= 4 * 1024 * 1024
    read.bytes = 0
    for _ in range(5):
        either.add("z")
        assert either.look() == state(1)
    assert read.bytes < 1_000_000
    either.add(message(9))  # the end of that line, where a look begins
    assert either.look() == state(1)
    either.add(message(2))
    assert either.look() == state(2)


def test_a_state_of_megabytes_counts(either: Looking):
    big = {"bookmarks": {"a": {"id": 7, "stream_state": {"seen": ["x" * 50] * 100_000}}}}
    either.write(message(1) + json.dumps({"type": "STATE", "value": big}) + "\n")
    assert either.look() == big
    either.add(ROW)
    assert either.look() == big


def test_a_line_that_speaks_of_bookmarks_is_no_state(either: Looking):
    either.write(message(3) + WITH_WORD * 30_000)
    assert either.look() == state(3)


def test_written_in_place_with_the_same_size_and_end(either: Looking):
    """As `cp` does it; only what stands in front has changed."""

    def content(number: int) -> str:
        return json.dumps({"bookmarks": {"a": {"id": number}, "b": {"text": "z" * 50_000}}}) + "\n"

    for number in (1, 2, 3):
        either.write(content(number) + ROW * 2)
        found = either.look()
        assert found["bookmarks"]["a"] == {"id": number}


def test_a_state_spread_over_lines_that_is_completed_later(either: Looking):
    text = json.dumps({"bookmarks": {"a": {"id": 5, "stream_state": {"seen": ["x" * 50] * 30_000}}}}, indent=1)
    assert len(text) > 1_500_000
    either.write(text[:1_200_000])
    assert either.look() is None
    either.write(text)
    assert either.look()["bookmarks"]["a"]["id"] == 5
