"""Texts of a column held against ``format``: all at once where all of them are plain."""

from __future__ import annotations

import re
from collections.abc import Sequence

from burler.schema.infer_formats import is_date, is_date_time

_DAY = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
_TIMES = re.compile(
    rf"(?:(?!000[01]|9999){_DAY}[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)(?:\n|\Z))*+",
    re.ASCII,
)
_DAYS = re.compile(rf"(?:(?!0000){_DAY}(?:\n|\Z))*+", re.ASCII)
_NAIVE = re.compile(r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?", re.ASCII)


def misfits(texts: Sequence[str], form: str) -> tuple[set[str], set[str]]:
    """Those among texts that are no ``date-time`` or ``date``: date-times that have all but a zone, and all others.
    Other formats are not held: targets do not look at them."""
    if form not in ("date-time", "date") or not texts:
        return set(), set()
    pattern, fits = (_TIMES, is_date_time) if form == "date-time" else (_DAYS, is_date)
    joined = "\n".join(texts)
    if texts[-1] and pattern.fullmatch(joined) and joined.count("\n") == len(texts) - 1:
        return set(), set()
    odd = {text for text in set(texts) if not fits(text)}
    naive = {text for text in odd if _NAIVE.fullmatch(text)} if form == "date-time" else set()
    return naive, odd - naive
