"""The helpers beside these tests can be imported by name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from support.objects import s3_endpoint, s3_server

__all__ = ["s3_endpoint", "s3_server"]
