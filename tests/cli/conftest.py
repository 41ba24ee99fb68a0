"""Makes ``tapprocess`` importable for the tests here."""

import sys
from pathlib import Path

_HELPERS = str(Path(__file__).parents[1] / "engine")
if _HELPERS not in sys.path:
    sys.path.append(_HELPERS)
