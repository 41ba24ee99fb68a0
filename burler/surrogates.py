r"""Halves of surrogate pairs, which JSON allows as an escape (``"\ud83d"``), and other tools write.

What is read here keeps what it gets; but the decoder refuses it. So such escapes are veiled before decoding, and
unveiled in what comes out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

Decoded = TypeVar("Decoded")

_ESCAPE = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.")
_HALF = re.compile("[\ud800-\udfff]")
_WHOLE_PAIR = 12
_VEIL = b"\x7f\x7f"  # DEL may stand in JSON text as it is, and hardly ever does


def decode_veiled(decode: Callable[[bytes], Decoded], line: bytes) -> tuple[Decoded, bool]:
    """``decode(line)``, and whether its texts are veiled: only where it is refused as it stands.

    Raises:
        msgspec.DecodeError: as ``decode``.
    """
    try:
        return decode(line), False
    except msgspec.DecodeError:
        veiled = veil(line)
        if veiled is None:
            raise
        return decode(veiled), True


def veil(line: bytes) -> bytes | None:
    r"""The line with ``\u`` of each half pair veiled; None where there is none, or it can't be done."""
    if _VEIL in line:
        return None
    veiled = _ESCAPE.sub(_veil_one, line)
    return None if veiled == line else veiled


def unveil(data: bytes) -> bytes:
    """What came out of a veiled line, as it was in it."""
    return data.replace(_VEIL, b"\\u")


def is_veiled(text: str) -> bool:
    """Whether a decoded text held half of a pair."""
    return _VEIL.decode() in text


def _veil_one(found: re.Match[bytes]) -> bytes:
    escape = found[0]
    is_half = escape[1:2] == b"u" and len(escape) < _WHOLE_PAIR and len(escape) > 2
    return _VEIL + escape[2:] if is_half else escape


def is_unicode(text: str) -> bool:
    """Whether a text has a form in UTF-8; one with half a surrogate pair has none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def half_pair(line: bytes) -> tuple[str, ...] | None:
    """Where a row has text with half of a surrogate pair: JSON's escapes may say so, UTF-8 can't."""
    try:
        return _half_pair_in(json.loads(line), ())
    except (ValueError, RecursionError):
        return None


def _half_pair_in(value: Any, path: tuple[str, ...]) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return None if value.isascii() or not _HALF.search(value) else path
    below = (
        value.items() if isinstance(value, dict) else (("[]", one) for one in value) if isinstance(value, list) else ()
    )
    for name, one in below:
        found = _half_pair_in(one, (*path, name)) or (_half_pair_in(name, (*path, ascii(name))))
        if found:
            return found
    return None
