"""``burler lake docs``."""

from __future__ import annotations

import datetime as dt
import logging
import os
from pathlib import Path

import click

from burler.cli import completing, process
from burler.cli.helping import Command, argument, option
from burler.cli.lakes_common import lake_options, open_lake
from burler.errors import UsageError
from burler.words import counted

logger = logging.getLogger(__name__)
_EPOCH = "SOURCE_DATE_EPOCH"


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
    from burler.cli.lake_tables import plain
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
