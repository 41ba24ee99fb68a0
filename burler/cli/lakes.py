"""``burler lake``: the group, and what looks after a lake: ``ls``, ``check``, ``rebuild``, ``compact``, ``vacuum``,
``describe``, ``docs``."""

from __future__ import annotations

import datetime as dt
import functools
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from burler.cli import completing, process
from burler.cli.batch_clean import Age
from burler.cli.common import lake_options, open_lake
from burler.cli.helping import Command, Group, argument, option
from burler.cli.lake_read import read
from burler.cli.lake_tables import age, lake_text, notes_text, plain, size
from burler.cli.lake_write import write
from burler.cli.sizes import SizeType
from burler.errors import UsageError
from burler.words import counted

Say = Callable[[str], None]
Function = TypeVar("Function", bound=Callable[..., Any])

logger = logging.getLogger(__name__)
_SAFE_SECONDS = 60.0
_EPOCH = "SOURCE_DATE_EPOCH"


@click.group(cls=Group)
def lake() -> None:
    """A raw lake of Singer messages: fill it, read it, look after it.

    \b
    tap-any --config c.json | burler lake write ./lake --tap-id tap-any
    burler lake ls ./lake
    burler lake read ./lake | target-anything
    """


def _narrowing(command: Function) -> Function:
    """Decorator: the lake and the options that say which part of it. The command gets ``store, taps, streams`` and
    ``say``, which prints a line."""

    @functools.wraps(command)
    def opened(
        lake: str, lake_options: str | None, tap: tuple[str, ...], stream: tuple[str, ...], **options: Any
    ) -> Any:
        store = open_lake(lake, lake_options, must_exist=True)
        with process.printing() as say:
            return command(store=store, taps=tap or None, streams=stream or None, say=say, **options)

    decorated: Any = lake_options(opened)
    for name, metavar, complete in (
        ("--stream", "NAME", completing.streams_of_lake),
        ("--tap", "ID", completing.taps_of_lake),
    ):
        about = f"Only this {name[2:]}; may be given again."
        decorated = option(name, multiple=True, metavar=metavar, shell_complete=complete, help=about)(decorated)
    return cast(Function, argument("lake", metavar="LAKE")(decorated))


_jobs = option(
    "--jobs", type=click.IntRange(min=1), metavar="N", show_default="one a processor", help="Files read at a time."
)


@click.command("ls", cls=Command)
@_narrowing
@option("--files", "with_files", is_flag=True, help="Name each data file.")
@option("--json", "as_json", is_flag=True, help="Everything, as one JSON object.")
def ls(store: Any, taps: Any, streams: Any, say: Say, with_files: bool, as_json: bool) -> int:
    """List the taps, streams, schema versions and files of a lake; opens no data file.

    \b
    burler lake ls ./lake
    burler lake ls ./lake --tap tap-crm --files

    Exit codes: 0 listed, 1 a part of the lake can't be read, 2 usage.
    """
    import msgspec

    from burler.lake import care

    found = care.ls(store, taps=taps, streams=streams)
    if as_json:
        say(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        for line in lake_text(found, with_files=with_files):
            say(line)
    return 1 if found.problem or any(stream.problem for tap in found.taps for stream in tap.streams) else 0


@click.command("check", cls=Command)
@_narrowing
@option("--fast", is_flag=True, help="Open no data file: only listings and manifests.")
@_jobs
@option("--json", "as_json", is_flag=True, help="The findings as one JSON object.")
def check(store: Any, taps: Any, streams: Any, say: Say, fast: bool, jobs: int | None, as_json: bool) -> int:
    """Find what is wrong with a lake, and what to do about it. Changes nothing.

    \b
    burler lake check ./lake
    burler lake check ./lake --fast --json > findings.json

    Exit codes: 0 nothing was found, 1 something was, 2 usage.
    """
    import msgspec

    from burler.cli.progress import of_all, progress
    from burler.lake import care

    told, said = of_all("checked", "files")
    with progress(said):
        done = care.check(store, taps=taps, streams=streams, fast=fast, jobs=jobs, processes=True, on_progress=told)
    if as_json:
        say(msgspec.json.format(msgspec.json.encode(done), indent=2).decode())
        return 1 if done.findings else 0
    for one in done.findings:
        say(f"{one.kind}: {plain(one.path)}\n  {plain(one.fact)}\n  cure: {plain(one.cure)}")
    for remark in done.remarks:
        say(f"note: {remark}")
    read = f"{done.opened:,} read to the end" if not fast else "none opened"
    what = counted(len(done.findings), "finding")
    say(f"{what} in {counted(done.streams, 'stream')}, {counted(done.files, 'file')} ({read}).")
    return 1 if done.findings else 0


@click.command("rebuild", cls=Command)
@_narrowing
@_jobs
def rebuild(store: Any, taps: Any, streams: Any, say: Say, jobs: int | None) -> int:
    """Make manifest.json, catalogue.json and singerlake.json from the data files. No row is lost; running writers end
    with exit code 3 and go on from their last STATE.

    \b
    burler lake rebuild ./lake --tap tap-crm --stream orders

    Exit codes: 0 done, 1 something could not be taken in, 2 usage.
    """
    from burler.cli.progress import of_all, progress
    from burler.lake import care

    def told(one: care.RebuiltStream) -> None:
        adopted = "" if one.adopted is None else f"; {counted(len(one.adopted), 'file')} taken in"
        say(
            f"{plain(one.tap_id)}/{plain(one.stream)}: {counted(one.files, 'file')}, {counted(one.records, 'row')}, "
            f"{counted(one.versions, 'schema version')}{adopted}, {len(one.damaged):,} left out"
        )
        for damaged in one.damaged:
            say(f"  left out: {plain(damaged.problem)}")
        for path in one.gone:
            say(f"  was listed, and is not there: {plain(path)}")

    counts, said = of_all("read", "files")
    with progress(said):
        done = care.rebuild(
            store, taps=taps, streams=streams, jobs=jobs, processes=True, on_progress=told, on_file=counts
        )
    for problem in done.problems:
        say(plain(problem))
    return 0 if done.is_whole else 1


@click.command("compact", cls=Command)
@_narrowing
@option(
    "--below-bytes",
    type=SizeType(),
    metavar="SIZE",
    show_default="64MiB",
    help="The most a new file may have, before compression.",
)
@option("--older-than", type=Age(), default="0", metavar="AGE", help="Leave files alone that are younger: 7d, 12h.")
def compact(store: Any, taps: Any, streams: Any, say: Say, below_bytes: int | None, older_than: float) -> int:
    """Put many small files together into few: the same rows in the same order. Writers and readers go on meanwhile; the
    old files stay until 'burler lake vacuum'.

    \b
    burler lake compact ./lake --older-than 1d
    burler lake vacuum ./lake --yes

    Exit codes: 0 done, 1 a stream could not be compacted, 2 usage, 3 a vacuum has just taken a new file away.
    """
    from burler.cli.progress import of_all, progress
    from burler.lake import care
    from burler.lake.care.compacting import BELOW_BYTES

    def told(one: care.CompactedStream) -> None:
        if one.files:
            parts = sum(len(file.parts) for file in one.files)
            made = f"{counted(parts, 'file')} ({size(sum(file.bytes for file in one.files))}) became {len(one.files):,}"
            say(f"{plain(one.tap_id)}/{plain(one.stream)}: {made}")
        for problem in one.problems:
            say(f"{plain(one.tap_id)}/{plain(one.stream)}: {plain(problem)}")

    counts, said = of_all("read", "files")
    with progress(said):
        done = care.compact(
            store,
            taps=taps,
            streams=streams,
            below_bytes=below_bytes or BELOW_BYTES,
            older_than_seconds=older_than,
            on_progress=told,
            on_file=counts,
        )
    if not any(one.files or one.problems for one in done.streams):
        say("Nothing to put together.")
    return 1 if any(one.problems for one in done.streams) else 0


@click.command("vacuum", cls=Command)
@_narrowing
@option(
    "--older-than",
    type=Age(),
    default="7d",
    metavar="AGE",
    help="Unreferenced for so long: 7d, 12h. Longer than any read of the lake takes, and than files stay open.",
)
@option("--yes", is_flag=True, help="Remove; without it only say what would be.")
def vacuum(store: Any, taps: Any, streams: Any, say: Say, older_than: float, yes: bool) -> int:
    """Remove files that nothing refers to any more: replaced ones, orphans, what killed processes left, dead locks.

    \b
    burler lake vacuum ./lake
    burler lake vacuum ./lake --older-than 30d --yes

    Exit codes: 0 done, 1 a file could not be removed, 2 usage.
    """
    from burler.lake import care

    if older_than <= _SAFE_SECONDS:
        logger.warning("--older-than is shorter than files stay open: a read of the lake that runs now may miss files.")
    done = care.vacuum(store, taps=taps, streams=streams, older_than_seconds=older_than, yes=yes)
    verb = "removed" if yes else "would remove"
    for file in done.files:
        why = f"{file.reason}, for {age(file.age_seconds)}"
        say(f"{verb} {plain(file.path)}  {file.size_bytes:,} bytes  ({why})")
    for problem in done.problems:
        say(plain(problem))
    end = "" if yes else " Nothing was removed: add --yes." if done.files else ""
    if done.younger:
        end += (
            f" {counted(done.younger, 'file')} more: unreferenced, but younger than {age(older_than)} (--older-than)."
        )
    say(f"{counted(len(done.files), 'file')}, {done.size_bytes:,} bytes.{end}")
    return 1 if done.problems else 0


@click.command("describe", cls=Command)
@argument("lake", metavar="LAKE")
@option(
    "--tap",
    required=True,
    metavar="ID",
    shell_complete=completing.taps_of_lake,
    help="The tap, as 'lake ls' names it.",
)
@option("--owner", metavar="TEXT", help="Person or team. An empty text removes it.")
@option("--description", metavar="TEXT", help="What it is for.")
@option("--documentation", metavar="URL", help="Where to read about it.")
@option("--status-link", metavar="URL", help="Where the log of its job is.")
@lake_options
def describe(lake: str, tap: str, lake_options: str | None, **notes: str | None) -> int:
    """Say who owns a tap, what it is for and where to read more; without options: what the lake says of it now.

    \b
    burler lake describe ./lake --tap tap-crm --owner sales@example.com --description "Orders of the shop"
    burler lake describe ./lake --tap tap-crm
    """
    from burler.lake import care

    store = open_lake(lake, lake_options, must_exist=True)
    with process.printing() as say:
        for line in notes_text(care.describe(store, tap, **notes)):
            say(line)
    return 0


@click.command(cls=Command)
@argument("url", metavar="LAKE")
@argument("out", shell_complete=completing.folders)
@option(
    "--samples",
    type=click.IntRange(0, 1000),
    default=0,
    metavar="N",
    help="Show N rows of each stream. They may hold personal data; without this option none is shown.",
)
@option("--title", metavar="TEXT", show_default="last part of LAKE", help="Heading of the site.")
@lake_options
def docs(url: str, out: str, samples: int, title: str | None, lake_options: str | None) -> int:
    """Make a site about LAKE (a folder or a URL) in the folder OUT: pages to open from the disk, or to serve.

    \b
    burler lake docs ./lake ./lake-docs && open lake-docs/index.html

    Exit codes: 0 done, 1 something of the lake can't be read (its page and a warning say what), 2 usage.
    """
    from burler.cli.progress import progress
    from burler.lake.site import build_site

    if not out:
        raise UsageError("lake docs needs a folder for the site, as in: burler lake docs ./lake ./lake-docs")
    store = open_lake(url, lake_options, must_exist=True)
    begun: list[str] = []
    with progress(lambda: f"stream {len(begun):,}: {plain(begun[-1])}" if begun else ""):
        built = build_site(
            store, Path(out), url=url, now=_now(), title=title, samples=samples, on_progress=begun.append
        )
    for problem in built.problems:
        logger.warning("%s: %s", problem.where, problem.what)
    with process.printing() as say:
        about = f"{counted(built.taps, 'tap')}, {counted(built.streams, 'stream')}"
        say(f"{built.index}: {about}; the site has {counted(built.files, 'file')}")
    return 1 if built.problems else 0


def _now() -> dt.datetime:
    """The clock, or the time that ``SOURCE_DATE_EPOCH`` gives: then the same lake gives the same bytes."""
    given = os.environ.get(_EPOCH)
    if not given:
        return dt.datetime.now(dt.UTC)
    try:
        return dt.datetime.fromtimestamp(int(given), dt.UTC)
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"{_EPOCH} is {given!r}, which is no number of seconds since 1970.") from None


for _command in (ls, check, rebuild, compact, vacuum, describe, docs, read, write):
    lake.add_command(_command)
