"""The helpers beside these tests, and those of the tests of batch files, can be imported by name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parent.parent / "batch"))

from support.objects import s3_endpoint, s3_server

__all__ = ["s3_endpoint", "s3_server"]
