"""The numbers that options take: what is counted is whole, what is measured is finite, and True is neither."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

MOST_SECONDS = 1e9
"""Some 31 years: clocks of operating systems refuse to wait much longer."""


def is_count(value: Any, least: int) -> TypeGuard[int]:
    """Whether an option is a whole number of at least so much."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_measure(value: Any) -> TypeGuard[float]:
    """Whether an option is a number, below infinity, such as seconds."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value < math.inf
