"""Where a ``file:`` URL points on this machine: one rule for all who meet one."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote


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
