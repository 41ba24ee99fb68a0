"""The file that ``acknowledge_state_file`` names: how it is read, whatever is done to it, how
much of it, and that a run goes on whatever is wrong with it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confirming import LATER, Looking, message, state

ROW = json.dumps({"type": "RECORD", "stream": "a", "record": {"id": 1, "at": 5}}) + "\n"
WITH_WORD = json.dumps({"type": "RECORD", "stream": "a", "record": {"bookmarks": "x" * 100}}) + "\n"


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


# ---- what is read -----------------------------------------------------------------------------------------


def test_it_is_read_as_a_state_that_a_run_is_given(either: Looking):
    forms = [
        lambda n: json.dumps(state(n)),
        lambda n: json.dumps(state(n)) + "\n",
        lambda n: "\ufeff" + json.dumps(state(n)),
        lambda n: json.dumps(state(n), indent=2),
        lambda n: json.dumps(state(n), indent=0) + "\n",
        lambda n: json.dumps({"type": "STATE", "value": state(n)}, indent=4),
        message,
        lambda n: message(n).replace("STATE", "state"),
        lambda n: (message(n - 1) + message(n)).replace("STATE", "state"),
        lambda n: "".join(f"  {line}\n" for line in (message(n - 1) + message(n)).splitlines()),
        lambda n: message(n - 2) + message(n - 1) + message(n),
        lambda n: json.dumps(state(n - 1)) + "\n" + json.dumps(state(n)) + "\n",
        lambda n: message(n - 1) + message(n) + "\n\n",
        lambda n: (message(n - 1) + message(n)).replace("\n", "\r\n"),
        lambda n: message(n - 1) + message(n) + message(n + 1)[:30],  # torn
        lambda n: message(n - 1) + message(n) + LATER + "\n",
        lambda n: message(n - 1) + message(n).rstrip(),  # whole, its end is to come
        lambda n: json.dumps(state(float(n))) + "\n",  # 5.0 for 5, as others may write it
    ]
    for number, form in enumerate(forms, 1):
        either.write(form(4 * number))
        assert either.look() == 4 * number, form(4 * number)
        assert either.look() is None


def test_it_stays_the_same_file_when_user_code_goes_to_another_folder(tmp_path: Path, monkeypatch: Any):
    monkeypatch.chdir(tmp_path)
    here = Looking(Path("state.json"))
    (tmp_path / "state.json").write_text(message(1))
    monkeypatch.chdir("/")
    assert here.look() == 1
    here.end()


# ---- what is done to it ---------------------------------------------------------------------------------


def test_it_grows_by_lines_and_by_halves_of_lines(either: Looking):
    for number in range(1, 20):
        either.add(message(number) + LATER.strip() + "\n")
        assert either.look() == number
    for number in range(20, 40):
        half = len(message(number)) // 2
        either.add(message(number)[:half])
        assert either.look() is None
        either.add(message(number)[half:])
        assert either.look() == number


def test_it_is_replaced_rotated_truncated_and_written_anew(either: Looking):
    either.write(message(1) * 100)
    assert either.look() == 1
    beside = either.path.with_suffix(".new")
    beside.write_text(json.dumps(state(2)))
    beside.rename(either.path)
    assert either.look() == 2
    either.path.rename(either.path.with_suffix(".1"))
    assert either.look() is None
    either.write(message(3))
    assert either.look() == 3
    either.write(message(4) * 200)  # the same file, longer than what was read of it
    assert either.look() == 4
    either.write(json.dumps(state(5)))
    assert either.look() == 5


# ---- how much of it is read -------------------------------------------------------------------------------


def test_a_state_of_megabytes_counts_in_front_of_rows_and_over_many_lines(either: Looking):
    position = {"seen": ["x" * 50] * 30_000}
    either.say((100, position), 101)
    either.write(message(1) + json.dumps({"type": "STATE", "value": state(100, position)}) + "\n" + WITH_WORD * 30_000)
    assert either.look() == (100, position)
    either.add(ROW)
    assert either.look() is None
    text = json.dumps(state(101, position), indent=1)
    either.write(text[:1_200_000])
    assert either.look() is None
    either.write(text)
    assert either.look() == (101, position)


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
