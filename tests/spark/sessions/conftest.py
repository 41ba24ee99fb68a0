"""A cache folder of the test's own."""

from __future__ import annotations

import pytest


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The user's cache folder, with archives turned on; gives the folder that archives are in."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("BURLER_SPARK_ARCHIVE", "on")
    monkeypatch.delenv("CI", raising=False)
    return tmp_path / "cache" / "burler" / "spark"
