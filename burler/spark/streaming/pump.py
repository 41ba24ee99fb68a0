"""The process that runs a tap into a spool while a query runs.

The query's driver starts it and says on stdin, in one line, what to run. Stdin stays open: when it closes, because the
query has ended or its driver was killed, the tap is stopped as by SIGTERM, so that no tap outlives its query. What the
process says of itself goes to stdout, one JSON object a line; all else that is printed goes to stderr.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from burler import logs
from burler.engine.run.signals import Stopper
from burler.errors import BurlerError, StreamError
from burler.lake.store import open_store
from burler.settings import Settings
from burler.singer.messages import Message
from burler.spark.streaming.holding import held
from burler.spark.streaming.keeper import SpooledStates
from burler.spark.streaming.note import Note, Stated, change_note, check_owner, plain, read_note
from burler.words import counted

_GRACE_SECONDS = 15.0
_HOLD_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Work:
    """What to run. ``options``: those of ``readStream.format("burler")``, with all they hold.

    ``once``: one run of the tap to its end; else an app runs as a tail, and a command again and again, each time
    ``poll_seconds`` after its last end.
    ``land_seconds``: how long rows wait, at the most, before they are committed, where the tap's config says nothing.
    """

    options: Mapping[str, str] = field(repr=False)
    spool: str
    once: bool
    poll_seconds: float
    land_seconds: float

    def to_line(self) -> bytes:
        """One line for the stdin of the process; it may hold secrets, so it goes nowhere else."""
        return base64.b64encode(pickle.dumps(self)) + b"\n"


def main() -> int:
    """Read the work, do it, say how it ended; the exit code."""
    say = _own_stdout()
    work: Work = pickle.loads(base64.b64decode(sys.stdin.buffer.readline()))
    logs.configure("WARNING")
    stopper = Stopper()
    _watch_stdin(stopper)
    try:
        _pump(work, stopper, say)
    except BurlerError as error:
        say({"event": "failed", "kind": type(error).__name__, "text": str(error)})
        return 1
    except Exception as error:
        place = logs.place_of_error(error)
        say(
            {
                "event": "failed",
                "kind": "StreamError",
                "text": f"{place}: {logs.short(error)}" if place else repr(error),
            }
        )
        return 1
    say({"event": "ended"})
    return 0


def _pump(work: Work, stopper: Stopper, say: Callable[[dict[str, Any]], None]) -> None:
    from burler.spark.source.options import parse
    from burler.spark.source.planning import find_stream

    store = open_store(work.spool)
    hold = held(store, "pump", seconds=_HOLD_SECONDS, otherwise="is being filled by another process")
    found = find_stream(parse(work.options))
    tap = tap_name(found)
    check_owner(read_note(store), tap, found.declared.stream, store)
    names = sorted(found.declared.names)
    begin = lambda: Note(tap, found.declared.stream, names)  # noqa: E731
    note = change_note(store, begin, lambda note: _begun(note, names, found.options.state))
    keeper = SpooledStates(store, note)
    try:
        while not stopper.requested:
            run = _run_command if found.foreign is not None else _run_app
            run(work, found, keeper, stopper)
            if work.once or found.foreign is None or not _waited(work.poll_seconds, stopper):
                return
    finally:
        if hold is not None:
            hold.release()


def _begun(note: Note, names: list[str], state: Mapping[str, Any] | None) -> None:
    note.names = names
    if state is not None and not note.states:
        note.add(Stated(None, 0, plain(state)))


def tap_name(found: Any) -> str:
    """What a spool calls the tap, and the tap's folder in it."""
    if found.foreign is not None:
        return str(found.foreign.command.name)
    return str(found.ref.load().name)


def _run_app(work: Work, found: Any, keeper: SpooledStates, stopper: Stopper) -> None:
    from burler.engine.run.start import run_session
    from burler.engine.session import open_session
    from burler.sinks import LakeSink

    app = found.ref.load()
    session, settings = open_session(app, dict(found.config or {}))
    settings = _of_stream(settings, found.config or {}, work)
    writer = _writer(work.spool, app.name, keeper.write, settings, stopper)
    result = run_session(
        session,
        settings,
        LakeSink(writer, keeper),
        catalog=found.catalog,
        state=keeper.state,
        stopper=stopper,
    )
    for stream, error in result.errors.items():
        if isinstance(error, BurlerError):
            raise error
        raise StreamError(stream, f"stream '{stream}': {logs.short(error)}") from error


def _run_command(work: Work, found: Any, keeper: SpooledStates, stopper: Stopper) -> None:
    from burler.lake.writer import ingest

    settings = replace(Settings(), max_file_age_seconds=work.land_seconds)
    stream = found.declared.stream
    with found.foreign.sync(found.catalog, keeper.state) as tap, stopper.installed():
        writer = _writer(work.spool, tap_name(found), keeper.write, settings, stopper)
        ingest(tap.fd, writer, should_stop=lambda: stopper.requested)
        if stopper.requested:
            return
        if tap.end():
            rows = sum(one.records for one in writer.committed.values())
            failure = tap.failure(f" after {counted(rows, 'row')}")
            raise StreamError(stream, f"stream '{stream}': {failure}")


def _of_stream(settings: Settings, config: Mapping[str, Any], work: Work) -> Settings:
    """A run to the end, or a tail: one that polls its source again and again, and knows the row at which it began.

    Rows are committed soon, unless the config says how soon.
    """
    poll_ms = int(work.poll_seconds * 1000) or 1
    wanted: dict[str, Any] = {
        "max_file_age_seconds": work.land_seconds,
        "state_message_min_interval_ms": int(work.land_seconds * 1000) or 1,
        "new_record_polling_interval_ms": poll_ms,
        "max_full_table_age_seconds": max(work.poll_seconds, 1.0),
    }
    given = {name: value for name, value in wanted.items() if name not in config}
    return replace(settings, tail=not work.once, batch=False, **given)


def _writer(url: str, tap_id: str, keep: Callable[[Message], None], settings: Settings, stopper: Stopper) -> Any:
    from burler.batch.rolling import RollSettings
    from burler.lake.writer import LakeWriter

    roll = RollSettings(
        max_file_bytes=settings.max_file_bytes,
        max_file_records=settings.max_file_records,
        max_file_age_seconds=settings.max_file_age_seconds,
    )
    return LakeWriter(
        open_store(url),
        tap_id,
        emit_state=keep,
        settings=roll,
        tail=settings.tail,
        should_stop=lambda: stopper.requested,
    )


def _waited(seconds: float, stopper: Stopper) -> bool:
    """Wait; False where the run is to end meanwhile."""
    end = time.monotonic() + seconds
    with stopper.installed():
        while not stopper.requested and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.2))
    return not stopper.requested


def _own_stdout() -> Callable[[dict[str, Any]], None]:
    """What writes to the query; from here on prints of the tap go to stderr."""
    own = os.dup(1)
    os.dup2(2, 1)

    def say(what: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # nobody listens any more: stdin says the same
            os.write(own, json.dumps(what).encode() + b"\n")

    return say


def _watch_stdin(stopper: Stopper) -> None:
    """Stop the tap when stdin closes, and end the process if that does not."""

    def watch() -> None:
        with contextlib.suppress(OSError, ValueError):
            while os.read(0, 4096):
                pass
        stopper.end()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_GRACE_SECONDS)
        os._exit(1)

    signal.signal(signal.SIGTERM, lambda _number, _frame: stopper.end())
    threading.Thread(target=watch, name="burler-pump-watch", daemon=True).start()


def start() -> None:
    """What the new process calls."""
    code = main()
    sys.stderr.flush()
    os._exit(code)  # threads of the tap's own may be blocked, and all that counts is committed
