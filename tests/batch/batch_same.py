"""One tap run twice, as RECORDs and as BATCH, and everything that both must have in common."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import jsonschema
from batch_plain import exact, expected, path_of, rows_in, same

import burler.testing
from burler.batch import message_schema
from burler.singer.messages import Message, Records, State
from burler.testing import FakeClock, MemorySink, run_tap
from support.taps import warnings

Messages = list[dict[str, Any]]
ENCODINGS = [
    ("jsonl", "none"),
    ("jsonl", "gzip"),
    ("jsonl", "zstd"),
    ("csv", "none"),
    ("csv", "gzip"),
    ("csv", "zstd"),
    ("parquet", "zstd"),
    ("parquet", "none"),
    ("parquet", "snappy"),
    ("parquet", "gzip"),
    ("parquet", "lz4"),
    ("parquet", "brotli"),
    ("arrow", "none"),
    ("arrow", "zstd"),
    ("arrow", "lz4"),
]
FORMATS = [("jsonl", "gzip"), ("csv", "none"), ("parquet", "zstd"), ("arrow", "none")]


class Lines(MemorySink):
    """A sink that keeps RECORD lines as they are, every digit of them."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: Messages = []

    def write(self, message: Message) -> None:
        if isinstance(message, Records):
            self.messages += [exact(line) for line in bytes(message.lines).splitlines()]
        else:
            self.messages.append(json.loads(json.dumps(message.to_wire())))  # type: ignore[union-attr]
        if isinstance(message, State) and self._told is not None:
            self._told(message)


@dataclass
class Pair:
    """Both runs, and what the second was asked for."""

    records: Messages
    batches: Messages
    result: Any
    batch_result: Any
    form: str
    root: Path
    dialect: str
    said: list[str]
    batch_said: list[str]


def both(
    make: Callable[[], burler.Tap],
    encoding: tuple[str, str],
    root: Path,
    config: dict[str, Any] | None = None,
    *,
    batch_size: int = 3,
    clock: Callable[[], FakeClock] = FakeClock,
    options: Callable[[], dict[str, Any]] = dict,
    **settings: Any,
) -> Pair:
    """Run what ``make`` gives as RECORDs, and again as BATCH; ``options`` go to both runs, made anew for each.

    No time goes by in them unless ``clock`` says so: a machine that is busy makes no STATE come earlier.
    """
    with warnings() as said, mock.patch.object(burler.testing, "MemorySink", Lines):
        first = run_tap(make(), dict(config or {}), clock=clock(), **options())
    asked = {
        "encoding": {"format": encoding[0], "compression": encoding[1]},
        "storage": {"root": str(root)},
        "batch_size": batch_size,
        "dialect": "sip",  # the one that keeps ACTIVATE_VERSION
        **settings,
    }
    with warnings() as also:
        out = run_tap(make(), {**(config or {}), "batch_config": asked}, clock=clock(), **options())
    return Pair(first.messages, out.messages, first.result, out.result, encoding[0], root, asked["dialect"], said, also)


def check(pair: Pair, *, order: bool = True, shuffled: bool = False) -> Pair:
    """Hold both runs against each other.

    Args:
        order: STATEs and warnings come in one order (not so with workers).
        shuffled: nor do the rows of one stream.
    """
    schemas = {m["stream"]: m["schema"] for m in pair.records if m["type"] == "SCHEMA"}
    streams = {m["stream"] for m in pair.batches if m["type"] == "BATCH"}
    assert streams == {m["stream"] for m in pair.records if m["type"] == "RECORD"}
    assert not [m for m in pair.batches if m["type"] == "RECORD"], "never rows of both kinds"
    check_messages(pair)
    for stream, schema in schemas.items():
        wanted, found = _story(pair, pair.records, stream, schema), _story(pair, pair.batches, stream, schema)
        assert len(wanted) == len(found), stream
        if shuffled:
            wanted, found = sorted(wanted, key=repr), sorted(found, key=repr)
        for one, other in zip(wanted, found, strict=True):
            assert same(one, other), (stream, one, other)
    assert _plain(states(pair.batches)[-1:]) == _plain(states(pair.records)[-1:])
    if order:
        never_ahead(pair)
    assert pair.batch_result.rows == pair.result.rows
    assert _errors(pair.batch_result) == _errors(pair.result)
    assert pair.batch_said == pair.said or not order
    return pair


def check_messages(pair: Pair) -> None:
    """Each message fits its JSON Schema; each file is there, as big as it says, named once; nothing else is there."""
    kinds = [message_schema(), message_schema()["definitions"][pair.dialect]]
    named: list[Path] = []
    seen: set[str] = set()
    for message in pair.batches:
        if message["type"] == "SCHEMA":
            seen.add(message["stream"])
        if message["type"] != "BATCH":
            continue
        for schema in kinds:
            jsonschema.Draft4Validator(schema).validate(json.loads(json.dumps(message)))
        assert message["stream"] in seen, "SCHEMA first"
        (path,) = map(path_of, message["manifest"])
        named.append(path)
        assert re.fullmatch(r"[A-Za-z0-9_./-]+", str(path)), path
        if "file_stats" in message:
            assert message["file_stats"] == [{"records": message["size"], "bytes": path.stat().st_size}]
    assert len(set(named)) == len(named)
    assert sorted(named) == sorted(path for path in pair.root.rglob("*") if path.is_file())


def _story(pair: Pair, messages: Messages, stream: str, schema: dict[str, Any]) -> list[Any]:
    """All that is said of a stream, in order: SCHEMAs, rows with their versions, ACTIVATE_VERSIONs."""
    numbers = _versions(messages)
    story: list[Any] = []
    for message in messages:
        if message.get("stream") != stream:
            continue
        version = numbers.get(message.get("version"))
        if message["type"] == "SCHEMA":
            schema = message["schema"]
            story.append(("SCHEMA", {name: value for name, value in message.items() if name != "stream"}))
        elif message["type"] == "ACTIVATE_VERSION":
            story.append(("ACTIVATE_VERSION", version))
        elif message["type"] == "RECORD":
            story.append((expected(message["record"], pair.form, schema), version))
        else:
            rows = rows_in(path_of(message["manifest"][0]), pair.form, schema)
            assert len(rows) == message.get("size", len(rows)) > 0
            story += [(row, version) for row in rows]
    return [list(part) for part in story]


def states(messages: Messages) -> list[dict[str, Any]]:
    return [m["value"] for m in messages if m["type"] == "STATE"]


def _versions(messages: Messages) -> dict[Any, int]:
    """Versions are made of the clock: counted from 1."""
    seen = {m["version"] for m in messages if "version" in m}
    seen |= {int(found) for found in re.findall(r'"version": (\d{13})\b', json.dumps(states(messages)))}
    return {version: number for number, version in enumerate(sorted(seen), 1)}


def _plain(given: list[dict[str, Any]]) -> list[str]:
    numbers = sorted(set(re.findall(r'"version": (\d{13})\b', json.dumps(given))))
    texts = [json.dumps(state, sort_keys=True) for state in given]
    for number, version in enumerate(numbers, 1):
        texts = [text.replace(f'"version": {version}', f'"version": {number}') for text in texts]
    return texts


def never_ahead(pair: Pair) -> None:
    """Each STATE of the BATCH run is one of the RECORD run, and no row that stands before it there is missing here."""
    covered: list[tuple[str, dict[str, int]]] = []
    count: dict[str, int] = {}
    for message in pair.records:
        if message["type"] == "RECORD":
            count[message["stream"]] = count.get(message["stream"], 0) + 1
        if message["type"] == "STATE":
            covered.append((_unversioned(message["value"]), dict(count)))
    count = {}
    for message in pair.batches:
        if message["type"] in ("BATCH", "RECORD"):
            count[message["stream"]] = count.get(message["stream"], 0) + message.get("size", 1)
        if message["type"] == "STATE":
            text = _unversioned(message["value"])
            needs = [rows for state, rows in covered if state == text]
            assert needs, f"no STATE of the RECORD run: {text}"
            assert any(all(count.get(name, 0) >= rows for name, rows in need.items()) for need in needs), text


def _unversioned(state: dict[str, Any]) -> str:
    return re.sub(r'"version": \d+', '"version": 1', json.dumps(state, sort_keys=True))


def _errors(result: Any) -> dict[str, str]:
    return {name: str(error) for name, error in result.errors.items()}
