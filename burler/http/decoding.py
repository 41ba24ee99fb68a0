"""JSON of replies, with every digit of its numbers."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import msgspec

_BOM = b"\xef\xbb\xbf"
_decoder = msgspec.json.Decoder(float_hook=Decimal)


def decode_json(content: bytes) -> Any:
    """A document; ``NaN`` and halves of surrogate pairs, which some sources send, come through.

    Raises:
        ValueError: what is wrong with it, for a person.
    """
    content = content.removeprefix(_BOM)
    if not content.strip():
        raise ValueError("an empty body instead of JSON")
    try:
        return _decoder.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ArithmeticError) as error:
        try:
            return json.loads(content.decode(), parse_float=Decimal)
        except (ValueError, RecursionError, ArithmeticError):
            raise ValueError(_said(content, error)) from None


def _said(content: bytes, error: Exception) -> str:
    """What is wrong; without words of the body, which the error shows masked."""
    if content.lstrip()[:1] == b"<":
        return "HTML or XML instead of JSON"
    if "truncated" in str(error):
        return "JSON that breaks off"
    return f"no JSON ({type(error).__name__})" if not isinstance(error, msgspec.DecodeError) else f"no JSON ({error})"
