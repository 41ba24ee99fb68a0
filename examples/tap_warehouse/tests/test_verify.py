"""tap_warehouse keeps the Singer rules: docs/verify.md."""

import os

import tap_warehouse
from burler.testing import verify_tap
from tap_warehouse.make import EVENTS_A_DAY, SALES_A_DAY, main
from tap_warehouse.server import TOKEN, Exports

OLD = 1_700_000_000
NOT_HERE = {"sales": ["C111"]}  # its schema is made from a sample, which can't promise that no line lacks its number


def test_it_keeps_the_rules(tmp_path):
    main([str(tmp_path), "--days", "2"])
    for day, path in enumerate(sorted(tmp_path.rglob("*.*"))):
        os.utime(path, (OLD + day * 86_400, OLD + day * 86_400))
    with Exports(articles=40, seconds=0).running() as server:
        config = {"folder": str(tmp_path), "base_url": server.url, "access_token": TOKEN, "poll_seconds": 0.01}
        found = verify_tap(tap_warehouse.tap, config, per_stream_ignores=NOT_HERE)
    assert [one for one in found.findings if one.severity != "info"] == []
    assert {"B302", "B305", "B311", "B312", "B316", "B325", "H701"} <= set(found.checked)
    assert {name: stream.rows for name, stream in found.runs[0].streams.items()} == {
        "sales": 2 * SALES_A_DAY, "events": 2 * EVENTS_A_DAY, "stock": 40
    }  # fmt: skip
    assert {run.ended for run in found.runs} == {"succeeded"} and len(found.runs) >= 4
