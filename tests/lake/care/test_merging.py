r"""Rows of a compacted file: counted by the beginnings of lines, they are as many as decoding each line says."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from care_lakes import document, fill, put, save

from burler.lake import care

PLAIN = b'{"type":"RECORD","stream":"users","record":{"id":1},"time_extracted":"2024-01-02T12:01:00.000000Z"}'
LINES = {
    "plain": PLAIN,
    "of another stream": PLAIN.replace(b"users", b"others"),
    "small letters": PLAIN.replace(b"RECORD", b"record"),
    "spaces": json.dumps(json.loads(PLAIN)).encode(),
    "type at the end": b'{"stream":"users","record":{"id":1},"type":"RECORD"}',
    "an escaped type": PLAIN.replace(b"RECORD", rb"\u0052ECORD"),
    "a row that holds a line": PLAIN.replace(b"1}", rb'"\n{\"type\":\"RECORD\",\"stream\":\"users\"}"}'),
    "a row with a RECORD in it": PLAIN.replace(b'"id":1', b'"id":{"type":"RECORD","stream":"users"}'),
    "half a pair": PLAIN.replace(b"1}", rb'"\ud800"}'),
    "very deep": PLAIN.replace(b"1}", b"[" * 50_000 + b"]" * 50_000 + b"}"),
    "activate_version": b'{"type":"ACTIVATE_VERSION","stream":"users","version":3}',
    "a type that begins so": b'{"type":"RECORDS","stream":"users"}',
    "state": b'{"type":"STATE","value":{"type":"RECORD","a":1}}',
    "a state that holds a line": rb'{"type":"STATE","value":"\n{\"type\":\"RECORD\",\"stream\":\"users\"}"}',
}
OTHERS = {"activate_version", "a type that begins so", "state", "a state that holds a line"}
"""What is no row."""


@pytest.mark.parametrize("deep", [False, True])
def test_what_rebuild_counted_compact_counts_again(lake: Any, deep: bool) -> None:
    """Rebuild decodes each line; a file with another number of rows than it has noted would not be compacted."""
    chosen = [name for name in LINES if (name == "very deep") == deep]
    for at, name in enumerate(chosen):
        lake.tap_id = f"tap-{at}"
        for number, some in enumerate([(PLAIN, LINES[name]), (LINES[name], PLAIN, LINES[name])], 1):
            path = put(lake, "users", f"users-{{times}}-{number}.singer", [], lake.clock.moment, lake.schema())
            path.write_bytes(path.read_bytes() + b"".join(line + b"\n" for line in some))
    counted = {chosen[int(one.tap_id[4:])]: one.records for one in care.rebuild(lake.store).streams}
    done = care.compact(lake.store)
    assert {one.tap_id: one.problems for one in done.streams if one.problems} == {}
    compacted = {chosen[int(one.tap_id[4:])]: sum(file.records for file in one.files) for one in done.streams}
    assert counted == {name: 2 if name in OTHERS else 5 for name in chosen}
    assert compacted == {**counted, **({} if deep else {"activate_version": 0})}  # that ends a file


@pytest.mark.parametrize("line", [b"", b"{}", b"[1]", b'{"type":1}', b'{"type":"RECORD"', b'{"type":"STATE"} x'])
def test_a_line_that_is_no_message_leaves_its_group_as_it_is(lake: Any, line: bytes) -> None:
    path = changed(lake, line)

    (done,) = care.compact(lake.store).streams

    assert (done.before, done.after) == (2, 2)
    assert path in done.problems[0] and "no Singer message" in done.problems[0]
    assert "burler lake check" in done.problems[0]


def test_what_stands_behind_the_beginning_of_a_row_is_kept_as_it_is_and_told_by_check(lake: Any) -> None:
    """As ``lake read``, it goes by the beginning of a line: a row that is torn stays in the lake, byte for byte."""
    torn = b'{"type":"RECORD","stream":"users","record":{"id":'
    changed(lake, torn)

    (done,) = care.compact(lake.store).streams

    assert (done.after, done.problems) == (1, ())
    (file,) = lake.load().files
    assert gzip.decompress((lake.path / file.path).read_bytes()).splitlines()[2] == torn
    assert [one.kind for one in care.check(lake.store).findings] == ["message"]


def changed(lake: Any, line: bytes) -> str:
    """Two files, with this line as the second row of the first, and a manifest that agrees."""
    fill(lake, 2, 2)
    path = lake.files()[0]
    lines = gzip.decompress(path.read_bytes()).splitlines()
    data = b"".join(one + b"\n" for one in (*lines[:2], line))
    path.write_bytes(gzip.compress(data))
    wire = document(lake)
    (name,) = (one for one in wire["files"] if one.endswith(path.name))
    wire["file_stats"][name] |= {"bytes": len(data), "stored_bytes": path.stat().st_size}
    save(lake, wire)
    return path.name
