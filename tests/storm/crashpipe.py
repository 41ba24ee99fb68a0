"""The pipe of a tap that is to be killed: what comes through, until it ends or the time has come to strike."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator

from storm.crashstory import Chapter

PATIENCE_SECONDS = 90.0


def read(process: subprocess.Popen[bytes], chapter: Chapter, many: int) -> tuple[bytes, bool]:
    """What comes through the pipe until it ends; strikes when it is time. Also: whether it ended in due time."""
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    if chapter.small_pipe:
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
    number = {"kill": signal.SIGKILL, "term": signal.SIGTERM}.get(chapter.ending)
    hung = threading.Event()
    guard = threading.Timer(PATIENCE_SECONDS, lambda: (hung.set(), process.kill()))
    guard.start()
    got = bytearray()
    with _strike_later(process, number if chapter.at < 0 else None, -chapter.at, got):
        struck = number is None or chapter.at < 0
        while chunk := os.read(pipe, 4096 if chapter.small_pipe else 1 << 16):
            got += chunk
            if not struck and len(got) >= many:
                struck = True
                process.send_signal(number or 0)
            if chapter.reader_nap and not struck:
                time.sleep(chapter.reader_nap)
    guard.cancel()
    return bytes(got), not hung.is_set()


@contextlib.contextmanager
def _strike_later(process: subprocess.Popen[bytes], number: int | None, after: float, got: bytearray) -> Iterator[None]:
    """A signal after so many seconds; SIGTERM not before the first byte: until then nobody listens."""
    over = threading.Event()

    def strike() -> None:
        while number != signal.SIGKILL and not got and not over.is_set():
            time.sleep(0.01)
        if not over.wait(after):
            process.send_signal(number or 0)

    thread = threading.Thread(target=strike, daemon=True)
    if number is not None:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if number is not None:
            thread.join()
