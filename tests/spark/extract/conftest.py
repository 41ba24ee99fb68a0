"""Makes ``extracted`` and the helpers of ``tests/spark`` importable for the tests here."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = str(Path(__file__).parent)
if _HERE not in sys.path:
    sys.path.append(_HERE)
