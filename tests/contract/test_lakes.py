"""A lake that c550d9f wrote is read as it was there, and is written on."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from contract import lakes
from contract.files import CONTRACT, compact, read_json, read_lines, several


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
    before = read_lines(CONTRACT / "lakes" / lake.parent.name / "read.jsonl")
    documents = {path: read_json(path) for path in (lake / "raw").rglob("*.json") if ".replaces." not in path.name}
    rows = lakes.go_on(lake.parent.name, lake)
    asked = (("read", lake), ("check", lake), ("read", lake, "--state", lake.parent / "half.json"))
    read, checked, read_on = several([("lake", *words) for words in asked])
    after = read.lines()
    assert not counted(before) - counted(after)
    assert (counted(after) - counted(before)).total() == rows
    assert checked.code == 0, checked
    since_then = [row for row in read_on.lines() if row["type"] == "RECORD"]
    then = read_lines(CONTRACT / "lakes" / lake.parent.name / "read-since-half.jsonl")
    assert len(since_then) == rows + sum(row["type"] == "RECORD" for row in then)
    for path, document in documents.items():
        check_form(path, document)


def check_form(path: Path, then: dict[str, Any]) -> None:
    """A JSON file of a lake has kept what it said, and what is new in it has the keys of its like."""
    now = read_json(path)
    assert not shape(then) - shape(now), path
    if path.name == "manifest.json":
        assert now["sequence"] > then["sequence"] and now["generation"] == then["generation"]
        assert now["files"][: len(then["files"])] == then["files"]
        for key in ("file_stats", "schemas", "versions"):
            holds(now[key], then[key], f"{path}: {key}")
        for key in ("file_stats", "schemas", "writers"):
            always = set.intersection(*map(set, then[key].values()))
            assert all(always <= entry.keys() for entry in now[key].values()), f"{path}: {key}"


def shape(node: Any, place: str = "") -> set[str]:
    """The places in a JSON text: names of files, schemas, writers and the like are all alike."""
    if isinstance(node, list):
        return {place}.union(*(shape(item, f"{place}[]") for item in node))
    if not isinstance(node, dict):
        return {place}
    names = place.endswith(("file_stats", "schemas", "versions", "writers", "properties"))
    return {place}.union(*(shape(item, f"{place}.*" if names else f"{place}.{key}") for key, item in node.items()))


def counted(messages: list[dict[str, Any]]) -> Counter[str]:
    return Counter(compact(message) for message in messages if message["type"] == "RECORD")
