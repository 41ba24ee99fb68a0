"""Messages of any tap from bytes."""

from __future__ import annotations

import io
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_lakes import in_memory

from burler.errors import LockLost, MessageError, UsageError
from burler.lake import LakeWriter, ingest, load, open_store, read_lines
from support.clocks import until
from support.internals import hashing

SCHEMA = {
    "type": "SCHEMA",
    "stream": "users",
    "schema": {"properties": {"id": {"type": "integer"}}},
    "key_properties": ["id"],
}
RECEIVED = "2024-01-02T12:00:00.000000Z"


def record(number: Any, **more: Any) -> dict[str, Any]:
    return {"type": "RECORD", "stream": "users", "record": {"id": number}, **more}


def state(value: Any) -> dict[str, Any]:
    return {"type": "STATE", "value": {"at": value}}


def lines(*messages: Any) -> bytes:
    return b"".join((m if isinstance(m, bytes) else json.dumps(m).encode()) + b"\n" for m in messages)


class Run:
    """One ingest into a lake, with its warnings."""

    def __init__(self, lake: Any, data: bytes, **settings: Any) -> None:
        self.warnings: list[str] = []
        self.lake = lake
        self.error: MessageError | None = None
        self.writer = lake.writer(**settings)
        try:
            self.done = ingest(io.BytesIO(data), self.writer, clock=lake.clock, warn=self.warnings.append)
        except MessageError as error:
            self.error = error

    @property
    def raw(self) -> list[bytes]:
        files = self.lake.load().files
        return [line for file in files for line in list(read_lines(self.lake.store, file.path))[1:]]


def test_a_run_of_a_tap(lake: Any) -> None:
    run = Run(lake, lines(SCHEMA, record(1), record(2), state(2), record(3), state(3)))
    assert lake.ids() == [1, 2, 3]
    assert lake.states == [{"at": 3}]
    assert (run.done.lines, run.done.records, run.warnings) == (6, {"users": 3}, [])
    assert {message["time_extracted"] for message in lake.messages()[1:]} == {RECEIVED}


def test_types_in_any_case(lake: Any) -> None:
    Run(
        lake,
        lines(
            {**SCHEMA, "type": "schema"},
            {**record(1), "type": "Record"},
            {**record(2), "type": "record"},
            {"type": "Activate_Version", "stream": "users", "version": 3},
            {**state(1), "type": "state"},
        ),
    )
    assert [message["type"] for message in lake.messages()] == ["SCHEMA", "RECORD", "RECORD", "ACTIVATE_VERSION"]
    assert lake.states == [{"at": 1}]
    assert lake.load().files[0].stats.activate_version == 3


@pytest.mark.parametrize(
    "body",
    [
        b'{"id": 1}',
        b'{ "id" :1.10 ,"x":1e400}',
        b'{"id":123456789012345678901234567890.123456789,"u":"\\u00e9\\/"}',
        '{"id":"é😀","y":{"b":1,"a":2,"a":3}}'.encode(),
        b'{"id":"\\ud800"}',
        b'{"id":"\\uDfff\\ud83d\\ude00\\ud83d x","\\ud801":1,"b":"\\\\ud800"}',
        b"{}",
    ],
)
def test_the_bytes_of_a_record_stay(lake: Any, body: bytes) -> None:
    run = Run(lake, lines(SCHEMA, b'{"record": ' + body + b' , "stream":"users","type":"RECORD"}'))
    assert run.raw == [
        b'{"type":"RECORD","stream":"users","record":' + body + b',"time_extracted":"' + RECEIVED.encode() + b'"}\n'
    ]


@pytest.mark.parametrize(
    ("given_time", "kept", "warns"),
    [
        (None, RECEIVED, False),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00.000000Z", False),
        ("2024-01-01T00:00:00.123456Z", "2024-01-01T00:00:00.123456Z", False),
        ("2024-01-01T02:00:00.5+02:00", "2024-01-01T00:00:00.500000Z", False),
        ("2024-01-01t02:00:00+0200", "2024-01-01T00:00:00.000000Z", False),
        ("2024-01-01 00:00:00.123456789Z", "2024-01-01T00:00:00.123456Z", False),
        ("2024-01-01T00:00:00", "2024-01-01T00:00:00.000000Z", True),
        ("2024-01-01T00:00:00.1", "2024-01-01T00:00:00.100000Z", True),
    ],
)
def test_time_extracted(lake: Any, given_time: str | None, kept: str, warns: bool) -> None:
    run = Run(lake, lines(SCHEMA, *[record(number, time_extracted=given_time) for number in range(3)]))
    assert {message["time_extracted"] for message in lake.messages()[1:]} == {kept}
    assert len(run.warnings) == warns
    (stats,) = [file.stats for file in lake.load().files]
    assert (stats.first, stats.last) == (kept, kept)


def test_times_of_each_record(lake: Any) -> None:
    times = [f"2024-01-01T00:00:0{second}+01:00" for second in (5, 2, 9)]
    Run(lake, lines(SCHEMA, *[record(n, time_extracted=text) for n, text in enumerate(times)]))
    assert [m["time_extracted"][11:19] for m in lake.messages()[1:]] == ["23:00:05", "23:00:02", "23:00:09"]
    assert lake.files()[0].name.startswith("users-20231231T230002Z-20231231T230009Z")


@pytest.mark.parametrize("text", ["yesterday", "", "2024-02-30T00:00:00Z", "0001-01-01T00:00:00+02:00", "1700000000"])
def test_a_time_that_is_none(lake: Any, text: str) -> None:
    run = Run(lake, lines(SCHEMA, record(1), record(2, time_extracted=text)))
    assert "line 3: time_extracted" in str(run.error)
    assert lake.ids() == [1]


def test_versions_stay(lake: Any) -> None:
    Run(lake, lines(SCHEMA, record(1, version=1), record(2, version=2), record(3)))
    assert [message.get("version") for message in lake.messages()[1:]] == [1, 2, None]
    assert lake.load().files[0].stats.versions == (1, 2)


def test_keys_no_message_has_stay_behind_the_others(lake: Any) -> None:
    run = Run(lake, lines(SCHEMA, record(1), record(2, _tap={"a": 1.50}, x=None), record(3)))
    assert lake.ids() == [1, 2, 3]
    assert run.raw[1].endswith(b'Z","_tap":{"a": 1.5},"x":null}\n')
    assert run.warnings == []


def test_streams_interleaved(lake: Any) -> None:
    orders = {**SCHEMA, "stream": "orders"}
    Run(lake, lines(SCHEMA, orders, *[{**record(n), "stream": ("users", "orders")[n % 3 == 0]} for n in range(30)]))
    assert lake.ids("orders") == list(range(0, 30, 3))
    assert lake.ids("users") == [n for n in range(30) if n % 3]


def test_the_schema_is_hashed_as_it_was_sent(lake: Any) -> None:
    body = (
        b'{"properties":{"id":{"$ref":"#/d/x","type":["null","integer"],'
        b'"multipleOf":1e-38,"maximum":9223372036854775807}}}'
    )
    Run(lake, lines(b'{"type":"SCHEMA","stream":"users","schema":' + body + b',"key_properties":[]}', record(1)))
    expected = (
        b'{"key_properties":[],"schema":{"properties":{"id":{"$ref":"#/d/x","maximum":9223372036854775807,'
        b'"multipleOf":1e-38,"type":["null","integer"]}}},"stream":"users","type":"SCHEMA"}'
    )
    assert lake.load().schema_lines == {hashing.schema_hash(expected): expected}


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        ({"key_properties": None}, []),
        ({}, []),
        ({"key_properties": "id"}, ["id"]),
        ({"key_properties": ["a", "b"]}, ["a", "b"]),
    ],
)
def test_loose_key_properties(lake: Any, keys: dict[str, Any], kept: list[str]) -> None:
    message = {key: value for key, value in SCHEMA.items() if key != "key_properties"}
    Run(lake, lines({**message, **keys, "bookmark_properties": []}, record(1)))
    assert lake.messages()[0]["key_properties"] == kept
    assert "bookmark_properties" not in lake.messages()[0]


def test_state_values_keep_their_digits(lake: Any) -> None:
    out: list[bytes] = []
    writer = LakeWriter(
        lake.store, "t", emit_state=lambda message: out.append(json.dumps(message.value, default=str).encode())
    )
    ingest(
        io.BytesIO(b'{"type":"STATE","value":{"a":1.10,"b":12345678901234567890123}}\n{"type":"STATE","value":null}\n'),
        writer,
    )
    assert out == [b'{"a": "1.10", "b": 12345678901234567890123}', b"null"]


def test_files_roll_inside_a_block_and_states_follow(lake: Any) -> None:
    messages = [SCHEMA]
    for number in range(100):
        messages += [record(number), state(number)]
    Run(lake, lines(*messages), max_file_records=10)
    assert lake.ids() == list(range(100))
    # A full file frees the STATE held so far; the next one finds nothing open and goes out at once.
    assert lake.states == [{"at": number} for number in range(100) if number % 10 in (8, 9)]


def test_lines_across_blocks(lake: Any) -> None:
    big = [record(n) | {"record": {"id": n, "t": "x" * 700_000}} for n in range(5)]
    huge = record(5) | {"record": {"id": 5, "t": "é" * 3_000_000}}
    Run(lake, lines(SCHEMA, *big, huge, record(6)))
    assert lake.ids() == list(range(7))


class Pieces(io.RawIOBase):
    """Bytes that arrive in pieces of these sizes, and then the rest."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self.left, self.sizes = data, list(sizes)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = min(self.sizes.pop(0) if self.sizes else len(self.left), len(buffer))
        piece, self.left = self.left[:size], self.left[size:]
        buffer[: len(piece)] = piece
        return len(piece)


@given(st.lists(st.integers(1, 400), max_size=8), st.booleans())
def test_however_the_bytes_arrive(sizes: list[int], ended: bool) -> None:
    data = lines(SCHEMA, record(1), b"", record(2, version=3), state(1), record(3, more=1), {"type": "X"}, record(4))
    states: list[Any] = []
    store = in_memory()
    writer = LakeWriter(store, "t", emit_state=lambda message: states.append(message.value))
    done = ingest(Pieces(data if ended else data[:-1], sizes), writer, warn=lambda text: None)
    assert (done.records, done.lines, states) == ({"users": 4}, 8, [{"at": 1}])
    rows = [json.loads(line) for file in load(store, "t", "users").files for line in read_lines(store, file.path)]
    assert [row["record"]["id"] for row in rows[1:]] == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["fd", "buffered", "raw"])
def test_files_roll_by_age_while_stdin_is_idle(tmp_path: Path, kind: str) -> None:
    read_end, write_end = os.pipe()
    source: Any = read_end if kind == "fd" else os.fdopen(read_end, "rb", -1 if kind == "buffered" else 0)
    states: list[Any] = []
    from burler.lake import RollSettings

    writer = LakeWriter(
        open_store(str(tmp_path)), "t", emit_state=states.append, settings=RollSettings(max_file_age_seconds=0.15)
    )
    worker = threading.Thread(target=ingest, args=(source, writer))
    worker.start()
    os.write(write_end, lines(SCHEMA, record(1), state(1)))
    until(lambda: states)
    assert len(list(tmp_path.rglob("*.singer.gz"))) == 1
    os.write(write_end, lines(record(2), state(2))[:-5])
    os.write(write_end, lines(record(2), state(2))[-5:])
    until(lambda: len(states) == 2)
    os.close(write_end)
    worker.join(10)
    assert not worker.is_alive()
    if kind == "fd":
        os.close(read_end)
    else:
        source.close()


def test_a_regular_file_is_read(lake: Any, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(lines(SCHEMA, *map(record, range(50_000)), state(1)))
    with path.open("rb") as source:
        ingest(source, lake.writer())
    assert lake.ids() == list(range(50_000))
    assert lake.states == [{"at": 1}]


def test_an_error_of_the_lake_gives_no_state(lake: Any) -> None:
    writer, other = lake.writer(), lake.writer(clock=lake.impatient())

    def meanwhile(text: str) -> None:
        from burler.singer.messages import Schema

        other.schema(Schema("users", SCHEMA["schema"], ("id",)))
        other.records(lake.page("users", 99))

    data = lines(SCHEMA, record(1), {"type": "WHAT"}, state(1), record(2))
    with pytest.raises(LockLost):
        ingest(io.BytesIO(data), writer, warn=meanwhile)
    assert lake.states == []
    other.close()
    assert lake.ids() == [99]


def test_a_stream_name_that_can_be_no_folder(lake: Any) -> None:
    with pytest.raises(UsageError):
        ingest(io.BytesIO(lines(SCHEMA, {**SCHEMA, "stream": "USERS"})), lake.writer())


def test_clean_is_found_out_for_foreign_records(lake: Any) -> None:
    for number, (body, clean) in enumerate(
        [(b'{"id":1}', True), (b'{"id":1.0}', False), (b'{"id":1,"x":2}', False), (b'{"id": 1}', True)]
    ):
        Run(lake, lines(SCHEMA, b'{"type":"RECORD","stream":"users","record":' + body + b"}"))
        assert lake.load().files[number].clean is clean


def test_rows_without_a_version_start_a_file_behind_an_activation(lake: Any) -> None:
    """Which of them an activation drops is told by files."""
    activation = {"type": "ACTIVATE_VERSION", "stream": "users", "version": 1}
    Run(lake, lines(SCHEMA, record(0), {**record(1), "version": 1}, activation, {**record(2), "version": 1}, record(3)))
    stats = [(file.stats.records, file.stats.activate_version) for file in lake.load().files]
    assert stats == [(3, 1), (1, None)]
    assert lake.ids() == [0, 1, 2, 3]
