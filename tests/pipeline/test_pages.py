"""Pages of other kinds: bytes of JSON in every form, Arrow tables, mixed; and what is said of broken ones."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import burler
from burler import JsonPage, json_page
from burler.errors import DeclarationError
from burler.testing import run_tap
from support.cli import python

SCHEMA = {"type": "object", "properties": {"a": {"type": ["null", "integer"]}, "x": {"type": "integer"}}}


def given(*pages, **options):
    """The records of pages, and the error."""
    tap = burler.tap("tap-x")
    tap.sync("s", schema=SCHEMA, **options)(lambda: iter(pages))
    out = run_tap(tap)
    return out.records("s"), "".join(map(str, out.result.errors.values()))


# ---- what a page is -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "names"),
    [("a", ("a",)), ("a.b", ("a", "b")), (["a.b", "c"], ("a.b", "c")), (("a", " "), ("a", " ")), ("", ()), ([], ())],
)
def test_paths(path, names):
    assert json_page(b"[]", path) == JsonPage(b"[]", names)
    text = b"[]"
    for name in reversed(names):
        text = b'{"%s":%s}' % (name.encode(), text.replace(b"[]", b'[{"a":1}]'))
    assert given(text if names else b'[{"a":1}]', records_path=path) == ([{"a": 1}], "")


@pytest.mark.parametrize("path", [".", "a.", ".a", "a..b", [""], ["a", None], 5, True, b"a", {"a": 1}, iter("a")])
def test_what_is_no_path(path):
    with pytest.raises(ValueError, match="records_path must be names with dots"):
        json_page(b"[]", path)
    with pytest.raises(DeclarationError, match="records_path must be names with dots"):
        burler.tap("tap-x").sync("s", records_path=path)(lambda: [])


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_page_holds_bytes_of_its_own_without_a_byte_order_mark(kind):
    data = bytearray(b'\xef\xbb\xbf[{"a":1}]')
    made = json_page(kind(data))
    data[9:10] = b"2"
    assert type(made.data) is bytes
    assert made.data == b'[{"a":1}]'
    with pytest.raises(AttributeError):
        made.data = b""
    assert given(kind(data)) == ([{"a": 2}], "")


def test_the_path_of_the_page_comes_before_that_of_the_stream():
    text = b'{"a":[{"x":1}],"b":[{"x":2}]}'
    pages = text, json_page(text, "a"), json_page(b'{"x":3}')
    assert given(*pages, records_path="b") == ([{"x": 2}, {"x": 1}, {"x": 3}], "")


def test_null_at_the_end_of_a_path_is_no_row():
    assert given(b'{"a":{"b":null}}', b'{"a":{"b":[]}}', records_path="a.b") == ([], "")
    for text in (b'{"a":null}', b'{"a":{}}', b"null", b'{"a":{"b":{}}}', b'{"a":{"b":""}}', b""):
        assert "records_path" in given(text, records_path="a.b")[1], text


def test_pages_of_all_kinds_come_in_their_order():
    """Single lines that follow each other become one page on the way, and nothing else does."""
    long = b'{"a":7}' + b" " * 100_000
    pages = [b'{"a":1}', b' {"a":2}\r\n', [{"a": 3}], {"a": 4}, b'{"a":5}\n', b'[{"a":6}]', *[long] * 50]
    pages += [b'{\n"a":8}', json_page(b'{"b":[{"a":9}]}', "b"), pa.record_batch({"a": [10]}), b'{"a":11}']
    records, error = given(*pages)
    assert [row["a"] for row in records] == [*range(1, 7), *[7] * 50, *range(8, 12)]
    assert not error


def test_big_tables_are_cut_and_whole():
    numbers = list(range(25_000))
    for page in (
        pa.table({"a": numbers}),
        pa.record_batch({"a": numbers}),
    ):
        assert [row["a"] for row in given(page)[0]] == numbers
    assert given(pa.table({"a": pa.array([], pa.int64())})) == ([], "")


def test_what_is_no_page():
    for page in (pa.array([1]), pa.chunked_array([[1]]), pa.scalar(1), pa.schema([])):
        assert f"yielded {type(page).__name__}; yield Arrow tables or batches" in given(page)[1]
    assert "yielded a string; yield rows (dicts), lists or iterators of rows, bytes of JSON" in given("[]")[1]


def test_pyarrow_is_not_loaded_for_pages_of_bytes():
    done = python(
        "-c",
        "import sys, burler; from burler.testing import run_tap; tap = burler.tap('t')\n"
        "tap.sync('a', schema={'properties': {'a': {}}})(lambda: b'[{\"a\":1}]')\n"
        "assert run_tap(tap).records('a') == [{'a': 1}]; sys.exit('pyarrow' in sys.modules)",
    )
    assert done.code == 0, done.stderr


# ---- broken ones ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rows"),
    [(b'{"a":1}\n{"a":2}\n{', 2), (b'[{"a":1},{"a":2},3]', 2), (b'[{"a":1},{', 0), (b'{"a":1}\n[]', 1)],
)
def test_the_rows_before_an_error_are_out(text, rows):
    records, error = given(text)
    assert len(records) == rows and "test_pages.py:" in error


def test_a_number_of_the_longest_exponent_is_an_error_of_the_page():
    assert "the exponent of a number is too large" in given(b'[{"a":1e99999999999999999999}]')[1]
    records, error = given(b'{"a":1}\n{"a":1e99999999999999999999}')
    assert re.search(r"line 2: .*the exponent of a number is too large", error)
    assert records == [{"a": 1}]


def test_columns_of_one_name():
    assert "two columns of an Arrow page are named 'a'" in given(pa.table([[1], [2]], names=["a", "a"]))[1]
    struct = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["b", "b"])
    assert "two fields of an Arrow struct are named 'b'" in given(pa.table({"a": struct}))[1]


def test_the_place_is_named_and_nothing_of_the_page_is_shown():
    for body, fact in [(b'[{"a":1}, {"here"oops}]', "JSON is malformed"), (b'[{"a":1}, {"there', "it breaks off")]:
        error = given(body)[1]
        assert fact in error and "near" not in error and "here" not in error


def test_the_glimpse_shows_the_place(values_in_logs):
    filler = b'{"a":1},' * 1000
    error = given(b"[" + filler + b'{"here"oops}]')[1]
    assert re.search(r"\(byte 8008\), near .*\{\"a\":1\},\{\"here\"oops", error)
    assert len(error) < 300
    assert re.search(r"it breaks off, near .*there", given(b"[" + filler + b'{"there')[1])
    assert "byte 8007 is not UTF-8" in given(b"[" + filler + b'{"a":"\xff"}]')[1]


# ---- docs/pages.md ---------------------------------------------------------------------------------------


def test_the_page_of_the_docs_runs():
    text = (Path(__file__).resolve().parents[2] / "docs" / "pages.md").read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(found) == 3
    scope = {"__name__": "snippet"}
    for block in found:
        exec(compile(block, "docs/pages.md", "exec"), scope)
        assert not scope["run_tap"](scope["tap"]).result.errors
