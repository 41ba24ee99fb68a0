"""``run`` and ``discover``: the same code behind ``burler run APP`` and a tap's own script."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from burler.cli import common, process
from burler.config.load import load_config
from burler.declare.tap import Tap
from burler.runtime import logs
from burler.runtime.run import discover, run
from burler.runtime.signals import Stopper
from burler.settings import read_settings
from burler.singer.catalog import Catalog
from burler.sinks.open import open_sink
from burler.sinks.stdout import StdoutSink


def config_of(tap: Tap, files: Sequence[str]) -> dict[str, Any]:
    """The tap's config from files and environment."""
    return load_config(files, environment=os.environ, tap_name=tap.name, spec=tap.config_spec)


def discover_command(load: Callable[[], Tap], config: Sequence[str]) -> int:
    """The catalog on stdout; on a terminal also a table on stderr.

    ``load`` gives the tap; what its module prints when it is imported stays out of stdout as well.
    """
    with process.own_stdout() as writer:
        tap = load()
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
    load: Callable[[], Tap],
    *,
    config: Sequence[str] = (),
    catalog: str | None = None,
    properties: str | None = None,
    state: str | None = None,
    select: str | None = None,
    sink: str = "stdout",
    out_file: str | None = None,
) -> int:
    """Sync; the exit code. ``load`` gives the tap."""
    with process.own_stdout() as writer:
        tap = load()
        values = config_of(tap, config)
        logs.hide(values)
        settings = read_settings(values)
        wanted = common.read_catalog(catalog, properties)
        start = common.read_state(state)
        on_state = common.state_file(out_file) if out_file else None
        stopper = Stopper(lambda: writer.blocked_since)
        target = open_sink(sink, StdoutSink(writer, on_state), tap_id=settings.tap_id or tap.name, settings=settings)
        result = run(tap, values, target, catalog=wanted, state=start, select=select, stopper=stopper)
    code = process.report_errors(result)
    if result.stopped_by is not None:
        process.end_within(process.GRACE_SECONDS, code)
    return code
