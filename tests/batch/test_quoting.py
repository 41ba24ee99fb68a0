"""Errors about a file that a message named say where and what, and never show anything that stands in it: who named the
file may not be who reads the log."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from piped import SCHEMA, batch, config, converted, expanded, file, packed

from burler.batch import read
from burler.errors import BatchError

SECRET = "hunter2-of-root"
CSV = {"name": "csv"}


def parquet(**columns: list[object]) -> bytes:
    made = io.BytesIO()
    pq.write_table(pa.table(columns), made)
    return made.getvalue()


def text(*rows: str) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


FAULTS = {
    "no JSON": (text('{"id": 1}', f"root:{SECRET}:0:0"), {}, "line 2: it is no JSON object"),
    "JSON that is cut off": (f'{{"id": "{SECRET}'.encode(), {}, "line 1: it is cut off"),
    "a CSV of other columns": (text(f"{SECRET}:x:0:0", "bin:x:1:1"), {"format": CSV}, "none of its columns"),
    "CSV with a field too many": (text("id,name", f"1,{SECRET},3"), {"format": CSV}, "row 2: 3 fields"),
    "CSV with a quote too many": (text("id,name", f'1,{SECRET}"x"'), {"format": CSV}, "row 2: a quote within"),
    "CSV that is cut off": (text("id,name", f'1,"{SECRET}'), {"format": CSV}, "row 2: a quote that never ends"),
    "CSV with a lone return": (text("id,name", f"1,{SECRET}\rx"), {"format": CSV}, "row 2: a carriage return"),
    "CSV in another encoding": (f"id,name\n1,{SECRET}ü\n".encode("latin-1"), {"format": CSV}, "row 2: it is no text"),
    "CSV with another value": (text("id,name", f"{SECRET},x"), {"format": CSV}, "row 2: field 'id': its value is no"),
    "no gzip": (text(SECRET), {"compression": {"name": "gzip"}}, "it is no gzip file"),
    "more behind gzip": (
        gzip.compress(text('{"id": 1}')) + SECRET.encode(),
        {"compression": {"name": "gzip"}},
        "something else behind the end of its gzip data",
    ),
    "no Arrow": (text(SECRET), {"format": {"name": "arrow"}}, "it is no Arrow file"),
    "Parquet of other columns": (parquet(**{SECRET: [1]}), {"format": {"name": "parquet"}}, "none of its columns"),
    "Parquet with another value": (
        parquet(id=[SECRET]),
        {"format": {"name": "parquet"}},
        "row 1: field 'id': a value can't be held exactly; the schema wants an integer",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_can_not_be_read(tmp_path: Path, fault: str) -> None:
    content, form, says = FAULTS[fault]
    run = expanded(SCHEMA, batch(file(tmp_path / "a", content), **form))
    check(run.error, tmp_path, says)


def test_a_row_that_new_files_can_not_hold(tmp_path: Path) -> None:
    """The key, too, is the row's."""
    messages = (SCHEMA, batch(file(tmp_path / "a", text('{"id": 1}', f'{{"id": "{SECRET}"}}'))))
    for form in ("parquet", "arrow", "csv"):
        run = converted(config(tmp_path / "new", form), *messages)
        check(run.error, tmp_path, "row 2: field 'id': a value can't ")


def test_a_row_that_columns_can_not_hold(tmp_path: Path) -> None:
    message = batch(file(tmp_path / "a", text('{"id": 1}', f'{{"id": "{SECRET}"}}')))
    with pytest.raises(BatchError) as caught:
        list(read(message, SCHEMA["schema"]).arrow())
    check(caught.value, tmp_path, "row 2: field 'id': a value can't ", where="")


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv"])
def test_rows_of_a_tap_itself_are_shown_if_log_values_asks_for_them(
    tmp_path: Path, request: pytest.FixtureRequest, form: str
) -> None:
    integer = {"type": ["null", "integer"]}
    schema = {**SCHEMA, "schema": {"properties": {"id": integer, "n": integer}}}
    row = {"type": "RECORD", "stream": "users", "record": {"id": 7, "n": "seven"}}
    hidden = str(packed(config(tmp_path, form), schema, row).error)
    assert "field 'n': a value can't " in hidden and "seven" not in hidden
    request.getfixturevalue("values_in_logs")
    assert "seven" in str(packed(config(tmp_path, form), schema, row).error)


def check(error: Exception | None, folder: Path, says: str, where: str = "line 2: ") -> None:
    assert isinstance(error, BatchError)
    assert str(error).startswith(f"{where}stream 'users': batch file 'file://{folder}/a'"), error
    assert says in str(error)
    assert SECRET[:6] not in str(error)
