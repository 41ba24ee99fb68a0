"""What is said where a tap or stream is asked for that a lake does not have."""

from __future__ import annotations

from collections.abc import Iterable

from burler.suggest import did_you_mean
from burler.words import some


def not_there(lake_url: str, what: str, name: str, have: Iterable[str]) -> str:
    """The sentence: ``what`` (a tap, a stream) is missing, the nearest name that is there, and what there is."""
    known = sorted(set(have))
    return f"{lake_url}: no {what} '{name}' in this lake. It has: {some(known)}.{did_you_mean(name, known)}"
