"""``run`` and ``discover``: the same code behind ``burler run APP`` and a tap's own script."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Sequence

from burler.cli import common, process
from burler.cli.reporting import Ending
from burler.config.loading import Loaded, load
from burler.declare.tap import Tap
from burler.errors import UsageError
from burler.runtime.run import TEST_ROWS, discover, prepare, run_session
from burler.runtime.signals import Stopper
from burler.singer.catalog import Catalog
from burler.sinks.open import open_sink
from burler.sinks.stdout import StdoutSink


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
    ignore_source_state: bool = False,
) -> int:
    """Sync; the exit code. ``load_tap`` gives the tap.

    Args:
        report: the file for the report of the run.
        test: "records" for a few rows of each stream, "schema" for SCHEMA messages alone.
        limit: rows of each stream. A run that is limited writes no STATE, so it can't be asked for one.
        ignore_source_state: everything is fetched, as the setting of that name says it.

    Raises:
        UsageError: ``out_file`` together with ``test`` or ``limit``; files that can't be written, or are the same.
    """
    if out_file is not None and (test or limit):
        raise UsageError("--out-file holds the state of a whole run; --test and --limit write no STATE. Leave one out.")
    limit = limit or (TEST_ROWS if test == "records" else None)
    read = [*(("--config", path) for path in config), ("--catalog", catalog), ("--properties", properties)]
    common.keep_apart("--out-file", out_file, read)
    common.keep_apart("--report", report, [*read, ("--state", state), ("--out-file", out_file)])
    ending = Ending(report, limit=limit, schemas_only=test == "schema")
    with ending.watching() as watched, process.own_stdout() as writer:
        tap = load_tap()
        watched.begin(tap.name)
        session, settings = prepare(tap, config_of(tap, config))
        if ignore_source_state:
            settings = dataclasses.replace(settings, ignore_source_state=True)
        wanted = common.read_catalog(catalog, properties)
        start = common.read_state(state, merge=settings.state_scope == "touched")
        on_state = common.state_file(out_file) if out_file is not None else None
        stopper = Stopper(lambda: writer.blocked_since)
        tap_id = settings.tap_id or tap.name
        target = open_sink(sink, StdoutSink(writer, on_state), tap_id=tap_id, settings=settings, state=start)
        with process.calm_collector():
            result = run_session(
                session,
                settings,
                target,
                catalog=wanted,
                state=start,
                select=select,
                stopper=stopper,
                limit=limit,
                schemas_only=test == "schema",
                report=watched,
            )
    code = ending.of(result)
    if result.stopped_by is not None:
        process.end_within(process.GRACE_SECONDS, code)
    return code
