"""A tap run into a sink of the test's own; ``burler.testing.run_tap`` runs it into memory."""

from __future__ import annotations

from typing import Any

from burler import Tap
from support.internals import runtime_run


def run_into(tap: Tap, config: dict[str, Any], sink: Any, **options: Any) -> Any:
    """Run a tap into a sink; ``options`` are those of ``run_session``."""
    session, settings = runtime_run.prepare(tap.seal(), config)
    return runtime_run.run_session(session, settings, sink, **options)
