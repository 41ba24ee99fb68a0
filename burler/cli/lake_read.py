"""``burler lake read``: a lake as a Singer tap."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import click

from burler.cli import common, completing, process
from burler.cli.common import lake_options, open_lake
from burler.cli.helping import Command, argument, option
from burler.errors import BurlerError, UsageError
from burler.tally import metric

if TYPE_CHECKING:
    from burler.lake.replay import Asked
    from burler.storage.base import Store

logger = logging.getLogger(__name__)


PART, TAP = "Which part of the lake", "As a tap"


@click.command(cls=Command)
@argument("url", metavar="LAKE")
@option(
    "--tap",
    "taps",
    section=PART,
    multiple=True,
    metavar="ID",
    shell_complete=completing.taps_of_lake,
    help="This tap alone; may be given several times.",
)
@option(
    "--stream",
    "streams",
    section=PART,
    multiple=True,
    metavar="NAME",
    shell_complete=completing.streams_of_lake,
    help="This stream alone; may be given again.",
)
@option("--schema", section=PART, metavar="VERSION", help="v2, v2.. (from that on), or a schema's hash.")
@option(
    "--since", section=PART, metavar="TIME", help="Rows extracted from this time on: 2024-05-01, 2024-05-01T12:00:00Z."
)
@option("--until", section=PART, metavar="TIME", help="Rows extracted before this time.")
@option("--columns", section=PART, metavar="A,B", help="These fields alone, and those of the key.")
@option("-d", "--discover", section=TAP, is_flag=True, help="Print the catalog and end.")
@option("--catalog", section=TAP, metavar="FILE", help="Streams and fields as this catalog selects them.")
@option("--properties", section=TAP, metavar="FILE", help="The same, as older orchestrators spell it.")
@option("-s", "--state", section=TAP, metavar="FILE", help="Only what is new since this state.")
@lake_options
def read(
    url: str,
    taps: tuple[str, ...],
    streams: tuple[str, ...],
    schema: str | None,
    since: str | None,
    until: str | None,
    columns: str | None,
    discover: bool,
    catalog: str | None,
    properties: str | None,
    state: str | None,
    lake_options: str | None,
) -> int:
    """Print what is in LAKE as Singer messages, for any target.

    \b
    burler lake read ./lake --state state.json | target-anything
    burler lake read ./lake --stream orders --since 2024-05-01 --columns id,total

    Exit codes: 0 all is out, 1 a stream can't be read (the others are out), 2 usage, 4 nobody reads the output.
    """
    from burler.lake.choice import window
    from burler.lake.replay import Asked

    asked = Asked(taps, streams, schema, window(since, until), _names(columns))
    given = common.read_catalog(catalog, properties)
    before = common.read_state(state)
    store = open_lake(url, lake_options, must_exist=True)
    if discover:
        return _discover(store, asked)
    return _replay(store, asked, given, before)


def _names(columns: str | None) -> tuple[str, ...] | None:
    """Raises: UsageError: a name is empty."""
    if columns is None:
        return None
    names = tuple(name.strip() for name in columns.split(","))
    if not all(names):
        raise UsageError(f"--columns {columns!r}: a name is empty. Write names with commas between, as id,name.")
    return names


def _discover(store: Store, asked: Asked) -> int:
    import msgspec

    from burler.lake.replay import discover
    from burler.singer.messages import encode

    broken: dict[str, BurlerError] = {}
    found = discover(store, asked, broken)
    process.print_json(msgspec.Raw(encode(found.to_wire())))
    return _told(broken)


def _replay(store: Store, asked: Asked, given: Any, before: dict[str, Any] | None) -> int:
    from burler.cli.lake_tables import size
    from burler.cli.progress import Counter, progress
    from burler.engine.run.signals import Stopper
    from burler.lake.replay import Replay, choose
    from burler.measures import RECORD_COUNT
    from burler.singer.catalog import catalog_from_wire

    catalog = None if given is None else catalog_from_wire(given)
    broken: dict[str, BurlerError] = {}
    on_terminal = process.stdout_on_terminal()
    with process.own_stdout() as lines:
        stopper = Stopper(lambda: lines.blocked_since)
        stopper.owns_process = True
        out = Counter(lines.write)
        how_far = progress(lambda: f"{size(out.count)} of messages written", stdout_on_terminal=on_terminal)
        with stopper.installed(), how_far:
            chosen = choose(store, asked, catalog, broken)
            if catalog is not None and not chosen and not broken:
                logger.warning("--catalog selects no stream of this lake: nothing is read.")
            replay = Replay(
                store,
                chosen,
                state=before,
                write=out,
                flush=lines.flush,
                monotonic=time.monotonic,
                should_stop=lambda: stopper.requested,
            )
            done = replay.run()
    for stream, rows in done.records.items():
        metric(RECORD_COUNT, rows, endpoint=stream)
    return _told({**broken, **done.errors})


def _told(errors: dict[str, BurlerError]) -> int:
    """Say which streams failed; the exit code."""
    for stream, error in errors.items():
        logger.critical("stream '%s': %s", stream, str(error))
    return 1 if errors else 0
