"""Tests of several dimensions: each push meets every two values together, the night all of them with all.

@pytest.mark.parametrize(("form", "buffer", "page"), pairs(FORMS, BUFFERS, PAGES))
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest


def pairs(*dimensions: Sequence[Any]) -> list[Any]:
    """All combinations as parameters of a test, of which a push runs so many that each two values meet."""
    combinations = list(itertools.product(*(range(len(values)) for values in dimensions)))
    meet = {places: set(itertools.combinations(enumerate(places), 2)) for places in combinations}
    missing, by_day = set().union(*meet.values()), set()
    while missing:
        best = max(combinations, key=lambda places: len(meet[places] & missing))
        by_day.add(best)
        missing -= meet[best]
    return [
        pytest.param(
            *(values[place] for values, place in zip(dimensions, places, strict=True)),
            marks=() if places in by_day else pytest.mark.nightly,
        )
        for places in combinations
    ]
