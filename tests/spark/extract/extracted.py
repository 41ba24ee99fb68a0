"""Apps for extractions, each a file, and what a lake holds, read by hand."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from textwrap import dedent
from typing import Any

PARTS = """
import time
import burler

tap = burler.tap("tap-parts", {"token": "?"})
SOURCE = {"a": range(1, 40), "b": range(100, 130), "c": [], "d": [7]}
SCHEMA = {"properties": {"account": {"type": "string"}, "id": {"type": "integer"}}}

class Client:
    def __init__(self, token):
        import threading
        self.token, self.lock = token, threading.Lock()

@tap.client
def client(config):
    return Client(config["token"])

@tap.partitions("rows")
def accounts():
    return [{"account": name} for name in SOURCE]

@tap.sync("rows", key_properties=["account", "id"], replication_key="id", schema=SCHEMA)
def rows(client, stream, partition):
    with client.lock:
        for number in SOURCE[partition["account"]]:
            if stream.bookmark is None or number >= stream.bookmark:
                yield {"account": partition["account"], "id": number}

@tap.sync("plain", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
def plain():
    return [{"id": n} for n in range(20)]

@tap.partitions("shards")
def shards():
    return [{"shard": n} for n in range(3)]

@tap.sync("shards", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
def sharded(partition):
    return [{"id": partition["shard"] * 10 + n} for n in range(3)]
"""

FOREIGN = """
import json
import sys

args = sys.argv[1:]
STREAMS = ("one", "two", "bad")

def read(flag):
    return json.load(open(args[args.index(flag) + 1])) if flag in args else {}

def say(message):
    print(json.dumps(message), flush=True)

if "--help" in args:
    print("usage: [--config FILE] [--catalog FILE] [--state FILE] [--discover]")
elif "--discover" in args:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    meta = [{"breadcrumb": [], "metadata": {"inclusion": "available", "table-key-properties": ["id"]}}]
    say({"streams": [{"tap_stream_id": n, "stream": n, "schema": schema, "metadata": meta} for n in STREAMS]})
else:
    config, state = read("--config"), read("--state").get("bookmarks", {})
    for entry in read("--catalog")["streams"]:
        name = entry["stream"]
        if not any(one["metadata"].get("selected") for one in entry["metadata"] if not one["breadcrumb"]):
            continue
        begun = state.get(name, {}).get("id", 0)
        more = {"key_properties": ["id"], "bookmark_properties": ["id"]}  # which discovery does not say
        say({"type": "SCHEMA", "stream": name, "schema": entry["schema"], **more})
        for number in range(begun, begun + 3):
            say({"type": "RECORD", "stream": name, "record": {"id": number}})
        say({"type": "STATE", "value": {"bookmarks": {name: {"id": begun + 3}}}})
        if name == "bad":
            say({"type": "RECORD", "stream": name, "record": {"id": 99}})
            print("no answer for " + config["token"], file=sys.stderr)
            sys.exit(3)
"""


def app(folder: Path, source: str, name: str = "tap_extracted") -> Path:
    """An app as a file. Its name must be its own: workers keep modules."""
    path = folder / f"{name}.py"
    path.write_text(dedent(source))
    return path


def tap_of(path: Path) -> Any:
    """The tap of an app that is a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.tap


def committed(lake: Path, tap: str, stream: str) -> list[dict[str, Any]]:
    """The messages in the files that the stream's manifest names, in its order."""
    folder = lake / "raw" / tap / stream
    manifest = json.loads((folder / "manifest.json").read_text())
    texts = [gzip.decompress((folder / name).read_bytes()).decode() for name in manifest["files"]]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def rows_of(lake: Path, tap: str, stream: str) -> list[dict[str, Any]]:
    """The committed rows."""
    return [message["record"] for message in committed(lake, tap, stream) if message["type"] == "RECORD"]


def same_rows(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> bool:
    """Whether rows are the same, in whatever order."""
    return sorted(map(repr, one)) == sorted(map(repr, other))
