"""A small storm over extractions; the whole one: ``python tests/spark/extract/extract_storm.py``."""

from __future__ import annotations

from pathlib import Path

from extract_storm import storm


def test_a_quick_storm(packages: None, tmp_path: Path):
    found = storm(tmp_path, rounds=2, seed=5, pause=0.1)
    assert not found.failures, "\n\n".join(found.failures)
    assert found.figures.get("drivers killed", 0) + found.figures.get("workers killed", 0) >= 1
