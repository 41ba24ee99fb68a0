"""Reading OpenAPI documents: JSON or YAML, from a file or by http. YAML is taken as JSON's data, no more:
timestamps, ``no`` and ``on`` stay text, and a key that stands twice is an error."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from burler.errors import DeclarationError
from burler.schema.documents import shown
from burler.schema.documents_yaml import load_yaml

TIMEOUT_SECONDS = (10, 60)  # to connect; between two reads
TOTAL_SECONDS = 120
MAX_BYTES = 64 << 20
_BLOCK_BYTES = 1 << 16


def is_url(source: str) -> bool:
    """Whether a document is to be fetched."""
    return source.lower().startswith(("http://", "https://"))


def read_document(source: str | Path, *, where: str) -> dict[str, Any]:
    """An OpenAPI document of version 2.0 or 3.x.

    Args:
        source: an http(s) URL, a ``file:`` URL, or a path.

    Raises:
        DeclarationError: it can't be read or fetched, or is no such document.
        MissingExtra: it is YAML and PyYAML is not installed.
    """
    name = f"{where}: OpenAPI document {shown(str(source))}"
    if is_url(str(source)):
        content = _fetch(str(source), name)
    else:
        path = Path(unquote(urlsplit(str(source)).path)) if str(source).startswith("file:") else Path(source)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DeclarationError(f"{name} can't be read: {error.strerror}. Is the path right?") from None
    document = _parse(content, name, is_json=str(source).lower().endswith(".json"))
    version = document.get("openapi", document.get("swagger")) if isinstance(document, dict) else None
    if not isinstance(document, dict) or version is None:
        raise DeclarationError(f"{name} is no OpenAPI document: it has neither 'openapi' nor 'swagger' at its top.")
    if not re.match(r"(2\.0|3\.\d)", str(version)):
        raise DeclarationError(f"{name} is of version {version!r}; burler reads 2.0 and 3.x.")
    return document


def _fetch(url: str, name: str) -> bytes:
    import requests

    content = bytearray()
    ends = time.monotonic() + TOTAL_SECONDS
    try:
        with requests.get(url, timeout=TIMEOUT_SECONDS, stream=True) as response:
            if response.status_code != 200:
                raise DeclarationError(f"{name} can't be fetched: the server answers {response.status_code}.")
            for block in response.iter_content(_BLOCK_BYTES):
                content += block
                if time.monotonic() > ends:
                    raise DeclarationError(f"{name} did not end within {TOTAL_SECONDS} s; save it as a file.")
                if len(content) > MAX_BYTES:
                    raise DeclarationError(f"{name} is larger than {MAX_BYTES >> 20} MiB; save it as a file.")
    except requests.RequestException as error:  # its text repeats the URL, with what may be secret in it
        raise DeclarationError(f"{name} can't be fetched: {type(error).__name__}. Is the URL right?") from None
    return bytes(content)


def _parse(content: bytes, name: str, *, is_json: bool) -> Any:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DeclarationError(f"{name} is not UTF-8.") from None
    try:
        if is_json or text.lstrip()[:1] in ("{", "["):
            return json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        if is_json or text.lstrip()[:2] in ('{"', "{\n", "{\r"):
            raise DeclarationError(f"{name} is not JSON: line {error.lineno}: {error.msg}.") from None
    except (_Twice, ValueError) as error:
        raise DeclarationError(f"{name}: {error}.") from None
    except RecursionError:
        raise DeclarationError(f"{name} is nested too deep.") from None
    try:
        return load_yaml(content, named=name)
    except RecursionError:
        raise DeclarationError(f"{name} is nested too deep.") from None


class _Twice(Exception):
    """A key that stands twice in one mapping."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _Twice(f"the key '{next(key for key in keys if keys.count(key) > 1)}' stands twice in one object")
    return out
