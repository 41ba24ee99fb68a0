"""``burler batch ...``: between any tap and any target, files in place of rows, or rows in place of files."""

from __future__ import annotations

import contextlib
import logging
import select
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import click

from burler.batch_config import BatchConfig
from burler.cli import process
from burler.cli.helping import OPTIONS, Group, option
from burler.cli.options_batch import JSON, MESSAGES, allow_in, new_files, read_options
from burler.engine.run.signals import Stopper
from burler.errors import UsageError
from burler.words import counted

if TYPE_CHECKING:
    from burler.batch.allowed import Allowed
    from burler.batch.readers import Expanded
    from burler.cli.progress import Counter
    from burler.sinks import LineWriter

logger = logging.getLogger(__name__)
SOURCE = "What is read"


@click.group(cls=Group)
def batch() -> None:
    """BATCH messages: bulk files between a tap and a target.

    \b
    tap-anything --config c.json | burler batch pack --storage ./batches | target-of-batches
    tap-with-batches --config c.json | burler batch expand | target-anything
    burler batch clean ./batches --older-than 7d
    """


_TAP = option("--tap", section=MESSAGES, default="tap", metavar="NAME", help="Stands in the names of the files.")
_SOURCE_OPTIONS = option(
    "--source-options", section=SOURCE, metavar=JSON, help="For the library that reaches the files that are read."
)


@batch.command()
@option(
    "--processes",
    type=click.IntRange(1, 256),
    default=1,
    metavar="N",
    help="Read files by N worker processes, in order.",
)
@option("--storage-options", metavar=JSON, help="For the library that reaches the files; secrets belong in a FILE.")
@allow_in(OPTIONS)
def expand(processes: int, storage_options: str | None, allow: Allowed) -> int:
    """BATCH -> RECORD: the messages of any tap on stdin, rows in place of files. Everything else passes as it is.

    \b
    tap-anything --config c.json | burler batch expand | target-anything
    """
    from burler.batch import expansion

    options = read_options("--storage-options", storage_options)
    with piped("expand") as pipe:
        done = expansion.expand(pipe.fd, pipe.write, processes=processes, options=options, allow=allow, **pipe.hooks)
    _say("expand", done)
    return 0


@batch.command()
@new_files
@_TAP
def pack(config: BatchConfig, tap: str) -> int:
    """RECORD -> BATCH: the messages of any tap on stdin, files in place of rows. STATE waits for the files before it.

    \b
    tap-anything --config c.json | burler batch pack --compression gzip --storage ./batches | target-of-batches
    """
    from burler.batch import packing

    with piped("pack") as pipe:
        packing.pack(pipe.fd, pipe.write, config, tap=tap, **pipe.hooks)
    return 0


@batch.command()
@new_files
@_SOURCE_OPTIONS
@allow_in(SOURCE)
@_TAP
def convert(config: BatchConfig, source_options: str | None, allow: Allowed, tap: str) -> int:
    """BATCH -> BATCH: the files of a tap's BATCH messages in another format, compression or storage.

    \b
    tap-anything --config c.json | burler batch convert --format parquet --storage s3://bucket/x | target-of-parquet
    """
    from burler.batch import packing

    options = read_options("--source-options", source_options)
    with piped("convert") as pipe:
        done = packing.convert(pipe.fd, pipe.write, config, tap=tap, options=options, allow=allow, **pipe.hooks)
    _say("convert", done)
    return 0


def _say(command: str, done: Expanded) -> None:

    told = f"{counted(done.records, 'row')} of {counted(done.batches, 'BATCH message')}"
    if done.uncounted:
        such = "such as " if done.uncounted > 1 else ""
        told += (
            f"; rows not counted: {counted(done.uncounted, 'file')} without file_stats ({such}{done.first_uncounted}), "
            "where a cut at a line end is not seen"
        )
    logger.info("%s: %s", command, told)


class Hooks(TypedDict):
    """What ``expand``, ``pack`` and ``convert`` call meanwhile."""

    flush: Callable[[], object]
    tick: Callable[[], object]
    should_stop: Callable[[], bool]


@dataclass(frozen=True)
class Pipe:
    """stdin and stdout of a command that stands between a tap and a target."""

    fd: int
    lines: LineWriter
    stopper: Stopper
    write: Counter

    @property
    def hooks(self) -> Hooks:
        """They end the command where SIGTERM or SIGINT came."""
        return {
            "flush": self.lines.flush,
            "tick": self.lines.check_reader,
            "should_stop": lambda: self.stopper.requested,
        }


@contextlib.contextmanager
def piped(command: str) -> Iterator[Pipe]:
    """stdin, stdout and signals. One SIGTERM or SIGINT ends the command as the end of input does."""
    if sys.stdin is None:
        raise UsageError(f"stdin is closed: pipe a tap's messages in, as in: tap-crm | burler batch {command} ...")
    from burler.cli.lake_tables import size
    from burler.cli.progress import Counter, progress

    process.tell_terminal("messages")
    fd = sys.stdin.fileno()
    on_terminal = process.stdout_on_terminal()
    with process.own_stdout() as lines:
        stopper = Stopper(lambda: lines.blocked_since)
        stopper.owns_process = True
        with stopper.installed():
            ready = select.poll()
            ready.register(fd, select.POLLIN)
            while not stopper.requested and not ready.poll(200):
                lines.check_reader()
            write = Counter(lines.write)
            with progress(lambda: f"{size(write.count)} of messages written", stdout_on_terminal=on_terminal):
                yield Pipe(fd, lines, stopper, write)
