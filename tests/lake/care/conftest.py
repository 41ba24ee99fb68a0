"""The helpers and fixtures of these tests."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the helpers beside these tests, by name

from care_lakes import rich

__all__ = ["rich"]


@pytest.fixture(params=range(5))
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Chance, the same in each run."""
    return random.Random(request.param)
