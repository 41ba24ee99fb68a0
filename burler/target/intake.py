"""Bytes from a pipe, in blocks, without going to sleep on the files that wait to be rolled."""

from __future__ import annotations

import io
import os
import select
from collections.abc import Callable, Iterator
from typing import BinaryIO

BLOCK_BYTES = 1 << 20
_LONGEST_SLEEP_SECONDS = 1.0


def blocks(
    source: BinaryIO | int,
    *,
    tick: Callable[[], object],
    due: Callable[[], float | None],
    stop: Callable[[], bool],
) -> Iterator[bytes]:
    """What ``source`` has, as soon as it has it, up to about a MiB at a time.

    ``tick`` is called between blocks and, while there is nothing to read, when ``due()`` seconds are over. A
    source without a file descriptor is read as it comes, and blocks as it will.
    """
    read, fd = reading(source)
    if fd is None:
        while not stop() and (block := read(BLOCK_BYTES)):
            yield block
            tick()
        return
    poll = select.poll()
    poll.register(fd, select.POLLIN | select.POLLPRI | select.POLLHUP | select.POLLERR)
    waiting = False  # what a buffered reader holds already, poll cannot see
    while not stop():
        if waiting and not poll.poll(_sleep_milliseconds(due())):
            tick()
            continue
        block = read(BLOCK_BYTES)
        if not block:
            return
        while len(block) < BLOCK_BYTES and poll.poll(0) and (more := read(BLOCK_BYTES)):
            block += more
        waiting = True
        yield block
        tick()


def reading(source: BinaryIO | int) -> tuple[Callable[[int], bytes], int | None]:
    """(a read that gives what there is, the descriptor to wait on; None where there is none)."""
    if isinstance(source, int):
        return (lambda size: os.read(source, size)), source
    try:
        fd = source.fileno()
    except (OSError, AttributeError):
        return source.read, None
    if isinstance(source, io.BufferedReader):
        return source.read1, fd
    return (source.read if isinstance(source, io.RawIOBase) else (lambda size: os.read(fd, size))), fd


def _sleep_milliseconds(due: float | None) -> int:
    seconds = _LONGEST_SLEEP_SECONDS if due is None else min(due, _LONGEST_SLEEP_SECONDS)
    return max(1, int(seconds * 1000) + 1)
