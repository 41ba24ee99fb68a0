"""Hostile rows into CSV and back: nothing changes, and the quick encoder writes what the slow one does."""

from __future__ import annotations

import io
import json

import pytest
from csv_reference import KINDS, expected, lines_of, slow_csv, sources, tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from burler.singer.messages import Batch
from support.internals import batch_config, csv_write, decoders

OPTIONS = [
    {},
    {"delimiter": "\t"},
    {"delimiter": "|", "null": "\\N"},
    {"delimiter": "\x01", "quote_char": "'", "line_end": "\r\n"},
    {"delimiter": ";", "null": "NULL", "header": False},
    {"header": False},
]
quick = settings(suppress_health_check=list(HealthCheck))


def written(schema, lines, count, options, compression=None):
    """The bytes of a file."""
    encoding = batch_config.Encoding("csv", compression, options)
    pieces = []
    encoder = csv_write.open_file(encoding, csv_write.layout(encoding, schema, "hostile"), pieces.append)
    encoder.rows(lines, count)
    encoder.finish()
    return b"".join(pieces)


def read(data, schema, options, compression=None):
    """The lines of a file's rows."""
    batch = Batch("hostile", ("file:///x",), "csv", compression, options)
    return list(decoders.decode(io.BytesIO(data), batch, schema))


@quick
@given(tables(), st.sampled_from(OPTIONS), st.sampled_from(["", " "]))
def test_the_quick_encoder_writes_what_the_slow_one_does(table, options, space):
    schema, kinds, rows = table
    data = written(schema, lines_of(rows, space), len(rows), {**options, "header": False})
    assert data == slow_csv(kinds, rows, options)


@quick
@given(tables(), st.sampled_from(OPTIONS), st.sampled_from([None, "gzip", "zstd"]))
def test_rows_come_back_as_they_were(table, options, compression):
    schema, kinds, rows = table
    pages = read(written(schema, lines_of(rows), len(rows), options, compression), schema, options, compression)
    lines = b"".join(page.lines for page in pages)
    assert sum(page.count for page in pages) == len(rows)
    assert sources(lines, kinds) == expected(kinds, rows)


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=60)
@given(data=st.data())
def test_a_single_column_comes_back_too(kind, data):
    schema = {"properties": {"only": KINDS[kind][0]}}
    sample = st.one_of(st.just("null"), KINDS[kind][1])
    rows = [{"only": source} for source in data.draw(st.lists(sample, max_size=4))]
    pages = read(written(schema, lines_of(rows), len(rows), {}), schema, {})
    assert sources(b"".join(page.lines for page in pages), {"only": kind}) == expected({"only": kind}, rows)


def test_many_rows_come_back_over_many_blocks():
    texts = ["a,b", 'q"q', "line\nend", "", "Ü" * 100]
    long = "x\n" * 700_000
    kinds = {"n": "number", "t": "text", "o": "open"}
    schema = {"properties": {name: KINDS[kind][0] for name, kind in kinds.items()}}
    rows = [
        {"n": str(number), "t": json.dumps(texts[number % 5] if number % 10_000 else long), "o": f'{{"n":{number}.10}}'}
        for number in range(20_000)
    ]
    pages = read(written(schema, lines_of(rows), len(rows), {}), schema, {})
    assert len(pages) >= 3
    assert max(len(page.lines) for page in pages) < 8 << 20
    assert sources(b"".join(page.lines for page in pages), kinds) == expected(kinds, rows)
