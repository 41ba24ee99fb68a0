"""Documents that hold schemas, read: files, and http addresses for those who ask for them.

JSON; YAML by the ending of the name or the type that a server gives. All that burler reads of schemas goes this way
(references, schema files, OpenAPI), so there is one set of limits and one idea of what is broken.
"""

from __future__ import annotations

import json
import queue
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit, urlunsplit

import msgspec

from burler.errors import DeclarationError, HttpError
from burler.http.origins import same_origin
from burler.schema.documents_yaml import load_yaml

if TYPE_CHECKING:
    import requests

    from burler.http.client import Client

MOST_BYTES = 64 * 1024 * 1024
"""Of a fetched document, unpacked."""
CONNECT_SECONDS = 10
TOTAL_SECONDS = 60
MOST_REDIRECTS = 5

_REDIRECTS = (301, 302, 303, 307, 308)
_ACCEPT = "application/schema+json, application/json, application/yaml;q=0.9, */*;q=0.5"

Form = Literal["json", "yaml", "either"]
_YAML = (".yaml", ".yml")
_BOM = b"\xef\xbb\xbf"
_BYTE = re.compile(r"\(byte (\d+)\)$")


def read_file(path: Path, *, where: str = "", guess: bool = False) -> Any:
    """The document in a file, as plain JSON values.

    Args:
        where: words that an error begins with ("stream 'a' (tap.py:5): schema file"); the path follows.
        guess: where the name does not say JSON, look into the document. Otherwise all but ``.yaml`` is JSON.

    Raises:
        DeclarationError: the file is missing, a folder, unreadable, or no JSON (YAML).
    """
    named = f"{where} {shown(str(path))}".lstrip()
    return parse(bytes_of(path, named=named, kinds="JSON or YAML"), named=named, form=_form(path.name, guess=guess))


def bytes_of(path: Path, *, named: str, kinds: str) -> bytes:
    """What is in a file.

    Args:
        named: what an error calls it; ``kinds``: what it should be.

    Raises:
        DeclarationError: it is missing, a folder, or unreadable.
    """
    try:
        if path.exists() and not path.is_file():
            kind = "a folder" if path.is_dir() else "no regular file"
            raise DeclarationError(f"{named} is {kind}. Give the path of a {kinds} file.")
        return path.read_bytes()
    except OSError as error:
        raise DeclarationError(f"{named}: {error.strerror}. Is the path right?") from None
    except ValueError as error:  # a null byte in the name
        raise DeclarationError(f"{named} can't be read: {error}.") from None


def fetch(url: str, *, where: str = "", guess: bool = False) -> tuple[Any, str]:
    """The document at an http(s) address, and the address where it was found in the end.

    Args:
        where, guess: see ``read_file``.

    Raises:
        DeclarationError: no answer in time, a status that is an error, more than ``MOST_BYTES``, no JSON (YAML).
    """
    named = f"{where} {shown(url)}".lstrip()

    def ask() -> requests.Response:
        with client_for(url) as client:
            return get(client, url, named=named, accept=_ACCEPT, endpoint="schema")

    reply = in_time(ask, named)
    final, kind = str(reply.url), reply.headers.get("Content-Type", "").partition(";")[0]
    user, at, _ = urlsplit(url).netloc.rpartition("@")
    if at and same_origin(final, url):  # what it names beside itself is asked for by the same user
        parts = urlsplit(final)
        final = urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc.rpartition('@')[2]}"))
    return parse(reply.content, named=named, form=_form(urlsplit(final).path, kind, guess=guess)), final


def client_for(url: str, **options: Any) -> Client:
    """A client that asks for documents at an address once; credentials (``auth=``, ``headers=``) go to that server
    alone."""
    from burler.http.client import Client

    parts = urlsplit(url)
    server = urlunsplit((parts.scheme, parts.netloc, "/", "", "")) if parts.scheme in ("http", "https") else ""
    return Client(server, timeout_seconds=CONNECT_SECONDS, retries=0, max_response_bytes=MOST_BYTES, **options)


def get(
    client: Client,
    url: str,
    *,
    named: str,
    accept: str,
    endpoint: str,
    following: Callable[[str, str], str] | None = None,
) -> requests.Response:
    """The answer of a server that is asked for a document.

    Args:
        named: what errors call the document; ``endpoint``: what METRIC lines do.
        following: gets an address and where it redirects to; gives the address to go on with, or raises. Without it
            redirects are followed as the client does.

    Raises:
        HttpError: there is no answer, or it is an error. DeclarationError: redirects without an end.
    """
    parts = urlsplit(url)
    url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))  # the client knows the user
    for _ in range(MOST_REDIRECTS + 1):
        reply = client.get(
            url,
            headers={"Accept": accept},
            endpoint=endpoint,
            allow_statuses=_REDIRECTS if following else (),
            max_response_bytes=MOST_BYTES,
        )
        if following is None or reply.status_code not in _REDIRECTS:
            return reply
        url = following(url, reply.headers.get("Location", ""))
    raise DeclarationError(f"{named} redirects without an end.")


def in_time(work: Callable[[], Any], named: str) -> Any:
    """What ``work``, which asks a server, gives, if it ends in time. A server that sends a byte now and then keeps
    every read alive, that of the headers too, so the whole is timed from outside; a thread that is given up ends with
    its server."""
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
    if isinstance(error, HttpError):
        if error.status in (401, 403):
            fact = f"answered {error.status}. Are its credentials right (auth=, headers=)?"
        elif error.status is not None and error.status >= 400:
            fact = f"answered {error.status}. Is the address right?"
        else:
            cure = "" if error.status is not None else " Is the address right, and the network there?"
            fact = f"can't be fetched: {str(error).splitlines()[0]}{cure}"
        raise DeclarationError(f"{named} {fact}") from None
    if isinstance(error, ValueError):  # the address is none; the error's text may hold it, and that a secret
        raise DeclarationError(f"{named} can't be fetched ({type(error).__name__}).") from None
    if error is not None:
        raise error
    return result


def _form(name: str, kind: str = "", *, guess: bool) -> Form:
    """What a document is by the type that the server gave, else by its name."""
    kind, name = kind.lower(), name.lower()
    if "json" in kind or ("yaml" not in kind and name.endswith(".json")):
        return "json"
    if guess:
        return "either"
    return "yaml" if "yaml" in kind or name.endswith(_YAML) else "json"


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
        return _load_json(content, named=named)
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


# ---- JSON, as strictly as YAML is read: a key that stands twice in one object is an error ---------------------------


def _load_json(content: bytes, *, named: str) -> Any:
    """The value of a JSON text in UTF-8, with or without a byte order mark.

    Raises:
        DeclarationError: it is no JSON (the line is named), holds a key twice, or is nested too deep.
    """
    body = content.removeprefix(_BOM)
    try:
        text = body.decode()
        value = msgspec.json.decode(body)  # the values, and stricter than Python's: no NaN, no half surrogate pairs
        _keys.decode(text)
    except UnicodeDecodeError as error:
        raise DeclarationError(f"{named} is not JSON: it is not UTF-8 (byte {error.start}).") from None
    except _Twice as twice:
        raise DeclarationError(f"{named} is not JSON of one meaning: {twice}{_line_of(twice.key, text)}.") from None
    except msgspec.DecodeError as error:
        raise DeclarationError(f"{named} is not JSON: {_fact(str(error), body)}.") from None
    except RecursionError:
        raise DeclarationError(f"{named} is nested too deep to be a schema.") from None
    return value


class _Twice(Exception):
    def __init__(self, key: str) -> None:
        shown = key if key.isprintable() and len(key) <= 80 else ascii(key)[1:80]
        super().__init__(f"the key '{shown}' is there twice in one object")
        self.key = key


def _check_pairs(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Twice(key)
            seen.add(key)


_keys = json.JSONDecoder(object_pairs_hook=_check_pairs, parse_int=float)  # sees every key; msgspec has the values


def _line_of(key: str, text: str) -> str:
    """Where the second one stands, if the key stands nowhere else and so it can be told."""
    found = [match.start() for match in re.finditer(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:", text)]
    return f" (line {text.count(chr(10), 0, found[1]) + 1})" if len(found) == 2 else ""


def _fact(problem: str, body: bytes) -> str:
    byte = _BYTE.search(problem)
    line = body.count(b"\n", 0, int(byte[1]) if byte else len(body.rstrip())) + 1
    return f"line {line}: {problem.removeprefix('JSON is malformed: ')}"
