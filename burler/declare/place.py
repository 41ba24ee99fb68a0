"""Where something is declared: the line outside burler that is being run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from burler.declare.inject import short_path


@dataclass(frozen=True, slots=True)
class Caller:
    """``place`` is file:line for people; ``file`` the module's file, and ``namespace`` its names."""

    place: str
    file: str | None
    namespace: Mapping[str, Any]


def caller() -> Caller:
    """The nearest caller that is not burler's own code."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("burler."):
        frame = frame.f_back
    return Caller(
        f"{short_path(frame.f_code.co_filename)}:{frame.f_lineno}", frame.f_globals.get("__file__"), frame.f_globals
    )
