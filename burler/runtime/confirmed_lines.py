"""The states in a file of lines that grows, perhaps for years, perhaps the wrong file altogether: reading it takes
little memory, and what was read once is not read again (docs/tail.md)."""

from __future__ import annotations

import hashlib
import os
from typing import BinaryIO

import msgspec

from burler.singer.state import State, check_state, merge_into, merge_states

LONGEST_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is passed over: no state is so big."""

_BLOCK_BYTES = 64 * 1024
_MARK_BYTES = 16 * 1024
_STATE_KEYS = (b'"bookmarks"', b'"currently_syncing"', b'"STATE"', b'"state"')


def state_in(line: bytes) -> State | None:
    """The state that a line holds; None if it is none: another message, a torn line, other text, one of the lines of
    a state that is spread over several."""
    if not _may_hold(line):
        return None
    line = line.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not line.startswith(b"{") or len(line) > LONGEST_LINE_BYTES:
        return None
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if "type" in value and "bookmarks" not in value:
        value = value.get("value") if str(value["type"]).upper() == "STATE" else None
        return value if isinstance(value, dict) else None
    return value if "bookmarks" in value or "currently_syncing" in value else None


def _may_hold(content: bytes) -> bool:
    return any(key in content for key in _STATE_KEYS)


class StateLines:
    """What a file of lines says: its last state, or with ``merge`` what all of them say together.

    Of a file that only grows, what is new is read. What was read is known again by its last state and its end.
    """

    def __init__(self, *, merge: bool = False) -> None:
        self._merge = merge
        self._begin_anew((0, 0))

    def _begin_anew(self, file: tuple[int, int]) -> None:
        self._file = file
        self._at = 0
        self._skips = False  # within a line that is too long
        self._mark = b""  # what stands in front of _at
        self._line = (0, 0, b"")  # the last state's line: where, how long, its digest
        self._state: State | None = None

    def read(self, file: BinaryIO, there: os.stat_result) -> State | None:
        """The state; None: no line holds one.

        Raises:
            StateError: with ``merge``, a line holds a bad one.
        """
        if not self._goes_on(file, there):
            self._begin_anew((there.st_dev, there.st_ino))
            if not self._merge:
                self._at = _last_state(file, there.st_size)
        file.seek(self._at)
        rest = b""
        while content := file.read(_BLOCK_BYTES * 16):
            lines, end, rest = (rest + content).rpartition(b"\n")
            if end:
                self._take(lines)
                self._pass(lines + end)
                self._skips = False
            if self._skips or len(rest) > LONGEST_LINE_BYTES:
                self._pass(rest)
                self._skips, rest = True, b""
        last = state_in(rest)  # a line without its end counts if it is whole, and is read once more
        if last is None:
            return self._state
        return merge_states([self._state, check_state(last, source="state file")]) if self._merge else last

    def _goes_on(self, file: BinaryIO, there: os.stat_result) -> bool:
        """Whether it is the file that was read before, with more behind it."""
        if self._file != (there.st_dev, there.st_ino):
            return False
        file.seek(self._at - len(self._mark))
        if file.read(len(self._mark)) != self._mark:
            return False
        begin, size, digest = self._line
        file.seek(begin)
        return self._state is None or _digest(file.read(size)) == digest

    def _take(self, content: bytes) -> None:
        """Whole lines that stand at ``_at``."""
        if not _may_hold(content):
            return
        at = self._at
        for number, line in enumerate(content.split(b"\n")):
            state = None if self._skips and number == 0 else state_in(line)
            if state is not None:
                self._line = (at, len(line), _digest(line))
                if self._merge:
                    self._state = {} if self._state is None else self._state
                    merge_into(self._state, check_state(state, source="state file"))
                else:
                    self._state = state
            at += len(line) + 1

    def _pass(self, content: bytes) -> None:
        self._at += len(content)
        self._mark = content[-_MARK_BYTES:] if len(content) >= _MARK_BYTES else (self._mark + content)[-_MARK_BYTES:]


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()


def _last_state(file: BinaryIO, size: int) -> int:
    """Where the last line begins that holds a state, searched from the end; where none does, the last line's begin."""
    last = None
    end, block = size, _BLOCK_BYTES
    rest: list[bytes] = []  # of the line that begins further in front, its parts from the last to the first
    length = 0
    while end > 0:
        begin = max(0, end - block)
        file.seek(begin)
        content = file.read(end - begin)
        first, newline, behind = content.partition(b"\n")
        if newline:
            middle, _, own = behind.rpartition(b"\n")
            rest.append(own)
            line_begins = end - len(own)
            last = line_begins if last is None else last
            if length <= LONGEST_LINE_BYTES and state_in(b"".join(reversed(rest))) is not None:
                return line_begins
            found = _last_in(middle)
            if found is not None:
                return begin + len(first) + 1 + found
            rest, length = [], 0
        length += len(first)
        if length <= LONGEST_LINE_BYTES:
            rest.append(first)
        else:
            rest.clear()
        end, block = begin, min(block * 2, 64 * _BLOCK_BYTES)
    if length <= LONGEST_LINE_BYTES and state_in(b"".join(reversed(rest))) is not None:
        return 0
    return last or 0


def _last_in(content: bytes) -> int | None:
    """Where in some whole lines the last one that holds a state begins."""
    if not _may_hold(content):
        return None
    at = len(content)
    for line in reversed(content.split(b"\n")):
        at -= len(line)
        if state_in(line) is not None:
            return at
        at -= 1
    return None
