"""Hostile rows into CSV and back: nothing changes, and the quick encoder writes what the slow one does."""

from __future__ import annotations

import json

from csv_reference import KINDS, expected, line_of, slow_csv, sources, tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from piped import lines_of, pages_of, written

OPTIONS = [
    {},
    {"delimiter": "\t"},
    {"delimiter": "|", "null": "\\N"},
    {"delimiter": "\x01", "quote_char": "'", "line_end": "\r\n"},
    {"delimiter": ";", "null": "NULL", "header": False},
    {"header": False},
]


@settings(suppress_health_check=list(HealthCheck))
@given(tables(), st.sampled_from(OPTIONS), st.sampled_from(["", " "]), st.sampled_from(["none", "gzip", "zstd"]))
def test_the_quick_encoder_writes_what_the_slow_one_does_and_rows_come_back(table, options, space, compression):
    schema, kinds, rows = table
    given_rows = [line_of(row, space) for row in rows]
    assert written("csv", schema, *given_rows, options={**options, "header": False}) == slow_csv(kinds, rows, options)
    data = written("csv", schema, *given_rows, compression=compression, options=options)
    assert sources(lines_of(data, "csv", schema, compression, **options), kinds) == expected(kinds, rows)


def test_many_rows_come_back_over_many_blocks():
    texts = ["a,b", 'q"q', "line\nend", "", "Ü" * 100]
    long = "x\n" * 700_000
    kinds = {"n": "number", "t": "text", "o": "open"}
    schema = {"properties": {name: KINDS[kind][0] for name, kind in kinds.items()}}
    rows = [
        {"n": str(number), "t": json.dumps(texts[number % 5] if number % 10_000 else long), "o": f'{{"n":{number}.10}}'}
        for number in range(20_000)
    ]
    pages = list(pages_of(written("csv", schema, *map(line_of, rows)), "csv", schema))
    assert len(pages) >= 3
    assert max(len(lines) for lines, _ in pages) < 8 << 20
    assert sources(b"".join(lines for lines, _ in pages), kinds) == expected(kinds, rows)
