"""JSON lines of a BATCH as pages: bytes untouched, each line one object, whatever is broken named."""

from __future__ import annotations

import gzip
import io
import json
import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burler.errors import BatchError
from burler.singer.messages import Batch
from support.internals import batch_config, decoders, jsonl


def pages(data, compression=None):
    return list(decoders.decode(io.BytesIO(data), Batch("orders", ("u",), "jsonl", compression), None))


def lines(data, compression=None):
    made = pages(data, compression)
    text = b"".join(page.lines for page in made)
    assert text.count(b"\n") == sum(page.count for page in made)
    assert all(page.lines.endswith(b"\n") and page.count for page in made)
    return text


def test_bytes_stay_as_they_are():
    data = b'{"a": 1.10,"b":"\\u00fc\\/", "c" :[1E400,-0]}\n{}\n {"half":"\\ud83d"} \n{"a":1,"a":2}\n'
    assert lines(data) == data


@pytest.mark.parametrize("compression", [None, "gzip", "zstd"])
def test_what_was_written_comes_back(compression):
    data = b"".join(b'{"id":%d,"text":"%s"}\n' % (number, b"x" * (number % 900)) for number in range(9000))
    pieces = []
    encoding = batch_config.Encoding("jsonl", compression)
    encoder = jsonl.open_file(encoding, jsonl.layout(encoding, {}, "orders"), pieces.append)
    encoder.rows(data, 9000)
    encoder.finish()
    made = pages(b"".join(pieces), compression)
    assert b"".join(page.lines for page in made) == data
    assert sum(page.count for page in made) == 9000
    assert len(made) > 3
    assert max(len(page.lines) for page in made) < 2 << 20


def test_a_page_is_a_pair():
    text, count = pages(b'{"a":1}\n')[0]
    assert (text, count) == (b'{"a":1}\n', 1)
    assert decoders.Page(text, count) == pages(b'{"a":1}\n')[0]


def test_empty_lines_and_other_line_ends_are_left_out():
    data = b'\xef\xbb\xbf\r\n{"a":1}\r\n\r\n  \n{"a":"\\r\\n"}\n\n{"a":3}\r\n\t\n'
    assert lines(data) == b'{"a":1}\n{"a":"\\r\\n"}\n{"a":3}\n'


def test_a_file_without_rows_has_no_pages():
    assert pages(b"") == []
    assert pages(b"\n \n") == []
    assert pages(b"\xef\xbb\xbf") == []


def test_a_last_line_without_end_counts_if_it_is_whole():
    assert lines(b'{"a":1}\n{"a":2}') == b'{"a":1}\n{"a":2}\n'
    assert lines(b'{"a":1}\n{"a":2}\n  ') == b'{"a":1}\n{"a":2}\n'


@pytest.mark.parametrize("cut", range(1, 14))
def test_a_last_line_that_is_cut_off_is_an_error(cut):
    whole = b'{"a":"\xc3\xbc","b":5}'
    with pytest.raises(BatchError, match=r"line 2, the last one, is cut off|line 2 is no text in UTF-8"):
        pages(b'{"a":1}\n' + whole[:cut])


@pytest.mark.parametrize(
    "line",
    [
        b"[1]", b"1", b'"a"', b"null", b"{", b"}", b'{"a":1}{"a":2}', b'{"a":1} 5', b'{"a":1},', b'{"a":01}',
        b'{"a":nul}', b'{"a":NaN}', b'{"a":"\x01"}', b'{"a":"\\q"}', b"{'a':1}", b'{"a":1,}', b"a,b,c",
        b'{"a":{"b":[}}', b'{"a":"\\u12"}', b'\xef\xbb\xbf{"a":1}', b'{"type":"RECORD"',
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)  # fmt: skip
def test_a_line_that_is_no_object_is_named(line):
    with pytest.raises(BatchError, match=r"line 3 is no JSON object \(.*\)\.$") as caught:
        pages(b'{"a":1}\n\n' + line + b'\n{"a":2}\n')
    assert len(str(caught.value)) < 300


def test_lines_do_not_make_up_for_each_other():
    """So many objects as lines are not enough: one line may have two, and two lines one."""
    with pytest.raises(BatchError, match="line 2 is no JSON object"):
        pages(b'{"a":1}\n{"a":2}{"a":3}\n')
    with pytest.raises(BatchError, match="line 1 is no JSON object"):
        pages(b'{"a":1}{"a":2}\n{"a":3\n}\n')
    with pytest.raises(BatchError, match="line 1 is no JSON object"):
        pages(b'{"a":{"b":1}\n,"c":{}}{"a":1}\n')


def test_text_that_is_no_utf8_is_named():
    with pytest.raises(BatchError, match="line 2 is no text in UTF-8"):
        pages(b'{"a":1}\n{"a":"\xff"}\n')


@pytest.mark.parametrize("broken", [b"[1]", b'{"a":NaN}', b'{"a":"\xff"}', b'{"a":1}{"a":2}', b'{"a":1'])
def test_rows_before_a_broken_line_of_the_same_page_are_given(broken):
    given = []
    data = b'{"a":1}\n\n{"a":2}\n' + broken + b'\n{"a":3}\n'
    with pytest.raises(BatchError, match=r"^line 4 is no "):
        for page in decoders.decode(io.BytesIO(data), Batch("orders", ("u",), "jsonl"), None):
            given.append(page)
    assert given == [decoders.Page(b'{"a":1}\n{"a":2}\n', 2)]


def test_line_numbers_count_through_all_pages(monkeypatch):
    monkeypatch.setattr(decoders, "_PAGE_BYTES", 64)
    with pytest.raises(BatchError, match="line 1,001 is no JSON object"):
        pages(b'{"a":1}\n' * 1000 + b"broken\n")


def test_rows_before_a_broken_line_are_given(monkeypatch):
    monkeypatch.setattr(decoders, "_PAGE_BYTES", 64)
    found = decoders.decode(io.BytesIO(b'{"a":1}\n' * 100 + b"broken\n"), Batch("orders", ("u",)), None)
    assert next(found).count == 8


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x1f\x8b\x08\x00rest", "it is gzip, and the message says jsonl, not packed"),
        (b"\x28\xb5\x2f\xfdrest", "it is zstd"),
        (b"PAR1rest", "it is Parquet"),
        (b"PK\x03\x04rest", "it is a zip file"),
    ],
)
def test_other_kinds_of_files_are_named(data, said):
    with pytest.raises(BatchError, match=said):
        pages(data)


def test_gzip_in_gzip_is_named():
    with pytest.raises(BatchError, match="it is gzip, and the message says jsonl, packed with gzip"):
        pages(gzip.compress(gzip.compress(b'{"a":1}\n')), "gzip")


def test_unknown_formats_and_compressions_are_named():
    with pytest.raises(BatchError, match=r"format 'avro' is unknown. Known: jsonl, csv, parquet, arrow"):
        list(decoders.decode(io.BytesIO(b""), Batch("orders", ("u",), "avro"), None))
    with pytest.raises(BatchError, match="compression 'lzo' is unknown"):
        pages(b"", "lzo")


@pytest.mark.parametrize("size", [1, 2, 5, 8, 9, 31])
def test_pages_are_cut_where_lines_end(monkeypatch, size):
    monkeypatch.setattr(decoders, "_PAGE_BYTES", size)
    long = b'{"b":"' + b"x" * 50 + b'"}\n'
    assert lines(b'{"a":1}\r\n\r\n' + long + b"{}\n{}") == b'{"a":1}\n' + long + b"{}\n{}\n"


@given(
    st.lists(
        st.dictionaries(
            st.text(max_size=3),
            st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
            max_size=3,
        )
    ),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
    st.integers(1, 64),
)
def test_any_rows_come_back(rows, end, size):
    before = decoders._PAGE_BYTES
    decoders._PAGE_BYTES = size
    try:
        given_lines = lines("".join(json.dumps(row) + end for row in rows).encode())
    finally:
        decoders._PAGE_BYTES = before
    assert given_lines == "".join(json.dumps(row) + "\n" for row in rows).encode()


def test_a_damaged_file_is_never_read_as_other_rows_in_silence():
    """Bytes knocked out of a file at random: an error, or lines that are all objects; never half a line."""
    data = b"".join(b'{"id":%d,"o":{"a":[%d]},"t":"x\\"y"}\n' % (number, number) for number in range(50))
    chance = random.Random(20)
    for _ in range(300):
        begin = chance.randrange(len(data))
        broken = data[:begin] + data[begin + chance.randrange(1, 40) :]
        try:
            given_lines = lines(broken)
        except BatchError:
            continue
        for line in given_lines.splitlines():
            assert isinstance(json.loads(line), dict)


def test_a_big_file_is_read_in_little_memory():
    source = io.BytesIO((b'{"a":"' + b"x" * 1000 + b'"}\n') * 60_000)
    tracemalloc.start()
    count = sum(page.count for page in decoders.decode(source, Batch("orders", ("u",)), None))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 60_000
    assert most < 20 << 20


def test_a_line_that_does_not_end_is_not_held_for_ever(monkeypatch):
    """Two MB of gzip may be two GB of one line."""
    monkeypatch.setattr(decoders, "MOST_LINE_BYTES", 3 << 20)
    text = b'{"id": 1}\n' + b'{"id": "' + b"x" * (8 << 20)
    found = decoders.decode(io.BytesIO(gzip.compress(text)), Batch("orders", ("u",), "jsonl", "gzip"), None)
    assert next(found).lines == b'{"id": 1}\n'
    with pytest.raises(BatchError, match="line 2 does not end within 3 MiB"):
        next(found)
