"""Secrets for tests that can be found again wherever they turn up: in a log, a STATE, a file, a URL, a header."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator

from burler.config.secrets import in_base64

_PREFIX = "-".join(("canary", "s3cr3t", ""))  # put together, so that copies of this file are no find
_PERCENT = _PREFIX.replace("-", "%2D")  # some encoders leave no sign as it is
_NEEDLES = tuple(text.encode() for text in (_PREFIX, _PERCENT, _PERCENT.lower(), *sorted(in_base64(_PREFIX.encode()))))
_CANARY = re.compile(b"(" + b"|".join(map(re.escape, _NEEDLES)) + rb")([\w.~+/=%-]*)")
_NAME = re.compile(r"(.*?)(?:-|%2[dD])[0-9a-f]{16}")
_AROUND = 60  # bytes

made: list[str] = []
"""All canaries of this process."""


def canary(name: str) -> str:
    """A secret value for a test, a new one at each call: a prefix that stands nowhere else, ``name``, which says what
    it is used as, and 16 random digits. Search what a test has written for such values with :func:`canaries_in`.
    """
    value = f"{_PREFIX}{name}-{secrets.token_hex(8)}"
    made.append(value)
    return value


def canaries_in(content: str | bytes) -> Iterator[str]:
    """The canaries in a text, each as some words around it, with ``<secret NAME>`` in place of its value.

    Found are plain ones, percent-encoded ones and those inside of base64 (``<secret in base64>``: there its name and
    what stands beside it can't be told apart).
    """
    text = content.encode(errors="replace") if isinstance(content, str) else content
    if not any(needle in text for needle in _NEEDLES):  # ten times as fast as the expression
        return
    for found in _CANARY.finditer(text):
        around = text[max(0, found.start() - _AROUND) : found.end() + _AROUND]
        yield " ".join(_CANARY.sub(_shown, around).decode(errors="replace").split())


def _shown(found: re.Match[bytes]) -> bytes:
    if found[1] not in _NEEDLES[:3]:
        return b"<secret in base64>"
    name = _NAME.match(found[2].decode())
    return f"<secret {name[1] if name else 'cut'}>".encode()
