"""A small storm over a lake; the whole one: ``python tests/runtime/lake_storm.py``."""

from __future__ import annotations

from pathlib import Path

import pytest
from lake_storm import storm
from lake_storm_checks import Verdict
from lake_storm_slot import PARTS
from lake_storm_store import s3_server


def clean(found: Verdict) -> Verdict:
    """Nothing is lost, and nobody commits who was put aside."""
    assert not found.failures, "\n\n".join(found.failures)
    assert (found.figures["lost"], found.figures["zombies"]) == (0, 0)
    return found


def test_a_quick_storm_over_a_lake(tmp_path: Path):
    found = clean(storm(tmp_path, seconds=5.0, seed=1, parts=PARTS[:4]))
    assert found.figures["acknowledged commits"] > 10


def test_a_quick_storm_over_a_lake_on_s3(tmp_path: Path):
    pytest.importorskip("s3fs")
    pytest.importorskip("moto")
    with s3_server() as server:
        found = clean(storm(tmp_path, seconds=4.0, seed=2, server=server, parts=PARTS[:2]))
    assert found.figures["acknowledged commits"] > 3
