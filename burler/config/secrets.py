"""Secrets: which config keys hold one, and what is shown in their place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_SECRET = re.compile(r"(pass(word|wd|phrase)?$|secret|token|api_?key|private_?key|credential|auth)", re.IGNORECASE)
_SHORTEST = 4  # a shorter value would mask half of every sentence

MASKED = "***"


def looks_secret(key: str) -> bool:
    """Whether a config key is one whose value must never be shown."""
    return bool(_SECRET.search(key))


def mask(config: Any, key: str = "") -> Any:
    """A copy of a config in which the values of secret-looking keys are ``***``, at every depth."""
    if key and looks_secret(key) and config is not None:
        return MASKED
    if isinstance(config, Mapping):
        return {name: mask(value, str(name)) for name, value in config.items()}
    if isinstance(config, list):
        return [mask(value) for value in config]
    return config


def secret_values(config: Any, inside: bool = False) -> Iterator[str]:
    """Every text that stands under a secret-looking key, so that logs and errors can leave it out."""
    if isinstance(config, Mapping):
        for name, value in config.items():
            yield from secret_values(value, inside or looks_secret(str(name)))
    elif isinstance(config, list):
        for value in config:
            yield from secret_values(value, inside)
    elif inside and config is not None and not isinstance(config, bool) and len(str(config)) >= _SHORTEST:
        yield str(config)


def scrub(text: str, secrets: tuple[str, ...]) -> str:
    """``text`` with every secret replaced."""
    for secret in secrets:
        text = text.replace(secret, MASKED)
    return text
