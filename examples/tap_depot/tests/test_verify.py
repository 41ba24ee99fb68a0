"""tap_depot keeps the Singer rules: docs/verify.md."""

import subprocess
from pathlib import Path

import pytest

import tap_depot
from burler.testing import verify_tap
from tap_depot.environment import NotInstalled, python

FOLDER = Path(tap_depot.__file__).parent


@pytest.fixture
def address(monkeypatch):
    """Of a depot, in the Python that has spyne."""
    try:
        spynes_python = python()
    except NotInstalled as error:
        pytest.skip(str(error))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    command = [spynes_python, FOLDER / "server.py", "--port", "0"]
    with subprocess.Popen(command, cwd=FOLDER.parents[1], stdout=subprocess.PIPE, text=True) as server:
        yield server.stdout.readline().strip()
        server.kill()


def test_it_keeps_the_rules(address):
    found = verify_tap(tap_depot.tap, {"base_url": address})
    assert [one for one in found.findings if one.severity != "info"] == []
    assert {"B302", "B305", "B311", "B312", "B325", "H701", "H703"} <= set(found.checked)
    streams = found.runs[0].streams
    assert {name: stream.rows for name, stream in streams.items()} == {"orders": 230, "products": 120, "stock": 120}
    assert (streams["orders"].order["direction"], len(streams["orders"].requests)) == ("asc", 1)
    assert {run.ended for run in found.runs} == {"succeeded"} and len(found.runs) >= 4
