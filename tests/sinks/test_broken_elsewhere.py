"""A stream breaks, and another one's rows are on their way into a lake or into files of BATCH: what was written stays
readable, each row is there once, nothing is half there, and the next run brings the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from burler.batch import read
from support.cli import Ended, burler

SOURCE = """
import os
import threading

import burler
from burler.errors import StorageError

tap = burler.tap("tap-x")
OPTIONS = {"key_properties": "id", "replication_key": "id", "order": "asc", "bookmark_strategy": "every_n(10)"}
SCHEMA = {"properties": {"id": {"type": "integer"}}}
half, broken = threading.Event(), threading.Event()
BREAKS = {
    "exception": ValueError("no such thing"), "exit": SystemExit("enough"), "memory": MemoryError(),
    "disk": StorageError("the disk of the source is gone"), "": None,
}

@tap.sync("good", schema=SCHEMA, **OPTIONS)
def good(stream):
    for number in range(stream.bookmark or 0, 100):
        if number == 55 and os.environ["BREAKS"]:
            half.set()
            broken.wait(20)
        yield {"id": number}

@tap.sync("bad", schema=SCHEMA, **OPTIONS)
def bad(stream):
    for number in range(stream.bookmark or 0, 60):
        if number == 33 and (error := BREAKS[os.environ["BREAKS"]]):
            half.wait(20)
            broken.set()
            raise error
        yield {"id": number}
"""


class Lake:
    """Rows as the lake's own commands give them."""

    flags = ("--sink", "lake:out")

    def __init__(self) -> None:
        self.config = {"max_file_records": 20}

    def rows(self, _done: Ended, folder: Path) -> dict[str, list[int]]:
        """What the manifests name; no other file is there, hidden or not, and nobody holds a lock."""
        given = burler("lake", "read", "out", cwd=folder)
        assert given.code == 0, given.stderr
        named = [
            path.parent / name
            for path in folder.glob("out/raw/*/*/manifest.json")
            for name in json.loads(path.read_text())["files"]
        ]
        found = folder.glob("out/raw/*/*/*/*")
        there = [path for path in found if not path.name.startswith(".singerlake.lock.")]  # these stay, and hold nobody
        assert sorted(named) == sorted(there)
        check = burler("lake", "check", "out", cwd=folder)
        assert check.code == 0, check.text + check.stderr
        return ids(given.messages)


class Batches:
    """Rows as the messages name them."""

    flags = ("--batch",)

    def __init__(self, form: str) -> None:
        self.config = {"batch_config": {"encoding": {"format": form}, "storage": {"root": "out"}, "batch_size": 20}}
        self.earlier: set[str] = set()

    def rows(self, done: Ended, folder: Path) -> dict[str, list[int]]:
        """What the messages name; no other file is there, hidden or not."""
        named = [name for message in done.messages for name in message.get("manifest", [])]
        assert {Path(name).name for name in named} >= {path.name for path in (folder / "out").iterdir()} - self.earlier
        self.earlier = {path.name for path in (folder / "out").iterdir()}
        rows = []
        for message in done.messages:
            if message["type"] == "BATCH":
                found = list(read(message).rows())
                assert len(found) == message["size"]
                rows += [{"type": "RECORD", "stream": message["stream"], "record": row} for row in found]
        return ids(rows)


def ids(messages: list[dict[str, Any]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {"good": [], "bad": []}
    for message in messages:
        if message["type"] == "RECORD":
            found[message["stream"]].append(int(message["record"]["id"]))
    return found


def bookmark(done: Ended, stream: str) -> int:
    states = [message["value"] for message in done.messages if message["type"] == "STATE"]
    entry = states[-1].get("bookmarks", {}).get(stream, {}) if states else {}
    return int(entry.get("id", -1))


@pytest.mark.parametrize("breaks", ["exception", "exit", "memory", "disk"])
@pytest.mark.parametrize(
    "target", [Lake(), Batches("jsonl"), Batches("parquet")], ids=["lake", "batch-jsonl", "batch-parquet"]
)
def test_what_was_written_stays_and_the_rest_comes_next_time(tmp_path: Path, target: Any, breaks: str) -> None:
    (tmp_path / "tap_x.py").write_text(SOURCE)
    (tmp_path / "config.json").write_text(json.dumps({"workers": 2, "page_max_rows": 10, **target.config}))
    given = ("run", "tap_x.py", "--config", "config.json", *target.flags)
    done = burler(*given, cwd=tmp_path, BREAKS=breaks)
    assert done.code == 1, done.stderr
    assert "Traceback" not in done.stderr
    first = target.rows(done, tmp_path)
    for stream, found in first.items():
        assert found == list(range(len(found))), "in order, each once"
        assert bookmark(done, stream) < len(found), "STATE says no more than what is there"
    assert len(first["good"]) >= 40 and len(first["bad"]) >= 20, "what was whole before it broke"
    if breaks in ("exception", "exit"):  # the other stream goes on
        assert (len(first["good"]), len(first["bad"])) == (100, 33)

    states = [message["value"] for message in done.messages if message["type"] == "STATE"]
    (tmp_path / "state.json").write_text(json.dumps(states[-1]))
    rest = burler(*given, "--state", "state.json", cwd=tmp_path, BREAKS="")
    assert rest.code == 0, rest.stderr
    second = target.rows(rest, tmp_path)
    for stream, count in (("good", 100), ("bad", 60)):
        again = list(range(max(0, bookmark(done, stream)), count))
        if isinstance(target, Lake):
            assert second[stream] == [*first[stream], *again]
        else:
            assert second[stream] == again
        assert set(first[stream]) | set(second[stream]) == set(range(count))
