"""The helpers beside these tests can be imported by name."""

from __future__ import annotations

import sys
from pathlib import Path

_HELPERS = str(Path(__file__).parent)
if _HELPERS not in sys.path:
    sys.path.append(_HELPERS)
