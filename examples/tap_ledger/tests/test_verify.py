"""tap_ledger keeps the Singer rules, and PostgreSQL is told nothing by it: docs/verify.md."""

import tap_ledger
from burler.testing import verify_tap

NOT_HERE = {"entries": ["C124"]}  # details is jsonb, and may hold anything


def test_it_keeps_the_rules_and_the_log_is_kept(books):
    found = verify_tap(tap_ledger.tap, books.config, per_stream_ignores=NOT_HERE)
    assert [one for one in found.findings if one.severity != "info"] == []
    assert {"C111", "M208", "B302", "B305", "B312", "B325"} <= set(found.checked)
    assert {name: stream.rows for name, stream in found.runs[0].streams.items()} == {"entries": 200, "accounts": 20}
    assert {run.ended for run in found.runs} == {"succeeded"} and len(found.runs) >= 4
