"""Pages that a sync function yields as the bytes of JSON: what comes out, in which order, what is said of bad ones."""

from __future__ import annotations

import json
import re

import pytest
from pageruns import SCHEMA, Lines, dicts, gives, run_pages, tap_of, written

import burler
from burler.errors import DeclarationError
from burler.testing import run_tap
from support.runs import run_into

ONE_TWO = [{"id": 1}, {"id": 2}]
PRETTY = json.dumps([{"id": 1, "any": {"deep": [1, {"x": 2}]}, "n": 1.5}, {"id": 2, "any": [1, 2]}], indent=2).encode()

# ---- forms --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page",
    [
        b'[{"id":1},{"id":2}]',
        b' \n\t[ {"id" : 1} , {"id" : 2} ]\r\n',
        b'\xef\xbb\xbf[{"id":1},{"id":2}]',
        b'\xef\xbb\xbf \n[{"id":1},{"id":2}]',
        b'{"id":1}\n{"id":2}',
        b'{"id":1}\n{"id":2}\n',
        b'{"id":1}\r\n{"id":2}\r\n',
        b'\n\n{"id":1}\n \n\r\n{"id":2}\n\n',
        b'\xef\xbb\xbf{"id":1}\n{"id":2}\n',
        b'{\n  "id": 1\n}\n{\n  "id": 2\n}\n',
        bytearray(b'[{"id":1},{"id":2}]'),
        memoryview(b'..[{"id":1},{"id":2}]')[2:],
        burler.json_page(b'\xef\xbb\xbf[{"id":1},{"id":2}]'),
        burler.json_page(bytearray(b'{"id":1}\n{"id":2}')),
        [b'{"id":1}', b'{"id":2}'],
        [b'[{"id":1}]', {"id": 2}],
        [[b'{"id":1}'], [[b'{"id":2}']]],
        ("rows", b'[{"id":1},{"id":2}]'),
        ("rows", [b'{"id":1}', b'[{"id":2}]']),
    ],
    ids=lambda page: "memoryview" if isinstance(page, memoryview) else repr(page),
)
def test_every_form_of_a_page_gives_its_rows(page):
    for fn in (
        (gives(page), lambda: page, gives([page]), gives(iter([page]))) if type(page) is bytes else (gives(page),)
    ):
        run = run_pages(fn)
        assert not run.result.errors
        assert run.records("rows") == ONE_TWO


@pytest.mark.parametrize("page", [b"", b" \r\n", b"\xef\xbb\xbf", b"[]", b" [ ] ", b"\n\n"])
def test_an_empty_page_has_no_rows(page):
    run = run_pages(gives({"id": 0}, page, b'{"id":1}', page, {"id": 2}))
    assert not run.result.errors
    assert run.records("rows") == [{"id": 0}, *ONE_TWO]


def test_one_object_over_many_lines_is_one_row():
    run = run_pages(gives(b'{"id":0}', b'{\n "id": 1,\n "any": {\n "x": [ 1 ]}\n}\n', b'{"id":2}'))
    assert run.records("rows") == [{"id": 0}, {"id": 1, "any": {"x": [1]}}, {"id": 2}]


def test_each_row_is_one_line_whatever_the_page_looks_like():
    for page in (PRETTY, PRETTY.replace(b"\n", b"\r\n"), PRETTY.replace(b"\n", b"\n\r\n\t ")):
        lines = written(gives(page))
        assert len(lines) == 2
        assert lines[0] == b'{"id":1,"n":1.5,"any":{"deep":[1,{"x":2}]}}'
        assert lines[1] == b'{"id":2,"any":[1,2]}'


@pytest.mark.parametrize(
    ("page", "row"),
    [
        (b'[{"id":1,"id":2}]', {"id": 2}),
        (b'[{"id":"x","id":2,"in":{"x":"y"},"in":{"x":1}}]', {"id": 2, "in": {"x": 1}}),
        (b'{"id":1,"new":1,"id":2}\n', {"id": 2}),
        (b'[{"id":2,"any":{"a":1,"a":2}}]', {"id": 2, "any": {"a": 2}}),
        (burler.json_page(b'{"r":[{"id":1}],"r":[{"id":2}]}', "r"), {"id": 2}),
    ],
)
def test_of_a_name_that_stands_twice_the_last_counts(page, row):
    assert run_pages(gives(page)).records("rows") == [row]


# ---- documents ----------------------------------------------------------------------------------

DOCUMENT = b'{"next":null,"result":{"total":[2],"items":[{"id":1},{"id":2}],"x":{"items":5}}}'


def test_records_path_in_every_style():
    decorated = burler.tap("t")

    @decorated.sync("rows", key_properties="id", schema=SCHEMA, records_path="result.items")
    def rows():
        yield DOCUMENT

    handled = burler.tap("t")
    handle = handled.stream("rows", key_properties="id", schema=SCHEMA, records_path=["result", "items"])
    handle.sync(lambda: DOCUMENT)

    classes = burler.tap("t")

    @classes.stream
    class Rows(burler.Stream):
        name = "rows"
        key_properties = "id"
        schema = SCHEMA
        records_path = "result.items"

        def sync(self):
            return DOCUMENT

    for tap in (decorated, handled, classes):
        run = run_tap(tap)
        assert not run.result.errors
        assert run.records("rows") == ONE_TWO


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("a", {"a": ONE_TWO}),
        ("a.b.c", {"a": {"b": {"c": ONE_TWO, "b": 1}}}),
        (["a.b"], {"a.b": ONE_TWO, "a": {"b": []}}),
        (("a.b", "c"), {"a.b": {"c": ONE_TWO}}),
        (["a`b", 'q"x', "ü", "f0", "0", " "], {"a`b": {'q"x': {"ü": {"f0": {"0": {" ": ONE_TWO}}}}}}),
    ],
)
def test_a_page_may_bring_its_own_path(path, document):
    text = json.dumps(document, indent=1, ensure_ascii=False).encode()
    for fn, options in (
        (gives(burler.json_page(text, path)), {"records_path": "z"}),
        (gives(text), {"records_path": path}),
    ):
        run = run_pages(fn, **options)
        assert not run.result.errors
        assert run.records("rows") == ONE_TWO


def test_a_page_without_a_path_on_a_stream_with_one():
    run = run_pages(gives(b'{"r":[{"id":1}]}', burler.json_page(b'{"id":2}')), records_path="r")
    assert run.records("rows") == ONE_TWO


@pytest.mark.parametrize("rows", ["null", "[]", " [\n] "])
def test_null_or_nothing_at_the_end_of_the_path_is_no_row(rows):
    run = run_pages(gives(b'{"r":%s}' % rows.encode(), b'{"r":[{"id":1}]}'), records_path="r")
    assert not run.result.errors
    assert run.records("rows") == [{"id": 1}]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ('{"r":{"rows":[],"total":5}}', "there is no 'items' under 'r'. Keys there: 'rows', 'total'."),
        ('{"r":{}}', "there is no 'items' under 'r'. Keys there: none."),
        ('{"error":"denied"}', "there is no 'r' in the document. Keys there: 'error'."),
        ('{"r":null}', "there is no 'items' under 'r', which is null."),
        ('{"r":[{"items":[]}]}', "there is no 'items' under 'r', which is a list."),
        ('[{"id":1}]', "there is no 'r' in the document, which is a list."),
        ('{"r":{"items":{"id":1}}}', "'r.items' leads to an object, not to a list of rows."),
        ('{"r":{"items":"x"}}', "'r.items' leads to text, not to a list of rows."),
        ('{"r":{"items":true}}', "'r.items' leads to a boolean, not to a list of rows."),
        ('{"r":{"items":0}}', "'r.items' leads to a number, not to a list of rows."),
        ("", "the page is empty; a document that leads to 'r.items' should be there."),
        ('{"r":{"items":[{"id":1}]}} x', "trailing characters (byte"),
        ('{"r":{"items":[{"id":1},5]}}', "item 1 of the page is a number, not an object."),
    ],
)
def test_a_path_that_leads_nowhere_is_one_clear_error(document, said):
    run = run_pages(gives({"id": 0}, document.encode(), {"id": 9}), records_path="r.items")
    assert said in str(run.result.errors["rows"])
    assert re.match(r"stream 'rows' \(.*\w+\.py:\d+\): ", str(run.result.errors["rows"]))
    assert not str(run.result.errors["rows"]).endswith("..")
    assert run.records("rows")[0] == {"id": 0}
    assert {"id": 9} not in run.records("rows")


@pytest.mark.parametrize("path", [".", "a..b", "a.", [""], ["a", 5], 5, b"a", {"a": 1}])
def test_a_path_that_is_none_is_refused_where_it_stands(path):
    with pytest.raises(DeclarationError, match="records_path must be names"):
        burler.tap("t").sync("rows", schema=SCHEMA, records_path=path)(lambda: [])
    with pytest.raises(ValueError, match="records_path must be names"):
        burler.json_page(b"", path)


@pytest.mark.parametrize("data", ["[]", None, 5, [b""], {}])
def test_json_page_takes_bytes_only(data):
    with pytest.raises(TypeError, match=f"takes bytes as the source sent them, not {type(data).__name__}"):
        burler.json_page(data)


# ---- broken pages -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "before", "said"),
    [
        (b'[{"id":1},{"id":2},{"i', [], "it breaks off."),
        (b"[" + b'{"id":1},' * 500 + b'{"id":2,"n', [], "it breaks off."),
        (b'{"id":1}\n{"id":2}\n{"i', [1, 2], "line 3: not JSON as a page should be: it breaks off"),
        (b'{"id":1}\n\n{"id" 2}\n{"id":3}', [1], "line 3: not JSON as a page should be: JSON is malformed"),
        (b'{"id":1}\nnull\n{"id":2}', [1], "line 2: not JSON as a page should be: Expected `object`, got `null`"),
        (b'{\n"id": 1,\n"n": }', [], "JSON is malformed: invalid character (byte 16)"),
        (b'[{"id":1},5,{"id":2}]', [1], "item 1 of the page is a number, not an object."),
        (b'[{"id":1},[{"id":2}]]', [1], "item 1 of the page is a list, not an object."),
        (b'[{"id":1}]\n[{"id":2}]', [], "trailing characters (byte 12)"),
        (b"<html><body>sign in</body></html>", [], "it looks like HTML or XML."),
        (b"\n  <?xml version='1.0'?>", [], "it looks like HTML or XML."),
        (b"Bad gateway", [], "JSON is malformed: invalid character (byte 0)"),
        (b'"text"', [], "Expected `object`, got `str`"),
        (b"17", [], "Expected `object`, got `int`"),
        (b'[{"id":1,"text":"caf\xe9"}]', [], "byte 20 is not UTF-8"),
        (b'{"id":1}\n{"id":2,"unheard":"caf\xe9"}', [1], "byte 22 is not UTF-8"),
        (b'{"id":1}\n{"id":2,"any":{"x":"caf\xe9"}}', [1], "byte 23 is not UTF-8"),
        (b'[{"id":1,"any":["caf\xe9"]}]', [], "byte 20 is not UTF-8"),
        ('[{"id":1}]'.encode("utf-16"), [], "not JSON"),
        (b"[" * 100_000, [], "recursion"),
    ],
)
def test_a_broken_page_is_one_error_and_the_rows_before_it_are_out(page, before, said):
    run = run_pages(gives({"id": 0}, page, {"id": 9}))
    error = str(run.result.errors["rows"])
    assert said in error
    assert re.match(r"stream 'rows' \(.*\w+\.py:\d+\): ", error)
    assert len(error) < 400
    assert not error.endswith("..")
    assert [row["id"] for row in run.records("rows")] == [0, *before]


def test_a_torn_line_leaves_the_bookmark_at_the_row_before_it():
    run = run_pages(gives(b'{"id":1}\n{"id":2}\n{"id":3,'), replication_key="id", order="asc")
    assert run.states[-1]["bookmarks"] == {"rows": {"id": 2}}


def test_an_integer_of_thousands_of_digits_is_a_bad_row_not_a_bad_page():
    page = b'[{"id":1},{"id":' + b"9" * 5000 + b'},{"id":3}]'
    run = run_pages(gives(page))
    assert "the schema wants integer" in str(run.result.errors["rows"])
    assert [row["id"] for row in run.records("rows")] == [1]
    run = run_pages(gives(page), on_bad_record="skip")
    assert [row["id"] for row in run.records("rows")] == [1, 3]


def test_what_json_allows_and_utf8_does_not_is_said_of_its_row():
    """Half of a surrogate pair, NaN: of a page of a thousand rows one is bad, not all."""
    page = rb'[{"id":1},{"id":2,"text":"a\ud800b"},{"id":3,"n":NaN},{"id":4,"other":"\udc00"}]'
    run = run_pages(gives(page))
    assert run.records("rows") == [{"id": 1}]
    assert "row id=2: field 'text'" in str(run.result.errors["rows"])
    run = run_pages(gives(page), on_bad_record="skip")
    assert run.records("rows") == [{"id": 1}, {"id": 4}]
    for line_end in (b"\n", b"\r\n"):
        lines = line_end.join([rb'{"id":1}', rb'{"id":2,"any":"a\ud800b"}', b'{"id":3}'])
        assert run_pages(gives(lines), on_bad_record="skip").records("rows") == [{"id": 1}, {"id": 3}]
    run = run_pages(gives(b'[{"id":1,"n":-Infinity}]'), {"on_nan": "null"})
    assert run.records("rows") == [{"id": 1, "n": None}]


@pytest.mark.parametrize(
    "rows", [b'[{"id":1},{"n":1e99999999999999999999}]', b'{"id":1}\n{"n":1e99999999999999999999}']
)
def test_an_exponent_that_no_decimal_has_is_an_error_where_rows_are_wanted(rows):
    tap = burler.tap("t")
    tap.sync("rows", schema=SCHEMA)(lambda: rows)
    tap.post_transform("rows")(lambda record: record)
    error = run_tap(tap).result.errors["rows"]
    assert "the exponent of a number is too large" in str(error)


# ---- order, and what the function does meanwhile ---------------------------------------------------


def test_pages_and_rows_keep_their_order():
    def rows():
        yield {"id": 0}
        yield b'[{"id":1},{"id":2}]'
        yield {"id": 3}
        yield [{"id": 4}, b'{"id":5}', {"id": 6}]
        yield b'{"id":7}'
        yield b'{"id":8}'
        yield "rows", b'{"id":9}'
        yield "rows", {"id": 10}

    for page in (1, 2, 3, 1000):
        assert run_pages(rows, {"page_max_rows": page}).records("rows") == dicts(range(11))


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_a_buffer_may_be_used_again_after_the_yield(kind):
    buffer = bytearray(b'[{"id":0}]')

    def rows():
        for i in range(5):
            buffer[7:8] = b"%d" % i
            yield buffer if kind is bytearray else memoryview(buffer)

    assert run_pages(rows).records("rows") == dicts(range(5))


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_a_buffer_behind_a_row_is_not_written_with_what_came_into_it_later(kind):
    buffer = bytearray(b'[{"id":0}]')

    def rows():
        yield {"id": 0}
        for i in range(1, 5):
            buffer[7:8] = b"%d" % i
            yield buffer if kind is bytearray else memoryview(buffer)

    run = run_pages(rows)
    if run.result.errors:
        assert "bytes(" in str(run.result.errors["rows"])
        assert run.records("rows") == [{"id": 0}]
    else:
        assert run.records("rows") == dicts(range(5))


def test_a_page_is_out_when_the_function_fails_behind_it():
    for page in (b'[{"id":1},{"id":2}]', b'{"id":1}\n{"id":2}'):

        def rows(page=page):
            yield page
            raise LookupError("gone")

        run = run_pages(rows, replication_key="id", order="asc")
        assert run.records("rows") == ONE_TWO
        assert "gone" in str(run.result.errors["rows"])
        assert run.states[-1]["bookmarks"] == {"rows": {"id": 2}}


def test_lines_one_by_one():
    """``yield from response.iter_lines()``."""

    def rows():
        for i in range(20_000):
            yield b'{"id":%d}' % i
            if i % 1000 == 0:
                yield b""  # what keeps a connection alive

    assert run_pages(rows).records("rows") == dicts(range(20_000))


def test_big_pages_are_written_before_the_next_is_made():
    sink, out = Lines(), []

    def rows():
        for i in range(5):
            out.append(len(sink.rows))
            yield json.dumps([{"id": i, "text": "x" * 300_000}, {"id": i}]).encode()

    assert not run_into(tap_of(rows), {}, sink).errors
    assert out == [0, 2, 4, 6, 8]


def test_a_line_behind_another_stays_a_row_of_its_own():
    torn = run_pages(gives(b'{"id":1}', b'{"id":2}', b'{"id"', b":3}"))
    assert torn.records("rows") == ONE_TWO
    assert "breaks off" in str(torn.result.errors["rows"])
    same = run_pages(gives(b'{"id":1}', b'{"id":1}', b'{"id":1}'))
    assert same.records("rows") == dicts([1, 1, 1])


@pytest.mark.parametrize("thing", ["[]", None, 5, object()])
def test_what_is_no_page_is_refused(thing):
    run = run_pages(gives(b'{"id":1}', thing, b'{"id":2}'))
    assert run.records("rows") == [{"id": 1}]
    assert "bytes of JSON, Arrow tables" in str(run.result.errors["rows"])
