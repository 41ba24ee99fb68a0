"""The file that ``acknowledge_state_file`` names, whatever is wrong with it: a run goes on."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from confirming import LATER, Looking, message, state


@pytest.fixture(params=[False, True], ids=["full", "touched"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Looking:
    return Looking(tmp_path / "state.json", merge=request.param)


@pytest.fixture
def full(tmp_path: Path) -> Looking:
    return Looking(tmp_path / "state.json")


@pytest.fixture
def touched(tmp_path: Path) -> Looking:
    return Looking(tmp_path / "state.json", merge=True)


# ---- what is wrong with it --------------------------------------------------------------------------------


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


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
    with caplog.at_level(logging.INFO):
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
    assert Looking(Path("a\0b")).look() is None
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
