"""BATCH messages of c550d9f, with their files: the rows that it read in them."""

from __future__ import annotations

import json

import pytest
from contract import batches
from contract.files import CONTRACT, read_lines


@pytest.fixture(params=batches.WAYS)
def way(request):
    """A way of BATCH; what stands for the files' folder in its messages is the folder where they are now."""
    text = (CONTRACT / "batch" / f"{request.param}.jsonl").read_text()
    return request.param, text.replace(batches.HOME, f"file://{CONTRACT / 'batch' / request.param}")


def test_messages_are_expanded(way):
    name, text = way
    assert batches.expanded(text) == read_lines(CONTRACT / "batch" / f"{name}-expanded.jsonl")


def test_messages_are_read(way):
    name, text = way
    assert batches.read(text) == read_lines(CONTRACT / "batch" / f"{name}-read.jsonl")


def test_messages_are_written_as_they_were(way, tmp_path):
    """Which keys a message has in each dialect, and what the files are called."""
    name, _text = way
    kept, _messages = batches.make(name, tmp_path / "x")
    then = read_lines(CONTRACT / "batch" / f"{name}.jsonl")
    assert [keys(json.loads(line)) for line in kept.splitlines()] == [keys(message) for message in then]


def keys(message):
    """What of a message is the same in each run."""
    files = [path.rpartition("/")[2].rsplit("-", 2)[0] for path in message.get("manifest", [])]
    kept = {key: value for key, value in message.items() if key in ("type", "stream", "size", "schema", "encoding")}
    more = {key: message.get(key) for key in ("format", "compression", "key_properties", "bookmark_properties")}
    return [sorted(message), files, kept, more]
