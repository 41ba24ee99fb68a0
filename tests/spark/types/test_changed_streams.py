"""Streams whose schema changed: rows of all versions in one frame, with every value."""

from __future__ import annotations

import json

import pytest

INTEGER, NUMBER, TEXT = ({"type": name} for name in ("integer", "number", "string"))
TAGS = {"type": "array", "items": TEXT}
PLACE = {"type": "object", "properties": {"city": TEXT}}


def schema(**fields):
    return {"type": "object", "properties": {"id": INTEGER, **fields}}


VERSIONS = [
    (schema(price=INTEGER, where=PLACE, gone=TEXT), '{"id":1,"price":5,"where":{"city":"Oslo"},"gone":"x"}'),
    (schema(price=INTEGER, where=PLACE, gone=TEXT, new=TEXT), '{"id":2,"price":6,"new":"n"}'),  # a field more
    (schema(price=INTEGER, where=PLACE, new=TEXT), '{"id":3,"price":7}'),  # a field less
    (schema(price=NUMBER, where=PLACE, new=TEXT), '{"id":4,"price":7.5}'),  # integer, then number
    (schema(price=TEXT, where=PLACE, new=TEXT), '{"id":5,"price":"7.50 EUR"}'),  # then text
    (schema(price=TEXT, where=TAGS, new=TEXT), '{"id":6,"price":"8","where":["a", 1.10]}'),  # an object, then a list
]


@pytest.mark.parametrize("clean", [None, False], ids=["as-measured", "exact"])
def test_five_changes_lose_nothing(lake, read_stream, clean):
    for version, row in VERSIONS:
        lake.commit("s", [row.encode()], schema=version, clean=clean)

    read = read_stream()

    rows = read.by("id")
    assert read.bad == []
    assert [rows[at]["price"] for at in range(1, 7)] == ["5", "6", "7", "7.5", "7.50 EUR", "8"]
    assert [rows[at]["new"] for at in range(1, 4)] == [None, "n", None]
    assert [rows[at]["gone"] for at in range(1, 4)] == ["x", None, None]
    assert json.loads(rows[1]["where"]) == {"city": "Oslo"}
    assert rows[6]["where"] == '["a", 1.10]'
    assert set(read.said.notes) >= {
        "field 'price': integer in v1, number in v4, string in v5: held as text",
        "field 'where': object in v1, array in v6: held as text",
    }


@pytest.mark.parametrize("sign", [1, -1])
def test_integers_become_doubles_only_while_a_double_holds_them(lake, read_stream, sign):
    lake.commit("s", [{"id": 1, "n": sign * (2**53 + 2)}], schema=schema(n=INTEGER))
    lake.commit("s", [{"id": 2, "n": 0.5}], schema=schema(n=NUMBER))

    assert {at: row["n"] for at, row in read_stream().by("id").items()} == {1: sign * (2.0**53 + 2), 2: 0.5}

    lake.commit("s", [{"id": 3, "n": sign * (2**53 + 1)}], schema=schema(n=INTEGER))
    read = read_stream()
    assert {at: row["n"] for at, row in read.by("id").items()} == {
        1: str(sign * 9007199254740994),
        2: "0.5",
        3: str(sign * 9007199254740993),
    }
    assert read.bad == []
    assert "field 'n': integer in v1, number in v2: held as text" in read.said.notes


@pytest.mark.parametrize("clean", [None, False], ids=["as-measured", "exact"])
def test_names_that_differ_in_case_are_mapped_at_every_depth(lake, read_stream, clean):
    old = {"o": {"type": "object", "properties": {"City": TEXT, "n": INTEGER}}, "Name": TEXT, "_sdc_version": TEXT}
    old["l"] = {"type": "array", "items": {"type": "object", "properties": {"K": TEXT}}}
    new = {"o": {"type": "object", "properties": {"city": TEXT}}, "name": TEXT}
    new["l"] = {"type": "array", "items": {"type": "object", "properties": {"k": TEXT, "more": INTEGER}}}
    row = {"id": 1, "o": {"City": "Oslo", "n": 2}, "Name": "a", "_sdc_version": "mine", "l": [{"K": "v"}, {}]}
    lake.commit("s", [row], schema=schema(**old), version=7, clean=clean)
    lake.commit(
        "s", [{"id": 2, "o": {"city": "Rome"}, "name": "b", "l": [{"more": 1}]}], schema=schema(**new), clean=clean
    )

    rows = read_stream().by("id")

    assert rows[1]["o"] == {"city": "Oslo", "n": 2}
    assert rows[2]["o"] == {"city": "Rome", "n": None}
    assert (rows[1]["name"], rows[2]["name"]) == ("a", "b")
    assert rows[1]["l"] == [{"k": "v", "more": None}, {"k": None, "more": None}]
    assert rows[2]["l"] == [{"k": None, "more": 1}]
    assert (rows[1]["_sdc_version_2"], rows[1]["_sdc_version"]) == ("mine", 7)


def test_two_fields_of_one_version_that_differ_in_case_are_both_kept(lake, read_stream):
    both = schema(Id=TEXT)
    lake.commit("s", [{"id": 1, "Id": "one"}], schema=both)
    lake.commit("s", [{"Id": "two"}], schema={"type": "object", "properties": {"Id": TEXT}})

    found = {(row["id"], row["Id_2"]) for row in read_stream().rows}

    assert found == {(1, "one"), (None, "two")}


def test_many_files_are_read_by_executors_and_give_the_same(lake, read_stream):
    time = {"type": "string", "format": "date-time"}
    for number in range(7):
        rows = [b'{"id":%d.0,"at":"2024-01-01 00:00:00.1234567"}' % (10 * number + at) for at in range(3)]
        rows.append(b'{"id":%d.5}' % number)
        lake.commit("s", rows, schema=schema(at=time), activate=number if number < 2 else None, version=number)

    read = read_stream()

    assert sorted(read.by("id")) == sorted(10 * number + at for number in range(7) for at in range(3))
    assert sorted((row.line, row.value) for row in read.bad) == [(5, f"{number}.5") for number in range(7)]
    names = set(lake.manifest("s")["file_stats"])
    assert len({row.file for row in read.bad}) == 7 and all(row.file.endswith(tuple(names)) for row in read.bad)
    assert "field 'at': 21 times cut to microseconds" in read.said.notes
    assert {(row["_sdc_sequence"], row["_sdc_version"]) for row in read.rows} == {(n + 1, n) for n in range(7)}
    assert len({row["_sdc_source_file"] for row in read.rows}) == 7


def test_times_as_text_keep_every_digit(lake, read_stream):
    time = {"type": "string", "format": "date-time"}
    text = "2024-01-01T00:00:00.123456789+02:00"
    lake.commit("s", [{"id": 1, "at": text}], schema=schema(at=time))
    lake.commit("s", [{"id": 2, "at": "2024-01-01T00:00:00Z"}], schema=schema(at=time))

    read = read_stream(timestamps="text")

    assert {at: row["at"] for at, row in read.by("id").items()} == {1: text, 2: "2024-01-01T00:00:00Z"}
    assert read.said.notes == ()


def test_open_values_as_variant(spark, lake, read_stream):
    from pyspark.sql import functions as f

    from burler.spark import table

    fields = {"any": {}, "list": {"type": "array", "items": {}}, "map": {"type": "object", "additionalProperties": {}}}
    lake.commit(
        "s",
        [b'{"id":1,"any":{"b":1.10,"a":[null,"x"]},"list":[1,"y"],"map":{"k":{"z":true}}}'],
        schema=schema(**fields),
    )
    lake.commit(
        "s",
        [b'{"id":2,"any":"text"}', b'{"id":3,"any":1e999}', b'{"id":4,"any":{"a":1,"a":2}}'],
        schema=schema(**fields),
    )
    bent = [b"1" * 39, b"[1e999]", b'{"a":{"b":1,"b":1}}', b"[" * 2000 + b"]" * 2000, b'"%s"' % (b"x" * 16_000_001)]
    bent.append(b'{"a":' * 801 + b"1" + b"}" * 801)
    lake.commit("s", [b'{"id":5,"any":%s}' % text for text in bent], schema=schema(**fields))
    kept = [b"[" * 800 + b"]" * 800, b"[" + b"[{}]," * 1000 + b"1]", b'["%s"]' % (b"[{" * 1000), b"9" * 38]
    kept += [b"[[]," + b"[" * 799 + b"]" * 800, rb'["\"' + b"[{" * 1000 + b'"]', b"-0.5", b"true"]
    lake.commit("s", [b'{"id":%d,"any":%s}' % (6 + at, text) for at, text in enumerate(kept)], schema=schema(**fields))

    def rows_in(place):
        frame = table(spark, place)
        return frame.withColumns({name: f.to_json(name) for name in fields}).toArrow().to_pylist()

    variants = read_stream(open_types="variant", format="parquet", rows_in=rows_in)

    rows = variants.by("id")
    assert json.loads(rows[1]["any"]) == {"b": 1.1, "a": [None, "x"]}
    assert json.loads(rows[1]["list"]) == [1, "y"]
    assert json.loads(rows[1]["map"]) == {"k": {"z": True}}
    assert rows[2]["any"] == '"text"'
    assert len(variants.bad) == 2 + len(bent) and {3, 4, 5}.isdisjoint(rows)
    assert [rows[6 + at]["any"].encode() for at in range(len(kept))] == kept
