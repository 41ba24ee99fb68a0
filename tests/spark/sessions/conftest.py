"""A cache folder of the test's own, and helpers of the tests of sessions."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The user's cache folder, with archives turned on; gives the folder that archives are in."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("BURLER_SPARK_ARCHIVE", "on")
    monkeypatch.delenv("CI", raising=False)
    return tmp_path / "cache" / "burler" / "spark"


@pytest.fixture
def burler(tmp_path):
    """``burler(*arguments)`` as a process, in the test's folder and environment."""

    def run(*arguments, **environ):
        return subprocess.run(
            [sys.executable, "-m", "burler", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, **{key: str(value) for key, value in environ.items()}},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run
