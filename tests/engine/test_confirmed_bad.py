"""The file that ``acknowledge_state_file`` names, whatever is wrong with it: a run goes on."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confirming import LATER, Looking, message, state


@pytest.fixture(params=[False, True], ids=["full", "touched"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Looking]:
    made = Looking(tmp_path / "state.json", touched=request.param)
    yield made
    made.end()


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Looking]:
    made = Looking(tmp_path / "state.json")
    yield made
    made.end()


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


def test_one_warning_until_it_is_good_again(either: Looking, caplog: pytest.LogCaptureFixture):
    descriptors = None
    with caplog.at_level(logging.INFO):
        for number, kind in enumerate([*NO_FILE, *NO_STATE, "rows alone"]):
            either.write(message(2 * number))
            assert either.look() == 2 * number
            caplog.clear()
            spoil(kind, either.path)
            for _ in range(8):
                assert either.look() is None
            [said] = warnings(caplog)
            assert said.startswith(f"acknowledge_state_file {either.path}: "), kind
            assert "Nothing is acknowledged until it holds a state" in said
            assert "--state" not in said
            either.path.rmdir() if kind == "folder" else either.path.unlink(missing_ok=True)
            either.write(message(2 * number + 1))
            assert either.look() == 2 * number + 1
            assert "holds a state now" in caplog.records[-1].getMessage()
            spoil(kind, either.path)
            for _ in range(4):
                either.look()
            assert len(warnings(caplog)) == 2, kind
            either.path.rmdir() if kind == "folder" else either.path.unlink(missing_ok=True)
            descriptors = descriptors or len(list(Path("/proc/self/fd").iterdir()))
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors


@pytest.mark.parametrize("kind", NO_FILE)
def test_a_wrong_path_is_told_at_once(full: Looking, kind: str, caplog: pytest.LogCaptureFixture):
    spoil(kind, full.path)
    full.look()
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize("kind", ["empty", "half"])
def test_a_moment_between_two_writes_is_not_worth_a_word(full: Looking, kind: str, caplog: pytest.LogCaptureFixture):
    for number in range(5):
        spoil(kind, full.path)
        full.look()
        full.write(message(number + 10))
        assert full.look() == number + 10
    assert warnings(caplog) == []


def test_a_name_that_no_file_can_have(caplog: pytest.LogCaptureFixture):
    here = Looking(Path("a\0b"))
    assert here.look() is None
    here.end()
    assert len(warnings(caplog)) == 1
