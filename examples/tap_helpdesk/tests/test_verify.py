"""tap_helpdesk keeps the Singer rules: docs/verify.md."""

import tap_helpdesk
from burler.testing import verify_tap
from tap_helpdesk.data import Data, Size
from tap_helpdesk.server import Helpdesk

SMALL = Size(accounts=4, tickets=24, comments=3, events=130, agents=5)
NOT_HERE = {"comments": ["H703"]}  # the API has no other way: one request for each ticket with comments


def test_it_keeps_the_rules(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Helpdesk(Data(SMALL)).running() as server:
        found = verify_tap(tap_helpdesk.tap, {"base_url": server.url}, per_stream_ignores=NOT_HERE)
    assert [one for one in found.findings if one.severity != "info"] == []
    assert {"B305", "B312", "B325", "H701", "H703"} <= set(found.checked)
    streams = found.runs[0].streams
    counts = {name: stream.rows for name, stream in streams.items()}
    assert counts["accounts"] == 4 and counts["agents"] == 5 and min(counts.values()) > 0 and len(counts) == 5
    assert sum(one["requests"] for one in streams["tickets"].requests.values()) >= 4
    assert {run.ended for run in found.runs} == {"succeeded"} and len(found.runs) >= 4
