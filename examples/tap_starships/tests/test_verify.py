"""tap_starships keeps the Singer rules: docs/verify.md."""

import tap_starships
from burler.testing import canary, verify_tap
from tap_starships.data import Data
from tap_starships.server import Shipyard


def test_it_keeps_the_rules(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    token = canary("shipyard")
    with Shipyard(Data(20, 8), None, token=token).running() as server:
        found = verify_tap(tap_starships.tap, {"url": server.url, "access_token": token, "page_size": 6})
    assert [one for one in found.findings if one.severity != "info"] == []
    assert {"C117", "B302", "B305", "B311", "B312", "B325", "H701", "H703"} <= set(found.checked)
    streams = found.runs[0].streams
    assert (streams["ships"].rows, streams["ships"].order["direction"]) == (20, "asc")
    assert all(stream.rows for stream in streams.values()) and len(streams) == 4
    assert {run.ended for run in found.runs} == {"succeeded"} and len(found.runs) >= 4
