"""Sail: an engine without Java that speaks Spark Connect. burler starts its server as a process of its own.

``python -m burler.spark.sail`` is that process: it says its port on stdout and ends when its stdin does, so it never
outlives the process that asked for it, however that ends.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import subprocess
import sys
import time

from burler.errors import UsageError
from burler.extras import require

_START_SECONDS = 60.0
_STOP_SECONDS = 5.0
_NEWEST_KNOWN = (4, 2)
"""The newest pyspark whose confs Sail 0.7 has a table for; told a later one, it refuses all sessions."""

# The server of this process, by process id: a fork's parent may have one that is not the fork's to stop.
_running: dict[int, tuple[subprocess.Popen[bytes], int]] = {}


def server() -> str:
    """The address of this process's Sail server; it is started when it is first asked for.

    Raises:
        MissingExtra: pysail is not installed. UsageError: its server did not start.
    """
    require("pysail", extra="sail", needed_for="the engine sail")
    process, port = _running.get(os.getpid(), (None, 0))
    if process is None or process.poll() is not None:
        process, port = _start()
        _running[os.getpid()] = (process, port)
        atexit.register(stop)
    return f"sc://127.0.0.1:{port}"


def stop() -> None:
    """End this process's server; a later session starts another."""
    process, _ = _running.pop(os.getpid(), (None, 0))
    if process is None:
        return
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _start() -> tuple[subprocess.Popen[bytes], int]:
    process = subprocess.Popen(
        [sys.executable, "-m", "burler.spark.sail"],
        env={"RUST_LOG": "off", **os.environ},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=0,  # a Ctrl-C on the terminal is for us, who then close its stdin
    )
    line = _first_line(process)
    if not line.strip().isdigit():
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        raise UsageError(
            "Sail's server did not start; its own words stand above. Check that pysail fits this Python and machine: "
            "python -m burler.spark.sail"
        )
    return process, int(line)


def _first_line(process: subprocess.Popen[bytes]) -> bytes:
    """What the server says first; empty if it ends, or says nothing for a minute."""
    assert process.stdout is not None
    deadline = time.monotonic() + _START_SECONDS
    line = b""
    while not line.endswith(b"\n") and time.monotonic() < deadline:
        if select.select([process.stdout], [], [], 0.2)[0]:
            read = os.read(process.stdout.fileno(), 100)
            if not read:
                break
            line += read
    return line


def serve() -> None:
    """Run a server until stdin ends."""
    import pyspark

    numbers = pyspark.__version__.split(".")
    if tuple(int(part) for part in numbers[:2]) > _NEWEST_KNOWN:
        pyspark.__version__ = ".".join(map(str, (*_NEWEST_KNOWN, 0)))
    from pysail.spark import SparkConnectServer

    running = SparkConnectServer("127.0.0.1", 0)
    running.start(background=True)
    sys.stdout.write(f"{running.listening_address[1]}\n")
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        while os.read(0, 4096):
            pass
    running.stop()


if __name__ == "__main__":
    serve()
