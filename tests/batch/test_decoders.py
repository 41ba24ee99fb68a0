"""JSON lines of a BATCH as pages: bytes untouched, each line one object, whatever is broken named."""

from __future__ import annotations

import gzip
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from piped import lines_of, pages_of

from burler.errors import BatchError


def lines(data, compression=None):
    return lines_of(data, "jsonl", None, compression)


def test_bytes_stay_as_they_are():
    data = b'{"a": 1.10,"b":"\\u00fc\\/", "c" :[1E400,-0]}\n{}\n {"half":"\\ud83d"} \n{"a":1,"a":2}\n'
    assert lines(data) == data


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
    with pytest.raises(BatchError, match=r"line 3: it is no JSON object \(.*\)\.(\n|$)") as caught:
        lines(b'{"a":1}\n\n' + line + b'\n{"a":2}\n')
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("broken", [b"[1]", b'{"a":NaN}', b'{"a":"\xff"}', b'{"a":1}{"a":2}', b'{"a":1'])
def test_rows_before_a_broken_line_of_the_same_page_are_given(broken):
    given = []
    data = b'{"a":1}\n\n{"a":2}\n' + broken + b'\n{"a":3}\n'
    with pytest.raises(BatchError, match=r"', line 4: it is no "):
        for page in pages_of(data, "jsonl"):
            given.append(tuple(page))
    assert given == [(b'{"a":1}\n{"a":2}\n', 2)]


def test_line_numbers_count_through_all_pages_and_what_stands_before_is_given():
    data, given = b'{"a":"%s"}\n' % (b"x" * 990) * 9_000 + b"broken\n", []
    with pytest.raises(BatchError, match="line 9,001: it is no JSON object"):
        for lines, _ in pages_of(data, "jsonl"):
            given.append(lines)
    assert len(given) > 3 and b"".join(given) == data.removesuffix(b"broken\n")
    assert max(map(len, given)) < 2 << 20


@given(
    st.lists(
        st.dictionaries(
            st.text(max_size=3),
            st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
            max_size=3,
        )
    ),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
)
def test_any_rows_come_back(rows, end):
    given_lines = lines("".join(json.dumps(row) + end for row in rows).encode())
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


def test_a_line_that_does_not_end_is_not_held_for_ever():
    """Two MB of gzip may be two GB of one line."""
    piece = gzip.compress(b"x" * (32 << 20))
    text = gzip.compress(b'{"id": 1}\n' + b'{"id": "') + piece * 9
    found = pages_of(text, "jsonl", None, "gzip")
    assert next(found)[0] == b'{"id": 1}\n'
    with pytest.raises(BatchError, match="line 2: it does not end within"):
        next(found)
