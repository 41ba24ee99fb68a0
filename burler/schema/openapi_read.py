"""OpenAPI documents: where they lie, and whether they are any. ``documents`` does the reading."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from burler.errors import DeclarationError
from burler.schema.documents import fetch, read_file, shown


def is_url(source: str) -> bool:
    """Whether a document is to be fetched."""
    return source.lower().startswith(("http://", "https://"))


def read_document(source: str | Path, *, where: str) -> tuple[dict[str, Any], str | Path]:
    """An OpenAPI document of version 2.0 or 3.x, and the address or path that its references count from.

    Args:
        source: an http(s) URL, a ``file:`` URL, or a path.

    Raises:
        DeclarationError: it can't be read or fetched, or is no such document.
        MissingExtra: it is YAML and PyYAML is not installed.
    """
    words, base = f"{where}: OpenAPI document", source
    if is_url(str(source)):
        document, base = fetch(str(source), where=words, guess=True)
    else:
        base = Path(unquote(urlsplit(str(source)).path)) if str(source).startswith("file:") else Path(source)
        document = read_file(base, where=words, guess=True)
    name = f"{words} {shown(str(source))}"
    version = document.get("openapi", document.get("swagger")) if isinstance(document, dict) else None
    if not isinstance(document, dict) or version is None:
        raise DeclarationError(f"{name} is no OpenAPI document: it has neither 'openapi' nor 'swagger' at its top.")
    if not re.match(r"(2\.0|3\.\d)", str(version)):
        raise DeclarationError(f"{name} is of version {version!r}; burler reads 2.0 and 3.x.")
    return document, base
