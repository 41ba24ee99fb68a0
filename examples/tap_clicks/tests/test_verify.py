"""tap_clicks keeps the Singer rules, and Redis is told nothing by it: docs/verify.md."""

import tap_clicks
from burler.testing import verify_tap


def test_it_keeps_the_rules_and_nothing_is_acknowledged(shop):
    shop.add(60)
    found = verify_tap(tap_clicks.tap, {"url": shop.url})
    assert [one for one in found.findings if one.severity != "info"] == []
    assert {"C111", "M208", "B312", "B325"} <= set(found.checked)
    assert {name: stream.rows for name, stream in found.runs[0].streams.items()} == {"clicks": 60, "campaigns": 3}
    assert {run.ended for run in found.runs} == {"succeeded"} and len(found.runs) >= 3
    assert shop.pending() == shop.ids  # nobody has stored these rows
