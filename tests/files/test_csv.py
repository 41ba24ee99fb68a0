"""CSV files of all sorts."""

from __future__ import annotations

import csv as python_csv
import io

import duckdb
import pytest
from filebox import error, rows, tap_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from burler.errors import DeclarationError, FileError
from burler.files import Csv, read
from burler.testing import run_tap

TEXT = {"properties": {"id": {"type": "string"}, "name": {"type": ["null", "string"]}}}


def test_fields_are_what_the_schema_says(box):
    box.put(
        "a.csv",
        'id,name,total,paid,at\n1,ann,12.50,true,2024-05-01T02:00:00+02:00\n"2","","-0.5","FALSE",""\n3,,,,\n',
    )
    assert rows(box["a.csv"]) == [
        {"id": 1, "name": "ann", "total": 12.5, "paid": True, "at": "2024-05-01T00:00:00Z"},
        {"id": 2, "name": "", "total": -0.5, "paid": False, "at": None},
        {"id": 3, "name": None, "total": None, "paid": None, "at": None},
    ]


@pytest.mark.parametrize("number", ["0.1", "12345678901234567890.123", "1e3", "-0", "123456789012345678901", "1.50"])
def test_numbers_are_kept_digit_for_digit(box, number):
    import msgspec

    box.put("a.csv", f"id,total\n1,{number}\n2,7\n3,0.25\n")
    out = run_tap(tap_of(box["a.csv"]))
    from decimal import Decimal

    assert Decimal(str(out.records("orders")[0]["total"])) == Decimal(str(msgspec.json.decode(number)))
    alone = box.put("b.csv", f"id,total\n1,{number}\n")
    batch = next(read(str(alone)))
    assert batch.to_pylist()[0]["total"] == number, "text, where no schema says what it is"


def test_every_number_goes_out_as_it_is_written(box, tmp_path):
    """Through the command line, since Python's floats would hide it."""
    import subprocess
    import sys

    numbers = ["12.50", "3.25", "0.10", "12345678901234567890.123", "100", "-7.00", "1.5"]
    box.put("a.csv", "id,total\n" + "".join(f"{i},{number}\n" for i, number in enumerate(numbers)))
    box.put("b.csv", "id,total\n" + "".join(f"{i},{number}\n" for i, number in enumerate(["1.50", "2.25"], 10)))
    box.put("c.csv", "id,total\n20,3.5\n21,4.125\n")
    (tmp_path / "tap_files.py").write_text(
        "import burler, burler.files\n"
        "tap = burler.tap('tap-files')\n"
        "schema = {'properties': {'id': {'type': 'integer'}, 'total': {'type': 'number'}}}\n"
        "@tap.sync('orders', key_properties='id', schema=schema)\n"
        "def orders(stream):\n"
        f"    yield from burler.files.read({box['*.csv']!r}, stream=stream)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "burler", "run", "tap_files.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    for number in [*numbers, "1.50", "2.25", "3.5", "4.125"]:
        assert f'"total":{number}}}' in done.stdout, number


@pytest.mark.parametrize("value", ["1.9", "x", "1,5", " 7", "0x10", "+7", "1_000", "٣", "true"])
def test_what_is_no_number_is_refused_with_field_and_value(box, value):
    box.put("a.csv", f'id,total\n1,2\n"{value}",3\n')
    said = error(box["a.csv"])
    assert "field 'id'" in said and repr(value) in said


def test_leading_zeros_stay_where_the_schema_says_text(box):
    box.put("a.csv", "id,name\n007,007\n")
    assert rows(box["a.csv"]) == [{"id": 7, "name": "007"}]
    assert rows(box["a.csv"], schema=TEXT) == [{"id": "007", "name": "007"}]


def test_an_empty_cell_of_a_field_that_may_not_be_null_is_empty_text(box):
    box.put("a.csv", "id,name\n,\n")
    assert rows(box["a.csv"], schema=TEXT) == [{"id": "", "name": None}]


def test_words_for_null_true_and_false(box):
    box.put("a.csv", 'id,name,total,paid\n1,NULL,NULL,yes\n2,"NULL","NULL",no\n')
    options = Csv(null_values=("NULL",), true_values="yes", false_values="no")
    assert rows(box["a.csv"], csv=options) == [
        {"id": 1, "name": None, "total": None, "paid": True},
        {"id": 2, "name": "NULL", "total": None, "paid": False},
    ]


def test_a_word_that_is_neither_true_nor_false_is_refused(box):
    box.put("a.csv", "id,paid\n1,true\n2,maybe\n3,false\n4,\n")
    said = error(box["a.csv"])
    assert "'paid' is a string" in said and "id=2" in said
    left = rows(box["a.csv"], declared={"on_bad_record": "skip"})
    assert left == [{"id": 1, "paid": True}, {"id": 3, "paid": False}, {"id": 4, "paid": None}]


def test_date_times_without_a_zone_are_refused_unless_the_author_names_it(box):
    times = ["2024-07-01 12:00:00", "2024-01-01T12:00:00.25", "2024-07-01 12:00", "2024-07-01T12:00:00Z", ""]
    box.put("a.csv", "id,at\n" + "".join(f"{i},{at}\n" for i, at in enumerate(times)))
    assert "zone" in error(box["a.csv"])
    assert [row["at"] for row in rows(box["a.csv"], csv=Csv(zone="UTC"))] == [
        "2024-07-01T12:00:00Z",
        "2024-01-01T12:00:00.250000Z",
        "2024-07-01T12:00:00Z",
        "2024-07-01T12:00:00Z",
        None,
    ]
    assert [row["at"] for row in rows(box["a.csv"], csv=Csv(zone="Europe/Paris"))] == [
        "2024-07-01T10:00:00Z",
        "2024-01-01T11:00:00.250000Z",
        "2024-07-01T10:00:00Z",
        "2024-07-01T12:00:00Z",
        None,
    ]


@pytest.mark.parametrize("at", ["2024-10-27 02:30:00", "2024-03-31 02:30:00"])
def test_an_hour_that_comes_twice_or_never_is_nobodys_guess(box, at):
    box.put("a.csv", f"id,at\n1,{at}\n")
    assert "zone" in error(box["a.csv"], csv=Csv(zone="Europe/Paris"))


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [("utf-8", b"\xef\xbb\xbf"), ("utf-16", b""), ("utf-16-le", b"\xff\xfe"), ("latin-1", b""), ("cp1252", b"")],
)
def test_encodings_and_byte_order_marks(box, encoding, mark):
    text = "id,name\n" + "".join(f"{i},zoë €\n" if encoding != "latin-1" else f"{i},zoë\n" for i in range(20_000))
    box.put("a.csv", mark + text.encode(encoding))
    found = rows(box["a.csv"], csv=Csv(encoding=encoding, block_bytes=1001))
    assert len(found) == 20_000 and found[-1]["name"].startswith("zoë")


def test_another_encoding_is_an_error_that_names_the_cure(box):
    box.put("head.csv", "id,naïve\n1,x\n".encode("latin-1"))
    box.put("body.csv", ("id,name\n" + "1,x\n" * 100_000 + "2,naïve\n").encode("latin-1"))
    box.put("wide.csv", "id,name\n1,x\n".encode("utf-16"))
    for name in ("head.csv", "body.csv", "wide.csv"):
        said = error(box[name])
        assert f"{name}'" in said and "it is no text in UTF-8" in said and "encoding=" in said, said
    assert "UTF-16" in error(box["head.csv"], csv=Csv(encoding="utf-16"))


def test_quotes_delimiters_and_line_ends(box):
    box.put("a.csv", 'id;name\r\n1;"a ""b""; c\r\nd"\r\n2;x\r\n')
    assert rows(box["a.csv"], csv=Csv(delimiter=";")) == [
        {"id": 1, "name": 'a "b"; c\r\nd'},
        {"id": 2, "name": "x"},
    ]
    box.put("b.tsv", "id\tname\n1\ta,b\n")
    assert rows(box["b.tsv"]) == [{"id": 1, "name": "a,b"}]
    box.put("c.csv", "id,name\n1,5\" disk\n2,'x'\n")
    assert rows(box["c.csv"], csv=Csv(quotechar=None)) == [{"id": 1, "name": '5" disk'}, {"id": 2, "name": "'x'"}]
    box.put("d.csv", "id|name\n1|'a|b'\n2|c\\|d\n")
    options = Csv(delimiter="|", quotechar="'", escapechar="\\")
    assert rows(box["d.csv"], csv=options) == [{"id": 1, "name": "a|b"}, {"id": 2, "name": "c|d"}]
    box.put("e.csv", "id,name\r1,x\r2,y\r")
    assert [row["id"] for row in rows(box["e.csv"], csv=Csv(strict_quotes=False))] == [1, 2]


def test_lines_before_the_header_and_files_without_one(box):
    box.put("a.csv", "made by us\n\nid,name\n1,x\n")
    assert rows(box["a.csv"], csv=Csv(skip_rows=1)) == [{"id": 1, "name": "x"}]
    box.put("b.csv", "1,x\n2,y\n")
    assert rows(box["b.csv"], csv=Csv(header=("id", "name"))) == [{"id": 1, "name": "x"}, {"id": 2, "name": "y"}]
    assert "named '1'" in error(box["b.csv"]) or "none of its columns" in error(box["b.csv"])
    assert "header=" in error(box["b.csv"])
    assert "row 1: 2 fields" in error(box["b.csv"], csv=Csv(header=("id",)))
    plain = next(read(box["b.csv"], csv=Csv(header=False))).to_pylist()
    assert plain == [{"column1": "1", "column2": "x"}, {"column1": "2", "column2": "y"}]
    box.put("c.csv", "old,names\n1,x\n")
    assert rows(box["c.csv"], csv=Csv(header=("id", "name"), skip_rows=1)) == [{"id": 1, "name": "x"}]


def test_a_wrong_delimiter_is_said_with_the_right_one(box):
    box.put("a.csv", "id;name\n1;x\n")
    said = error(box["a.csv"])
    assert "a.csv': it has one column, named 'id;name': its delimiter is ';'" in said and "Csv(delimiter=" in said


def test_columns_are_found_by_name_wherever_they_stand(box):
    box.put("1.csv", "id,name\n1,a\n")
    box.put("2.csv", "name,id\nb,2\n")
    box.put("3.csv", "total,id\n3.5,3\n")
    out = run_tap(tap_of(box["*.csv"]))
    assert out.records("orders") == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3, "total": 3.5}]


def test_a_new_column_is_said_and_an_unselected_one_is_not(box, caplog):
    box.put("1.csv", "id,name,colour\n1,a,red\n")
    out = run_tap(tap_of(box["*.csv"]), select="orders.id")
    assert out.records("orders") == [{"id": 1}]
    assert "colour" in caplog.text and "name" not in caplog.text.replace("named", "")


def test_two_columns_of_one_name_and_columns_without_one(box):
    box.put("1.csv", "id,name,name\n1,a,b\n")
    assert "two columns are named 'name'" in error(box["1.csv"])
    box.put("2.csv", "id,name,,\n1,a,,\n")
    assert rows(box["2.csv"]) == [{"id": 1, "name": "a"}]


@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff", "\ufeffid,name\n"])
def test_files_without_rows(box, text):
    box.put("1.csv", text)
    assert rows(box["1.csv"]) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("id,name\n" + "1,a\n" * 50_000 + "2", "row 50,002"),
        ('id\n1\n"2', "quote that never ends"),
    ],
)
def test_a_file_that_is_cut_off_or_ragged_is_an_error_with_its_place(box, text, place):
    box.put("torn.csv", text)
    said = error(box["torn.csv"])
    assert "torn.csv'" in said and place in said, said


@pytest.mark.usefixtures("values_in_logs")
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('id,name\n1,"abc\n2,x\n3,y"z\n4,d\n', "row 2"),
        ('id,name\r\n0,a\r\n1,"abc\r\n2,x\r\n3,y"z\r\n', "row 3"),
        ('id,name\n1,"abc\n2,x\n3,y" \n4,d\n', "row 2"),
        ('id,"name\n1,a\n2,"b\n3,c\n', "row 1"),
        ('id,name\n"1,a\n2,b\n3"x,c\n', "row 2"),
    ],
)
@pytest.mark.parametrize("block_bytes", [3, 7, 1 << 18])
def test_a_quote_that_stands_where_none_may_is_an_error(box, text, place, block_bytes):
    """pyarrow would take the rows up to the next quote into one field."""
    box.put("a.csv", text)
    said = error(box["a.csv"], csv=Csv(block_bytes=block_bytes))
    assert f"a.csv', {place}: a quote within a field, near " in said, said
    assert "quotechar=None" in said and "strict_quotes=False" in said


@pytest.mark.usefixtures("values_in_logs")
def test_a_stray_quote_far_from_its_end_is_found(box):
    rows_between = "".join(f'{i},"some, ""text"""\n' for i in range(3, 40_000))
    box.put("a.csv", f'id,name\n1,"a\nb"\n2,"it opens here\n{rows_between}')
    said = error(box["a.csv"])
    assert "row 3: a quote within a field, near " in said and '2,"it opens here' in said, said


@pytest.mark.usefixtures("values_in_logs")
def test_quotes_anywhere_where_the_author_says_so(box):
    box.put("a.csv", 'id,name\n1,5" disk\n2,"a"b "c"\n3,"d""e\nf" g\n4,h\n')
    assert [row["name"] for row in rows(box["a.csv"], csv=Csv(strict_quotes=False))] == [
        '5" disk', 'ab "c"', 'd"e\nf g', "h"
    ]  # fmt: skip
    box.put("b.csv", 'id,name\n1,a"\n2,"b\n3,c\n')
    said = error(box["b.csv"], csv=Csv(strict_quotes=False))
    assert "b.csv', row 3: a quote that never ends, near " in said


def test_what_was_noted_of_files_counts_when_quotes_are_allowed_anywhere(box):
    box.put("a.csv", "id,name\n1,a\n")
    first = run_tap(tap_of(box["*.csv"], csv=Csv()))
    box.put("b.csv", 'id,name\n2,"b" c\n')
    state = first.states[-1]
    assert [
        r["id"] for r in run_tap(tap_of(box["*.csv"], csv=Csv(strict_quotes=False)), state=state).records("orders")
    ] == [2]


QUOTED = st.lists(st.text(st.sampled_from('ab""",\n\r\\'), max_size=12), max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(QUOTED, st.booleans(), st.booleans())
def test_quotes_are_the_same_wherever_a_file_is_cut(box, pieces, is_doubled, is_strict):
    """The quick look at a file on its way, held against that at its whole."""
    filling = "x" * (4090 - sum(map(len, pieces)) // 2)
    box.put("a.csv", f"id,name\n{filling}," + "".join(pieces))
    found = []
    for size in (1 << 20, 4096):
        csv = Csv(doublequote=is_doubled, strict_quotes=is_strict, block_bytes=size)
        try:
            found.append([(row["id"], row["name"]) for page in read(box["a.csv"], csv=csv) for row in page.to_pylist()])
        except FileError as error:
            found.append(type(error))
    assert found[0] == found[1]


def test_a_row_that_is_longer_than_a_block_is_read_and_none_comes_twice(box):
    long = "x" * 300_000
    box.put("a.csv", "id,name\n" + "1,a\n" * 3000 + f'2,"{long}\n{long}"\n' + "3,b\n" * 3000)
    found = rows(box["a.csv"], csv=Csv(block_bytes=4096))
    assert [row["id"] for row in found] == [1] * 3000 + [2] + [3] * 3000
    assert found[3000]["name"] == f"{long}\n{long}"
    said = error(box["a.csv"], csv=Csv(block_bytes=4096), max_line_bytes=100_000)
    assert "row 3000 is longer than 100,000 bytes" in said or "longer than 100,000 bytes" in said
    assert "max_line_bytes" in said


def test_rows_of_extra_columns_are_numbered_on_when_a_block_grows(box):
    schema = {"properties": {"id": {"type": "integer"}, "_row": {"type": "integer"}}}
    box.put("a.csv", "id,name\n" + "1,a\n" * 3000 + f"2,{'x' * 30_000}\n3,b\n")
    found = rows(box["a.csv"], schema=schema, add=("_row",), csv=Csv(block_bytes=4096))
    assert [row["_row"] for row in found] == list(range(1, 3003))


@pytest.mark.parametrize(
    "options",
    [
        {"delimiter": ""},
        {"delimiter": "ab"},
        {"delimiter": "\n"},
        {"delimiter": "é"},
        {"quotechar": ","},
        {"encoding": "utf-99"},
        {"header": ()},
        {"header": "id"},
        {"skip_rows": -1},
        {"skip_rows": 1.5},
        {"skip_rows": True},
        {"block_bytes": 4096.5},
        {"zone": "Europe/Atlantis"},
        {"zone": "../etc/passwd"},
    ],
)
def test_options_that_can_not_be(options):
    with pytest.raises(DeclarationError, match=r"burler\.files\.Csv"):
        Csv(**options)


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


@settings(max_examples=60)
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=12), st.sampled_from([1, 7, 64]), st.booleans())
def test_whatever_python_writes_comes_out_again(table, block, all_quoted):
    sink = io.StringIO()
    writer = python_csv.writer(sink, quoting=python_csv.QUOTE_ALL if all_quoted else python_csv.QUOTE_MINIMAL)
    writer.writerow(["a", "b", "c"])
    writer.writerows(table)
    import fsspec

    store = fsspec.filesystem("memory")
    store.pipe("/h/x.csv", sink.getvalue().encode())
    options = Csv(null_values=(), block_bytes=block * 10)
    found = [row for batch in read("memory://h/x.csv", csv=options) for row in batch.to_pylist()]
    assert found == [dict(zip("abc", row, strict=True)) for row in table]


def test_duckdb_reads_the_same_rows(box):
    box.put(
        "a.csv.gz",
        "id,name,total,at\n"
        + "".join(f'{i},"na""me, {i}",{i}.{i % 100:02},2024-05-01T00:00:{i % 60:02}Z\n' for i in range(20_000)),
    )
    asked = (
        'select id, name, total, "at" from read_csv(?, types={"total": "DECIMAL(18,2)", "at": "VARCHAR"}) order by id'
    )
    wanted = duckdb.execute(asked, [box["a.csv.gz"]]).fetchall()
    found = [(row["id"], row["name"], row["total"], row["at"]) for row in rows(box["a.csv.gz"])]
    assert found == [(i, name, float(total), at) for i, name, total, at in wanted]
