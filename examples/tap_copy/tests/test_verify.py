"""tap_copy keeps the Singer rules: docs/verify.md."""

from burler.testing import verify_tap
from tap_copy import tap


def test_it_keeps_the_rules(base):
    base.do(
        "create table countries (code text primary key, name text not null)",
        "insert into countries values ('DE', 'Germany'), ('PE', 'Peru')",
        "create table orders (id int primary key, name text, updated_at timestamptz not null)",
        "insert into orders select i, 'no. ' || i, timestamptz '2024-01-01Z' + i * interval '1 h'"
        " from generate_series(1, 40) i",
    )
    found = verify_tap(tap, {**base.config, "replication_key": "updated_at"})
    assert [one for one in found.findings if one.severity != "info"] == []
    assert {"C111", "B302", "B305", "B311", "B312", "B325"} <= set(found.checked)
    streams = found.runs[0].streams
    assert {name: stream.rows for name, stream in streams.items()} == {"public.countries": 2, "public.orders": 40}
    assert streams["public.orders"].bookmark["to"] == "2024-01-02T16:00:00Z"
    assert {run.ended for run in found.runs} == {"succeeded"} and len(found.runs) >= 4
