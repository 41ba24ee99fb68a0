"""Secrets: which config keys hold one, and what is shown in their place."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

Path = tuple[str, ...]
"""A key in a config, from the top: ``("db", "password")``. ``*`` is any key, or any place in a list."""

_SECRET = re.compile(
    r"pass(word|wd|phrase)|pass$|pwd|secret|token|credential|auth|cookie|bearer|"
    r"(api|private|access|account|shared|signing|encryption|ssh|client|master)[ _.-]?key",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")
_SHORTEST = 4  # a shorter value would mask half of every sentence

MASKED = "***"


@functools.lru_cache(4096)  # the log asks for every key with every line
def looks_secret(key: str) -> bool:
    """Whether a config key is one whose value must never be shown, by its name."""
    return bool(_SECRET.search(key))


def mask(config: Any, key: str = "", *, marked: Iterable[Path] = ()) -> Any:
    """A copy of a config in which secrets are ``***``, at every depth: the values of secret-looking keys, those at
    the ``marked`` paths, and passwords in URLs."""
    paths = tuple(marked)
    if config is not None and ((key and looks_secret(key)) or () in paths):
        return MASKED
    if isinstance(config, Mapping):
        return {name: mask(value, str(name), marked=_below(paths, str(name))) for name, value in config.items()}
    if isinstance(config, list | tuple):
        return [mask(value, marked=_below(paths, "*")) for value in config]
    if isinstance(config, str):
        return _IN_URL.sub(lambda found: found[0].replace(found[1], MASKED), config)
    return config


def _below(paths: tuple[Path, ...], name: str) -> tuple[Path, ...]:
    return tuple(path[1:] for path in paths if path and path[0] in (name, "*"))


def raw_secrets(config: Any, inside: bool = False, *, marked: Iterable[Path] = ()) -> Iterator[str]:
    """Every secret of a config as text: what stands under a secret-looking key or at a ``marked`` path, and
    passwords in URLs. Texts shorter than four characters are left out."""
    paths = tuple(marked)
    inside = inside or () in paths
    if isinstance(config, Mapping):
        for name, value in config.items():
            found = inside or looks_secret(str(name))
            yield from raw_secrets(value, found, marked=_below(paths, str(name)))
    elif isinstance(config, list | tuple):
        for value in config:
            yield from raw_secrets(value, inside, marked=_below(paths, "*"))
    elif inside and config is not None and not isinstance(config, bool) and len(str(config)) >= _SHORTEST:
        yield str(config)
    if isinstance(config, str):  # a driver may print the password alone, also of a URL that is secret as a whole
        yield from (found for found in _IN_URL.findall(config) if len(found) >= _SHORTEST)


def secret_values(config: Any, inside: bool = False, *, marked: Iterable[Path] = ()) -> Iterator[str]:
    """The texts of :func:`raw_secrets`, also as they look inside JSON, ``repr`` and a URL, so that logs and errors
    can leave them out."""
    for text in raw_secrets(config, inside, marked=marked):
        yield from spellings(text)


def spellings(text: str) -> set[str]:
    """A text as it looks plain, inside JSON, ``repr`` and a URL."""
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
