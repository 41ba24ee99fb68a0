"""Where a URL points, and what in it and in the options beside it must not be shown."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from burler.config.secrets import hide, raw_secrets

_SECRET_OPTIONS = frozenset({"key", "secret", "token", "connection_string", "sas_token", "account_key", "credential"})
_WORDS = frozenset({"anon", "cloud", "cache", "browser", "google_default"})  # ways that gcsfs finds a token by itself


def local_path(url: str) -> Path | None:
    """The path of a ``file:`` URL; None for all that is no such URL.

    The path is taken as it is written, and percent-decoded where nothing of that name is there: readers and writers of
    manifests disagree. A ``?`` or ``#`` is a letter of the name.

    Raises:
        OSError: a file of another machine.
    """
    scheme, colon, rest = url.partition(":")
    if not colon or scheme.lower() != "file":
        return None
    if rest.startswith("//"):
        host, _, path = rest[2:].partition("/")
        if host.lower() not in ("", "localhost"):
            raise OSError(f"it is a file of the machine '{host}'")
        rest = f"/{path}"
    plain = Path(rest)
    return plain if "%" not in rest or os.path.lexists(plain) else Path(unquote(rest))


def hide_options(options: Mapping[str, Any]) -> None:
    """Keep the secrets among a store's options out of logs and errors of this process. The libraries have names of
    their own for them (``connection_string``)."""
    found = list(raw_secrets(dict(options)))
    found += [value for name, value in options.items() if name in _SECRET_OPTIONS and isinstance(value, str)]
    for secret in found:
        if secret not in _WORDS:
            hide(secret)
