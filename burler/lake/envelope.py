"""The outermost keys of a line that the lake holds, whatever stands below them.

A decoder looks through all of a line. It refuses half of a surrogate pair, and what is nested deeper than the stack of
its Python allows where it is called. The lake has taken both, so whoever counts its rows must take them too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec

from burler.formats.jsonl import veil

Decoded = TypeVar("Decoded")

_TEXT_OR_BRACKET = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]')  # a text that breaks off is one, too
_BELOW_OUTERMOST = 2


def decode_outermost(decode: Callable[[bytes], Decoded], line: bytes) -> Decoded:
    """``decode(line)``, for a type that says nothing of values below the outermost keys.

    Text of a line that holds half of a pair comes out veiled (``burler.formats.jsonl``).

    Raises:
        msgspec.DecodeError, UnicodeDecodeError: as ``decode``.
    """
    try:
        return decode(line)
    except RecursionError:
        line = shallow(line)
    except msgspec.DecodeError:
        line = veil(line) or line
    try:
        return decode(line)
    except RecursionError:
        return decode(shallow(line))
    except msgspec.DecodeError:
        return decode(veil(line) or line)


def shallow(line: bytes) -> bytes:
    """A JSON object with an empty array in place of each array and object inside of it."""
    kept: list[bytes] = []
    depth = start = 0
    for found in _TEXT_OR_BRACKET.finditer(line):
        token = found[0]
        if token in (b"{", b"["):
            depth += 1
            if depth == _BELOW_OUTERMOST:
                kept.append(line[start : found.start()])
        elif token in (b"}", b"]"):
            if depth == _BELOW_OUTERMOST:
                kept.append(b"[]")
                start = found.end()
            depth -= 1
    return b"".join((*kept, line[start:]))
