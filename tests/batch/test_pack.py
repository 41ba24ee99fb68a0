"""``burler.batch.pack``: RECORDs of any tap into batch files (BATCH proposal)."""

from __future__ import annotations

import errno
import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from piped import SCHEMA, TIME, Piped, batch, config, file, lines, packed, parsed, record, rows, state

from burler.batch import pack
from burler.errors import BatchError, StorageError

ORDERS = {**SCHEMA, "stream": "orders"}


def content(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a BATCH of plain JSON lines."""
    return [row for url in message["manifest"] for row in parsed(Path(url.removeprefix("file://")).read_bytes())]


def ids(out: Piped, stream: str | None = None) -> list[int]:
    """What stands in the files, in the order of messages."""
    return [row["id"] for message in out.of("BATCH", stream) for row in content(message)]


def kinds(out: Piped) -> list[str]:
    return [message["type"] for message in out.messages]


def test_a_run_of_a_tap(tmp_path: Path) -> None:
    out = packed(config(tmp_path, batch_size=2), SCHEMA, *(record(n) for n in range(5)), state(4), tap="tap-x")
    assert kinds(out) == ["SCHEMA", "BATCH", "BATCH", "BATCH", "STATE"]
    assert out.messages[0] == SCHEMA
    assert out.messages[-1] == state(4)
    assert ids(out) == [0, 1, 2, 3, 4]
    assert [message["size"] for message in out.of("BATCH")] == [2, 2, 1]
    assert all(Path(message["manifest"][0]).name.startswith("tap-x--users-") for message in out.of("BATCH"))
    assert (out.done.lines, out.done.records, out.warnings) == (7, {"users": 5}, [])


def test_rows_keep_their_bytes(tmp_path: Path) -> None:
    row = '{ "id" : 1.0e2,\t"n": 12345678901234567890123.450, "t":"\\u00e9é\\ud83d","d":{"b":[],"a":null} }'
    line = f'{{"record":{row}, "stream":"users","type":"record","x":1}}'.encode()
    out = packed(config(tmp_path), SCHEMA, line)
    (message,) = out.of("BATCH")
    assert Path(message["manifest"][0].removeprefix("file://")).read_bytes() == row.encode() + b"\n"
    assert out.warnings[0].startswith("line 2: keys of a RECORD that no Singer message has")


def test_the_earliest_time_counts(tmp_path: Path) -> None:
    times = ["2024-01-02T03:04:06Z", None, "2024-01-02T05:04:05+02:00", "2024-01-03T00:00:00Z"]
    records = [record(n, **({"time_extracted": time} if time else {})) for n, time in enumerate(times)]
    assert packed(config(tmp_path), SCHEMA, *records).of("BATCH")[0]["time_extracted"] == TIME
    assert "time_extracted" not in packed(config(tmp_path), SCHEMA, record(1)).of("BATCH")[0]


def test_versions_have_files_of_their_own(tmp_path: Path) -> None:
    activate = {"type": "ACTIVATE_VERSION", "stream": "users", "version": 2}
    messages = [SCHEMA, record(1), record(2, version=1), record(3, version=2), activate, record(4)]
    out = packed(config(tmp_path, activate_version=True), *messages)
    assert kinds(out) == ["SCHEMA", "BATCH", "BATCH", "BATCH", "ACTIVATE_VERSION", "BATCH"]
    assert [message.get("version") for message in out.of("BATCH")] == [None, 1, 2, None]
    assert ids(out) == [1, 2, 3, 4]
    out = packed(config(tmp_path), *messages)
    assert kinds(out) == ["SCHEMA", "BATCH", "BATCH", "BATCH", "BATCH"], "other targets would drop all rows"


def test_streams_interleaved_keep_their_order(tmp_path: Path) -> None:
    records = [record(n, ("users", "orders")[n % 3 == 0]) for n in range(60)]
    out = packed(config(tmp_path, batch_size=7), SCHEMA, ORDERS, *records, state(1))
    assert ids(out, "orders") == list(range(0, 60, 3))
    assert ids(out, "users") == [n for n in range(60) if n % 3]
    assert kinds(out)[-1] == "STATE"


def test_a_state_waits_for_the_files_before_it(tmp_path: Path) -> None:
    messages = [message for n in range(6) for message in (record(n), state(n))]
    out = packed(config(tmp_path, batch_size=4), SCHEMA, *messages)
    assert [kind for kind in kinds(out) if kind != "SCHEMA"] == ["BATCH", "STATE", "STATE", "BATCH", "STATE"]
    assert [message["value"]["at"] for message in out.of("STATE")] == [2, 3, 5]


def test_what_is_no_record_keeps_its_place(tmp_path: Path) -> None:
    other = b'{"type":"LOG" , "text":"x"}'
    url = file(tmp_path / "given.parquet", b"whatever it is")
    mine = json.dumps({**batch(url), "format": {"name": "avro"}, "more": [1.50]}).encode()
    out = packed(
        config(tmp_path / "out"), SCHEMA, ORDERS, record(1), record(9, "orders"), mine, record(2), other, record(3)
    )
    assert kinds(out) == ["SCHEMA", "SCHEMA", "BATCH", "BATCH", "BATCH", "BATCH", "LOG", "BATCH"]
    found = out.raw.split(b"\n")
    assert found[3] == mine
    assert found[6] == other
    assert [m["stream"] for m in out.of("BATCH")] == ["users", "users", "orders", "users", "users"]


def test_a_changed_schema_begins_a_file(tmp_path: Path) -> None:
    other = {**SCHEMA, "schema": {"properties": {"id": {"type": "integer"}}}}
    out = packed(config(tmp_path), SCHEMA, record(1), SCHEMA, record(2), other, record(3))
    assert [len(content(message)) for message in out.of("BATCH")] == [2, 1]
    assert kinds(out)[-3:] == ["BATCH", "SCHEMA", "BATCH"]


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_a_value_that_its_column_cannot_hold(tmp_path: Path, form: str) -> None:
    schema = {**SCHEMA, "schema": {"properties": {"id": {"type": "integer"}, "name": {"type": "integer"}}}}
    bad = {**record(2), "record": {"id": 2, "name": {"no": "number"}}}
    good = {**record(1), "record": {"id": 1, "name": 1}}
    out = packed(config(tmp_path, form, batch_size=1), schema, good, state(1), bad, state(2))
    assert isinstance(out.error, BatchError), out.error
    assert "stream 'users'" in str(out.error)
    assert "name" in str(out.error)
    assert out.of("STATE") == [state(1)]
    assert len(out.of("BATCH")) == 1
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


DATES = {"day": {"type": ["null", "string"], "format": "date"}, "at": {"type": "string", "format": "date-time"}}


@pytest.mark.parametrize("field", DATES)
@pytest.mark.parametrize("text", ["", " ", "\t\r\n", "\u00a0", "NULL", "0000-00-00"])
def test_blank_text_in_a_date_field_is_no_null(tmp_path: Path, field: str, text: str) -> None:
    """Readers take nothing in quotes for null there, so csv has no form for it."""
    options = {"null": text} if text.strip() else {}
    given = config(tmp_path, "csv")
    given = replace(given, encoding=replace(given.encoding, format_options=options))
    schema = {"type": "SCHEMA", "stream": "users", "schema": {"properties": DATES}, "key_properties": []}
    row = {"day": "2024-01-02", "at": "2024-01-02T03:04:05Z", field: text}
    out = packed(given, schema, {"type": "RECORD", "stream": "users", "record": row})
    assert f"stream 'users': field '{field}': " in str(out.error)
    assert "can't stand in its csv column: it is no date, and would be read as null" in str(out.error)
    assert not out.of("BATCH")


def test_a_store_that_fails_ends_the_run_without_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    out = packed(config(tmp_path), SCHEMA, record(1), state(1))
    assert isinstance(out.error, StorageError)
    assert kinds(out) == ["SCHEMA"]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_files_end_by_age_while_the_tap_is_silent(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    out: list[bytes] = []
    given = config(tmp_path, batch_age_seconds=0.2)
    thread = threading.Thread(target=lambda: pack(reading, out.append, given))
    thread.start()
    try:
        os.write(writing, lines(SCHEMA, record(1), state(1)))
        for _ in range(300):
            if b'"STATE"' in b"".join(out):
                break
            thread.join(0.05)
        assert [message["type"] for message in parsed(b"".join(out))] == ["SCHEMA", "BATCH", "STATE"]
    finally:
        os.close(writing)
        thread.join(10)
        os.close(reading)


def test_a_store_given_by_a_file_url(tmp_path: Path) -> None:
    given = config(tmp_path, storage={"root": f"file://{tmp_path}/out", "prefix": "crm/a-"})
    out = packed(given, SCHEMA, record(1))
    assert out.of("BATCH")[0]["manifest"][0].startswith(f"file://{tmp_path}/out/crm/a-tap--users-")
    assert rows(1).replace(b" ", b"") == Path(out.of("BATCH")[0]["manifest"][0][7:]).read_bytes().replace(b" ", b"")
