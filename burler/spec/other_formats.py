"""Formats of JSON Schema that a few targets hold values against, beside ``date-time`` and ``date``. What any of the
common readers takes passes."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable

_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)?", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_HOST = re.compile(
    r"(?=.{1,254}\Z)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.?", re.I
)


def _reads(read: Callable[[str], object]) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            read(text)
        except (ValueError, OverflowError):
            return False
        return True

    return fits


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _is_host(text: str) -> bool:
    return not text.isascii() or _HOST.fullmatch(text) is not None


_ECMA = (
    (re.compile(r"\\[pP]\{[^{}]*\}|\\u\{[0-9a-fA-F]+\}|\\c[A-Za-z]|\[\^\]"), "a"),
    (re.compile(r"\(\?<([A-Za-z_]\w*)>"), r"(?P<\1>"),
    (re.compile(r"\\k<([A-Za-z_]\w*)>"), r"(?P=\1)"),
)
"""What JSON Schema's regular expressions (ECMA 262) have and Python's have not, or write another way."""


def _is_regex(text: str) -> bool:
    for pattern, word in _ECMA:
        text = pattern.sub(word, text)
    try:
        re.compile(text)
    except re.error as error:
        return "look-behind" in error.msg  # of any width in ECMA 262
    except (OverflowError, RecursionError):
        return True
    return True


OTHER_FORMATS: dict[str, Callable[[str], bool]] = {
    "time": _matches(_TIME),
    "email": lambda text: "@" in text,
    "idn-email": lambda text: "@" in text,
    "ipv4": _reads(ipaddress.IPv4Address),
    "ip-address": _reads(ipaddress.IPv4Address),  # draft 3
    "ipv6": _reads(ipaddress.IPv6Address),
    "hostname": _is_host,
    "host-name": _is_host,  # draft 3
    "regex": _is_regex,
    "uuid": _matches(_UUID),
}
"""Whether text is of a format."""
