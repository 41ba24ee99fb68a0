"""Documents that hold schemas, read: files, and http addresses for those who ask for them.

JSON; YAML by the ending of the name or the type that a server gives. All that burler reads of schemas goes this way
(references, schema files, OpenAPI), so there is one set of limits and one idea of what is broken.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from burler.errors import DeclarationError
from burler.schema.documents_json import load_json
from burler.schema.documents_yaml import load_yaml

MOST_BYTES = 64 * 1024 * 1024
"""Of a fetched document, unpacked."""
CONNECT_SECONDS = 10
TOTAL_SECONDS = 60

Form = Literal["json", "yaml", "either"]
_YAML = (".yaml", ".yml")


def read_file(path: Path, *, where: str = "", guess: bool = False) -> Any:
    """The document in a file, as plain JSON values.

    Args:
        where: words that an error begins with ("stream 'a' (tap.py:5): schema file"); the path follows.
        guess: where the name does not say JSON, look into the document. Otherwise all but ``.yaml`` is JSON.

    Raises:
        DeclarationError: the file is missing, a folder, unreadable, or no JSON (YAML).
    """
    named = f"{where} {shown(str(path))}".lstrip()
    try:
        if path.exists() and not path.is_file():
            kind = "a folder" if path.is_dir() else "no regular file"
            raise DeclarationError(f"{named} is {kind}. Give the path of a JSON or YAML file.")
        content = path.read_bytes()
    except OSError as error:
        raise DeclarationError(f"{named}: {error.strerror}. Is the path right?") from None
    except ValueError as error:  # a null byte in the name
        raise DeclarationError(f"{named} can't be read: {error}.") from None
    return parse(content, named=named, form=_form(path.name, guess=guess))


def fetch(url: str, *, where: str = "", guess: bool = False) -> tuple[Any, str]:
    """The document at an http(s) address, and the address where it was found in the end.

    Args:
        where, guess: see ``read_file``.

    Raises:
        DeclarationError: no answer in time, a status other than 200, more than ``MOST_BYTES``, no JSON (YAML).
    """
    named = f"{where} {shown(url)}".lstrip()
    content, kind, final = in_time(lambda: _get(url, named), named)
    return parse(content, named=named, form=_form(urlsplit(final).path, kind, guess=guess)), final


def in_time(work: Callable[[], Any], named: str) -> Any:
    """What ``work`` gives, if it ends in time. A server that sends a byte now and then keeps every read alive, that of
    the headers too, so the whole is timed from outside; a thread that is given up ends with its server."""
    answer: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answer.put((work(), None))
        except BaseException as error:
            answer.put((None, error))

    threading.Thread(target=run, name="burler-fetch", daemon=True).start()
    try:
        result, error = answer.get(timeout=TOTAL_SECONDS)
    except queue.Empty:
        raise DeclarationError(f"{named} did not end within {TOTAL_SECONDS} s.") from None
    if error is not None:
        raise error
    return result


def _get(url: str, named: str) -> tuple[bytes, str, str]:
    """Body, type and final address."""
    import requests

    headers = {"Accept": "application/schema+json, application/json, application/yaml;q=0.9, */*;q=0.5"}
    try:
        with requests.get(url, headers=headers, timeout=CONNECT_SECONDS, stream=True) as response:
            if response.status_code != 200:
                raise DeclarationError(f"{named} answered {response.status_code}. Is the address right?")
            kind = response.headers.get("Content-Type", "").partition(";")[0]
            return _body(response, named), kind, str(response.url)
    except requests.Timeout:
        raise DeclarationError(f"{named} did not answer within {CONNECT_SECONDS} s.") from None
    except requests.TooManyRedirects:
        raise DeclarationError(f"{named} redirects without an end.") from None
    except requests.ConnectionError:
        raise DeclarationError(f"{named}: no connection. Is the address right, and the network there?") from None
    except (requests.RequestException, ValueError) as error:  # its text may hold the address, and that a secret
        raise DeclarationError(f"{named} can't be fetched ({type(error).__name__}).") from None


def _form(name: str, kind: str = "", *, guess: bool) -> Form:
    """What a document is by the type that the server gave, else by its name."""
    kind, name = kind.lower(), name.lower()
    if "json" in kind or ("yaml" not in kind and name.endswith(".json")):
        return "json"
    if guess:
        return "either"
    return "yaml" if "yaml" in kind or name.endswith(_YAML) else "json"


def _body(response: Any, named: str) -> bytes:
    """The body, read in pieces: a document that is too large is given up."""
    pieces: list[bytes] = []
    size = 0
    for piece in response.iter_content(65536):
        size += len(piece)
        if size > MOST_BYTES:
            raise DeclarationError(f"{named} is larger than {MOST_BYTES // 2**20} MiB, too large for a schema.")
        pieces.append(piece)
    return b"".join(pieces)


def parse(content: bytes, *, named: str, form: Form = "json") -> Any:
    """The value of a JSON or YAML text.

    Args:
        named: what an error calls the text.
        form: "either": JSON if it begins like JSON, else YAML.

    Raises:
        DeclarationError: it is none, holds a key twice, or is nested too deep.
        MissingExtra: YAML, and PyYAML is not installed.
    """
    start = content[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    if form == "either" and start[:1] == b"<" and start[:2] != b"<<":
        raise DeclarationError(f"{named} is neither JSON nor YAML: it begins like a web page.")
    if form == "json" or (form == "either" and _is_json(start)):
        return load_json(content, named=named)
    return load_yaml(content, named=named)


def _is_json(start: bytes) -> bool:
    """YAML has braces too; what follows them tells: ``{"`` is both, and JSON is what people mean by it."""
    return start[:1] in (b"{", b"[") and (start[1:].lstrip()[:1] in b'"{[]}')


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
