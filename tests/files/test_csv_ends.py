"""Text that is cut off within quotes, and cells that no zone has."""

from __future__ import annotations

import csv as python_csv
import io

import pytest
from filebox import error, ids, rows, tap_of
from hypothesis import given
from hypothesis import strategies as st

from burler.errors import DeclarationError
from burler.files import Csv, read
from burler.testing import run_tap

ESCAPED = Csv(escapechar="\\", doublequote=False)
BOTH = Csv(escapechar="\\")


@pytest.mark.parametrize(
    "text",
    [
        'id,name\n1,"abc\n2,def\n3,ghi\n',
        'id,name\n1,"abc\\"',
        'id,name\n1,"',
        'id,name\n1,"a\\\\b',
        'id,name\n1,"a\\"b\n2,c',
        'id,name\n"1\n',
    ],
)
@pytest.mark.parametrize("options", [ESCAPED, BOTH])
def test_a_quote_that_never_ends_where_an_escape_is_declared(box, text, options):
    box.put("a.csv", text)
    said = error(box["a.csv"], csv=options)
    assert "quote" in said or "fields" in said or "no row" in said or "first row" in said, said


@pytest.mark.parametrize(
    "text",
    [
        'id,name\n1,"abc"\n',
        'id,name\n1,"abc"',
        'id,name\n1,"abc\\""',
        'id,name\n1,"abc\\\\"',
        'id,name\n1,""',
        "id,name\n1,abc",
        'id,name\n1,a\\"bc',
        'id,name\n1,"a, b"\n',
    ],
)
@pytest.mark.parametrize("options", [ESCAPED, BOTH])
def test_values_that_end_as_they_should_where_an_escape_is_declared(box, text, options):
    box.put("a.csv", text)
    assert [row["id"] for row in rows(box["a.csv"], csv=options)] == [1]


CELLS = st.text(st.sampled_from('ab"\\,\n é'), max_size=6)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5), st.integers(0, 60))
def test_what_is_whole_passes_and_what_is_cut_in_its_last_value_does_not(table, cut):
    sink = io.StringIO()
    writer = python_csv.writer(
        sink, quoting=python_csv.QUOTE_ALL, escapechar="\\", doublequote=False, lineterminator="\n"
    )
    writer.writerow(["a", "b"])
    writer.writerows(table)
    import fsspec

    store, whole = fsspec.filesystem("memory"), sink.getvalue()
    options = Csv(null_values=(), escapechar="\\", doublequote=False, block_bytes=64)
    store.pipe("/h/x.csv", whole.encode())
    found = [row for batch in read("memory://h/x.csv", csv=options) for row in batch.to_pylist()]
    assert found == [dict(zip("ab", row, strict=True)) for row in table]
    last = table[-1][1]
    body = last.replace("\\", "\\\\").replace('"', '\\"')
    begin = whole.rindex(f'"{body}"\n')
    part = whole[: begin + 1 + cut % (len(body) + 1)]
    if part.endswith("\\") and (len(part) - len(part.rstrip("\\"))) % 2:
        return  # cut within an escape: pyarrow takes it for a letter, or for nothing
    store.pipe("/h/y.csv", part.encode())
    with pytest.raises(Exception, match=r"quote that never ends|first row|fields"):
        list(read("memory://h/y.csv", csv=options))


@pytest.mark.parametrize("options", [Csv(), ESCAPED, BOTH])
@pytest.mark.parametrize("value", ["\n", "\r\n", "\n\n", ",\n", "a\n"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_a_last_value_that_ends_with_its_line(box, options, value, end):
    box.put("a.csv", f'name,id\nx,1\n"{value}",2\nx,3\n')
    assert ids(run_tap(tap_of(box["a.csv"], csv=options))) == [1, 2, 3]
    box.put("b.csv", f'id,name\n1,"{value}"{end}')
    assert [row["id"] for row in rows(box["b.csv"], csv=options)] == [1]
    box.put("c.csv", f'id,name\n1,"{value}')
    assert "quote that never ends" in error(box["c.csv"], csv=options)


@pytest.mark.parametrize("text", ['id,"name\n1,2\n3,4\n', '"', 'id,"name', '"id\n1\n'])
def test_a_header_whose_quote_never_ends_is_not_a_file_without_rows(box, text):
    box.put("a.csv", text)
    assert "row 1: a quote that never ends" in error(box["a.csv"])
    box.put("b.csv", 'id,"name"')
    assert rows(box["b.csv"]) == []


def test_a_cut_value_that_came_in_two_reads(box):
    box.put("a.csv", 'id,name\n1,"' + "x" * 150)
    assert "quote that never ends" in error(box["a.csv"], csv=Csv(block_bytes=100), max_line_bytes=100_000)


def test_rows_are_not_given_twice_when_a_long_one_comes_late(box):
    """Rows of several blocks are left out when the file is read once more."""
    box.put("a.csv", "id,name\n" + "".join(f"{i},a\n" for i in range(5000)) + f"5000,{'x' * 30_000}\n5001,b\n")
    assert [row["id"] for row in rows(box["a.csv"], csv=Csv(block_bytes=1024))] == list(range(5002))


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Paris"])
@pytest.mark.parametrize("moment", ["9999-12-31 23:59:59", "0001-01-01 00:00:00"])
def test_a_moment_that_has_no_place_in_utc_is_a_matter_of_its_row(box, zone, moment, caplog):
    box.put("a.csv", f"id,at\n1,{moment}\n2,2024-05-01 10:00:00\n")
    tap = tap_of(box["a.csv"], csv=Csv(zone=zone), declared={"on_bad_record": "skip"})
    out = run_tap(tap)
    assert not out.result.errors and ids(out)[-1] == 2
    said = error(box["a.csv"], csv=Csv(zone=zone))
    assert said == "no error" or ("at" in said and "OverflowError" not in said)


@pytest.mark.parametrize("number", ["9999999999999999999", "-9999999999999999999", "9223372036854775808"])
def test_whole_numbers_of_nineteen_digits_keep_them_all(box, number):
    box.put("a.csv", f"id,total\n{number},1\n")
    assert rows(box["a.csv"], schema={"properties": {"id": {"type": "integer"}}}) == [{"id": int(number)}]


@pytest.mark.parametrize("encoding", ["base64", "rot13", "hex"])
def test_a_codec_that_is_no_encoding(encoding):
    with pytest.raises(DeclarationError, match="is not known"):
        Csv(encoding=encoding)
