"""When files of BATCH end, what their messages say, and which STATE may go: of runs, and of ``pack``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from piped import SCHEMA, Piped, config, lines, packed, record, state

import burler
from burler.batch import pack, read
from burler.errors import OutputClosed, StorageError
from burler.testing import FakeClock, run_tap


class Source:
    """Lines one by one; a number lets so many seconds go by."""

    def __init__(self, clock: FakeClock, given: tuple[Any, ...]) -> None:
        self.clock, self.given = clock, list(given)

    def read(self, _size: int) -> bytes:
        while self.given and isinstance(self.given[0], int):
            self.clock.advance(self.given.pop(0))
        return lines(self.given.pop(0)) if self.given else b""


def seen(out: Piped) -> list[Any]:
    """What went out: ids of rows in files, values of STATEs, and types of the rest."""
    found: list[Any] = []
    for message in out.messages:
        if message["type"] == "BATCH":
            found.append([row["id"] for row in read(message).rows()])
        else:
            found.append(message["value"]["at"] if message["type"] == "STATE" else message["type"])
    return found


def timed(folder: Path, *given: Any, **more: Any) -> list[Any]:
    clock = FakeClock()
    out = Piped(pack, Source(clock, given), config(folder, **more), clock=clock)
    assert out.error is None, out.error
    return seen(out)


@pytest.mark.parametrize(
    ("more", "given", "wanted"),
    [
        ({}, [record(1), record(2), state(2)], [[1, 2], 2]),
        ({"batch_size": 2}, [record(1), record(2), record(3), state(3), record(4)], [[1, 2], [3, 4], 3]),
        ({"batch_bytes": 50}, [record(1), record(2), record(3)], [[1, 2], [3]]),
        ({"batch_bytes": 5}, [record(1), record(2)], [[1], [2]]),
        ({"batch_age_seconds": 10}, [record(1), state(1), 9, state(2), 1, record(3)], [[1], 2, [3]]),
        ({"batch_age_seconds": 10}, [record(1), 10, state(1)], [[1], 1]),
        ({}, [state(1)], [1]),
        ({}, [record(1), state(1), record(2), state(2)], [[1, 2], 2]),
    ],
    ids=["end", "rows", "bytes", "a big row", "age", "age by a state", "nothing waits", "the newest"],
)
def test_when_a_file_ends_and_its_state_comes(
    tmp_path: Path, more: dict[str, Any], given: list[Any], wanted: list[Any]
) -> None:
    assert timed(tmp_path, SCHEMA, *given, **more) == ["SCHEMA", *wanted]


def test_a_stream_that_is_always_open_holds_back_no_state_for_ever(tmp_path: Path) -> None:
    other = {**SCHEMA, "stream": "other"}
    given = (record(1), state(1), record(9, "other"), state(9), record(2))
    assert timed(tmp_path, SCHEMA, other, *given, batch_size=2) == ["SCHEMA", "SCHEMA", [1, 2], 1, [9], 9]


def test_files_end_in_the_order_in_which_they_were_begun(tmp_path: Path) -> None:
    names = ["b", "c", "a"]
    out = packed(
        config(tmp_path), *({**SCHEMA, "stream": name} for name in names), *(record(1, name) for name in names)
    )
    assert [message["stream"] for message in out.of("BATCH")] == names


def test_the_message_says_what_the_file_holds(tmp_path: Path) -> None:
    given = config(tmp_path, encoding={"format": "jsonl", "compression": "gzip", "compression_options": {"level": 1}})
    times = [{"time_extracted": f"2024-01-02T12:00:0{second}Z"} for second in (5, 0, 1)]
    out = packed(given, SCHEMA, *(record(n, version=7, **times[n]) for n in range(3)), tap="tap-t", run_id="r")
    (path,) = tmp_path.iterdir()
    assert out.of("BATCH") == [
        {
            "type": "BATCH",
            "stream": "users",
            "time_extracted": "2024-01-02T12:00:00.000000Z",
            "size": 3,
            "format": {"name": "jsonl", "options": {}},
            "compression": {"name": "gzip", "options": {"level": 1}, "enabled": True},
            "encoding": {"format": "jsonl", "compression": "gzip"},
            "manifest": [f"file://{tmp_path}/tap-t--users-r-00001.jsonl.gz"],
            "file_stats": [{"records": 3, "bytes": path.stat().st_size}],
            "version": 7,
        }
    ]


@pytest.mark.parametrize(
    ("more", "sent"),
    [({}, False), ({"dialect": "sip"}, True), ({"activate_version": True}, True), ({"dialect": "meltano"}, False)],
)
def test_activate_version_is_kept_back_with_a_word_where_targets_know_no_versions(
    tmp_path: Path, more: dict[str, Any], sent: bool, caplog: pytest.LogCaptureFixture
) -> None:
    tap = burler.tap("tap-t")
    tap.sync("users", key_properties="id", schema=SCHEMA["schema"])(lambda: [{"id": 1}])
    with caplog.at_level("INFO", logger="burler"):
        run = run_tap(tap, {"batch_config": {"storage": {"root": str(tmp_path)}, **more}})
    assert ("ACTIVATE_VERSION" in run.types) is sent
    assert len([line for line in caplog.messages if "kept back" in line]) == (not sent)


@pytest.mark.parametrize(("error", "stays"), [(OutputClosed, False), (StorageError, True)])
def test_where_the_message_fails_no_state_comes_and_the_file_stays_if_the_line_may_be_out(
    tmp_path: Path, error: Any, stays: bool
) -> None:
    out: list[bytes] = []

    def write(line: bytes) -> None:
        if b'"BATCH"' in line:
            raise error("stdout")
        out.append(line)

    with pytest.raises(error):
        pack(Source(FakeClock(), (SCHEMA, record(1), state(1))), write, config(tmp_path))
    assert out == [lines(SCHEMA).replace(b": ", b":").replace(b", ", b",")] and bool(list(tmp_path.iterdir())) is stays


def test_names_of_files_hold_letters_that_every_target_takes_and_streams_stay_apart(tmp_path: Path) -> None:
    names = ["a b", "a?b", "a/b", "ü/../x", ".hidden", "x" * 200, "x" * 300, "_", "a_b", ".a_b"]
    streams = [{**SCHEMA, "stream": name} for name in names]
    out = packed(config(tmp_path), *streams, *(record(n, name) for n, name in enumerate(names)))
    urls = [message["manifest"][0] for message in out.of("BATCH")]
    assert len(set(urls)) == len(names) == len(list(tmp_path.iterdir()))
    for message, url in zip(out.of("BATCH"), urls, strict=True):
        name = url.removeprefix(f"file://{tmp_path}/")
        assert re.fullmatch(r"[A-Za-z0-9_.-]{1,199}", name) and not name.startswith("."), name
        assert [row["id"] for row in read(message).rows()] == [names.index(message["stream"])]
    assert any("--a_b-" in url and re.search(r"--a_b-[0-9a-f]{12}-\d{5}\.jsonl$", url) for url in urls)


def test_a_name_that_another_run_has_taken_is_drawn_anew(tmp_path: Path) -> None:
    one, two = (packed(config(tmp_path), SCHEMA, record(number), run_id="r") for number in (1, 2))
    assert (seen(one), seen(two)) == (["SCHEMA", [1]], ["SCHEMA", [2]])


def test_only_so_many_files_are_open_at_once(tmp_path: Path) -> None:
    names = [f"s{number}" for number in range(201)]
    schemas = [{**SCHEMA, "stream": name} for name in names]
    out = packed(config(tmp_path), *schemas, *(record(1, name) for name in names), {"type": "LOG"}, state(1))
    assert out.of("BATCH")[0]["stream"] == "s0" and len(out.of("BATCH")) == 201
    assert out.messages[-1] == state(1)


def test_the_end_says_what_was_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tap = burler.tap("tap-t")
    tap.sync("users", key_properties="id", schema=SCHEMA["schema"])(lambda: [{"id": n} for n in range(3)])
    with caplog.at_level("INFO", logger="burler"):
        run_tap(tap, {"batch_config": {"storage": {"root": str(tmp_path)}, "batch_size": 2}})
    assert f"BATCH: 2 files of 3 rows, 27 bytes, in file://{tmp_path}" in caplog.messages


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_pages_of_columns_are_cut_into_files_of_so_many_bytes(tmp_path: Path, form: str) -> None:
    import pyarrow as pa

    tap = burler.tap("tap-t")
    schema = {"properties": {"t": {"type": "string"}}}
    tap.sync("s", key_properties=[], schema=schema)(lambda: [pa.table({"t": ["x" * 1000] * 100})])
    storage = {"root": str(tmp_path)}
    run = run_tap(tap, {"batch_config": {"encoding": {"format": form}, "storage": storage, "batch_bytes": 10_000}})
    sizes = [message["size"] for message in run.messages if message["type"] == "BATCH"]
    assert sum(sizes) == 100 and set(sizes[:-1]) <= set(range(8, 12))


def test_what_could_not_be_kept_is_said_once_not_for_each_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [{"type": "RECORD", "stream": "users", "record": {"id": n, "more": n}} for n in range(2)]
    out = packed(config(tmp_path, "csv", batch_size=1), SCHEMA, *rows)
    assert len(out.of("BATCH")) == 2
    assert len([line for line in caplog.messages if "'more'" in line]) == 1


@pytest.mark.parametrize(
    ("keys", "row", "start"),
    [
        (["id"], {"n": 1.5, "id": 3, "of": "x"}, "stream 's', row id=3: field 'n': a value can't"),
        (["of", "id"], {"n": 1.5, "id": 3, "of": "x\ny"}, "stream 's', row of=\"x\\ny\", id=3: field 'n'"),
        ([], {"n": 1.5, "id": 3}, "stream 's': field 'n': a value can't"),
    ],
    ids=["a key", "two", "no key"],
)
def test_a_row_that_a_file_can_not_hold_is_named_by_its_key(
    tmp_path: Path, keys: list[str], row: dict[str, Any], start: str
) -> None:
    """Among others of its page; those before it are in the file."""
    kinds = {"id": "integer", "of": "string", "n": "integer"}
    properties = {name: {"type": ["null", kind]} for name, kind in kinds.items()}
    schema = {"type": "SCHEMA", "stream": "s", "schema": {"properties": properties}, "key_properties": keys}
    good = {"id": 1, "of": "a", "n": 7}
    records = [{"type": "RECORD", "stream": "s", "record": one} for one in (*[good] * 5, row, good)]
    out = packed(config(tmp_path, "csv"), schema, *records)
    assert str(out.error).partition(": ")[2].startswith(start)
    assert [message["size"] for message in out.of("BATCH")] == [5]


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "arrow"])
@pytest.mark.parametrize("made_of", ["dicts", "columns"])
def test_pages_that_fill_a_file_over_its_rows_are_cut(tmp_path: Path, form: str, made_of: str) -> None:
    import pyarrow as pa

    tap = burler.tap("tap-t")

    @tap.sync("s", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
    def s():
        for first in range(0, 12, 3):
            rows = [{"id": number} for number in range(first, first + 3)]
            yield pa.Table.from_pylist(rows) if made_of == "columns" else rows

    given = {"encoding": {"format": form}, "storage": {"root": str(tmp_path)}, "batch_size": 5}
    run = run_tap(tap, {"batch_config": given, "page_max_rows": 3})
    batches = [message for message in run.messages if message["type"] == "BATCH"]
    assert [message["size"] for message in batches] == [5, 5, 2]
    held = [[int(row["id"]) for row in read(message).rows()] for message in batches]
    assert held == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]
