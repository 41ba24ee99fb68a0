"""Odd lines of a tap, and what each command makes of them: the same, unless the table says why.

``lake write`` and ``batch pack`` look at every line, and end at one that is no message: it may be half a row, and no
STATE behind it may go out. ``batch expand`` and ``batch convert`` pass on what is no BATCH, and end only where a line
may be one; what becomes of the rest is the target's. ``verify`` tells what targets stumble over.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from piped import SCHEMA, batch, config, expanded, file, lines, record, rows, state

from burler.batch import convert, expand, pack
from burler.errors import MessageError
from burler.lake import LakeWriter, ingest, load, open_store, read_lines
from burler.spec import check_messages
from burler.testing import canary

READING = ("lake write", "batch pack")
PASSING = ("batch expand", "batch convert")
STRANGER = "it is no Singer message, and passes as it came; further ones without a word"


class Out(NamedTuple):
    """What a command gave: lines (of a lake: those of its files), values of STATEs, warnings, its error."""

    raw: bytes
    states: list[Any]
    warnings: list[str]
    error: str

    @property
    def ids(self) -> list[Any]:
        """Of all rows, those in files among them."""
        return [message["record"]["id"] for message in expanded(self.raw[:-1]).of("RECORD")]


def run(command: str, folder: Path, source: bytes | int, should_stop: Callable[[], bool] = lambda: False) -> Out:
    out: list[bytes] = []
    states: list[Any] = []
    warnings: list[str] = []
    error = ""
    given: Any = io.BytesIO(source) if isinstance(source, bytes) else source
    hooks: dict[str, Any] = {"warn": warnings.append, "should_stop": should_stop}
    store = open_store(str(folder / "lake"))
    try:
        if command == "lake write":
            ingest(given, LakeWriter(store, "t", emit_state=lambda message: states.append(message.value)), **hooks)
        elif command == "batch expand":
            expand(given, out.append, **hooks)
        else:
            {"batch pack": pack, "batch convert": convert}[command](given, out.append, config(folder), **hooks)
    except MessageError as found:
        error = str(found)
    if command == "lake write":
        out += [line for kept in load(store, "t", "users").files for line in read_lines(store, kept.path)]
    raw = b"".join(out)
    starts = (b'{"type": "STATE"', b'{"type":"STATE"')
    states += [json.loads(line).get("value") for line in raw.split(b"\n") if line.startswith(starts)]
    return Out(raw, states, warnings, error)


def row(body: bytes, more: bytes = b"") -> bytes:
    """A RECORD."""
    return b'{"type":"RECORD","stream":"users","record":' + body + more + b"}"


def a_batch(more: bytes = b"", stream: bytes = b'"users"') -> bytes:
    return b'{"type":"BATCH","stream":' + stream + b',"manifest":[]' + more + b"}"


DEEP = b'{"a":"batch, schema","b":' * 20_000 + b"1" + b"}" * 20_000
TAKEN, LEFT_OUT, PASSES = "taken", "left out", "passes"
MAY_BE = "it is no JSON, and may be a BATCH or a SCHEMA"

# line -> what those that read, those that pass on, and verify make of it: an error of the line, or one of the words.
LINES: list[tuple[bytes, str, str, list[str]]] = [
    (row(b'{"id":3}'), TAKEN, PASSES, []),
    (b"", LEFT_OUT, PASSES, ["M201"]),
    (b"  \t", LEFT_OUT, PASSES, ["M201"]),
    (b"\r", LEFT_OUT, PASSES, ["M201"]),
    (row(b'{"id":3}') + b"\r", TAKEN, PASSES, []),
    (b" " + row(b' {"id" : 3} ') + b" ", TAKEN, PASSES, []),
    (b'{"record": {"id":3} , "stream":"users","type":"Record"}', TAKEN, PASSES, ["M225"]),
    (b'{"record": {"id":3} , "stream":"users","type":"R\\u0045CORD"}', TAKEN, PASSES, []),
    (row(b'{"id":3}', b',"tap":{"a":1.50},"x":null'), TAKEN, PASSES, []),
    (row(b'{"id":2,"id":3}', b',"stream":"users"'), TAKEN, PASSES, []),
    (row(b'{"id":3,"name":"a BATCH of schemas \\u0042"}'), TAKEN, PASSES, []),
    # Halves of surrogate pairs are kept where they are bytes; a STATE and the name of a stream are texts.
    (row(b'{"id":3,"name":"batch \\ud800"}'), TAKEN, PASSES, ["M219"]),
    (b'{"type":"RECORD","stream":"\\ud800","record":{}}', "'stream' holds half of a", PASSES, ["M204", "M219"]),
    (b'{"type":"STATE","value":{"e":"\\ud800"}}', "holds half of a surrogate pair", PASSES, ["M219"]),
    (b'{"type":"SCHEMA","stream":"users","schema":{"x":"\\ud800"}}', "surrogate", PASSES, ["M219"]),
    # No JSON. What passes does so in peace where it may be one of a RECORD: targets have ends of their own.
    (row(b'{"id":3}')[:-1], "no JSON", PASSES, ["M201"]),
    (row(b'{"id":01}'), "no JSON", PASSES, ["M201"]),
    (row(b'{"id":NaN}'), "no JSON", PASSES, ["M201"]),
    (row(b'{"id":NaN,"name":"batch"}'), "no JSON", PASSES, ["M201"]),
    (row(b'{"id":3}') + b' {"type":"STATE","value":{}}', "no JSON", PASSES, ["M201"]),
    (row(b'{"id":"\\ud800"}')[:-1], "no JSON", PASSES, ["M201"]),
    (row(b'{"id":"\\ud800\x7f\x7f"}'), "no JSON", PASSES, ["M205", "M219"]),
    (row(b'{"id":3,"name":"batch \xff"}'), "not UTF-8", PASSES, ["M201"]),
    (row(b"[" * 100_000), "nested too deeply", PASSES, ["M201"]),
    (row(DEEP), "nested too deeply", PASSES, ["M201"]),
    (b"\xef\xbb\xbf" + row(b'{"id":3}'), "no JSON", STRANGER, ["M201"]),
    (b"loading users ...", "no JSON", STRANGER, ["M201"]),
    (b'{"type":"SCHEMA","stream":"users","schema":{"x":NaN}}', "no JSON", PASSES, ["M201"]),
    # What may be a BATCH, or the SCHEMA of one, passes by nobody.
    (b"BATCH", "no JSON", MAY_BE, ["M201"]),
    (a_batch()[:-1], "no JSON", MAY_BE, ["M201"]),
    (b'{"type":"SCHEMA","stream":"users"', "no JSON", MAY_BE, ["M201"]),
    (a_batch(b',"size":NaN'), "no JSON", "not a line of JSON", ["M201"]),
    (a_batch(b',"x":' + DEEP), "nested too deeply", "nested too deeply", ["M201"]),
    (
        a_batch(stream=b'"orders"'),
        "a BATCH of stream 'orders' came before its SCHEMA",
        "came before its SCHEMA",
        ["M204"],
    ),
    (a_batch(stream=b"5"), "no Singer message", "a BATCH without 'stream'", ["M202"]),
    (b'{"type":"BATCH","manifest":[]}', "a BATCH without 'stream'", "a BATCH without 'stream'", ["M202"]),
    # JSON, and no message.
    (b'["batch"]', "no Singer message", STRANGER, ["M202"]),
    (b"null", "no Singer message", STRANGER, ["M202"]),
    (b"{}", "no Singer message", PASSES, ["M202"]),
    (b'{"stream":"users","record":{"id":3}}', "no Singer message", PASSES, ["M202"]),
    (b'{"type":5}', "no Singer message", PASSES, ["M202"]),
    (b'{"type":["batch"]}', "no Singer message", PASSES, ["M202"]),
    (b'{"type":"RECORD","stream":5,"record":{}}', "no Singer message", PASSES, ["M202"]),
    (row(b"{}", b',"version":"x"'), "no Singer message", PASSES, ["M207"]),
    (row(b"{}", b',"version":100000000000000000000'), "no Singer message", PASSES, ["M207"]),
    (row(b"{}", b',"time_extracted":5'), "no Singer message", PASSES, ["M207"]),
    (b'{"type":"RECORD","record":{}}', "without 'stream'", PASSES, ["M202"]),
    (b'{"type":"RECORD","stream":"users"}', "must be a JSON object", PASSES, ["M202"]),
    (row(b"null"), "must be a JSON object", PASSES, ["M202"]),
    (row(b"[1]"), "must be a JSON object", PASSES, ["M202"]),
    (b'{"type":"RECORD","stream":"orders","record":{}}', "stream 'orders' came before its SCHEMA", PASSES, ["M204"]),
    (b'{"type":"ACTIVATE_VERSION","stream":"orders","version":1}', "before its SCHEMA", PASSES, ["M204"]),
    (b'{"type":"ACTIVATE_VERSION","stream":"users"}', "without 'version'", PASSES, ["M212"]),
    (
        b'{"type":"ACTIVATE_VERSION","stream":"a","version":100000000000000000000}',
        "no Singer message",
        PASSES,
        ["M204"],
    ),
    (b'{"type":"STATE"}', "without 'value'", PASSES, ["M202"]),
    (b'{"type":"SCHEMA","stream":"users"}', "must be a JSON object", PASSES, ["M216"]),
    (b'{"type":"SCHEMA","stream":"users","schema":[]}', "must be a JSON object", PASSES, ["M216"]),
    (b'{"type":"SCHEMA","schema":{}}', "without 'stream'", PASSES, ["M202"]),
    (b'{"type":"SCHEMA","stream":"users","schema":{},"key_properties":[1]}', "list of names", PASSES, ["M216"]),
]


@pytest.mark.parametrize(("line", "reading", "passing", "rules"), LINES, ids=lambda given: str(given)[:60])
def test_an_odd_line(tmp_path: Path, line: bytes, reading: str, passing: str, rules: list[str]) -> None:
    before = lines(SCHEMA, record(1), state(1), record(2))
    for ended, data in ((True, before + lines(line, record(4), state(4))), (False, before + line)):
        for command in READING:
            out = run(command, tmp_path / f"{command}{ended}", data)
            if reading not in (TAKEN, LEFT_OUT):
                assert out.error.startswith("line 5: ") and reading in out.error, command
                assert (out.ids, out.states) == ([1, 2], [state(1)["value"]]), "what came before is kept, nothing else"
                assert '"id"' not in out.error and shown(line) in out.error and len(out.error) < 400
                continue
            assert out.error == "", command
            assert out.ids == [1, 2, *([3] if reading == TAKEN else []), *([4] if ended else [])]
            assert [text[:35] for text in out.warnings] == (
                # They go into a lake. Batch files have no place for them.
                ["line 5: keys of a RECORD that no Sin"[:35]] if b'"tap"' in line and command == "batch pack" else []
            )
        for command in PASSING:
            out = run(command, tmp_path / f"{command}{ended}", data)
            if passing in (PASSES, STRANGER):
                assert (out.raw, out.error) == (data, ""), command
                assert out.warnings == ([f"line 5: {STRANGER}"] if passing == STRANGER else [])
            else:
                assert out.raw == before, command
                assert out.error.startswith("line 5: ") and passing in out.error
    found = {one.code for one in check_messages(before + lines(line)) if "line 5" in one.places}
    assert found >= set(rules) if rules else not found


def shown(line: bytes) -> str:
    """What an error shows of a line: no values of rows, nothing of a BATCH, which may name signed URLs."""
    head = re.match(rb'\{"type":"\w+",(?:"stream":"\w+",?)?', line)
    known = head[0] if head else b"" if b'"' in line or b"{" in line else line
    return "" if b"batch" in line.lower() else known.decode()


def test_a_type_that_nobody_knows(tmp_path: Path) -> None:
    """A lake has no place for it. What is passed on may be known to the target."""
    data = lines(
        SCHEMA, record(1), {"type": "LOG"}, {"type": "LOG", "x": "batch"}, {"type": "OTHER"}, record(2), state(1)
    )
    out = run("lake write", tmp_path, data)
    assert (out.ids, [text.partition(";")[0] for text in out.warnings]) == (
        [1, 2],
        [f"line {at}: messages of the unknown type {name} are skipped" for at, name in ((3, "'LOG'"), (5, "'OTHER'"))],
    )
    assert run("batch pack", tmp_path, data).raw.count(b'"LOG"') == 2
    for command in PASSING:
        assert run(command, tmp_path, data)[0::2] == (data, [])


@pytest.mark.parametrize("kind", [b"BATCH", b"batch", b"B\\u0041TCH"])
@pytest.mark.parametrize("command", [*READING, *PASSING])
def test_a_type_in_any_spelling(tmp_path: Path, command: str, kind: bytes) -> None:
    message = lines(batch(file(tmp_path / "a.jsonl", rows(2)), size=1)).replace(b"BATCH", kind)
    schema = lines(SCHEMA).replace(b'"SCHEMA"', b'"\\u0053chema"')
    out = run(command, tmp_path, schema + lines(record(1)) + message + lines({**state(1), "type": "State"}))
    assert (out.ids, out.error, out.warnings) == ([1, 2], "", [])
    assert run(command, tmp_path / "open", schema + lines(record(1)) + message[:-1]).ids == [1, 2]


@pytest.mark.parametrize("command", [*READING, *PASSING])
def test_told_to_stop_within_a_line(tmp_path: Path, command: str) -> None:
    """What is whole is taken; what may be broken off is left out."""
    reading, writing = os.pipe()
    asked: list[int] = []

    def should_stop() -> bool:
        asked.append(1)
        return len(asked) > 1

    os.write(writing, lines(SCHEMA, record(1), state(1)) + b'{"type":"REC')
    try:
        out = run(command, tmp_path, reading, should_stop)
    finally:
        os.close(writing)
        os.close(reading)
    assert (out.ids, out.states, out.error) == ([1], [state(1)["value"]], "")
    assert out.raw.endswith(b"\n")


@pytest.mark.parametrize("first", [b"hello", b"{}", b'{"type":5}', b'{"token":', b"  ", b"5"])
def test_input_that_begins_like_no_taps_passes_with_a_word(tmp_path: Path, first: bytes) -> None:
    for number, data in ((1, lines(first, state(1), b"hello")), (2, lines(b"", first, state(1), b"hello"))):
        out = run("batch expand", tmp_path, data)
        assert out.raw == data
        told = number if first.strip() and (number == 1 or not first.startswith(b"{")) else number + 2
        assert out.warnings == [f"line {told}: {STRANGER}"], "of the first alone"


def test_a_config_file_in_place_of_a_taps_output_shows_no_secret(tmp_path: Path) -> None:
    secret = canary("token")
    out = run("batch expand", tmp_path, b'{"token": "%s"}' % secret.encode())
    assert out.warnings == [f"line 1: {STRANGER}"]
