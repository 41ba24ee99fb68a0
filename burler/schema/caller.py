"""The folder that relative paths of an author count from."""

from __future__ import annotations

import sys
from pathlib import Path


def callers_folder() -> Path:
    """The folder of the module that called into burler: of the nearest caller that is not burler's own code, so it
    does not matter how deep in burler this is asked for. The current folder if that module is no file (a console)."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("burler."):
        frame = frame.f_back
    return Path(str(frame.f_globals.get("__file__", "x"))).resolve().parent
