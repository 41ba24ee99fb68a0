"""The helpers beside these tests can be imported by name; servers that see who asks."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pytest
from soapserver import Web


@pytest.fixture
def web():
    """Starts servers; they end with the test."""
    started = []

    def start():
        server = Web()
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()
