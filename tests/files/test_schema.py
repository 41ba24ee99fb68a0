"""``burler.files.schema``: what the files say their columns are."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from filebox import ids

import burler
import burler.files
from burler.errors import DeclarationError
from burler.files import Csv, schema
from burler.testing import run_tap


def made(pattern, **options):
    return schema(pattern, **options).load(where="here", config={})


def properties(pattern, **options):
    return made(pattern, **options)["properties"]


def test_csv_columns_have_the_type_that_all_of_their_cells_have(box):
    box.put(
        "a.csv",
        "id,name,zip,total,whole,paid,at,day,none,mixed\n"
        "1,ann,01234,12.50,1,true,2024-05-01T00:00:00Z,2024-05-01,,5\n"
        '"2",bob,9,3,2,false,2024-05-01T02:00:00+02:00,2024-05-02,,x\n'
        '3,"",,,"",,,,,\n',
    )
    assert made(box["a.csv"]) == {
        "type": "object",
        "properties": {
            "id": {"type": ["null", "integer"]},
            "name": {"type": ["null", "string"]},
            "zip": {"type": ["null", "string"]},
            "total": {"type": ["null", "number"]},
            "whole": {"type": ["null", "integer"]},
            "paid": {"type": ["null", "boolean"]},
            "at": {"type": ["null", "string"], "format": "date-time"},
            "day": {"type": ["null", "string"], "format": "date"},
            "none": {},
            "mixed": {"type": ["null", "string"]},
        },
    }


def test_a_tap_with_such_a_schema_reads_the_files_it_was_made_from(box):
    box.put("a.csv.gz", "id,total,paid,at\n1,1.50,true,2024-05-01 00:00:00\n2,,,\n")
    options = {"csv": Csv(zone="UTC"), "add": ("_file", "_row")}
    tap = burler.tap("tap-files")

    @tap.sync("orders", key_properties="id")
    def orders(stream):
        yield from burler.files.read(box["*.csv.gz"], stream=stream, **options)

    tap.schema("orders", method=burler.files.schema(box["*.csv.gz"], **options))
    out = run_tap(tap)
    assert not out.result.errors and ids(out) == [1, 2]
    assert out.messages[0]["schema"]["properties"]["at"]["format"] == "date-time"
    assert out.records("orders")[0] == {
        "id": 1, "total": 1.5, "paid": True, "at": "2024-05-01T00:00:00Z", "_file": "a.csv.gz", "_row": 1
    }  # fmt: skip


def test_json_is_inferred_as_a_sample_is(box):
    box.put("a.jsonl", '{"id": 1, "tags": ["x"]}\n{"id": 2.5, "at": "2024-05-01T00:00:00Z"}\n')
    assert properties(box["a.jsonl"]) == {
        "id": {"type": ["null", "number"]},
        "tags": {"type": ["null", "array"], "items": {"type": "string"}},
        "at": {"type": ["null", "string"], "format": "date-time"},
    }
    box.put("b.json", '{"data": [{"id": 1}]}')
    assert properties(box["b.json"], records_path="data", nullable=False) == {"id": {"type": "integer"}}


def test_parquet_says_it_exactly(box):
    table = pa.table(
        [
            pa.array([1], pa.int32()),
            pa.array([1], pa.int64()),
            pa.array([1.0], pa.float32()),
            pa.array([Decimal("1.20")], pa.decimal128(10, 2)),
            pa.array([Decimal("1")], pa.decimal128(38, 0)),
            pa.array([True]),
            pa.array([0], pa.timestamp("us", "UTC")),
            pa.array([0], pa.timestamp("ms")),
            pa.array([0], pa.date32()),
            pa.array([0], pa.time64("us")),
            pa.array([b"x"]),
            pa.array(["x"]).dictionary_encode(),
            pa.array([[1]]),
            pa.array([{"b": 1}]),
            pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        ],
        schema=pa.schema(
            [
                pa.field("required", pa.int32(), nullable=False),
                ("big", pa.int64()),
                ("float", pa.float32()),
                ("money", pa.decimal128(10, 2)),
                ("count", pa.decimal128(38, 0)),
                ("flag", pa.bool_()),
                ("at", pa.timestamp("us", "UTC")),
                ("naive", pa.timestamp("ms")),
                ("day", pa.date32()),
                ("time", pa.time64("us")),
                ("raw", pa.binary()),
                ("word", pa.dictionary(pa.int32(), pa.string())),
                ("list", pa.list_(pa.int64())),
                ("object", pa.struct([("b", pa.int64())])),
                ("map", pa.map_(pa.string(), pa.int64())),
            ]
        ),
    )
    pq.write_table(table, box["a.parquet"])
    null = "null"
    whole = {"type": [null, "integer"]}
    assert properties(box["a.parquet"], nullable=False) == {
        "required": {"type": "integer"},
        "big": whole,
        "float": {"type": [null, "number"]},
        "money": {"type": [null, "number"], "multipleOf": 0.01},
        "count": whole,
        "flag": {"type": [null, "boolean"]},
        "at": {"type": [null, "string"], "format": "date-time"},
        "naive": {"type": [null, "string"], "format": "date-time"},
        "day": {"type": [null, "string"], "format": "date"},
        "time": {"type": [null, "string"], "format": "time"},
        "raw": {"type": [null, "string"], "contentEncoding": "base64"},
        "word": {"type": [null, "string"]},
        "list": {"type": [null, "array"], "items": whole},
        "object": {"type": [null, "object"], "properties": {"b": whole}},
        "map": {"type": [null, "object"], "additionalProperties": whole},
    }
    assert properties(box["a.parquet"])["required"] == whole
    tap = burler.tap("tap-files")

    @tap.sync("orders", key_properties=())
    def orders(stream):
        yield from burler.files.read(box["a.parquet"], stream=stream)

    tap.schema("orders", method=burler.files.schema(box["a.parquet"]))
    out = run_tap(tap)
    assert not out.result.errors
    assert out.records("orders")[0]["money"] == 1.2 and out.records("orders")[0]["naive"] == "1970-01-01T00:00:00Z"


def test_files_that_differ_are_widened_or_refused(box):
    pq.write_table(pa.table({"id": [1], "x": pa.array([1], pa.int32())}), box["a.parquet"])
    pq.write_table(pa.table({"id": [1], "x": [1.5], "new": ["n"]}), box["b.parquet"])
    found = properties(box["*.parquet"])
    assert found["x"] == {"type": ["null", "number"]} and found["new"] == {"type": ["null", "string"]}
    pq.write_table(pa.table({"id": ["text"]}), box["c.parquet"])
    with pytest.raises(DeclarationError, match=r"column 'id' is .* in file '.*' and .* in another"):
        made(box["*.parquet"])


def test_the_files_that_changed_last_are_looked_at_and_so_many_rows_of_each(box):
    box.put("old.csv", "id,old\n1,1\n")
    box.put("new.csv", "id,new\n" + "1,1\n" * 50 + "x,y\n")
    assert set(properties(box["*.csv"], sample_files=1)) == {"id", "new"}
    assert properties(box["*.csv"], sample_files=1, sample_rows=50)["id"] == {"type": ["null", "integer"]}
    assert properties(box["*.csv"], sample_files=1, sample_rows=51)["id"] == {"type": ["null", "string"]}
    assert set(properties(box["*.csv"])) == {"id", "new", "old"}


def test_pattern_and_options_may_come_from_the_config(box):
    box.put("a.csv", "id\n1\n")
    source = schema(lambda config: f"{config['folder']}/*.csv", storage_options=lambda config: {})
    assert set(source.load(where="x", config={"folder": str(box.folder)})["properties"]) == {"id"}


@pytest.mark.parametrize(
    ("name", "text", "fact"),
    [
        (None, "", "no file fits"),
        ("a.csv", "", "there is no row"),
        ("a.csv", "id\n", "there is no row"),
        ("a.csv", "id,name\n1\n", "row 2"),
        ("a.csv", "id;name\n1;x\n", "delimiter"),
        ("a.jsonl", "{", "line 1"),
        ("a.dat", "x", "csv"),
    ],
)
def test_files_that_say_nothing_are_an_error_of_the_declaration(box, name, text, fact):
    if name:
        box.put(name, text)
    with pytest.raises(DeclarationError, match=fact) as raised:
        made(box["*.*"])
    assert str(raised.value).startswith("here: burler.files.schema: ")


def test_options_that_can_not_be():
    wrong = ({"sample_rows": 0}, {"sample_rows": float("inf")}, {"sample_files": 0}, {"sample_files": 1.5})
    for options in (*wrong, {"format": "x"}, {"add": ("x",)}):
        with pytest.raises(DeclarationError):
            schema("x.csv", **options)
