"""Secrets: which config keys hold one, and what is shown in their place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

_SECRET = re.compile(
    r"pass(word|wd|phrase)|pass$|pwd|secret|token|credential|auth|cookie|bearer|"
    r"(api|private|access|account|shared|signing|encryption|ssh|client|master)[ _.-]?key",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")
_SHORTEST = 4  # a shorter value would mask half of every sentence

MASKED = "***"


def looks_secret(key: str) -> bool:
    """Whether a config key is one whose value must never be shown."""
    return bool(_SECRET.search(key))


def mask(config: Any, key: str = "") -> Any:
    """A copy of a config in which the values of secret-looking keys, and passwords in URLs, are ``***``, at
    every depth."""
    if key and looks_secret(key) and config is not None:
        return MASKED
    if isinstance(config, Mapping):
        return {name: mask(value, str(name)) for name, value in config.items()}
    if isinstance(config, list | tuple):
        return [mask(value) for value in config]
    if isinstance(config, str):
        return _IN_URL.sub(lambda found: found[0].replace(found[1], MASKED), config)
    return config


def secret_values(config: Any, inside: bool = False) -> Iterator[str]:
    """Every text that stands under a secret-looking key or as a password in a URL, so that logs and errors can
    leave it out; also as it looks inside JSON, ``repr`` and a URL."""
    if isinstance(config, Mapping):
        for name, value in config.items():
            yield from secret_values(value, inside or looks_secret(str(name)))
    elif isinstance(config, list | tuple):
        for value in config:
            yield from secret_values(value, inside)
    elif inside and config is not None and not isinstance(config, bool) and len(str(config)) >= _SHORTEST:
        yield from _spellings(str(config))
    elif isinstance(config, str):
        for found in _IN_URL.findall(config):
            if len(found) >= _SHORTEST:
                yield from _spellings(found)


def _spellings(text: str) -> set[str]:
    plain = text.encode(errors="replace").decode()
    return {
        text,
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
        quote_plus(plain),
    } | {quote(plain, safe=""), quote(plain)}


def scrub(text: str, secrets: tuple[str, ...]) -> str:
    """``text`` with every secret replaced, the longest first: a secret may begin with another one."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASKED)
    return text
