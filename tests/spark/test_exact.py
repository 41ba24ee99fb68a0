"""The exact path through an export: the same rows as the fast one, repairs where it can, one clear error where not."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pytest

from burler.errors import ExportError
from burler.spark import export, table

pytestmark = pytest.mark.usefixtures("packages")

ITEMS = {"type": ["null", "array"], "items": {"type": "object", "properties": {"c": {"type": "number"}}}}
TYPES = {
    "id": {"type": "integer"},
    "big": {"type": ["null", "integer"], "maximum": 2**64 - 1},
    "number": {"type": ["null", "number"]},
    "price": {"type": ["null", "number"], "multipleOf": 0.01},
    "exact": {"type": ["null", "string"], "format": "singer.decimal"},
    "flag": {"type": ["null", "boolean"]},
    "text": {"type": ["null", "string"]},
    "at": {"type": ["null", "string"], "format": "date-time"},
    "day": {"type": ["null", "string"], "format": "date"},
    "raw": {"type": ["null", "string"], "contentEncoding": "base64"},
    "list": {"type": ["null", "array"], "items": {"type": ["null", "integer"]}},
    "struct": {"type": ["null", "object"], "properties": {"a": {"type": ["null", "string"]}, "b": ITEMS}},
    "map": {"type": ["null", "object"], "additionalProperties": {"type": ["null", "number"]}},
    "any": {},
    "union": {"type": ["null", "string", "number"]},
}
SCHEMA = {"type": "object", "properties": TYPES}
ROWS = [
    b'{"id":1,"big":18446744073709551615,"number":0.1,"price":3.10,"exact":"0.000000000000000001","flag":true,'
    b'"text":"\xc3\xa9\\u0000\\"","at":"2024-01-02T03:04:05.678901Z","day":"2024-02-29","raw":"AAEC","list":[1,null],'
    b'"struct":{"a":"x","b":[{"c":1},{}]},"map":{"k":1.5,"n":null},"any":{"z": [1.10 , "q"]},"union":1.10}',
    b'{"id":2,"any":"text","union":"1.10"}',
    b'{"id":-9223372036854775808,"big":null,"number":-1e300,"price":-99999999999999999999999999999999999.99,'
    b'"at":"0001-01-01T00:00:00Z","day":"0001-01-01","raw":"","list":[],"struct":{},"map":{},"any":[],"union":0}',
    b'{"id":9223372036854775807,"at":"9999-12-31T23:59:59.999999Z","day":"9999-12-31","any":true,"text":""}',
]


def arrow_rows(path):
    import deltalake

    found = deltalake.DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: row["id"])


@pytest.fixture
def both(spark, lake, tmp_path):
    """The same rows through both paths: (fast table, exact table)."""
    lake.commit("fast", ROWS, schema=SCHEMA, time=dt.datetime(2024, 1, 1, tzinfo=dt.UTC))
    lake.commit("exact", ROWS, schema=SCHEMA, time=dt.datetime(2024, 1, 1, tzinfo=dt.UTC), clean=False)
    stats = next(iter(lake.manifest("fast")["file_stats"].values()))
    assert stats["clean"], "these rows must be fit for Spark's own reader, or nothing is compared"
    export(spark, str(lake.root), str(tmp_path / "out"))
    return tmp_path / "out" / "tap-x" / "fast", tmp_path / "out" / "tap-x" / "exact"


def test_both_paths_give_the_same_rows_and_the_right_ones(both):
    fast, exact = map(arrow_rows, both)
    for row in (*fast, *exact):
        row.pop("_sdc_source_file")

    assert fast == exact
    first = next(row for row in exact if row["id"] == 1)
    assert first["big"] == Decimal(2**64 - 1)
    assert first["price"] == Decimal("3.10")
    assert first["exact"] == Decimal("0.000000000000000001")
    assert first["text"] == 'é\x00"'
    assert first["at"] == dt.datetime(2024, 1, 2, 3, 4, 5, 678901, dt.UTC)
    assert first["struct"] == {"a": "x", "b": [{"c": 1.0}, {"c": None}]}
    assert dict(first["map"]) == {"k": 1.5, "n": None}
    assert first["any"] == '{"z": [1.10 , "q"]}'
    assert first["union"] == "1.10"


def test_deltalake_duckdb_and_spark_read_the_same(both, spark):
    import deltalake
    import duckdb

    delta = deltalake.DeltaTable(str(both[0]))
    columns = ["id", "text", "price", "number", "flag", "day", "epoch_us", "list", "_sdc_sequence"]
    simple = "id, text, price, number, flag, day, {}, list, _sdc_sequence"
    by_spark = table(spark, both[0]).selectExpr(*simple.format("unix_micros(at)").split(", ")).collect()
    query = "select {} from read_parquet($1)".format(simple.format('epoch_us("at")'))
    by_duckdb = duckdb.execute(query, [delta.file_uris()]).fetchall()
    epoch, tick = dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.timedelta(microseconds=1)
    by_arrow = []
    for row in delta.to_pyarrow_table().to_pylist():
        row["epoch_us"] = row["at"] and (row["at"] - epoch) // tick
        by_arrow.append(tuple(row[name] for name in columns))

    def key(row):
        return row[0]

    assert sorted(map(tuple, by_spark), key=key) == sorted(by_duckdb, key=key) == sorted(by_arrow, key=key)
    assert len(by_arrow) == len(ROWS)


def test_the_log_holds_statistics_that_readers_can_skip_files_by(both):
    log = (both[0] / "_delta_log" / "00000000000000000000.json").read_text().splitlines()
    added = next(json.loads(line)["add"] for line in log if '"add"' in line)
    stats = json.loads(added["stats"])

    assert stats["numRecords"] == len(ROWS)
    assert stats["minValues"]["id"] == -(2**63)
    assert stats["maxValues"]["at"] == "9999-12-31T23:59:59.999999Z"
    assert stats["minValues"]["day"] == "0001-01-01"
    assert stats["nullCount"]["price"] == 2
    assert "raw" not in stats["minValues"]


def test_odd_values_are_repaired_and_losses_are_counted(spark, lake, tmp_path):
    odd = [
        b'{"id":1.0,"at":"2024-01-02T05:04:05.1234567+02:00","price":"3.14","gone":1,"struct":{"new":2}}',
        b'{"id":2e0,"at":"20240102T030405Z","any":1.0,"union":{"a":1}}',
    ]
    lake.commit("s", odd, schema=SCHEMA)
    lake.commit("s", [b'{"id":3,"at":"2024-01-02T03:04:05Z"}'], schema=SCHEMA)

    (result,) = export(spark, str(lake.root), str(tmp_path / "out"))

    rows = arrow_rows(tmp_path / "out" / "tap-x" / "s")
    at = dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    assert [row["id"] for row in rows] == [1, 2, 3]
    assert [row["at"] for row in rows] == [at.replace(microsecond=123456), at, at]
    assert rows[0]["price"] == Decimal("3.14")
    assert (rows[1]["any"], rows[1]["union"]) == ("1.0", '{"a":1}')
    assert (result.rows_read, result.rows_written) == (3, 3)
    assert result.notes == (
        "field 'gone' is not in the schema: dropped from 1 row",
        "field 'struct.new' is not in the schema: dropped from 1 row",
        "field 'at': 1 time cut to microseconds",
        "3 values in an odd spelling, read as what is meant",
    )


def test_order_by_line_holds_across_both_paths(spark, lake, read, tmp_path):
    same = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    schema = {"properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}
    for number, clean in enumerate((True, False, True, False)):
        rows = [{"id": at % 3, "name": f"{number}-{at}"} for at in range(30)]
        lake.commit("s" if number < 3 else "s2", rows, schema=schema, time=same, clean=clean)

    export(spark, str(lake.root), str(tmp_path / "out"))

    assert read("s", "name") == [("2-27",), ("2-28",), ("2-29",)]
    assert read("s2", "name") == [("3-27",), ("3-28",), ("3-29",)]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (b'{"id":1.5}', ["line 3", "field 'id'", "integer"]),
        (b'{"id":1,"at":1700000000000}', ["field 'at'", "RFC 3339"]),
        (b'{"id":1,"price":0.001}', ["field 'price'", "decimal(38,2)"]),
        (b'{"id":1,"struct":{"b":[{"c":1e400}]}}', ["field 'struct.b.[].c'", "finite"]),
        (b'{"id":1,"at":"' + b"9" * 500 + b'"}', ["its value can't be held exactly"]),
    ],
)
def test_a_value_that_can_not_be_held_is_one_clear_error(lake, tmp_path, row, words):
    path = lake.commit("s", [b'{"id":7}', row], schema=SCHEMA)

    with pytest.raises(ExportError) as caught:
        export(None, str(lake.root), str(tmp_path / "out"))

    text = str(caught.value)
    assert "stream 's'" in text
    assert str(path) in text
    assert all(word in text for word in words), text
    assert "9" * 90 not in text
    assert not (tmp_path / "out" / "tap-x" / "s").exists()
    (kept,) = (tmp_path / "out" / "_quarantine" / "tap-x" / "s").iterdir()
    assert str(kept) in text
    assert json.loads(kept.read_bytes())["record"].encode() == row


def test_a_line_that_is_no_message_is_named(lake, tmp_path):
    import gzip

    path = lake.commit("s", [b'{"id":7}', b'{"id":8}'], schema=SCHEMA, clean=False)
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b'{"id":8}', b'{"id":')))

    with pytest.raises(ExportError, match=rf"{path} line 3: .*wanted: a Singer message"):
        export(None, str(lake.root), str(tmp_path / "out"))


def test_a_lake_without_manifest_is_exported_whole_each_time(spark, lake, read, tmp_path):
    lake.commit("s", [b'{"id":1}'], schema=SCHEMA)
    lake.commit("s", [b'{"id":1,"text":"b"}'], schema=SCHEMA)
    lake.manifest_path("s").unlink()

    for version in (0, 1):
        (result,) = export(spark, str(lake.root), str(tmp_path / "out"))
        assert (result.rows_read, result.version) == (2, version)
    assert read("s", "id", "text") == [(1, "b")]
