"""Blocks of bytes cut where lines end."""

from __future__ import annotations


class LineCut:
    """Holds the part of a line that has not ended yet."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def take(self, block: bytes) -> bytes:
        """All lines that end in this block, with their ends; nothing where none does."""
        cut = block.rfind(b"\n") + 1
        if not cut:
            self._begun.append(block)
            return b""
        whole = b"".join((*self._begun, block[:cut]))
        self._begun = [block[cut:]] if cut < len(block) else []
        return whole

    def rest(self) -> bytes:
        """What stands behind the last line end; afterwards there is nothing."""
        last, self._begun = b"".join(self._begun), []
        return last
