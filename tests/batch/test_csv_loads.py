"""CSV files of a BATCH load into other programs without loss: PostgreSQL's COPY, DuckDB, Python's csv module."""

from __future__ import annotations

import csv
import io
import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
from csv_reference import HOSTILE
from piped import lines_of, written

SCHEMA = {
    "properties": {
        "id": {"type": "integer"},
        "text": {"type": ["null", "string"]},
        "amount": {"type": ["null", "number"], "multipleOf": 0.01},
        "big": {"type": ["null", "integer"]},
        "ok": {"type": ["null", "boolean"]},
        "at": {"type": ["null", "string"], "format": "date-time"},
        "document": {"type": ["null", "object"]},
    }
}
# PostgreSQL holds no NUL in text, and says so.
TEXTS = [text for text in HOSTILE if "\0" not in text]
ROWS = [
    {"id": number, "text": text, "document": {"text": text, "n": [1, {"deep": None}]}}
    for number, text in enumerate(TEXTS)
] + [
    {"id": 1000, "text": None},
    {"id": 1001, "amount": "12345678901234567890.10", "big": 10**30, "ok": True, "at": "2024-01-02T03:04:05.123456Z"},
    {"id": 1002, "amount": "-0.01", "big": -(10**18), "ok": False, "document": {}},
]  # fmt: skip
LINES = [re.sub(r'"(-?\d+\.\d\d)"', r"\1", json.dumps(row, ensure_ascii=row["id"] % 2 == 0)) for row in ROWS]


def file(folder: Path, **options: object) -> Path:
    """A file with all rows."""
    path = folder / "rows.csv"
    path.write_bytes(written("csv", SCHEMA, *LINES, options=options))
    return path


def check(found: list[tuple]) -> None:
    """Hold rows as a program has loaded them against those that were written."""
    assert len(found) == len(ROWS)
    for row, (number, text, amount, big, ok, at, document) in zip(ROWS, found, strict=True):
        assert number == row["id"]
        assert text == row.get("text")
        assert amount == (Decimal(row["amount"]) if "amount" in row else None)
        assert str(amount) == str(row.get("amount"))
        assert big == row.get("big")
        assert ok is row.get("ok")
        assert at == row.get("at")
        assert (None if document is None else json.loads(document)) == row.get("document")


@pytest.fixture(scope="module")
def server():
    from support import postgres

    try:
        block = postgres.shared()
        started = block.__enter__()
    except postgres.Missing as missing:
        pytest.skip(str(missing))
    yield started
    block.__exit__(None, None, None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "format csv, header, null ''"),
        ({"delimiter": "\t", "line_end": "\r\n"}, "format csv, header match, null '', delimiter e'\\t'"),
        ({"delimiter": "\x01", "null": "\\N", "header": False}, "format csv, null '\\N', delimiter e'\\x01'"),
        ({"delimiter": "|", "quote_char": "'"}, "format csv, header, null '', delimiter '|', quote ''''"),
    ],
    ids=["defaults", "tabs", "null-text", "other-quotes"],
)
def test_postgresql_loads_it_by_copy(server, tmp_path, options, said):
    import psycopg

    with psycopg.connect(server.url(server.new_database())) as connection, connection.cursor() as cursor:
        cursor.execute("set timezone = 'UTC'")
        cursor.execute(
            "create table rows (id bigint, text text, amount numeric, big numeric, ok boolean, at timestamptz, "
            "document jsonb)"
        )
        with cursor.copy(f"copy rows from stdin ({said})") as copy:
            copy.write(file(tmp_path, **options).read_bytes())
        cursor.execute(
            'select id, text, amount, big, ok, to_char(at, \'YYYY-MM-DD"T"HH24:MI:SS.US"Z"\'), document::text '
            "from rows order by id"
        )
        check(cursor.fetchall())


@pytest.mark.parametrize("options", [{}, {"delimiter": "|", "line_end": "\r\n"}, {"header": False, "null": "\\N"}])
def test_duckdb_loads_it_with_given_types(tmp_path, options):
    import duckdb

    path = file(tmp_path, **options)
    types = {
        "id": "BIGINT", "text": "VARCHAR", "amount": "DECIMAL(38,2)", "big": "HUGEINT", "ok": "BOOLEAN",
        "at": "VARCHAR", "document": "VARCHAR",
    }  # fmt: skip
    found = duckdb.execute(
        "select * from read_csv(?, columns = ?, header = ?, delim = ?, quote = '\"', escape = '\"', nullstr = ?, "
        "auto_detect = false, allow_quoted_nulls = false) order by id",
        [str(path), types, options.get("header", True), options.get("delimiter", ","), options.get("null", "")],
    ).fetchall()
    check(found)


def test_pythons_csv_module_reads_the_same_cells(tmp_path):
    rows = csv.DictReader(io.StringIO(file(tmp_path).read_bytes().decode(), newline=""), strict=True)
    for row, wanted in zip(rows, ROWS, strict=True):
        assert row["text"] == (wanted.get("text") or "")
        assert row["amount"] == wanted.get("amount", "")
        assert row["ok"] == {True: "true", False: "false", None: ""}[wanted.get("ok")]
        assert row["document"] == "" or json.loads(row["document"]) == wanted["document"]


def test_what_postgresql_exports_is_read(server):
    import psycopg

    with psycopg.connect(server.url(server.new_database())) as connection, connection.cursor() as cursor:
        cursor.execute(
            "create table rows (id bigint, text text, amount numeric, big numeric, ok boolean, document json)"
        )
        cursor.executemany(
            "insert into rows values (%s, %s, %s, %s, %s, %s::json)",
            [
                (row["id"], row.get("text"), row.get("amount"), row.get("big"), row.get("ok"), _document(row))
                for row in ROWS
            ],
        )
        with cursor.copy(
            "copy (select document, ok, big, amount, text, id from rows) to stdout (format csv, header)"
        ) as out:
            data = b"".join(map(bytes, out))
    _check_read(data)


def test_what_duckdb_exports_is_read(tmp_path):
    import duckdb

    connection = duckdb.connect()
    connection.execute(
        "create table rows (id bigint, text varchar, amount decimal(38,2), big hugeint, ok boolean, document varchar)"
    )
    connection.executemany(
        "insert into rows values (?, ?, ?, ?, ?, ?)",
        [[row["id"], *(row.get(name) for name in ("text", "amount", "big", "ok")), _document(row)] for row in ROWS],
    )
    connection.execute(f"copy rows to '{tmp_path}/out.csv' (header, force_quote (text))")
    _check_read((tmp_path / "out.csv").read_bytes())


def _document(row):
    """JSON over several lines, as some write it."""
    return json.dumps(row["document"], indent=1) if "document" in row else None


def _check_read(data):
    schema = {"properties": {name: node for name, node in SCHEMA["properties"].items() if name != "at"}}
    found = [json.loads(line, parse_float=Decimal) for line in lines_of(data, "csv", schema).splitlines()]
    assert len(found) == len(ROWS)
    for row, wanted in zip(sorted(found, key=lambda row: row["id"]), ROWS, strict=True):
        assert row["text"] == wanted.get("text")
        assert row["amount"] == (Decimal(wanted["amount"]) if "amount" in wanted else None)
        assert row["big"] == wanted.get("big")
        assert row["ok"] is wanted.get("ok")
        assert row["document"] == wanted.get("document")
