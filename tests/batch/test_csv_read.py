"""CSV files of a BATCH as rows: burler's own, exports of databases, and files that are not what the message says."""

from __future__ import annotations

import csv
import io
import json
import random
import sys
import tracemalloc
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from piped import lines_of, pages_of

from burler.errors import BatchError, MissingExtra

SCHEMA = {
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["null", "string"]},
        "paid": {"type": ["null", "boolean"]},
        "price": {"type": ["null", "number"]},
        "tags": {"type": ["null", "array"]},
    }
}
TIMES = {
    "properties": {
        "name": {"type": "string"},
        "day": {"type": ["null", "string"], "format": "date"},
        "at": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
    }
}
TWO = {"properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}}}
exact = msgspec.json.Decoder(float_hook=Decimal).decode


def lines(data, schema=SCHEMA, reports=None, **options):
    """The lines of a file's rows."""
    data = data.encode() if isinstance(data, str) else data
    return lines_of(data, "csv", schema, told=reports, **options)


def rows(data, schema=SCHEMA, reports=None, **options):
    return [exact(line) for line in lines(data, schema, reports, **options).splitlines()]


def test_cells_become_values_of_their_fields_types():
    given = lines('id,name,paid,price,tags\n1,"Ann, ""A""",true,1.10,"[""a"",{""b"":1.0}]"\n-2,,,1E400,\n')
    assert given == (
        b'{"id":1,"name":"Ann, \\"A\\"","paid":true,"price":1.10,"tags":["a",{"b":1.0}]}\n'
        b'{"id":-2,"name":null,"paid":null,"price":1E400,"tags":null}\n'
    )


def test_nothing_is_null_and_empty_quotes_are_the_empty_text():
    assert rows('id,name\n1,\n2,""\n3," "\n', TWO) == [
        {"id": 1, "name": None},
        {"id": 2, "name": ""},
        {"id": 3, "name": " "},
    ]


def test_the_null_text_in_quotes_is_text():
    data = '1\tNULL\n2\t"NULL"\n3\t\n'
    assert [row["name"] for row in rows(data, TWO, header=False, delimiter="\t", null="NULL")] == [None, "NULL", ""]


def test_columns_are_found_by_their_names():
    reports = []
    given = rows('name,more,id,"odd, one"\nAnn,5,1,6\n', TWO, reports)
    assert given == [{"id": 1, "name": "Ann"}]
    assert reports == ["stream 'users': columns that the schema does not know are left out: 'more', 'odd, one'"]


def test_columns_that_are_not_there_are_null():
    assert rows("id\n1\n", TWO) == [{"id": 1, "name": None}]


def test_without_header_columns_are_found_by_their_place():
    assert rows("1,Ann\n2,Bob\n", TWO, header=False) == [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}]
    assert rows("Ann,x,1\n", TWO, header=False, columns=["name", "more", "id"]) == [{"id": 1, "name": "Ann"}]


def test_without_a_schema_all_is_text():
    assert rows('a,b\n1,\n2,"x"\n', None) == [{"a": "1", "b": None}, {"a": "2", "b": "x"}]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends(end, last):
    data = f'id,name{end}1,"a{end}b"{end}{end}2,c' + (end if last else "")
    assert rows(data, TWO) == [{"id": 1, "name": f"a{end}b"}, {"id": 2, "name": "c"}]


def test_a_byte_order_mark_is_no_text_at_the_beginning_alone():
    data = "\ufeffid,name\n1,\ufeffa\n" + "2,b\n"
    assert rows(data, TWO) == [{"id": 1, "name": "\ufeffa"}, {"id": 2, "name": "b"}]
    assert rows('\ufeff"id",name\n1,a\n', TWO) == [{"id": 1, "name": "a"}]


def test_rows_and_their_numbers_are_right_wherever_a_big_file_is_cut_into_blocks():
    """Among cells with quotes, delimiters, line ends and byte order marks, in blocks of a megabyte."""
    chance, kinds = random.Random(1), ['a,b\n"c"\n', "", '"', "\n\n\n", "plain", '"\n', '\n"', "x" * 60, "\ufeffa"]
    names = [chance.choice(kinds) * chance.randrange(1, 9) for _ in range(80_000)]
    cells = ['"' + name.replace('"', '""') + '"' for name in names]
    data = "name,id\n" + "".join(f"{cell},{number}\n" for number, cell in enumerate(cells))
    assert len(data) > 3 << 20
    assert [row["name"] for row in rows(data, {"properties": {"name": {"type": "string"}, "id": {}}})] == names
    for line, said in (
        ("a,x\n", "row 80,002: field 'id': its value is no integer"),
        ("1,2,3\n", r"row 80,002: 3 fields, where 2 columns are expected\.\n  Is it cut off"),
        ('1,2"3\n', "row 80,002: .*a quote within a field"),
        ('1,"23\n', "row 80,002: .*a quote that never ends"),
    ):
        with pytest.raises(BatchError, match=said):
            rows(data + line, TWO)


def test_a_file_of_one_column_may_hold_null_in_a_row():
    one = {"properties": {"v": {"type": ["null", "string"]}}}
    assert rows('v\n\n"a"\n""\n\n', one) == [{"v": None}, {"v": "a"}, {"v": ""}, {"v": None}]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_file_of_one_column_without_header_may_begin_with_nulls(end):
    one = {"properties": {"v": {"type": ["null", "integer"]}}}
    data = end.join([b"", b"", b"1", b"", b""])
    assert rows(data, one, header=False) == [{"v": None}, {"v": None}, {"v": 1}, {"v": None}]
    assert rows(end, one, header=False) == [{"v": None}]
    assert rows(end * 2 + b"1", one, header=False, columns=["v"]) == [{"v": None}, {"v": None}, {"v": 1}]
    assert rows(end * 2 + b"v" + end + b"1" + end, one) == [{"v": 1}]
    assert rows(end * 2 + b"1,x" + end, TWO, header=False) == [{"id": 1, "name": "x"}]
    assert rows(b"", one, header=False) == []


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("+5", "5"), ("007", "7"), ("-00.50", "-0.50"), (".5", "0.5"), ("5.", "5"), (" 12 ", "12"), ("1e5", "1e5"),
        ("1E-400", "1E-400"), ("-0", "-0"), ('"12.50"', "12.50"), ('""', "null"), ("12345678901234567890.10",) * 2,
    ],
)  # fmt: skip
def test_numbers_as_other_tools_spell_them(cell, value):
    assert lines(f"id,price\n{cell if '.' not in cell and 'E' not in cell else 1},{cell}\n").split(b'"price":')[1] == (
        f'{value},"tags":null}}\n'.encode()
    )


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("t", True),
        ("f", False),
        ("True", True),
        ("FALSE", False),
        ("1", True),
        ("0", False),
        ('"yes"', True),
        ("no", False),
    ],
)
def test_truth_values_as_other_tools_spell_them(cell, value):
    assert rows(f"id,paid\n1,{cell}\n2,\n")[0]["paid"] is value


def test_json_over_several_lines_comes_on_one():
    assert lines('id,tags\n1,"[1,\n2]"\n').endswith(b'"tags":[1, 2]}\n')
    given = lines('id,tags\n1,"[\n  1.10,\r\n  ""a\\nb""\n]"\n2,[]\n3,"[""\\ud83d""]"\n')
    assert [json.loads(line)["tags"] for line in given.splitlines()] == [[1.1, "a\nb"], [], ["\ud83d"]]
    assert b"1.10" in given


@pytest.mark.parametrize(
    "value", ["{1,2}", "1,2", "1] [2", "[1", "1],[2", "tru", "'a'", "[01]", '{"a":1}{"b":2}', "NaN", "[NaN]"]
)
def test_what_is_no_json_is_refused(value):
    cell = '"' + value.replace('"', '""') + '"'
    with pytest.raises(BatchError, match=r"row 3: field 'tags': .* is no JSON"):
        rows(f"id,tags\n1,[]\n2,{cell}\n3,[2]\n")


def test_pieces_of_json_in_two_cells_do_not_make_up_for_each_other():
    with pytest.raises(BatchError, match="row 2: field 'tags'"):
        rows('id,tags\n1,"{""a"":1"\n2,"""b"":2}"\n')
    with pytest.raises(BatchError, match="row 2: field 'tags'"):
        rows('id,tags\n1,"1,2"\n2,""\n')


@pytest.mark.parametrize(
    ("column", "cell", "said"),
    [
        ("id", "12a", "row 3: field 'id': its value is no integer. Correct the file, or the schema of its stream"),
        ("id", "1 2", "is no integer"),
        ("id", "1.5", "row 3: field 'id': its value is no integer"),
        ("id", "1e-2", "is no integer"),
        ("id", "1e99999999999999999999", "is no integer"),
        ("day", "2024-02-30", r"row 3: field 'day': its value is no date \(YYYY-MM-DD\)\. Correct the file"),
        ("day", "2024-05-01T10:00:00Z", "is no date"),
        ("at", "yesterday", "row 3: field 'at': its value is no date-time in years 1 to 9999. Correct the file"),
        ("at", "2024-05-01T24:00:00Z", "is no date-time"),
        ("at", "0000-05-01T00:00:00Z", "is no date-time"),
        ("id", "1,5", "row 3: 3 fields, where 2 columns are expected"),
        ("price", "NaN", "row 3: field 'price': its value is no number"),
        ("price", "Infinity", "is no number"),
        ("price", "١٢", "is no number"),
        ("price", ".", "is no number"),
        ("price", "e5", "is no number"),
        ("paid", "maybe", "row 3: field 'paid': its value is neither true nor false"),
        ("paid", "2", "is neither true nor false"),
    ],
)
def test_a_cell_that_is_none_of_its_field_is_named_with_its_row(column, cell, said):
    schema = {"properties": {**SCHEMA["properties"], **TIMES["properties"]}}
    with pytest.raises(BatchError, match=said):
        rows(f"name,{column}\na,\nb,{cell}\nc,\n", schema)


@pytest.mark.parametrize("cell", ["3.0", "1e2", "1E400", "-0", "12345678901234567890123"])
def test_integers_stay_digit_for_digit(cell):
    assert lines(f"id,name\n{cell},a\n", TWO).startswith(b'{"id":' + cell.encode())


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("day", "2024-05-01"),
        ("day", "2024-05-01T00:00:00Z"),
        ("at", "2024-05-01T10:00:00Z"),
        ("at", "2024-05-01 10:00:00+02"),
        ("at", "2024-05-01"),
        ("at", "0001-01-01T00:00:00.123456789-11:00"),
    ],
)
def test_dates_and_times_that_a_column_of_parquet_could_hold_stay_as_they_are(column, cell):
    good = "2024-01-02" if column == "day" else "2024-01-02T03:04:05Z"
    given = rows(f"name,{column}\na,{cell}\nb,{good}\nc,\n", TIMES)
    assert [row[column] for row in given] == [cell, good, None]


def test_an_empty_text_where_dates_stand_is_null():
    """Some tools put all cells in quotes."""
    given = rows('"name","day","at"\n"","",""\n"a","2024-05-01","2024-05-01T00:00:00Z"\n', TIMES)
    assert given[0] == {"name": "", "day": None, "at": None}
    assert given[1] == {"name": "a", "day": "2024-05-01", "at": "2024-05-01T00:00:00Z"}


def test_a_last_row_that_may_be_cut_off_is_told():
    told = (
        "stream 'users': the last row of a file has no line end; if it was cut off there, its last value is not whole"
    )
    for data, count in (("id,name\n1,a\n2,b", 1), ("id,name\n1,a\n2,b\n", 0), ("id,name", 0), ("id,name\n1,a\r\n", 0)):
        reports = []
        rows(data, TWO, reports)
        assert reports == [told] * count


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ('id,name\n1,5"\n2,"x\ny"\n', "a quote within a field"),
        ('name\nx\r"y"\n', "row 2: .*carriage return"),
        ("id,name,id\n1,a,2\n", "two columns are named 'id'"),
        ("1,a\n2,b\n", "none of its columns is a field of the stream \\('id', 'name'\\)\\.\n  Is"),
        ("id;name\n1;a\n", "it has one column, named 'id;name': its delimiter is ';', not"),
        ("", "it is empty, and should begin with a row of names"),
        ("\n\n", "it is empty"),
        (b"(\xb5/\xfdabcd", "it is zstd.\n  The message says csv, not packed"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_refused(data, said):
    with pytest.raises(BatchError, match=said) as caught:
        rows(data, TWO)
    assert str(caught.value).count("\n") <= 2


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("id,name\n1,a\n", "(?s)row 1: it holds the names of the columns.*'header'"),
        ("1\n", "row 1: 1 fields, where 2 columns are expected"),
        ("1,a,b\n", "row 1: 3 fields"),
    ],
)
def test_a_file_without_header_must_have_the_columns_of_the_schema(data, said):
    with pytest.raises(BatchError, match=said):
        rows(data, TWO, header=False)


def test_a_file_without_header_and_schema_has_no_names():
    with pytest.raises(BatchError, match="its columns have no names"):
        rows("1,2\n", None, header=False)


def test_a_file_without_header_and_rows_is_empty():
    assert rows("", TWO, header=False) == []
    assert rows("id,name\n", TWO) == []


def test_quotes_are_letters_where_the_message_says_so():
    for said in (None, ""):
        assert rows('id|name\n1|5" disk\n2|"a"\n', TWO, delimiter="|", quote_char=said) == [
            {"id": 1, "name": '5" disk'},
            {"id": 2, "name": '"a"'},
        ]


@pytest.mark.parametrize(
    "options", [{"escape_char": '"'}, {"encoding": "UTF-8"}, {"escape_char": ""}, {"delimiter": None}]
)
def test_options_that_say_nothing_new_are_passed_over(options):
    assert rows("id,name\n1,a\n", TWO, **options) == [{"id": 1, "name": "a"}]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"escape_char": "\\"}, r"the option escape_char = '\\\\' is not known to this reader"),
        ({"encoding": "latin-1"}, "the option encoding = 'latin-1'"),
        ({"skip_rows": 1}, "the option skip_rows = 1 is not known"),
        ({"delimiter": "::"}, "csv: delimiter must be one letter"),
        ({"columns": "id"}, "columns must be a list"),
        ({"columns": 5}, "columns must be a list"),
        ({"columns": {"id": 1}}, "columns must be a list"),
        ({"header": "first"}, "header must be true or false"),
    ],
)
def test_options_that_would_change_what_is_read_are_refused(options, said):
    with pytest.raises(BatchError, match=said):
        rows("id,name\n1,a\n", TWO, **options)


def test_a_big_file_is_read_in_little_memory():
    data = b"id,name\n" + (b'1,"' + b"x" * 1000 + b'"\n') * 40_000
    rows("id,name\n1,a\n", TWO)  # what is imported for it is in memory now
    tracemalloc.start()
    count = sum(count for _, count in pages_of(data, "csv", TWO))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 40_000
    assert most < 20 << 20


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"'csv' needs the package 'pyarrow'.*[Ii]nstall"):
        rows("id,name\n1,a\n", TWO)


@given(st.text(alphabet='ab,"\n', max_size=30), st.text(alphabet='",\n\r a', max_size=6))
def test_any_text_is_read_as_python_reads_it_or_refused(text, end):
    try:
        found = rows("p,q\n" + text + end, {"properties": {"p": {"type": "string"}, "q": {"type": "string"}}})
    except BatchError:
        return
    wanted = [row for row in csv.reader(io.StringIO(text + end, newline=""), strict=True) if row]
    assert [[row["p"] or "", row["q"] or ""] for row in found] == wanted
