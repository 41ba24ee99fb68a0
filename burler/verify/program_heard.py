"""What a process says on stderr: bounded, and searched for secrets as it comes."""

from __future__ import annotations

import re
from collections.abc import Mapping

_HEAD_BYTES, _TAIL_BYTES = 1 << 16, 3 << 16


class Heard:
    """What a process says on stderr: its beginning, its end, and whether a secret stood in it.

    Args:
        needles: what must not be in it -> the name by which that is told.
    """

    def __init__(self, needles: Mapping[bytes, str]) -> None:
        self._needles = needles
        longest_first = sorted(needles, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, longest_first))) if needles else None
        self._overlap = max(map(len, needles), default=1) - 1
        self._head, self._tail, self._cut = b"", b"", False
        self.told: dict[str, None] = {}

    def take(self, block: bytes) -> None:
        """One more piece."""
        if self._pattern is not None:
            before = (self._head + self._tail)[-self._overlap :] if self._overlap else b""
            for found in self._pattern.findall(before + block):
                self.told.setdefault(self._needles[found])
        room = _HEAD_BYTES - len(self._head)
        self._head += block[:room]
        self._tail += block[room:] if room > 0 else block
        if len(self._tail) > _TAIL_BYTES:
            self._tail, self._cut = self._tail[-_TAIL_BYTES:], True

    @property
    def content(self) -> bytes:
        """What was said; where it was long, without its middle."""
        return self._head + (b"\n[...]\n" if self._cut else b"") + self._tail
