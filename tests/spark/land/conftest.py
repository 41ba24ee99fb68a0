"""The apps of the tests of extractions."""

from __future__ import annotations

import sys
from pathlib import Path

_APPS = str(Path(__file__).parents[1] / "extract")
if _APPS not in sys.path:
    sys.path.append(_APPS)
