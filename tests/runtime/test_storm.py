"""Forty runs stopped at random moments; many more: ``python tests/runtime/storm.py 500``."""

from pathlib import Path

import storm


def test_a_quick_storm(tmp_path: Path):
    # Other seeds each day would find more, but a failure of a stranger's change would be hard to repeat.
    kinds = storm.storm(40, tmp_path, first=1000)
    assert sum(kinds.values()) == 40
    assert kinds["ended before the signal"] < 10
