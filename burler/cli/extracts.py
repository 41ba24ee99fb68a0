"""``burler extract``."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from burler.appref import load_app
from burler.cli import common, process
from burler.cli.common import lake_options_in, read_lake_options
from burler.cli.helping import Command, argument, option
from burler.cli.options import CONFIG, FULL_REFRESH, READ, SELECT, WRITE
from burler.config.loading import Loaded
from burler.config.spec import load_config
from burler.declare.app import App
from burler.engine.run.signals import Stopper
from burler.errors import UsageError
from burler.settings import Settings
from burler.singer.messages import State
from burler.sinks import LineWriter, Sink, StdoutSink, TouchedStates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_ATTEMPTS = 3
"""How often Spark tries a task in a session of ours: a worker may be killed, a disk full for a moment."""
_CONFS = {
    "spark.driver.memory": "1g",  # rows never come to the driver
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # nor is there anything for the JVM to become quick at
}


SPARK = "Spark"


@click.command(cls=Command, epilog=process.EXIT_CODES)
@argument("names", nargs=-1, metavar="[APP] LAKE")
@option(
    "--exec",
    "command",
    section=READ,
    metavar="COMMAND",
    help="Any other Singer tap in place of APP: one task a stream.",
)
@option("-c", "--config", section=READ, multiple=True, metavar="FILE", help=CONFIG)
@option("--catalog", section=READ, metavar="FILE", help="Catalog that says which streams and fields are wanted.")
@option("-p", "--properties", section=READ, metavar="FILE", help="Legacy form of --catalog.")
@option(
    "-s",
    "--state",
    section=READ,
    metavar="FILE",
    help="Go on from it: a state, a STATE message, STATE lines. Without it the lake's own state counts.",
)
@FULL_REFRESH
@SELECT
@option("--tap-id", section=WRITE, metavar="ID", show_default="its name", help="Folder of this tap in the lake.")
@option(
    "--slots",
    section=SPARK,
    type=click.IntRange(min=1),
    metavar="N",
    help="Tasks at a time: sources wait, so more than cores.",
    show_default="what the session has, else 8",
)
@option("--master", section=SPARK, metavar="URL", show_default="local[SLOTS,3]", help="Spark master.")
@option("--remote", section=SPARK, metavar="URL", help="Spark Connect server instead of a master: sc://host:15002.")
@lake_options_in(WRITE)
@option("-o", "--out-file", section=WRITE, metavar="FILE", help="File that always holds the latest state.")
def extract(names: tuple[str, ...], **options: Any) -> int:
    """Extract APP into LAKE on Spark: each partition of a stream is a task, and a commit. STATE lines go to stdout; the
    lake keeps the state, and the next run goes on from there.

    \b
    burler extract tap_crm.py ./lake --config config.json --slots 16
    burler extract ./lake --exec "tap-gitlab" --config config.json
    """
    return extract_command(names, Asked(**options))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line asks of an extraction: its options, by their names. ``command``: that of a foreign tap."""

    command: str | None = None
    config: Sequence[str] = ()
    catalog: str | None = None
    properties: str | None = None
    state: str | None = None
    full_refresh: bool | str = False
    select: str | None = None
    tap_id: str | None = None
    slots: int | None = None
    master: str | None = None
    remote: str | None = None
    lake_options: str | None = None
    out_file: str | None = None


def extract_command(names: Sequence[str], asked: Asked) -> int:
    """Extract; the exit code.

    Raises:
        UsageError: options that contradict each other, or what they name is wrong.
    """
    from burler.cli.progress import of_all, progress
    from burler.spark.extraction.extracting import prepared

    app, lake = _names(names, asked)
    files = [("--catalog", asked.catalog), ("--properties", asked.properties)]
    common.keep_apart("--out-file", asked.out_file, [*(("--config", path) for path in asked.config), *files])
    stopper = Stopper()
    stopper.owns_process = True
    told, said = of_all("done", "tasks")
    on_terminal = process.stdout_on_terminal()
    with process.own_stdout() as writer:
        tap = load_app(app) if app is not None else None
        loaded = _config(tap, asked.config)
        merged = loaded.config.get("state_scope") == "touched"
        start = common.read_state(asked.state, merge=merged)
        catalog = common.read_catalog(asked.catalog, asked.properties)
        theirs = _running()
        with prepared(
            app,
            lake,
            exec=asked.command,
            tap_id=asked.tap_id,
            config=loaded,
            catalog=catalog,
            state=start,
            full_refresh=asked.full_refresh,
            select=asked.select,
            settings=_settings(asked),
        ) as what:
            emit = _states(writer, asked.out_file, what.begun.given, touched=merged)
            if not theirs and asked.remote is None:
                logger.info("starting Spark ...")
            spark = session_for(asked.slots, asked.master, asked.remote)
            with progress(said, stdout_on_terminal=on_terminal):
                result = what.run(spark, slots=asked.slots, emit=emit, stopper=stopper, on_progress=told)
        code = process.report_errors(result)
        if result.stopped_by is not None:  # tasks may sit in a source that does not answer
            process.end_within(process.GRACE_SECONDS, code)
        if not theirs:
            spark.stop()
    return code


def session_for(slots: int | None, master: str | None, remote: str | None) -> SparkSession:
    """The session of an extraction: one of ours has as many task slots as are wanted, on however many cores."""
    from burler import spark
    from burler.spark.extraction.extracting import DEFAULT_SLOTS

    if master is not None or remote is not None:
        return spark.session("burler extract", master=master, remote=remote)
    wanted = f"local[{slots or DEFAULT_SLOTS},{_ATTEMPTS}]"
    return spark.session("burler extract", _CONFS, master=wanted)


def _running() -> bool:
    """Whether this process has a session already: that is not ours to stop."""
    from burler.spark.session import existing_session

    return existing_session() is not None


def _names(names: Sequence[str], asked: Asked) -> tuple[str | None, str]:
    if asked.command is not None and len(names) == 1:
        return None, names[0]
    if asked.command is None and len(names) == 2:
        return names[0], names[1]
    if asked.command is not None:
        raise UsageError("with --exec there is no APP: burler extract LAKE --exec COMMAND")
    raise UsageError(
        "say what to extract, and where to: burler extract APP LAKE, or burler extract LAKE --exec COMMAND"
    )


def _config(tap: App | None, files: Sequence[str]) -> Loaded:
    if tap is not None:
        return tap.load_config(files)
    return Loaded(load_config(files, environment={}, tap_name="exec"))


def _settings(asked: Asked) -> Callable[[Settings], Settings]:
    options = read_lake_options(asked.lake_options) if asked.lake_options is not None else None

    def change(settings: Settings) -> Settings:
        return settings if options is None else dataclasses.replace(settings, lake_options=options)

    return change


def _states(
    writer: LineWriter, out_file: str | None, given: dict[str, Any] | None, *, touched: bool
) -> Callable[[dict[str, Any]], None]:
    """What prints a STATE at once, and keeps ``--out-file``."""
    stdout = StdoutSink(writer, common.state_file(out_file) if out_file is not None else None)
    sink: Sink = TouchedStates(stdout, given) if touched else stdout

    def emit(value: dict[str, Any]) -> None:
        sink.write(State(value))
        sink.flush()

    return emit
