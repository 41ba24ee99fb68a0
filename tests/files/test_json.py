"""JSON lines and documents."""

from __future__ import annotations

import json

import duckdb
import pytest
from filebox import error, ids, rows, tap_of

from burler.testing import run_tap


def test_lines_arrays_and_documents(box):
    box.put("a.jsonl", '{"id": 1, "total": 1.50}\n\n  {"id": 2}\r\n{"id": 3}')
    box.put("b.ndjson.gz", '\ufeff{"id": 4}\n')
    box.put("c.json", ' [{"id": 5}, {"id": 6}]')
    box.put("d.json", '{\n "id": 7\n}')
    box.put("e.json", '{"id": 8}\n{"id": 9}\n')
    box.put("f.json", '{"id": 10}')
    assert [row["id"] for row in rows(box["*.*"])] == list(range(1, 11))


def test_a_path_leads_to_the_rows_of_a_document(box):
    box.put("a.json", '{"meta": {"id": 0}, "data": {"items": [{"id": 1}, {"id": 2}]}}')
    box.put("b.json", '{"data": {"items": null}}')
    assert [row["id"] for row in rows(box["*.json"], records_path="data.items")] == [1, 2]
    box.put("c.json", '{"data": {"rows": []}}')
    said = error(box["c.json"], records_path="data.items")
    assert "c.json'" in said and "'items'" in said and "'rows'" in said
    box.put("d.json", '{"data": {"items": {"id": 1}}}')
    assert "an object" in error(box["d.json"], records_path="data.items")


def test_numbers_are_kept_and_rows_never_become_dicts(box):
    from burler.files import read

    box.put("a.jsonl", '{"id": 1, "total": 1.50}\n')
    page = next(read(box["a.jsonl"]))
    assert page.data == b'{"id": 1, "total": 1.50}\n'


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"id": 1}\n\n{"id": x}\n', "line 3: it is no JSON object"),
        ('{"id": 1}\n' * 200_000 + "{", "line 200,001: it is cut off"),
    ],
)
def test_a_broken_line_is_an_error_with_file_and_line_and_the_rows_before_it_are_out(box, text, place):
    box.put("torn.jsonl", text)
    out = run_tap(tap_of(box["torn.jsonl"]))
    said = str(out.result.errors["orders"])
    assert "torn.jsonl'" in said and place in said, said
    assert len(out.records("orders")) == int(place.split()[1].rstrip(":").replace(",", "")) - (
        2 if "\n\n" in str(text) else 1
    )


@pytest.mark.parametrize("text", ["", "   ", "[", '[{"id": 1}', '{"id": ', "[1]", "5", '"x"', '[{"id": 1}]x', "<html>"])
def test_a_broken_document_is_an_error_with_its_file(box, text):
    box.put("torn.json", text)
    assert "torn.json'" in error(box["torn.json"])


def test_an_empty_array_is_no_rows(box):
    box.put("a.json", "[]")
    assert rows(box["a.json"]) == []


def test_a_row_with_nan_is_the_rows_own_error(box):
    box.put("a.jsonl", '{"id": 1}\n{"id": 2, "total": NaN}\n')
    out = run_tap(tap_of(box["a.jsonl"]), {"on_nan": "null"})
    assert out.records("orders")[1] == {"id": 2, "total": None}


def test_a_line_longer_than_a_block_and_one_longer_than_allowed(box):
    long = "x" * 3_000_000
    box.put("a.jsonl", f'{{"id": 1}}\n{{"id": 2, "name": "{long}"}}\n{{"id": 3}}\n')
    found = rows(box["a.jsonl"])
    assert [row["id"] for row in found] == [1, 2, 3] and found[1]["name"] == long
    said = error(box["a.jsonl"], max_line_bytes=2_000_000)
    assert "line 2: it does not end within 2,000,000 bytes" in said and "format='json'" in said


def test_a_document_that_is_too_big_is_an_error_with_its_cure(box):
    box.put("a.json", "[" + ",".join(f'{{"id": {i}}}' for i in range(100_000)) + "]")
    assert len(rows(box["a.json"])) == 100_000
    assert "format='jsonl'" in error(box["a.json"], max_document_bytes=1_000_000)


def test_added_columns_stand_in_rows_of_documents_too(box):
    schema = {"properties": {"id": {}, "_file": {"type": "string"}, "_row": {"type": "integer"}}}
    box.put("a.json", '{"data": [{"id": 1}, {}, {\n"id": {"deep": [1]}}]}')
    assert rows(box["a.json"], schema=schema, key=(), records_path="data", add=("_file", "_row")) == [
        {"_file": "a.json", "_row": 1, "id": 1},
        {"_file": "a.json", "_row": 2},
        {"_file": "a.json", "_row": 3, "id": {"deep": [1]}},
    ]


def test_names_in_added_columns_are_escaped(box):
    schema = {"properties": {"id": {"type": "integer"}, "_file": {"type": "string"}}}
    box.put('q"\\.jsonl', '{"id": 1}')
    assert rows(box["*.jsonl"], schema=schema, add="_file") == [{"id": 1, "_file": 'q"\\.jsonl'}]


def test_duckdb_reads_the_same_rows(box):
    data = [{"id": i, "name": f"nä\n{i}", "total": i / 4} for i in range(5000)]
    box.put("a.jsonl.gz", "".join(json.dumps(row, ensure_ascii=i % 2 == 0) + "\n" for i, row in enumerate(data)))
    wanted = duckdb.execute("select id, name, total from read_json(?) order by id", [box["a.jsonl.gz"]]).fetchall()
    out = run_tap(tap_of(box["a.jsonl.gz"]))
    assert [(row["id"], row["name"], row["total"]) for row in out.records("orders")] == wanted
    assert ids(out) == list(range(5000))


def test_a_records_path_into_json_lines_is_refused(box):
    """Each line would be a row without any of the fields that are asked for."""
    box.put("a.jsonl", '{"data": [{"id": 1}, {"id": 2}]}\n')
    assert "records_path leads into a JSON document" in error(box["a.jsonl"], records_path="data")
    assert [row["id"] for row in rows(box["a.jsonl"], records_path="data", format="json")] == [1, 2]
