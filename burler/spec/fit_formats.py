"""Texts of a column held against ``format``: all at once where all of them are plain."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from burler import times
from burler.spec.other_formats import OTHER_FORMATS

_ALL_FIT = {"date-time": times.are_strict, "date": times.are_dates}
_FITS: dict[str, Callable[[str], Any]] = {"date-time": times.strict, "date": times.is_date, **OTHER_FORMATS}
NAIVE, SPACED, ODD = "M217", "M219", "M205"
"""The rules on them."""
_LEAP = re.compile(r"(?<=:\d\d):60(?=[.Zz+-])", re.ASCII)
"""A leap second, which RFC 3339 has and few programs read."""
_NAIVE = re.compile(r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?", re.ASCII)


def misfits(texts: Sequence[str], form: str) -> dict[str, set[str]]:
    """Those among texts that are not of a format, by what is to be said of them: ``NAIVE`` date-times have all but a
    zone, ``SPACED`` ones all but the T, and ``ODD`` are all others."""
    fits = _FITS.get(form)
    if fits is None or not texts:
        return {}
    all_fit = _ALL_FIT.get(form)
    if all_fit is not None and all_fit(texts):
        return {}
    found: dict[str, set[str]] = {}
    for text in set(texts):
        if fits(text) or (form == "date-time" and fits(_LEAP.sub(":59", text))):
            if form == "date-time" and text[10] == " ":
                found.setdefault(SPACED, set()).add(text)
        else:
            kind = NAIVE if form == "date-time" and _NAIVE.fullmatch(text) else ODD
            found.setdefault(kind, set()).add(text)
    return found
