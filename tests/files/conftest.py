"""The helpers beside these tests can be imported by name; what files need is there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.objects import s3_endpoint, s3_server

__all__ = ["box", "s3_endpoint", "s3_server"]
sys.path.insert(0, str(Path(__file__).parent))
pytest.importorskip("fsspec")
pytest.importorskip("pyarrow")


@pytest.fixture
def box(tmp_path):
    """A folder that files are put into."""
    from filebox import Box

    return Box(tmp_path)
