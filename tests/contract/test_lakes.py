"""A lake that c550d9f wrote is read as it was there, and is written on."""

from __future__ import annotations

import shutil
from collections import Counter
from typing import Any

import pytest
from contract import lakes
from contract.files import CONTRACT, burler, compact, read_json, read_lines


@pytest.fixture(params=lakes.NAMES)
def lake(request, tmp_path):
    """A copy of a lake, and of what stands beside it."""
    shutil.copytree(CONTRACT / "lakes" / request.param, tmp_path / request.param)
    return tmp_path / request.param / "lake"


def holds(now: Any, then: Any, place: str = "") -> None:
    """All that was there is there. What is new is fine."""
    if isinstance(then, dict):
        assert isinstance(now, dict) and not then.keys() - now.keys(), place
        for key, value in then.items():
            holds(now[key], value, f"{place}/{key}")
    elif isinstance(then, list):
        assert isinstance(now, list) and len(now) == len(then), place
        for i, (one, other) in enumerate(zip(now, then, strict=True)):
            holds(one, other, f"{place}/{i}")
    else:
        assert now == then, place


def test_what_a_lake_says(lake):
    folder = CONTRACT / "lakes" / lake.parent.name
    said = lakes.said(lake, lake.parent / "half.json")
    assert set(said) == {path.stem.replace("-", " ") for path in folder.iterdir()} - {"lake", "lake state", "half"}
    for what, now in said.items():
        path = folder / what.replace(" ", "-")
        if what.startswith("read"):
            assert now == read_lines(path.with_suffix(".jsonl")), what
        else:
            holds(now, read_json(path.with_suffix(".json")), what)


def test_a_lake_is_written_on(lake):
    before = burler("lake", "read", lake).lines()
    rows = lakes.go_on(lake.parent.name, lake)
    after = burler("lake", "read", lake).lines()
    assert not counted(before) - counted(after)
    assert (counted(after) - counted(before)).total() == rows
    checked = burler("lake", "check", lake)
    assert checked.code == 0, checked
    read = burler("lake", "read", lake, "--state", lake.parent / "half.json")
    since_then = [row for row in read.lines() if row["type"] == "RECORD"]
    then = read_lines(CONTRACT / "lakes" / lake.parent.name / "read-since-half.jsonl")
    assert len(since_then) == rows + sum(row["type"] == "RECORD" for row in then)


def counted(messages: list[dict[str, Any]]) -> Counter[str]:
    return Counter(compact(message) for message in messages if message["type"] == "RECORD")
