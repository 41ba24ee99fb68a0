"""What a tap prints, as columns that were declared before: exact, in order, or one error with its place."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_taps import CATALOG, SCHEMA, entry

from burler.errors import BadRecordError, BurlerError, StreamError
from support.internals import column_types, source_messages
from support.internals import source_foreign as foreign


class Said(list):
    """Remarks."""


def rows_of(messages, *fields, schema=None, drop_unknown=False, said=None, block=1 << 20):
    """The rows that messages (dicts, or lines as bytes) give, cut into blocks of any size."""
    wire = CATALOG if schema is None else {"streams": [entry(schema=schema)]}
    _, declared = foreign.select(wire, "users", fields, chosen=False, source="command 'tap-fake'")
    reader = source_messages.StreamRows(
        declared, drop_unknown=drop_unknown, warn=(said if said is not None else Said()).append
    )
    text = b"".join(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in messages)
    batches = []
    for start in range(0, len(text), block):
        batches += reader.take(text[start : start + block])
    batches += reader.finish()
    assert all(batch.schema == column_types.arrow_schema(declared.record) for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()], reader


def schema(properties=SCHEMA["properties"], stream="users"):
    return {"type": "SCHEMA", "stream": stream, "schema": {"properties": properties}, "key_properties": ["id"]}


def record(stream="users", **row):
    return {"type": "RECORD", "stream": stream, "record": row}


def test_rows_of_the_stream_come_in_order_and_others_do_not():
    messages = [schema(stream="others"), record("others", id=9), schema()]
    messages += [record(id=n, name=f"\u00fc{n}", price=n / 4) for n in range(25_000)]
    messages += [{"type": "state", "value": {"n": 1}}, {"type": "ACTIVATE_VERSION", "stream": "users", "version": 1}]
    rows, reader = rows_of(messages, "name", "price")
    assert rows == [{"id": n, "name": f"\u00fc{n}", "price": n / 4} for n in range(25_000)]
    assert (reader.rows, reader.state, reader.schema_seen) == (25_000, {"n": 1}, True)


@pytest.mark.parametrize("block", [1, 7, 100])
def test_lines_may_be_cut_anywhere(block):
    messages = [schema(), {"type": "Record", "stream": "users", "record": {"id": 1, "name": "a\u2028b\r\n"}}]
    messages += [b"\n", b"  \r\n", record(id=2, anything={"a": [1.10]}), b'{"type": "RECORD", "stream": "users", ']
    messages += [b'"record": {"id": 3, "anything": 1.10}, "more": 1}']  # no line end
    rows, _ = rows_of(messages, "name", "anything", block=block)
    assert [(row["id"], row["name"], row["anything"]) for row in rows] == [
        (1, "a\u2028b\r\n", None),
        (2, None, '{"a": [1.1]}'),
        (3, None, "1.10"),
    ]


def test_values_become_what_their_columns_hold_exactly():
    exact = {"id": {"type": "integer"}, "d": {"type": "number", "multipleOf": 0.01}, "t": {"type": "string"}}
    lines = [
        schema(exact),
        b'{"type":"RECORD","stream":"users","record":{"id":1.0,"d":12345678901234567.89,"t":1.50}}\n',
    ]
    rows, _ = rows_of(lines, schema={"type": "object", "properties": exact})
    assert rows == [{"id": 1, "d": Decimal("12345678901234567.89"), "t": "1.50"}]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": "x"}, "row 3 (id=x): field 'id': a value can't be held exactly; the schema wants an integer"),
        ({"id": 2**63}, f"row 3 (id={2**63}): field 'id'"),
        ({"id": 7, "at": "yesterday"}, "row 3 (id=7): field 'at': a value can't be held exactly"),
        ({"id": 7, "name": "\ud800"}, "row 3 (id=7): field 'name': half of a surrogate pair"),
    ],
    ids=["text", "large", "time", "half"],
)
def test_a_value_that_does_not_fit_is_told_with_its_row(row, said):
    with pytest.raises(BadRecordError) as told:
        rows_of([schema(), record(id=1), record(id=2), record(**row), record(id=4)])
    assert str(told.value).startswith("stream 'users': ")
    assert said in str(told.value)
    assert "option 'catalog'" in str(told.value)


def test_a_schema_that_has_changed_its_types_is_held_to_the_declared_ones():
    changed = {**SCHEMA["properties"], "name": {"type": "integer"}, "id": {"type": "string"}}
    rows, _ = rows_of([schema(changed), record(id=1, name=5)], "name")
    assert rows == [{"id": 1, "name": "5"}]
    with pytest.raises(BadRecordError, match="row 1 \\(id=a\\): field 'id'"):
        rows_of([schema(changed), record(id="a", name=5)])


def test_a_field_that_discovery_did_not_know_is_no_silent_loss():
    grown = {**SCHEMA["properties"], "new": {"type": "string"}}
    with pytest.raises(StreamError, match=r"fields that its discovery had not: new.*unknown_fields=drop"):
        rows_of([schema(grown), record(id=1, new="x")])
    said = Said()
    rows, _ = rows_of([schema(grown), record(id=1, new="x")], "name", drop_unknown=True, said=said)
    assert rows == [{"id": 1, "name": None}]
    assert said == ["stream 'users': field 'new' is in no schema and has no column: left out of 1 row(s)"]


def test_what_was_deselected_and_comes_all_the_same_is_left_out_without_a_word():
    said = Said()
    rows, _ = rows_of([schema(), record(id=1, name="a", price=1, at="2024-05-01T00:00:00Z")], "name", said=said)
    assert (rows, said) == ([{"id": 1, "name": "a"}], [])


def test_digits_that_no_column_holds_are_told():
    said = Said()
    rows, _ = rows_of([schema(), record(id=1, at="2024-05-01T00:00:00.123456789Z")], "at", said=said)
    assert rows[0]["at"].isoformat() == "2024-05-01T00:00:00.123456+00:00"
    assert said == ["stream 'users': field 'at': 1 time(s) cut to microseconds, all that the column holds"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"INFO starting\n", "line 2: it is no JSON"),
        (b'{"type": "RECORD"\n', "line 2: it is no JSON"),
        (b'{"kind": "RECORD"}\n', "line 2: it is no Singer message"),
        (b'{"type": "RECORD", "stream": "users"}\n', "line 2: a RECORD without 'record'"),
        (b'{"type": "SCHEMA", "stream": "users", "schema": 5}\n', "line 2: the 'schema' of a SCHEMA"),
        (b"\xff\n", "line 2: it is not UTF-8"),
        (b'{"type": "RECORD", "stream": "users", "record": 5}\n', "row 1: a row that is no object"),
    ],
    ids=["log", "broken", "no-type", "no-record", "no-schema", "bytes", "number"],
)
def test_what_is_no_message_is_told_with_its_line(line, said):
    with pytest.raises(BurlerError) as told:
        rows_of([schema(), line])
    assert said in str(told.value)


# ---- BATCH ------------------------------------------------------------------------------------------------------


def batch(*paths, format="jsonl", compression="none"):
    encoding = {"format": format, "compression": compression}
    return {"type": "BATCH", "stream": "users", "encoding": encoding, "manifest": [path.as_uri() for path in paths]}


def test_batch_files_stand_where_their_message_stands(tmp_path):
    first, second = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl"
    first.write_bytes(gzip.compress(b'{"id": 2, "anything": "text"}\n{"id": 3, "anything": {"a":1.10}}\n'))
    second.write_bytes(b'{"id": 4}\n')
    messages = [schema(), record(id=1), batch(first, compression="gzip"), batch(second), record(id=5)]
    rows, reader = rows_of(messages, "anything")
    assert [row["id"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["anything"] for row in rows] == [None, "text", '{"a":1.10}', None, None]
    assert reader.rows == 5


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "open"])
def test_a_value_of_a_batch_file_that_no_column_holds_is_placed_and_not_shown(tmp_path, plain):
    properties = {name: node for name, node in SCHEMA["properties"].items() if plain is False or name != "anything"}
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id": 2}\n{"id": "hunter2"}\n')
    with pytest.raises(StreamError) as told:
        rows_of([schema(properties), batch(path)], schema={"type": "object", "properties": properties})
    assert f"stream 'users': batch file '{path.as_uri()}': row 2: field 'id': a value can't be held" in str(told.value)
    assert "hunter2" not in str(told.value)


def test_the_environment_says_which_batch_files_are_read(tmp_path, monkeypatch):
    monkeypatch.setenv("BURLER_ALLOW", str(tmp_path / "in"))
    (tmp_path / "a.jsonl").write_bytes(b'{"id": 2}\n')
    with pytest.raises(StreamError, match="is not read: it lies below nothing that --allow names"):
        rows_of([schema(), batch(tmp_path / "a.jsonl")])


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "open"])
def test_batch_files_of_columns(tmp_path, plain):
    properties = {name: node for name, node in SCHEMA["properties"].items() if plain is False or name != "anything"}
    shape = {"type": "object", "properties": properties}
    table = pa.Table.from_pylist(
        [{"id": n, "name": f"n{n}", "price": n / 4, **({} if plain else {"anything": f'"{n}"'})} for n in range(5000)],
        schema=column_types.arrow_schema(column_types.record_type(shape)),
    )
    pq.write_table(table, tmp_path / "a.parquet")
    rows, _ = rows_of([schema(properties), batch(tmp_path / "a.parquet", format="parquet")], schema=shape)
    assert len(rows) == 5000
    assert rows[7] == {"id": 7, "name": "n7", "price": 1.75, "at": None, **({} if plain else {"anything": "7"})}


@pytest.mark.parametrize("what", ["missing", "broken", "value"])
def test_a_batch_file_that_can_not_be_read_is_told(tmp_path, what):
    path = tmp_path / "x.jsonl.gz"
    if what == "broken":
        path.write_bytes(gzip.compress(b'{"id": 1}\n' * 1000)[:40])
    if what == "value":
        path.write_bytes(gzip.compress(b'{"id": "x"}\n'))
    with pytest.raises(StreamError) as told:
        rows_of([schema(), batch(path, compression="gzip")])
    assert "stream 'users'" in str(told.value)
    assert {"missing": "x.jsonl.gz", "broken": "x.jsonl.gz", "value": "field 'id'"}[what] in str(told.value)
