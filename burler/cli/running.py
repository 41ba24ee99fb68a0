"""``run`` and ``discover``: the same code behind ``burler run APP`` and a tap's own script."""

from __future__ import annotations

import dataclasses
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from burler.cli import common, process
from burler.cli.flags import remarks, with_flags
from burler.cli.reporting import Ending
from burler.config.loading import Loaded, load
from burler.declare.tap import Tap
from burler.errors import UsageError
from burler.runtime.run import TEST_ROWS, discover, prepare, run_session
from burler.runtime.signals import Stopper
from burler.settings import Settings
from burler.singer.catalog import Catalog
from burler.sinks.base import Sink
from burler.sinks.open import open_sink
from burler.sinks.stdout import LineWriter, StdoutSink

logger = logging.getLogger(__name__)


def config_of(tap: Tap, files: Sequence[str]) -> Loaded:
    """The tap's config from files and environment."""
    return load(files, environment=os.environ, tap_name=tap.name, form=tap.config_form)


def about_command(load_tap: Callable[[], Tap], form: str) -> int:
    """What a tap is, as text, JSON or Markdown."""
    from burler.cli.about import about, render

    with process.own_stdout() as writer:
        tap = load_tap()
        writer.write(render(about(tap, form=tap.config_form), form).encode())
        writer.flush()
    return 0


def discover_command(load_tap: Callable[[], Tap], config: Sequence[str]) -> int:
    """The catalog on stdout; on a terminal also a table on stderr.

    ``load_tap`` gives the tap; what its module prints when it is imported stays out of stdout as well.
    """
    with process.own_stdout() as writer:
        tap = load_tap()
        catalog = discover(tap, config_of(tap, config))
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


def run_command(
    load_tap: Callable[[], Tap],
    *,
    config: Sequence[str] = (),
    catalog: str | None = None,
    properties: str | None = None,
    state: str | None = None,
    select: str | None = None,
    sink: str = "stdout",
    out_file: str | None = None,
    report: str | None = None,
    test: str | None = None,
    limit: int | None = None,
    flags: Mapping[str, Any] | None = None,
) -> int:
    """Sync; the exit code. ``load_tap`` gives the tap.

    Args:
        report: the file for the report of the run.
        test: "records" for a few rows of each stream, "schema" for SCHEMA messages alone.
        limit: rows of each stream. A run that is limited writes no STATE, so it can't be asked for one.
        flags: settings that the command line gives, with their values or text; they win.

    Raises:
        UsageError: ``out_file`` together with ``test`` or ``limit``; files that can't be written, or are the same.
    """
    limit = _rows_of_each(limit, test, out_file)
    files = [*(("--config", path) for path in config), ("--catalog", catalog), ("--properties", properties)]
    common.keep_apart("--out-file", out_file, files)
    files += [("--state", state), ("--out-file", out_file)]
    common.keep_apart("--report", report, files)
    ending = Ending(report, limit=limit, schemas_only=test == "schema")
    with ending.watching() as watched, process.own_stdout() as writer:
        tap = load_tap()
        watched.begin(tap.name)
        session, settings = prepare(tap, config_of(tap, config))
        settings = _of_this_run(tap, settings, flags or {}, look="--test" if test else "--limit" if limit else None)
        _keep_apart(settings, files, report=report, out_file=out_file if sink == "stdout" else None)
        wanted, start = common.read_catalog(catalog, properties), _start(state, settings)
        target = _open(sink, writer, out_file, tap=tap, settings=settings, state=start)
        with process.calm_collector():
            result = run_session(
                session,
                settings,
                target,
                catalog=wanted,
                state=start,
                select=select,
                stopper=Stopper(lambda: writer.blocked_since),
                limit=limit,
                schemas_only=test == "schema",
                report=watched,
            )
    code = ending.of(result)
    if result.stopped_by is not None:
        process.end_within(process.GRACE_SECONDS, code)
    return code


def _rows_of_each(limit: int | None, test: str | None, out_file: str | None) -> int | None:
    """How many rows of each stream ``--limit`` and ``--test`` leave; None: all."""
    if out_file is not None and (test or limit):
        raise UsageError("--out-file holds the state of a whole run; --test and --limit write no STATE. Leave one out.")
    return limit or (TEST_ROWS if test == "records" else None)


def _of_this_run(tap: Tap, settings: Settings, given: Mapping[str, Any], *, look: str | None) -> Settings:
    """The settings with what the command line says. ``look``: the option that asks for a look at the rows only."""
    settings = with_flags(settings, given)
    for remark in remarks(settings, given):
        logger.warning("%s: %s", tap.name, remark)
    if settings.tail and look is not None:
        logger.info("%s: %s: one round, then the run ends; tail is left out", tap.name, look)
        settings = dataclasses.replace(settings, tail=False)
    return settings


def _keep_apart(
    settings: Settings, files: Sequence[tuple[str, str | None]], *, report: str | None, out_file: str | None
) -> None:
    """The files that settings name, against the others. ``out_file``: where it proves only what left the tap."""
    confirms = settings.acknowledge_state_file
    read = [("acknowledge_state_file", confirms)]
    common.keep_apart("metrics_file", settings.metrics_file, [*files, ("--report", report), *read])
    common.keep_apart("--report", report, read)
    if confirms is not None and out_file is not None and os.path.realpath(confirms) == os.path.realpath(out_file):
        logger.warning(
            "acknowledge_state_file is the file of --out-file, which this tap writes itself: sources hear of rows that "
            "have left the tap, whether a target has stored them or not"
        )


def _start(path: str | None, settings: Settings) -> dict[str, Any] | None:
    return common.read_state(path, merge=settings.state_scope == "touched")


def _open(
    sink: str, writer: LineWriter, out_file: str | None, *, tap: Tap, settings: Settings, state: dict[str, Any] | None
) -> Sink:
    """What takes the messages. ``out_file`` gets the state whenever a STATE goes out on stdout."""
    on_state = common.state_file(out_file) if out_file is not None else None
    stdout = StdoutSink(writer, on_state)
    return open_sink(sink, stdout, tap_id=settings.tap_id or tap.name, settings=settings, state=state)
