"""Where secrets stand in messages (M215)."""

from __future__ import annotations

import re
from collections.abc import Iterator

LEAST_SECRET = 6
_LONG = 16
"""A shorter secret counts only where it stands by itself: 123456 is no secret inside of 1234567."""
_WORDS = re.compile(r"[A-Za-z][a-z]*(?:[-_ ][A-Za-z][a-z]*)*", re.ASCII)
_WORD = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


def may_be_looked_for(secret: str) -> bool:
    """Whether a text of the config is long and odd enough not to stand in rows by chance: a short one that is made of
    words is not ("X-Api-Key", "default")."""
    if len(secret) < LEAST_SECRET:
        return False
    return len(secret) >= _LONG or _WORDS.fullmatch(secret) is None


def lines_with(secret: bytes, block: bytes) -> Iterator[int]:
    """The lines of a block that a secret stands in, counted from 0."""
    line = counted = 0
    at = block.find(secret)
    while at >= 0:
        end = at + len(secret)
        if len(secret) >= _LONG or _stands_alone(block, at, end):
            line += block.count(b"\n", counted, at)
            counted = at
            yield line
            end = block.find(b"\n", end)
            if end < 0:
                return
        at = block.find(secret, end)


def _stands_alone(block: bytes, start: int, end: int) -> bool:
    before, after = block[max(0, start - 2) : start], block[end : end + 1]
    is_word = bool(before) and before[-1] in _WORD and not before.startswith(b"\\")  # the n of \n is no word
    return not is_word and not (after and after[0] in _WORD)
