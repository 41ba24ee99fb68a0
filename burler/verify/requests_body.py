"""A reply's body while it passes by: how many rows are in it, and whether it says that there is more."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from burler.http.paging_signs import rows_place, signs_in
from burler.http.reply import Reply

MOST_BYTES = 4 << 20
"""Of a body that is kept while it comes; a bigger one is only counted."""

_GZIP_OR_ZLIB = 47
_PACKED = ("gzip", "deflate")


@dataclass(frozen=True, slots=True)
class Told:
    """What a body told.

    Attributes:
        whole: it came to its end, and is what it says it is; None where whoever read it left.
        rows: how many rows are in it; None where that can't be said.
        more: places that may say that there is more, with what stands there: ``(("meta.next", "/contacts?page=2"),)``.
        failed: it is an answer in form only: GraphQL's ``errors``, a page for people. Who asks again has reason to.
    """

    size: int = 0
    whole: bool | None = True
    rows: int | None = None
    more: tuple[tuple[str, Any], ...] = ()
    failed: bool = False


class Reading:
    """Takes a body's bytes as they go over the wire, and tells at its end.

    Args:
        keep: whether to look into it; its size is counted anyway.
        tell: called once.
    """

    def __init__(self, headers: Mapping[str, str], *, url: str, keep: bool, tell: Callable[[Told], None]) -> None:
        self._headers = {str(name).lower(): str(value) for name, value in headers.items()}
        kind = self._headers.get("content-type", "json").lower()
        self._says_json = "json" in kind and "lines" not in kind and "ndjson" not in kind
        self._keep = keep and self._says_json
        self._says_html = "html" in kind
        self._url = url
        self._tell: Callable[[Told], None] | None = tell
        self._pieces: list[bytes] = []
        self._size = 0
        declared = self._headers.get("content-length", "")
        encoding = self._headers.get("content-encoding", "").strip().lower().removeprefix("x-")
        self._encoding = "" if encoding == "identity" else encoding
        self._declared = int(declared) if declared.isdecimal() else None

    def feed(self, piece: bytes) -> None:
        """A piece of it, as it came (packed where it is packed)."""
        self._size += len(piece)
        if self._size > MOST_BYTES:
            self._keep = False
            self._pieces.clear()
        elif self._keep:
            self._pieces.append(piece)

    def end(self, *, unpacked: bool = False) -> None:
        """Nothing more comes. What is said after this, ``broke`` or ``left``, does not count.

        Args:
            unpacked: the pieces are no longer packed, so that their length is not what the header says.
        """
        unpacked = unpacked and self._encoding != ""
        if self._tell is None:
            return
        if not unpacked and self._declared is not None and self._size < self._declared:
            return self.broke()
        body = b"".join(self._pieces)
        if not self._keep:
            return self._done(Told(self._size, failed=self._says_html))
        try:
            self._done(self._look(body if unpacked else self._unpacked(body)))
        except (ValueError, RecursionError, msgspec.MsgspecError):  # what looks odd to us is none of the tap's concern
            self._done(Told(self._size))
        return None

    def broke(self) -> None:
        """It broke off."""
        self._done(Told(self._size, whole=False))

    def left(self) -> None:
        """Whoever read it has heard enough."""
        self._done(Told(self._size, whole=None))

    def unseen(self) -> None:
        """It goes another way; that it came is taken for granted."""
        self._done(Told(self._size))

    def _done(self, told: Told) -> None:
        tell, self._tell = self._tell, None
        self._pieces = []
        if tell is not None:
            tell(told)

    def _unpacked(self, body: bytes) -> bytes | None:
        if not self._encoding:
            return body
        if self._encoding not in _PACKED:
            return None
        try:
            return zlib.decompressobj(_GZIP_OR_ZLIB).decompress(body, 4 * MOST_BYTES)
        except zlib.error:
            return None

    def _look(self, body: bytes | None) -> Told:
        if body is None and self._encoding in _PACKED:  # it can't be unpacked
            return Told(self._size, failed=True)
        if body is None or not body.strip():
            return Told(self._size, failed=body is not None)
        reply = Reply.of_body(body, headers=_AnyCase(self._headers), url=self._url)
        if not reply.is_json():
            return Told(self._size, whole=False)
        way = rows_place(reply)
        if way is None:
            failed = reply.begins_at(("errors",)) not in (b"", b"null", b"[]")
            return Told(self._size, failed=failed or body.strip() == b"{}")
        reply = Reply.of_body(body, way, headers=reply.headers, url=self._url)
        try:
            rows: int | None = reply.rows_found()
        except ValueError:
            rows = None
        return Told(self._size, rows=rows, more=tuple(_more(reply)))


def _more(reply: Reply) -> list[tuple[str, Any]]:
    """Fields and headers that may lead on. Some only count (a total): who knows which page it was can say what that
    means."""
    return [
        (".".join([one.header.title() or one.place[0], *one.place[1:]]), one.total or one.url or one.value)
        for one in signs_in(reply) or []
    ]


class _AnyCase(dict[str, str]):
    """Headers, small letters inside."""

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name.lower(), default)
