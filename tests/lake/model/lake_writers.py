"""``burler lake write`` as a process that a test feeds row by row, pauses, and hears."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from support.clocks import until

PATIENCE_SECONDS = 60.0


class Writing:
    """One process. Leave the block and it is gone.

    Args:
        url: the lake.
        options: of the command, beside ``--tap-id t``; files hold one record unless they say otherwise.
        variant: makes the schema of the stream differ.
        environment: variables beside those of this process.
    """

    def __init__(
        self,
        url: str | Path,
        *options: str,
        stream: str = "s",
        variant: int = 0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._stream, self._lake = stream, Path(url)
        command = [sys.executable, "-m", "burler", "lake", "write", str(url), "--tap-id", "t"]
        command += ["--max-file-records", "1", "--max-file-age-seconds", "600", *options]
        variables = {**os.environ, **(environment or {})}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables
        )
        self._states: queue.Queue[int | None] = queue.Queue()
        self.acked: list[int] = []
        """The numbers of all STATEs that came out and were taken."""
        self._said = bytearray()
        self._listeners = [threading.Thread(target=work, daemon=True) for work in (self._hear_states, self._hear_log)]
        for listener in self._listeners:
            listener.start()
        schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "variant": variant}
        self.send({"type": "SCHEMA", "stream": stream, "key_properties": ["id"], "schema": schema})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        for listener in self._listeners:
            listener.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def send(self, *messages: dict[str, Any]) -> None:
        """Messages, as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        self.process.stdin.flush()

    def rows(self, *numbers: int) -> None:
        """A record for each number, and the STATE behind it."""
        for number in numbers:
            record = {"type": "RECORD", "stream": self._stream, "record": {"id": number}}
            self.send(record, {"type": "STATE", "value": {"n": number}})

    def state(self) -> int:
        """The number of the next STATE that comes out."""
        number = self._states.get(timeout=PATIENCE_SECONDS)
        assert number is not None, f"it ended: {self.said}"
        self.acked.append(number)
        return number

    def commit(self, *numbers: int) -> None:
        """Rows, until each is acknowledged."""
        for number in numbers:
            self.rows(number)
            assert self.state() == number

    def quiet(self) -> list[int]:
        """STATEs that have come out since the last look."""
        found = []
        while not self._states.empty():
            number = self._states.get()
            if number is not None:
                found.append(number)
        return found

    def pause(self) -> None:
        """SIGSTOP, until it stands still; not in the middle of a compare-and-swap on a local disk, where others would
        wait for it."""
        while True:
            self.process.send_signal(signal.SIGSTOP)
            until(lambda: Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
            if not self._swaps():
                return
            self.resume()
            time.sleep(0.02)

    def _swaps(self) -> bool:
        """Whether it holds the flock of a sidecar."""
        sidecars = {path.stat().st_ino for path in self._lake.rglob(".*.lock")} if self._lake.is_dir() else set()
        held = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        mine = {int(words[5].rpartition(":")[2]) for words in held if words[4] == str(self.process.pid)}
        return bool(sidecars & mine)

    def resume(self) -> None:
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> int:
        """The end of its input; its exit code."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        return self.wait()

    def wait(self) -> int:
        """Its exit code; all STATEs that are left are in ``acked``."""
        code = self.process.wait(PATIENCE_SECONDS)
        for listener in self._listeners:
            listener.join()
        self.acked += self.quiet()
        return code

    @property
    def said(self) -> str:
        """What it has said on stderr."""
        return self._said.decode(errors="replace")

    def _hear_states(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._states.put(json.loads(line)["value"]["n"])
        self._states.put(None)

    def _hear_log(self) -> None:
        assert self.process.stderr is not None
        while chunk := os.read(self.process.stderr.fileno(), 1 << 16):
            self._said += chunk
