"""A process that reads batch files for another one: tasks come on stdin, pages of RECORD lines go out through a pipe of
their own, so that nothing that prints can come between.

It is started as a command of its own, not forked, and never imports the script that wanted it. When its stdin ends, its
parent has gone, however that was: it ends at once, also in the middle of a file.
"""

from __future__ import annotations

import json
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from burler.batch.allowed import Allowed
from burler.singer.messages import Batch

DATA, WARNING, ERROR, END = b"D", b"W", b"E", b"F"
HEAD = struct.Struct(">cQ")
_PART_BYTES = 256 * 1024

_COMMAND = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); import burler.batch.expanding_worker as w; w.main()"
)


@dataclass(frozen=True, slots=True)
class Task:
    """One file of a BATCH. ``number``: the line of the message; ``file``: its place in the manifest, from 0."""

    number: int
    batch: Batch
    file: int
    schema: Mapping[str, Any]
    options: Mapping[str, Any] | None
    allowed: Allowed


def start(out: int) -> subprocess.Popen[bytes]:
    """Start a worker, which finds the same packages. ``out``: the descriptor that it writes to."""
    command = [sys.executable, "-c", _COMMAND, json.dumps(sys.path), str(out)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=(out,))


def main() -> None:
    """Work until stdin ends."""
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group: our parent ends us in its own time
        signal.signal(number, signal.SIG_IGN)
    out = os.fdopen(int(sys.argv[2]), "wb", buffering=0)
    tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(os.fdopen(0, "rb"), tasks), daemon=True).start()
    try:
        while True:
            work(tasks.get(), out)
    except BrokenPipeError:
        os._exit(0)


def _listen(source: BinaryIO, tasks: queue.SimpleQueue[Task]) -> None:
    while len(head := source.read(8)) == 8:
        tasks.put(pickle.loads(source.read(int.from_bytes(head, "big"))))  # of our own parent
    os._exit(0)


def work(task: Task, out: BinaryIO) -> None:
    """Read one file: frames of data, at last one that says how it ended."""
    from burler.batch.reading import read, record_lines
    from burler.errors import BurlerError

    batch, rows = task.batch, 0
    try:
        reading = read(
            batch,
            task.schema,
            options=task.options,
            allow=task.allowed,
            line=task.number,
            warn=lambda text: send(out, WARNING, text.encode("utf-8", "replace")),
        )
        for page in reading.file_pages(task.file):
            rows += page.count
            for part in parts(page.lines):
                send(out, DATA, record_lines(part, batch.stream, batch.time_extracted, batch.version))
    except BrokenPipeError:
        raise
    except BurlerError as error:
        send(out, ERROR, json.dumps([type(error).__name__, error.exit_code, str(error)]).encode())
    except Exception as error:
        fact = f"line {task.number}: stream '{batch.stream}': {type(error).__name__}: {error}"
        send(out, ERROR, json.dumps(["", 1, fact]).encode())
    else:
        send(out, END, str(rows).encode())


def parts(lines: bytes) -> Iterator[bytes]:
    """Lines in smaller pieces: short rows grow when a message is put around each."""
    start = 0
    while len(lines) - start > _PART_BYTES:
        end = lines.find(b"\n", start + _PART_BYTES) + 1
        if not end:
            break
        yield lines[start:end]
        start = end
    if start < len(lines):
        yield lines[start:]


def send(out: BinaryIO, kind: bytes, content: bytes) -> None:
    """One frame."""
    for data in (HEAD.pack(kind, len(content)), content):
        view = memoryview(data)
        while view:
            view = view[out.write(view) :]
