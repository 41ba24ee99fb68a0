"""tap_bookshop keeps the Singer rules, on SQLite: docs/verify.md."""

import tap_bookshop
from burler.testing import verify_tap
from tap_bookshop import shop

NOT_HERE = {
    "bestsellers": ["C113", "C124"],  # a view: it has no key of its own, and SQLite does not know its sums' type
    "books": ["C124"],  # details is JSON, and may hold anything
}


def test_it_keeps_the_rules(tmp_path):
    url = f"sqlite:///{tmp_path}/bookshop.db"
    shop.make(url, count_books=500, orders=40)
    found = verify_tap(tap_bookshop.tap, {"database_url": url}, per_stream_ignores=NOT_HERE)
    assert [one for one in found.findings if one.severity != "info"] == []
    assert {"C111", "B302", "B305", "B311", "B312", "B325"} <= set(found.checked)
    streams = found.runs[0].streams
    assert (streams["books"].rows, streams["books"].bookmark["to"]) == (500, "2024-01-01T00:08:20.000003Z")
    assert all(stream.rows for stream in streams.values()) and len(streams) == 5
    assert {run.ended for run in found.runs} == {"succeeded"} and len(found.runs) >= 4
