"""``burler verify`` on taps that others wrote: what it finds was looked at by hand, and it finds nothing else."""

from __future__ import annotations

import peers_environment
import pytest
import verify_running
from verify_verdicts import VERDICTS

TAPS = {tap.package: tap for tap in verify_running.TAPS}
# By which of its findings a tap is known; B312 of tap-s3-csv is there if its files are put within one second.
SURE = {
    "tap-gitlab 0.5": {"P613", "P614", "P602", "M208", "R501", "C111", "P612"},
    "pipelinewise-tap-s3-csv": {"P627", "C111"},
    "tap-rest-api-msdk": set(),
}
FEWER_RUNS = {"tap-rest-api-msdk": ["--no-behaviour"], "pipelinewise-tap-s3-csv": ["--no-behaviour"]}


@pytest.mark.parametrize(
    "package", [pytest.param(name, marks=[] if "gitlab" in name else pytest.mark.nightly) for name in SURE]
)
def test_findings_in_a_tap_of_others(tmp_path, request, package):
    tap = TAPS[package]
    servers = verify_running.Servers(
        postgres=lambda: request.getfixturevalue("postgres"), s3=lambda: request.getfixturevalue("s3_server")
    )
    try:
        verify_running.programs_of(tap)
    except peers_environment.NotInstalled as error:
        pytest.skip(f"the tap can't be installed: {error}")
    verification = verify_running.verified(tap, tmp_path, servers, *FEWER_RUNS.get(package, []))
    found = verify_running.found_in(verification)
    assert {key: said for key, said in found.items() if key not in VERDICTS[package]} == {}
    assert SURE[package] <= {code for code, _stream, _field in found}
    rows = {name: one["rows"] for name, one in verification["runs"][0]["streams"].items()}
    assert sum(rows.values()) in (250, 300, 96)  # it did run


def test_each_verdict_says_something():
    assert VERDICTS.keys() == TAPS.keys()
    for found in VERDICTS.values():
        assert all(verdict.startswith(("true: ", "true, ", "arguable: ")) for verdict in found.values())
