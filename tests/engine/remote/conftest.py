"""The helpers here and the partitioned taps of the tests of a local run (``tests/engine/parts``)."""

from __future__ import annotations

import sys
from pathlib import Path

for folder in (Path(__file__).parent, Path(__file__).parents[1]):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
