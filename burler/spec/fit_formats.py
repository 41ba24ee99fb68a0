"""Texts of a column held against ``format``: all at once where all of them are plain."""

from __future__ import annotations

import re
from collections.abc import Sequence

from burler.schema.infer_formats import is_date, is_date_time
from burler.spec.other_formats import OTHER_FORMATS

_DAY = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
_TIMES = re.compile(
    rf"(?:(?!000[01]|9999){_DAY}[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)(?:\n|\Z))*+",
    re.ASCII,
)
_DAYS = re.compile(rf"(?:(?!0000){_DAY}(?:\n|\Z))*+", re.ASCII)
_PLAIN = {"date-time": _TIMES, "date": _DAYS}
_FITS = {"date-time": is_date_time, "date": is_date, **OTHER_FORMATS}
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
    pattern = _PLAIN.get(form)
    if pattern is not None and texts[-1]:
        joined = "\n".join(texts)
        if pattern.fullmatch(joined) and joined.count("\n") == len(texts) - 1:
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
