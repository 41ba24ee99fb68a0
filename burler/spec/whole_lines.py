"""Blocks of bytes, as a pipe brings them, cut where lines end."""

from __future__ import annotations


class WholeLines:
    """Holds the part of a line that has not ended yet, and lets one go that never does.

    Args:
        most_bytes: a longer line is not held in memory.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._begun: list[bytes] = []
        self._begun_bytes = 0
        self._endless = False

    def take(self, block: bytes) -> tuple[int, bytes | None, bool]:
        """What a block ends.

        Returns:
            how many lines have ended of which nothing is held (0 or 1), the lines that have ended (None: none has)
            without the last newline, and whether a line has just become too long.
        """
        passed = 0
        if self._endless:
            end = block.find(b"\n")
            if end < 0:
                return 0, None, False
            self._endless, passed = False, 1
            block = block[end + 1 :]
        cut = block.rfind(b"\n")
        if cut < 0:
            return passed, None, self._hold(block)
        whole = b"".join((*self._begun, block[:cut]))
        self._begun, self._begun_bytes = [], 0
        return passed, whole, self._hold(block[cut + 1 :])

    def _hold(self, part: bytes) -> bool:
        if not part:
            return False
        self._begun.append(part)
        self._begun_bytes += len(part)
        if self._begun_bytes <= self.most_bytes:
            return False
        self._begun, self._begun_bytes, self._endless = [], 0, True
        return True

    def rest(self) -> bytes:
        """What has come behind the last newline; afterwards there is nothing."""
        last = b"".join(self._begun)
        self._begun, self._begun_bytes = [], 0
        return last
