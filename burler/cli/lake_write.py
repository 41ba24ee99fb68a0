"""``burler lake write``."""

from __future__ import annotations

import logging
import select
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from burler.cli import completing, process
from burler.cli.common import lake_options_in, open_lake
from burler.cli.helping import Choice, Command, argument, option
from burler.cli.options_batch import allow_in, read_options
from burler.cli.sizes import SizeType
from burler.errors import UsageError
from burler.tally import metric
from burler.words import counted

if TYPE_CHECKING:
    from burler.batch.allowed import Allowed
    from burler.engine.run.signals import Stopper
    from burler.lake.writer import LakeWriter
    from burler.singer.messages import State
    from burler.sinks import LineWriter
    from burler.storage.base import Store

logger = logging.getLogger(__name__)


FILES, LOCKS, STORES = "The files", "Other writers", "Stores"


@click.command(cls=Command)
@argument("path", metavar="LAKE")
@option(
    "--tap-id", metavar="ID", shell_complete=completing.taps_of_lake, help="Folder of this tap in the lake (required)."
)
@option(
    "--max-file-bytes",
    section=FILES,
    type=SizeType(),
    metavar="SIZE",
    show_default="64MiB",
    help="Close a file at this size, before compression.",
)
@option(
    "--max-file-records",
    section=FILES,
    type=click.IntRange(min=1),
    metavar="N",
    help="Close a file at this many records.",
)
@option(
    "--max-file-age-seconds",
    section=FILES,
    type=float,
    metavar="SECONDS",
    show_default="60",
    help="Close a file at this age.",
)
@option(
    "--max-open-files",
    section=FILES,
    type=click.IntRange(min=1),
    metavar="N",
    show_default="100",
    help="Streams with an open file at a time.",
)
@option(
    "--max-open-bytes",
    section=FILES,
    type=SizeType(),
    metavar="SIZE",
    show_default="1GiB",
    help="Size of all open files, compressed.",
)
@option("--compression", section=FILES, type=Choice(["gz", "bz2", "none"]), default="gz", help="Of new files.")
@option(
    "--encoding",
    section=FILES,
    type=Choice(["base58", "base85"]),
    show_default="base58",
    help="How a new lake spells schema hashes in folder names.",
)
@option(
    "--lock-ttl-seconds",
    section=LOCKS,
    type=float,
    metavar="SECONDS",
    show_default="300",
    help="Take over a lock that did not change for so long.",
)
@option(
    "--lock-timeout-seconds",
    section=LOCKS,
    type=float,
    metavar="SECONDS",
    show_default="600",
    help="Wait no longer for another writer's lock.",
)
@option("--tail", section=LOCKS, is_flag=True, help="Input never ends: give a lock back after each commit.")
@option(
    "--state-values", is_flag=True, help="Print the bare value of each STATE, as targets do, in place of the message."
)
@option(
    "--storage-options",
    section=STORES,
    metavar="JSON|FILE",
    help="For the library that reaches files of BATCH messages; secrets belong in a FILE.",
)
@allow_in(STORES)
@lake_options_in(STORES)
def write(
    path: str,
    tap_id: str | None,
    storage_options: str | None,
    allow: Allowed,
    lake_options: str | None,
    **options: Any,
) -> int:
    """Write the messages of any tap on stdin into LAKE (a folder or a URL); STATE comes out once it is safe.

    \b
    tap-any --config c.json | burler lake write ./lake --tap-id tap-any --state-values >> states.jsonl
    tail -1 states.jsonl > state.json
    tap-any -c c.json --state state.json | burler lake write ./lake --tap-id tap-any --state-values >> states.jsonl

    Exit codes: 0 all is committed, 1 input is broken, 2 usage, 3 another writer has the lock, 4 nobody reads STATE.
    """
    from burler.cli.progress import progress
    from burler.engine.run.signals import Stopper
    from burler.lake.writer import ingest

    if not tap_id:
        raise UsageError("lake write needs --tap-id: the name under which this tap's data stands, as --tap-id tap-crm")
    if sys.stdin is None:
        raise UsageError("stdin is closed: pipe a tap's messages in, as in: tap-crm | burler lake write ...")
    process.tell_terminal("messages")
    given = {key: value for key, value in options.items() if value is not None}
    batches = read_options("--storage-options", storage_options)
    store = open_lake(path, lake_options)
    on_terminal = process.stdout_on_terminal()
    with process.own_stdout() as lines:
        stopper = Stopper(lambda: lines.blocked_since)
        writer = _writer(store, tap_id, given, lines, lambda: stopper.requested)
        try:
            with stopper.installed(), progress(lambda: _committed(writer), stdout_on_terminal=on_terminal):
                _wait_for_input(sys.stdin.fileno(), stopper)
                ingest(
                    sys.stdin.fileno(),
                    writer,
                    should_stop=lambda: stopper.requested,
                    storage_options=batches,
                    allow=allow,
                )
        finally:
            _tell(writer)
    return 0


def _committed(writer: LakeWriter) -> str:
    """How far it is, for who waits."""
    done = list(writer.committed.values())
    rows = sum(one.records for one in done)
    return f"{counted(rows, 'row')} of {counted(len(done), 'stream')} committed" if done else "nothing committed yet"


def _tell(writer: LakeWriter) -> None:
    """What was committed, a line for each stream."""
    from burler.measures import RECORD_COUNT

    for stream, done in writer.committed.items():
        rows, files = counted(done.records, "row"), counted(done.files, "file")
        logger.info("stream '%s': %s in %s committed", stream, rows, files)
        metric(RECORD_COUNT, done.records, endpoint=stream)


def _writer(
    store: Store, tap_id: str, given: Mapping[str, Any], lines: LineWriter, should_stop: Callable[[], bool]
) -> LakeWriter:
    """What commits; each STATE is kept in the lake, then printed at once: the message, or its bare value.

    Args:
        given: how files roll, how locks wait, and the like, by the names of the options.

    Raises:
        UsageError: a number that can't be.
    """
    from burler.batch.rolling import RollSettings
    from burler.lake.locks import LockSettings
    from burler.lake.state import LakeState, StateKeeper
    from burler.lake.writer import LakeWriter
    from burler.singer.messages import encode, to_line

    def emit(message: State) -> None:
        lines.write(encode(message.value) + b"\n" if given["state_values"] else to_line(message))
        lines.flush()

    return LakeWriter(
        store,
        tap_id,
        emit_state=emit,
        keeper=StateKeeper(LakeState(store, tap_id)),
        settings=RollSettings(**{key: value for key, value in given.items() if key.startswith("max_")}),
        compression=None if given["compression"] == "none" else given["compression"],
        encoding=given.get("encoding"),
        locks=LockSettings(**{key[5:]: value for key, value in given.items() if key.startswith("lock_")}),
        tail=given["tail"],
        should_stop=should_stop,
    )


def _wait_for_input(fd: int, stopper: Stopper) -> None:
    """Until there is something to read, the end of it, or a signal: a read would not come back for that."""
    ready = select.poll()
    ready.register(fd, select.POLLIN)
    while not stopper.requested and not ready.poll(200):
        pass
