"""What a paginator sees of a reply: its headers, and single places of its JSON, found without reading the rows."""

from __future__ import annotations

import json
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec

from burler.paths import path_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import requests

_BOM = b"\xef\xbb\xbf"
_HEADER = "header:"
_ABSENT: Any = object()
_BROKEN = (msgspec.DecodeError, ValueError, RecursionError)

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_array = msgspec.json.Decoder(list[msgspec.Raw])
_lines = msgspec.json.Decoder(msgspec.Raw)
_value = msgspec.json.Decoder(float_hook=Decimal)


class EmptyBody(ValueError):
    """A page of nothing at all."""

    cure = (
        "An empty list is [] in JSON. If the source has JSON lines and does not say so, say it: "
        "headers={'Accept': 'application/x-ndjson'}."
    )


class Reply:
    """A response with JSON in its body.

    Each level that is looked at is split into its parts, which stay bytes: a page of 1,000 rows costs about a fifth of
    what it costs to read them into dicts, once, whatever is looked for.

    Args:
        response: a ``requests.Response`` whose body is there.
        records_path: the way to the rows.
        origin: scheme, host and port of the source, such as ``https://api.example.com``.
    """

    def __init__(self, response: requests.Response, records_path: Sequence[str] = (), origin: str = "") -> None:
        self.response = response
        self.records_path = tuple(records_path)
        self.origin = origin
        self._nodes: dict[tuple[str, ...], Any] = {}

    @classmethod
    def of_body(
        cls,
        content: bytes,
        records_path: Sequence[str] = (),
        *,
        headers: Mapping[str, str] | None = None,
        url: str = "",
    ) -> Reply:
        """Of a body alone, for what only looks at bodies (and at ``headers``, whose names are in any case)."""
        asked = SimpleNamespace(method="GET", headers={})
        known: Any = SimpleNamespace(
            content=content, headers={} if headers is None else headers, status_code=200, request=asked, url=url
        )
        return cls(known, records_path)

    @property
    def url(self) -> str:
        """Where the reply came from, behind all redirects."""
        return str(self.response.url)

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in any case."""
        return self.response.headers

    @property
    def content(self) -> bytes:
        """The body, whole."""
        content = self.response.content or b""
        return content[len(_BOM) :] if content.startswith(_BOM) else content

    @property
    def is_page(self) -> bool:
        """Whether there should be rows in it: not with 204, 205 and 304, nor with an error that was allowed, nor
        where only the head was asked for."""
        status = self.response.status_code
        asked = self.response.request
        head = asked is not None and (asked.method or "").upper() == "HEAD"
        return 200 <= status < 300 and status not in (204, 205) and not head

    def find(self, path: str | Sequence[str]) -> Any:
        """What stands at a place of the body; None if it is not there or null.

        Args:
            path: names with dots between them, or a list of names. A whole number goes into a list: ``data.-1.id`` is
                the id of the last item. ``header:X-Next-Page`` is a header instead.

        Raises:
            ValueError: a path that is none.
        """
        if isinstance(path, str) and path.lower().startswith(_HEADER):
            return self.headers.get(path[len(_HEADER) :].strip())
        node = self._at(path_of(path))
        if not isinstance(node, msgspec.Raw):
            return None if node is _ABSENT else node
        try:
            return _value.decode(node)
        except (*_BROKEN, ArithmeticError):
            return _loads(bytes(node))

    def names_at(self, path: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
        """How far one gets along a path, and the names that are there: for messages."""
        way = tuple(path)
        for length in range(len(way), -1, -1):
            parts = self._parts(way[:length])
            if isinstance(parts, dict):
                return way[:length], list(parts)
        return (), []

    def size_at(self, path: tuple[str, ...]) -> int:
        """Bytes of what stands at a path; 0 where that is not known."""
        node = self._at(path)
        return memoryview(node).nbytes if isinstance(node, msgspec.Raw) else 0

    def begins_at(self, path: tuple[str, ...]) -> bytes:
        """The first letters of what stands at a path, without reading it; b"" where nothing does."""
        node = self._at(path)
        if not isinstance(node, msgspec.Raw):
            return b"" if node is _ABSENT else json.dumps(node, default=str).encode()[:64]
        return bytes(memoryview(node)[:64]).strip()

    def length_at(self, path: tuple[str, ...]) -> int | None:
        """How many items the list at a path has; None where there is no list."""
        parts = self._parts(path)
        return len(parts) if isinstance(parts, list) else None

    @property
    def is_counted(self) -> bool:
        """Whether somebody has split its rows already, so that to count them costs nothing."""
        return isinstance(self._nodes.get(self.records_path), list)

    def rows_found(self) -> int:
        """How many rows there are at ``records_path``: items of an array, or JSON lines. 0 if there is null or nothing.

        Raises:
            ValueError: what is there can't be counted: an object, or text.
        """
        if not self.is_page or not self.content.strip():
            return 0
        node = self._at(self.records_path)
        if node is _ABSENT or node is None or (isinstance(node, msgspec.Raw) and bytes(node).strip() == b"null"):
            return 0
        parts = self._parts(self.records_path)
        if isinstance(parts, list):
            return len(parts)
        if not self.records_path and (parts is None or self._says_lines()):
            return sum(1 for line in self.content.split(b"\n") if line.strip())
        raise ValueError("there is no list of rows")

    def rows_digest(self) -> int:
        """A number that is the same for the same rows, byte for byte."""
        node = self._at(self.records_path)
        return hash(bytes(node) if isinstance(node, msgspec.Raw) else self.content)

    def is_json(self) -> bool:
        """Whether the body is JSON or JSON lines as a whole. Nothing at all may be no lines, where the reply or the
        request says that there are lines; else something was lost on the way, as with load balancers in trouble."""
        content = self.content.strip()
        if not content:
            return self._says_lines() or self._asked_for_lines()
        if self._parts(()) is not None:
            return True
        try:
            _lines.decode_lines(content)
        except _BROKEN:
            return _loads_lines(content)
        return True

    def _says_lines(self) -> bool:
        return _of_lines(self.headers.get("Content-Type"))

    def _asked_for_lines(self) -> bool:
        """Whether the author's Accept wants lines, and the reply does not say that it is anything else in JSON."""
        asked = self.response.request
        kind = (self.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
        said = kind == "application/json" or kind.endswith("+json")
        return not said and _of_lines((getattr(asked, "headers", None) or {}).get("Accept"))

    def _at(self, path: tuple[str, ...]) -> Any:
        """The node at a path: ``msgspec.Raw`` or, of JSON that msgspec does not take, a value; or _ABSENT."""
        if not path:
            return msgspec.Raw(self.content)
        parts = self._parts(path[:-1])
        name = path[-1]
        if isinstance(parts, dict):
            return parts.get(name, _ABSENT)
        if isinstance(parts, list) and name.lstrip("-").isdecimal():
            index = int(name)
            return parts[index] if -len(parts) <= index < len(parts) else _ABSENT
        return _ABSENT

    def _parts(self, path: tuple[str, ...]) -> dict[str, Any] | list[Any] | None:
        """What is directly below a path; None for what has nothing below it."""
        if path not in self._nodes:
            node = self._at(path)
            self._nodes[path] = _split(node) if isinstance(node, msgspec.Raw) else node
        parts = self._nodes[path]
        return parts if isinstance(parts, dict | list) else None


def _of_lines(kind: Any) -> bool:
    return any(name in str(kind or "").lower() for name in ("ndjson", "jsonl", "json-lines", "jsonlines", "json-seq"))


def _split(raw: msgspec.Raw) -> Any:
    """The parts of an object or an array, each as bytes. Of JSON that has ``NaN`` in it or half of a surrogate pair,
    which some sources write and burler reads, the values."""
    data = memoryview(raw)
    first = bytes(data[:64]).lstrip()[:1]
    if first not in (b"{", b"[", b""):
        return None
    try:
        return _array.decode(data) if first == b"[" else _object.decode(data)
    except _BROKEN:
        return _loads(bytes(data))


def _loads(data: bytes) -> Any:
    try:
        return json.loads(data, parse_float=Decimal)
    except _BROKEN:
        return None


def _loads_lines(content: bytes) -> bool:
    """Whether all lines are JSON, in the wide sense of ``_loads``."""
    try:
        for line in content.split(b"\n"):
            if line.strip():
                json.loads(line)
    except _BROKEN:
        return False
    return True
