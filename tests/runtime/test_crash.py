"""Some taps killed at random moments; many more: ``python tests/runtime/crash.py 200``."""

from pathlib import Path

import crash


def test_killed_taps_lose_nothing(tmp_path: Path):
    # The same seeds each day: others would find more, but a failure of a stranger's change would be hard to repeat.
    figures = crash.crash(18, tmp_path, first=3000)
    assert figures["runs: kill"] >= 15
    assert figures["runs: term"] >= 5
    assert figures["runs: with failures"] >= 3
    assert figures["ended before the kill"] < figures["runs: kill"]
    assert figures["twice by another run"]
