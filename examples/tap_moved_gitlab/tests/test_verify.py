"""tap_moved_gitlab keeps the Singer rules: docs/verify.md."""

import tap_moved_gitlab
from burler.testing import canary, verify_tap
from tap_moved_gitlab.data import Data
from tap_moved_gitlab.server import Gitlab


def test_it_keeps_the_rules(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    token = canary("gitlab")
    with Gitlab(Data(), token=token).running() as server:
        config = {"api_url": server.url, "private_token": token, "projects": "1 shop/p2 3", "groups": "shop"}
        found = verify_tap(tap_moved_gitlab.tap, {**config, "start_date": "2024-01-01T00:00:00Z"})
        assert not any(token in asked for asked in server.asked)
    wrong = [one for one in found.findings if one.severity != "info"]
    # What GitLab sends today and tables have no columns for since 2018.
    assert {one.code for one in wrong} == {"R502"}
    assert {"B305", "B311", "B312", "H701"} <= set(found.checked)
    counts = {name: stream.rows for name, stream in found.runs[0].streams.items()}
    assert counts == {
        "projects": 3, "branches": 6, "commits": 135, "issues": 75, "project_milestones": 3, "users": 6, "groups": 1,
        "group_milestones": 2,
    }  # fmt: skip
    assert {run.ended for run in found.runs} == {"succeeded"} and len(found.runs) >= 4
