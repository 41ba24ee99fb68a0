"""What writers do in the schedules: burler's lock, claim, commit and release, one after the other."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable
from unittest import mock

from lake_stepping import NOON, TTL_SECONDS, Run, name_of

from burler.lake import FileStats, LakeState, LakeWriter, LockSettings, StateKeeper
from burler.singer.messages import Schema, State, format_time
from support.internals import clocks, hashing, lake_locks, layout, manifest

TAP, STREAM = "t", "s"
FOLDER = layout.stream_folder(TAP, STREAM)
SETTINGS = LockSettings(ttl_seconds=TTL_SECONDS, timeout_seconds=2 * TTL_SECONDS)
STATS = FileStats(records=1, bytes=10, first=format_time(NOON), last=format_time(NOON))


class Unstepped(clocks.Clock):
    """Time that stands still."""

    def now(self) -> dt.datetime:
        return NOON

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        pass

    def uniform(self, low: float, high: float) -> float:
        return low


UNSTEPPED = Unstepped()

SCHEMA_LINES = [
    hashing.schema_line(Schema(STREAM, {"properties": {"id": {"type": "integer"}}, "v": n})) for n in range(2)
]


def writing(*, variant: int = 0, commits: int = 1, beats: bool = False) -> Callable[[Run], str]:
    """A writer of one schema version.

    Args:
        variant: which of two schema versions.
        beats: a heartbeat comes between each data file and its commit.
    """
    line = SCHEMA_LINES[variant]
    digest = hashing.schema_hash(line)
    lock_path = f"{FOLDER}/{digest}/singerlake.lock"

    def work(run: Run) -> str:
        name = name_of(run.me)
        locks = lake_locks.Locks(
            run, writer_id=name, settings=SETTINGS, clock=run.clock, heartbeat=False, should_stop=run.tired
        )
        entered = False
        try:
            lock = locks.wait(locks.attempt(lock_path, STREAM))
            run.entered(lock_path)
            entered = True
            claim = manifest.claim(run, TAP, STREAM, hash=digest, writer_id=name, clock=UNSTEPPED)
            lock.confirm(claim.epoch)
            for number in range(commits):
                file = f"{digest}/{STREAM}-20240102T12000{run.me}Z-20240102T12000{run.me}Z-{number + 1}.singer.gz"
                row = _row(run, number)
                _publish(run, f"{FOLDER}/{file}", row)
                if beats:
                    locks.beat()
                locks.check()
                epoch = claim.epoch
                claim = manifest.commit(
                    run,
                    claim,
                    [(file, STATS)],
                    schema_line=line,
                    confirm=lambda epoch=epoch: lock.confirm(epoch),
                    clock=UNSTEPPED,
                )
                run.acked(row)
        finally:
            if entered:
                run.left(lock_path)
            locks.release_all()
        return "done"

    return work


def _row(run: Run, number: int) -> bytes:
    return b'{"id":%d}' % (run.me * 10 + number)


def _publish(run: Run, path: str, row: bytes) -> None:
    file = run.new_file(path.rpartition("/")[0])
    file.write(row)
    with contextlib.suppress(FileExistsError):  # names are a writer's own here: it is the one it has just written
        file.publish(path)


def _no_thread(_locks: lake_locks.Locks) -> None:
    """Not a mock of mock's own making: each of thousands of runs would wait for it."""


def _keeper(run: Run) -> tuple[StateKeeper, list[int]]:
    """What keeps the state of a run, and the rows that the lake's state covers as it begins."""
    state = LakeState(run, TAP, clock=run.clock)
    begun = state.read()
    start = {} if begun is None else begun.value
    keeper = StateKeeper(state, begun=begun, start=start)
    keeper.runs({STREAM})
    return keeper, start["bookmarks"][STREAM]["rows"] if start else []


def whole_writer(
    *, variant: int = 0, commits: int = 1, tail: bool = False, keeps: bool = False
) -> Callable[[Run], str]:
    """The same by the writer that taps use: with the tap's catalog, ``singerlake.json``, and files named by it.

    Its heartbeat is a thread, and left out.

    Args:
        keeps: each STATE is kept in the lake before it is acknowledged; it names all rows that it covers.
    """
    schema = Schema(STREAM, {"properties": {"id": {"type": "integer"}}, "v": variant})

    def work(run: Run) -> str:
        keeper, before = _keeper(run) if keeps else (None, [])

        def emit(state: State) -> None:
            done = state.value["n"]
            if keeper is not None:
                own = [run.me * 10 + number for number in range(done + 1)]
                keeper.save({"bookmarks": {STREAM: {"rows": before + own}}})
            run.acked(_row(run, done))

        writer = LakeWriter(
            run,
            TAP,
            emit_state=emit,
            writer_id=name_of(run.me),
            compression=None,
            locks=SETTINGS,
            tail=tail,
            should_stop=run.tired,
            clock=run.clock,
        )
        with mock.patch.object(lake_locks.Locks, "_begin_to_beat", _no_thread), writer:
            writer.schema(schema)
            for number in range(commits):
                line = b'{"type":"RECORD","stream":"s","record":%s}\n' % _row(run, number)
                writer.record_line(STREAM, line, NOON)
                writer.state(State({"n": number}))
                writer.flush()
        return "done"

    return work
