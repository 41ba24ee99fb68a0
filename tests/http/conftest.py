"""The helpers beside these tests can be imported by name."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def serve():
    """Starts servers that answer with a function of the test; they end with it."""
    from support.servers import serving

    with contextlib.ExitStack() as servers:
        yield lambda answer: servers.enter_context(serving(answer))
