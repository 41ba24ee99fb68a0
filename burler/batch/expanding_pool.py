"""Files of BATCH messages read by several processes, their rows written in the order of the messages.

One thread: it reads messages, gives files to idle workers in order, and takes what they send. The rows of the file
whose turn it is go straight out; those of later ones wait in temporary files. Once these hold enough, workers are not
listened to until their turn comes, and wait.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pickle
import select
import signal
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from burler.batch.allowed import Allowed
from burler.batch.expanding_turn import Turn
from burler.batch.expanding_worker import DATA, END, HEAD, WARNING, Task, start
from burler.batch.tap_lines import Found, Piece, TapLines
from burler.errors import BatchError, BurlerError
from burler.target.intake import BLOCK_BYTES, reading

if TYPE_CHECKING:
    from burler.batch.expanding import Expanded

LOOK_AHEAD_BYTES = 128 * 1024 * 1024
"""Rows that may wait in temporary files, for each worker."""
_PASSING_BYTES = 8 * 1024 * 1024
_WAIT_MS = 1000


class _Worker:
    """A process, and the file that it reads."""

    def __init__(self) -> None:
        self.fd, writing = os.pipe()
        try:
            self.process = start(writing)
        except BaseException:
            os.close(self.fd)
            raise
        finally:
            os.close(writing)
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(self.fd, fcntl.F_SETPIPE_SZ, BLOCK_BYTES)
        self.turn: Turn | None = None
        self.received = bytearray()

    def give(self, turn: Turn) -> None:
        """Begin a file."""
        self.turn, turn.is_given = turn, True
        data = pickle.dumps(turn.task)
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has died: the end of its output says so
            self.process.stdin.write(len(data).to_bytes(8, "big") + data)
            self.process.stdin.flush()

    def frame(self) -> tuple[bytes, bytes] | None:
        """(kind, content) of a frame that is whole; None if there is none yet."""
        if len(self.received) < HEAD.size:
            return None
        kind, size = HEAD.unpack_from(self.received)
        end = HEAD.size + size
        if len(self.received) < end:
            return None
        content = bytes(memoryview(self.received)[HEAD.size : end])
        del self.received[:end]
        return kind, content

    def how_it_ended(self) -> str:
        """Why its output has ended."""
        code = self.process.wait()
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"was killed by {signal.Signals(-code).name}"
        return f"ended with code {code}"

    def kill(self) -> None:
        """End it; what it was doing is of no more use."""
        self.process.kill()
        os.close(self.fd)
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait()


class Pool:
    """Workers, and all that waits for its turn."""

    def __init__(
        self,
        processes: int,
        write: Callable[[bytes], object],
        done: Expanded,
        options: Mapping[str, Any] | None,
        allowed: Allowed,
        flush: Callable[[], object],
        should_stop: Callable[[], bool],
        warn: Callable[[str], object],
    ) -> None:
        self._most = processes
        self._write = write
        self._done = done
        self._options = options
        self._allowed = allowed
        self._flush = flush
        self._should_stop = should_stop
        self._warn = warn
        self._workers: list[_Worker] = []
        self._queue: deque[bytes | Turn] = deque()
        self._passing_bytes = self._waiting_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.kill()
        for item in self._queue:
            if isinstance(item, Turn):
                item.close()

    def run(self, source: BinaryIO | int, came: TapLines, tick: Callable[[], object]) -> None:
        """Until the end of ``source``, and of all that it named."""
        read, fd = reading(source)
        ended, failure = False, None
        while self._queue or not ended:
            self._check()
            self._give_out()
            self._write_ready()
            wants_input = not ended and self._has_room()
            if not wants_input and not self._queue:
                continue
            ready = self._wait(fd if wants_input else None, wants_input and fd is None, tick)
            for worker in self._workers:
                if worker.fd in ready:
                    self._listen(worker)
            if wants_input and (fd is None or fd in ready):
                block = read(BLOCK_BYTES)
                ended = not block
                try:
                    pieces = came.finish(stopped=self._should_stop()) if ended else came.take(block)
                    for piece in pieces:
                        self._add(piece)
                except BurlerError as error:  # what stands before it goes out first
                    ended, failure = True, error
        if failure is not None:
            raise failure

    def _check(self) -> None:
        from burler.batch.expanding import Stopped

        if self._should_stop():
            raise Stopped

    def _has_room(self) -> bool:
        waiting = sum(1 for item in self._queue if isinstance(item, Turn) and not item.is_given)
        return waiting < 2 * self._most and self._passing_bytes < _PASSING_BYTES

    def _add(self, piece: Piece) -> None:
        if isinstance(piece, bytes):
            self._queue.append(piece)
            self._passing_bytes += len(piece)
            return
        assert isinstance(piece, Found)
        files = len(piece.batch.manifest)
        if not files:
            self._done.message_read(piece.batch)
        for file in range(files):
            task = Task(piece.number, piece.batch, file, piece.schema, self._options, self._allowed)
            self._queue.append(Turn(task, last=file == files - 1))

    def _give_out(self) -> None:
        """Files to idle workers, in order."""
        for item in self._queue:
            if isinstance(item, bytes) or item.is_given:
                continue
            worker = next((worker for worker in self._workers if worker.turn is None), None)
            if worker is None:
                if len(self._workers) >= self._most:
                    return
                worker = _Worker()
                self._workers.append(worker)
            worker.give(item)

    def _write_ready(self) -> None:
        """All at the head of the queue that is there."""
        while self._queue:
            item = self._queue[0]
            if isinstance(item, bytes):
                self._write(item)
                self._passing_bytes -= len(item)
            else:
                self._waiting_bytes -= item.waiting_bytes
                item.release(self._write, self._check)
                if item.error is not None:
                    raise item.error
                if not item.is_done:
                    return
                if item.is_last:
                    self._done.message_read(item.task.batch)
            self._queue.popleft()

    def _wait(self, fd: int | None, at_once: bool, tick: Callable[[], object]) -> set[int]:
        """The descriptors that have something. What was written goes out before there is nothing to do."""
        poll = select.poll()
        if fd is not None:
            poll.register(fd, select.POLLIN | select.POLLPRI | select.POLLHUP | select.POLLERR)
        room = self._waiting_bytes < LOOK_AHEAD_BYTES * self._most
        for worker in self._workers:
            turn = worker.turn
            if turn is not None and (turn is self._queue[0] or (room and not turn.is_full)):
                poll.register(worker.fd, select.POLLIN)
        found = poll.poll(0)
        if not found and not at_once:
            self._flush()
            found = poll.poll(_WAIT_MS)
            if not found:
                tick()
        return {number for number, _ in found}

    def _listen(self, worker: _Worker) -> None:
        data = os.read(worker.fd, BLOCK_BYTES)
        turn = worker.turn
        assert turn is not None
        if not data:
            task = turn.task
            turn.error = BatchError(
                f"line {task.number}: stream '{task.batch.stream}': BATCH: the process that read its files "
                f"{worker.how_it_ended()} (is memory short?). Run again, with fewer --processes"
            )
            turn.is_done, worker.turn = True, None
            worker.kill()
            self._workers.remove(worker)
            return
        worker.received += data
        while worker.turn is not None and (frame := worker.frame()) is not None:
            self._take(worker, turn, *frame)

    def _take(self, worker: _Worker, turn: Turn, kind: bytes, content: bytes) -> None:
        if kind == DATA:
            if turn is self._queue[0] and not turn.waiting_bytes:
                self._write(content)
            else:
                turn.keep(content)
                self._waiting_bytes += len(content)
        elif kind == WARNING:
            self._warn(content.decode("utf-8"))
        else:
            if kind == END:
                self._done.records += int(content)
            else:
                name, code, fact = json.loads(content)
                turn.error = BatchError(fact) if name == "BatchError" else BurlerError(fact)
                turn.error.exit_code = code
            turn.is_done, worker.turn = True, None
