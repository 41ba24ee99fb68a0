"""A few rounds of the kill storm (``export_storm.py``; ``make storm`` runs many)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


def _storm():
    spec = importlib.util.spec_from_file_location("export_storm", Path(__file__).parents[1] / "export_storm.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.spark
def test_killed_exports_leave_whole_tables_and_heal(lake, tmp_path, packages):
    storm = _storm().Storm(lake, tmp_path / "out", seed=22)
    with storm.watched(with_spark=False):  # another JVM is too dear here
        storm.round(small=False, heal_small=True)  # the start of a JVM is dear: one is enough here
        for _ in range(2):
            storm.round(small=True)

    assert storm.faults == []
    assert storm.seen
    assert storm.kills
