"""``run`` and ``discover``: the same code behind ``burler run APP`` and a tap's own script."""

from __future__ import annotations

import dataclasses
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from burler import hangups
from burler.cli import common, process
from burler.cli.common import read_lake_options
from burler.cli.flags import remarks, with_flags
from burler.cli.landing import landing_of
from burler.cli.reporting import Ending
from burler.declare.app import App
from burler.engine.beginning import Source, beginning
from burler.engine.catalog.discovery import discover_app
from burler.engine.run.signals import Stopper
from burler.engine.run.start import TEST_ROWS, calm_collector, run_session
from burler.engine.session import open_session
from burler.errors import UsageError
from burler.events import RunBegan
from burler.settings import Settings
from burler.singer.catalog import Catalog
from burler.sinks import LineWriter, StdoutSink, lake_of_sink, open_sink

if TYPE_CHECKING:
    from burler.lake.state import LakeState

logger = logging.getLogger(__name__)


def about_command(load_app: Callable[[], App], form: str) -> int:
    """What a tap is, as text, JSON or Markdown."""
    from burler.cli.about import about, render

    with process.own_stdout() as writer:
        app = load_app()
        writer.write(render(about(app), form).encode())
        writer.flush()
    return 0


def discover_command(load_app: Callable[[], App], config: Sequence[str]) -> int:
    """The catalog on stdout; on a terminal also a table on stderr.

    ``load_app`` gives the tap; what its module prints when it is imported stays out of stdout as well.
    """
    with process.own_stdout() as writer:
        app = load_app()
        catalog = discover_app(app, app.load_config(config)).catalog
        writer.write(process.pretty(catalog.to_wire()))
        writer.flush()
    if sys.stderr.isatty():
        _show(catalog)
    return 0


def _show(catalog: Catalog) -> None:
    for entry in catalog.entries.values():
        keys = ", ".join(entry.key_properties) or "no key"
        fields = len(entry.schema.get("properties", {}))
        line = f"{entry.tap_stream_id:30} {entry.replication_method or '':12} {fields:4} fields   {keys}"
        sys.stderr.write(line + "\n")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line asks of a run: the options of ``burler.cli.options``, by their names.

    ``report``: the file for the report of the run. ``test``: "records" for a few rows of each stream, "schema" for
    SCHEMA messages alone. ``limit``: rows of each stream. ``lake``: where rows land on their way to
    tables. ``full_refresh``: streams to begin anew, with commas between them; True: all. ``lake_options``: JSON, or a
    file that holds it.
    ``flags``: settings, with their values or text; they win.
    """

    config: Sequence[str] = ()
    catalog: str | None = None
    properties: str | None = None
    state: str | None = None
    full_refresh: bool | str = False
    select: str | None = None
    sink: str = "stdout"
    lake: str | None = None
    lake_options: str | None = None
    out_file: str | None = None
    report: str | None = None
    test: str | None = None
    limit: int | None = None
    flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def rows(self) -> int | None:
        """How many rows of each stream, at the most; None: all."""
        return self.limit or (TEST_ROWS if self.test == "records" else None)

    @property
    def look(self) -> str | None:
        """The option that asks for a look at the rows, or schemas, and not for a whole run."""
        return "--test" if self.test else "--limit" if self.limit else None

    def check(self) -> None:
        """Before anything is read.

        Raises:
            UsageError: ``out_file`` together with ``test`` or ``limit``; files that are the same.
        """
        if self.out_file is not None and self.look is not None:
            raise UsageError(
                "--out-file holds the state of a whole run; --test and --limit write no STATE. Leave one out."
            )
        common.keep_apart("--out-file", self.out_file, self._read())
        common.keep_apart("--report", self.report, self._files())

    def check_settings(self, settings: Settings) -> None:
        """The files that settings name, against the others.

        Raises:
            UsageError: two are the same.
        """
        confirms = settings.acknowledge_state_file
        read = [("acknowledge_state_file", confirms)]
        common.keep_apart("metrics_file", settings.metrics_file, [*self._files(), ("--report", self.report), *read])
        common.keep_apart("--report", self.report, read)
        if confirms is None or self.out_file is None or self.sink != "stdout":  # elsewhere a STATE proves enough
            return
        if os.path.realpath(confirms) == os.path.realpath(self.out_file):
            logger.warning(
                "acknowledge_state_file is the file of --out-file, which this tap writes itself: sources hear of rows "
                "that have left the tap, whether a target has stored them or not"
            )

    def _read(self) -> list[tuple[str, str | None]]:
        catalogs = [("--catalog", self.catalog), ("--properties", self.properties)]
        return [*(("--config", path) for path in self.config), *catalogs]

    def _files(self) -> list[tuple[str, str | None]]:
        return [*self._read(), ("--state", self.state), ("--out-file", self.out_file)]


def run_command(load_app: Callable[[], App], **options: Any) -> int:
    """Sync; the exit code. ``load_app`` gives the tap, ``options`` are those of ``Asked``.

    Raises:
        UsageError: options that contradict each other; files that can't be written, or are the same.
    """
    asked = Asked(**options)
    asked.check()
    landing = landing_of(asked.sink, asked.lake, look=asked.look)
    ending = Ending(asked.report, limit=asked.rows, schemas_only=asked.test == "schema")
    with ending.watching() as watched, process.own_stdout() as writer:
        app = load_app()
        watched.hear(RunBegan(app.name))
        loaded = app.load_config(asked.config)
        session, settings = open_session(app, loaded)
        settings = _of_this_run(app, settings, asked)
        stopper = _stopper(writer)
        hangups.release(stopper.hang_up if settings.tail else None)
        wanted = common.read_catalog(asked.catalog, asked.properties)
        sink = asked.sink if landing is None else landing.sink
        tap_id = settings.tap_id or app.name
        begun = beginning(
            Source.of_app(app, session.config, loaded.config),
            None if asked.look is not None else _state_in(sink, settings, tap_id),
            given=common.read_state(asked.state, merge=settings.state_scope == "touched"),
            refresh=asked.full_refresh,
        )
        stdout = StdoutSink(writer, common.state_file(asked.out_file) if asked.out_file is not None else None)
        target = open_sink(
            sink,
            stdout,
            tap_id=tap_id,
            settings=settings,
            state=begun.given,
            keeper=begun.keeper,
            should_stop=lambda: stopper.requested,
        )
        with calm_collector(), ending.showing(settings, tap_id=tap_id):
            result = run_session(
                session,
                settings,
                target,
                catalog=wanted,
                state=begun.start,
                select=asked.select,
                stopper=stopper,
                limit=asked.rows,
                schemas_only=asked.test == "schema",
                stats=watched,
            )
    code = ending.of(result)
    if landing is not None:
        code = landing.tables(result, settings, tap_id=tap_id, code=code)
    if result.stopped_by is not None or settings.tail:  # a thread that is blocked may be left behind
        process.end_within(process.GRACE_SECONDS, code)
    return code


def _state_in(sink: str, settings: Settings, tap_id: str) -> LakeState | None:
    """What the lake of a sink has of the tap; None: rows go elsewhere."""
    url = lake_of_sink(sink)
    if url is None:
        return None
    from burler.lake.state import LakeState
    from burler.lake.store import open_store

    return LakeState(open_store(url, options=settings.lake_options), tap_id)


def _of_this_run(app: App, settings: Settings, asked: Asked) -> Settings:
    """The settings with what the command line says of them, and what makes no sense of it."""
    settings = with_flags(settings, asked.flags)
    if asked.lake_options is not None:
        settings = dataclasses.replace(settings, lake_options=read_lake_options(asked.lake_options))
    asked.check_settings(settings)
    for remark in remarks(settings, asked.flags):
        logger.warning("%s: %s", app.name, remark)
    if settings.tail and asked.look is not None:
        logger.info("%s: %s: one round, then the run ends; tail is left out", app.name, asked.look)
        settings = dataclasses.replace(settings, tail=False)
    if settings.batch and asked.sink != "stdout":
        logger.warning("%s: BATCH: without effect, since rows go into a lake", app.name)
    if settings.wants_batches and asked.look is not None:
        logger.info("%s: %s: rows are shown as RECORDs, and no files are made", app.name, asked.look)
    return settings


def _stopper(writer: LineWriter) -> Stopper:
    """What signals stop the run with; the process ends with it."""
    stopper = Stopper(lambda: writer.blocked_since)
    stopper.owns_process = True
    return stopper
