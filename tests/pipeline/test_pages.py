"""Pages of other kinds as they are worked with: their form, their rows, how they are cut and put together."""

from __future__ import annotations

import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from burler import JsonPage, json_page
from support.internals import pages


def page(text: str | bytes, *path: str) -> JsonPage:
    return JsonPage(text if isinstance(text, bytes) else text.encode(), path)


# ---- paths and forms --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("a", ("a",)),
        ("a.b", ("a", "b")),
        (["a.b", "c"], ("a.b", "c")),
        (("a", " "), ("a", " ")),
        ("", ()),
        ([], ()),
        ((), ()),
        (None, ()),
    ],
)
def test_paths(given, names):
    assert pages.path_of(given) == names


@pytest.mark.parametrize("given", [".", "a.", ".a", "a..b", [""], ["a", None], 5, True, b"a", {"a": 1}, iter("a")])
def test_what_is_no_path(given):
    with pytest.raises(ValueError, match="records_path must be names with dots"):
        pages.path_of(given)


@pytest.mark.parametrize(
    ("text", "path", "form"),
    [
        ("[]", (), "array"),
        (" \r\n\t[", (), "array"),
        ("{", (), "lines"),
        ("", (), "lines"),
        ("<", (), "lines"),
        ("[]", ("a",), "document"),
        ("{}", ("a",), "document"),
    ],
)
def test_the_form_follows_from_the_first_letter_and_the_path(text, path, form):
    assert pages.form_of(page(text, *path)) == form


# ---- what a page is -----------------------------------------------------------------------------------


def test_bytes_are_the_page_of_their_stream_and_a_json_page_is_its_own():
    assert pages.as_page(b"[]") == JsonPage(b"[]", None)
    assert pages.as_page(json_page(b"[]")) == JsonPage(b"[]", ())
    assert pages.as_page(json_page(b"[]", "a.b")) == JsonPage(b"[]", ("a", "b"))
    for other in ("[]", [], {}, None, 5, [b"[]"], pa.array([1]), pa.chunked_array([[1]]), pa.scalar(1)):
        assert pages.as_page(other) is None


@pytest.mark.parametrize("make", [pages.as_page, json_page])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_page_holds_bytes_of_its_own_without_a_byte_order_mark(make, kind):
    data = bytearray(b"\xef\xbb\xbf[1]")
    made = make(kind(data))
    data[4:5] = b"2"
    assert type(made.data) is bytes
    assert made.data == b"[1]"
    with pytest.raises(AttributeError):
        made.data = b""


def test_bytes_are_not_copied():
    data = b"[" + b"1," * 10_000 + b"1]"
    assert pages.as_page(data).data is data


def test_arrow_is_known_without_being_imported():
    table = pa.table({"a": [1]})
    assert pages.is_arrow(table) and pages.is_arrow(table.to_batches()[0])
    assert not pages.is_arrow(pa.array([1])) and not pages.is_arrow({}) and not pages.is_arrow(pa.schema([]))
    code = "import sys; from support.internals import pages; pages.as_page({}); pages.as_page(b''); "
    code += "sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_how_big_a_page_is():
    assert pages.size_bytes(page("[1]")) == 3
    table = pa.table({"a": pa.array(range(1000), pa.int64())})
    assert pages.size_bytes(table) == pages.size_bytes(table.to_batches()[0]) == 8000


# ---- cutting and joining --------------------------------------------------------------------------------


def test_tables_become_batches_of_some_thousand_rows_that_share_their_memory():
    table = pa.table({"a": range(25_000)})
    parts = pages.batches(table)
    assert parts is not None
    assert [part.num_rows for part in parts] == [10_000, 10_000, 5_000]
    assert pa.Table.from_batches(parts) == table
    assert parts[1].column(0).buffers()[1].address == table.column(0).chunk(0).buffers()[1].address
    whole = table.to_batches()[0]
    assert [part.num_rows for part in pages.batches(whole) or []] == [10_000, 10_000, 5_000]


def test_what_is_small_is_not_cut():
    assert pages.batches(pa.record_batch({"a": [1]})) is None
    assert pages.batches(page("[]")) is None
    assert pages.batches(pa.table({"a": pa.array([], pa.int64())})) == []
    chunks = pa.chunked_array([[1], [], [2]], pa.int64())
    assert [part.num_rows for part in pages.batches(pa.table({"a": chunks})) or []] == [1, 1]


def lines(*texts: bytes) -> list[JsonPage]:
    return [JsonPage(text) for text in texts]


def test_single_lines_that_follow_each_other_become_one_page():
    assert pages.joined(lines(b'{"a":1}', b' {"a":2}\r\n', b'{"a":3}\n'), ()) == [
        JsonPage(b'{"a":1}\n{"a":2}\n{"a":3}', ())
    ]


def test_only_single_lines_are_joined_and_the_order_stays():
    rows = [{"a": 0}]
    array, pretty, own = JsonPage(b"[]"), JsonPage(b'{\n"a":1}'), json_page(b'{"a":{}}', "a")
    table = pa.record_batch({"a": [1]})
    parts = [*lines(b'{"a":1}', b'{"a":2}'), rows, *lines(b'{"a":3}'), array, *lines(b'{"a":4}'), pretty, own, table]
    out = pages.joined(parts, ())
    assert out == [page('{"a":1}\n{"a":2}'), rows, page('{"a":3}'), array, page('{"a":4}'), pretty, own, table]


def test_documents_are_not_joined():
    parts = lines(b'{"a":[]}', b'{"a":[]}')
    assert pages.joined(parts, ("a",)) == parts


def test_a_joined_page_does_not_grow_for_ever():
    line = b'{"a":"%s"}' % (b"x" * 100_000)
    out = pages.joined(lines(*[line] * 50), ())
    assert 3 <= len(out) <= 6
    assert b"\n".join(part.data for part in out) == b"\n".join([line] * 50)


# ---- rows ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ['[{"n":%s}]', '{"n":%s}', '{"n":%s}\n{"n":0}', '{\n"n":%s\n}', '[{"n":%s},{"t":"\\ud800"}]']
)
@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("1", 1),
        ("-0", 0),
        (str(2**64), 2**64),
        ("1" * 40, int("1" * 40)),
        ("1.10", Decimal("1.10")),
        ("0." + "1" * 40, Decimal("0." + "1" * 40)),
        ("1e400", Decimal("1e400")),
        ("1E5", Decimal("1E5")),
    ],
)
def test_numbers_of_rows_are_exact(text, number, value):
    found = pages.rows_of(page(text % number))[0]["n"]
    assert found == value
    assert type(found) is type(value)
    assert str(found) == str(value)


def test_the_path_of_the_page_comes_before_that_of_the_stream():
    text = b'{"a":[{"x":1}],"b":[{"x":2}]}'
    assert pages.rows_of(JsonPage(text), ("b",)) == [{"x": 2}]
    assert pages.rows_of(JsonPage(text, ("a",)), ("b",)) == [{"x": 1}]
    assert pages.rows_of(JsonPage(b'{"x":3}', ()), ("b",)) == [{"x": 3}]


def test_null_at_the_end_of_a_path_is_no_row():
    assert pages.rows_of(page('{"a":{"b":null}}', "a", "b")) == []
    assert pages.rows_of(page('{"a":{"b":[]}}', "a", "b")) == []
    for text in ('{"a":null}', '{"a":{}}', "null", '{"a":{"b":{}}}', '{"a":{"b":""}}', ""):
        with pytest.raises(pages.PageError, match="records_path"):
            pages.rows_of(page(text, "a", "b"))


def test_rows_of_arrow():
    assert pages.rows_of(pa.record_batch({"a": [1, None]})) == [{"a": 1}, {"a": None}]
    with pytest.raises(pages.PageError, match="two columns of an Arrow page are named 'a'"):
        pages.rows_of(pa.table([[1], [2]], names=["a", "a"]))


def test_an_error_holds_the_rows_before_it():
    for text, rows in [('{"a":1}\n{"a":2}\n{', 2), ('[{"a":1},{"a":2},3]', 2), ('[{"a":1},{', 0), ('{"a":1}\n[]', 1)]:
        with pytest.raises(pages.PageError) as caught:
            pages.rows_of(page(text))
        assert len(caught.value.rows) == rows


def test_a_number_of_the_longest_exponent_is_an_error_of_the_page():
    with pytest.raises(pages.PageError, match="the exponent of a number is too large"):
        pages.rows_of(page('[{"a":1e99999999999999999999}]'))
    with pytest.raises(pages.PageError, match=r"line 2: .*the exponent of a number is too large") as caught:
        pages.rows_of(page('{"a":1}\n{"a":1e99999999999999999999}'))
    assert caught.value.rows == [{"a": 1}]


def test_the_place_is_named_and_nothing_of_the_page_is_shown():
    for body, fact in [(b'[{"a":1}, {"here"oops}]', "JSON is malformed"), (b'[{"a":1}, {"there', "it breaks off")]:
        with pytest.raises(pages.PageError, match=fact) as caught:
            pages.rows_of(page(body))
        assert "near" not in str(caught.value) and "here" not in str(caught.value)


def test_the_glimpse_shows_the_place(values_in_logs):
    filler = '{"a":1},' * 1000
    with pytest.raises(pages.PageError, match=r"\(byte 8008\), near .*\{\"a\":1\},\{\"here\"oops") as caught:
        pages.rows_of(page("[" + filler + '{"here"oops}]'))
    assert len(str(caught.value)) < 250
    with pytest.raises(pages.PageError, match=r"it breaks off, near .*there"):
        pages.rows_of(page("[" + filler + '{"there'))
    with pytest.raises(pages.PageError, match="byte 8007 is not UTF-8"):
        pages.rows_of(page(("[" + filler + '{"a":').encode() + b'"\xff"}]'))


# ---- docs/pages.md ---------------------------------------------------------------------------------------


def test_the_page_of_the_docs_runs():
    text = (Path(__file__).resolve().parents[2] / "docs" / "pages.md").read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(found) == 3
    scope = {"__name__": "snippet"}
    for block in found:
        exec(compile(block, "docs/pages.md", "exec"), scope)
        assert not scope["run_tap"](scope["tap"]).result.errors
