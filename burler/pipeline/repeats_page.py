"""Rows as they are compared from one round of a tail to the next: as JSON, by a digest and by their key properties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

_HASHABLE = frozenset((str, int, type(None)))


class Page:
    """Rows as JSON, with the values of their replication key, and the places of the ``repeats`` among them."""

    __slots__ = ("_digests", "_marks", "bodies", "compared", "keys", "repeats")

    def __init__(self, bodies: Sequence[bytes], keys: list[Any], marks: Sequence[bytes] | None = None) -> None:
        self.bodies, self.keys = bodies, keys
        self._marks = bodies if marks is None else marks
        self.repeats: set[int] = set()
        self.compared = False
        self._digests: list[bytes] | None = None

    def digests(self) -> list[bytes]:
        """Those of all rows."""
        if self._digests is None:
            self._digests = [blake2b(mark, digest_size=16).digest() for mark in self._marks]
        return self._digests


class KeyOf:
    """Gives the key properties of rows, given as JSON: one value, or a tuple of them."""

    def __init__(self, names: Sequence[str]) -> None:
        fields = [(f"f{i}", Any, None) for i in range(len(names))]
        rename = {f"f{i}": name for i, name in enumerate(names)}
        self._fields = list(rename)
        self._names: Sequence[str] | None = None
        kind: Any = dict[str, Any]
        try:
            kind = msgspec.defstruct("Keys", fields, rename=rename, gc=False)
        except ValueError:  # names with quotes and the like
            self._names = names
        self._decode: Callable[[bytes], list[Any]] = msgspec.json.Decoder(kind, float_hook=str).decode_lines

    def __call__(self, bodies: Sequence[bytes]) -> list[Any]:
        rows = self._decode(b"\n".join(bodies))
        if self._names is not None:
            columns = [[row.get(name) for row in rows] for name in self._names]
        else:
            columns = [[getattr(row, name) for row in rows] for name in self._fields]
        for i, column in enumerate(columns):
            if not set(map(type, column)) <= _HASHABLE:
                columns[i] = [value if type(value) in _HASHABLE else repr(value) for value in column]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def digest_of(body: bytes) -> bytes:
    """What a row is told by: 16 bytes."""
    return blake2b(body, digest_size=16).digest()
