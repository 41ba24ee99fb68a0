"""Documents that hold schemas, read: files, and http addresses for those who ask for them.

JSON; YAML by the ending of the name.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from burler.errors import DeclarationError
from burler.schema.documents_yaml import load_yaml

MOST_BYTES = 64 * 1024 * 1024
"""Of a fetched document, unpacked."""
CONNECT_SECONDS = 10
TOTAL_SECONDS = 60

_BOM = b"\xef\xbb\xbf"
_YAML = (".yaml", ".yml")


def read_file(path: Path, *, where: str = "") -> Any:
    """The document in a file, as plain JSON values.

    Args:
        where: words that an error begins with ("stream 'a' (tap.py:5): schema file"); the path follows.

    Raises:
        DeclarationError: the file is missing, a folder, unreadable, or no JSON (YAML).
    """
    named = f"{where} {shown(str(path))}".lstrip()
    try:
        if path.exists() and not path.is_file():
            kind = "a folder" if path.is_dir() else "no regular file"
            raise DeclarationError(f"{named} is {kind}. Give the path of a JSON file.")
        content = path.read_bytes()
    except OSError as error:
        raise DeclarationError(f"{named}: {error.strerror}. Is the path right?") from None
    except ValueError as error:  # a null byte in the name
        raise DeclarationError(f"{named} can't be read: {error}.") from None
    return parse(content, named=named, is_yaml=path.suffix.lower() in _YAML)


def fetch(url: str, *, where: str = "") -> tuple[Any, str]:
    """The document at an http(s) address, and the address where it was found in the end.

    Raises:
        DeclarationError: no answer in time, a status other than 200, more than ``MOST_BYTES``, no JSON (YAML).
    """
    import requests

    named = f"{where} {shown(url)}".lstrip()
    headers = {"Accept": "application/schema+json, application/json, application/yaml;q=0.9, */*;q=0.5"}
    try:
        with requests.get(url, headers=headers, timeout=CONNECT_SECONDS, stream=True) as response:
            if response.status_code != 200:
                raise DeclarationError(f"{named} answered {response.status_code}. Is the address right?")
            content = _body(response, named)
            kind = response.headers.get("Content-Type", "").partition(";")[0]
            final = str(response.url)
    except requests.Timeout:
        raise DeclarationError(f"{named} did not answer within {CONNECT_SECONDS} s.") from None
    except requests.TooManyRedirects:
        raise DeclarationError(f"{named} redirects without an end.") from None
    except requests.ConnectionError:
        raise DeclarationError(f"{named}: no connection. Is the address right, and the network there?") from None
    except (requests.RequestException, ValueError) as error:  # its text may hold the address, and that a secret
        raise DeclarationError(f"{named} can't be fetched ({type(error).__name__}).") from None
    is_yaml = "yaml" in kind or ("json" not in kind and urlsplit(final).path.lower().endswith(_YAML))
    return parse(content, named=named, is_yaml=is_yaml), final


def _body(response: Any, named: str) -> bytes:
    """The body, read in pieces: a document that is too large or too slow is given up."""
    ends = time.monotonic() + TOTAL_SECONDS
    pieces: list[bytes] = []
    size = 0
    for piece in response.iter_content(65536):
        size += len(piece)
        if size > MOST_BYTES:
            raise DeclarationError(f"{named} is larger than {MOST_BYTES // 2**20} MiB, too large for a schema.")
        if time.monotonic() > ends:
            raise DeclarationError(f"{named} did not end within {TOTAL_SECONDS} s.")
        pieces.append(piece)
    return b"".join(pieces)


def parse(content: bytes, *, named: str, is_yaml: bool = False) -> Any:
    """The value of a JSON (YAML) text.

    Args:
        named: what an error calls the text.

    Raises:
        DeclarationError: it is none, or is nested too deep.
        MissingExtra: YAML, and PyYAML is not installed.
    """
    try:
        if is_yaml:
            return load_yaml(content, named=named)
        return msgspec.json.decode(content.removeprefix(_BOM))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DeclarationError(f"{named} is not JSON: {error}.") from None
    except RecursionError:
        raise DeclarationError(f"{named} is nested too deep to be a schema.") from None


def shown(text: str) -> str:
    """An address, path or reference for an error: printable, not too long, without user, password and query."""
    try:
        parts = urlsplit(text)
        if parts.scheme in ("http", "https"):
            query = "..." if parts.query else ""
            text = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, parts.fragment))
    except ValueError:
        pass
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= 200 else f"{text[:120]}...{text[-60:]}"
