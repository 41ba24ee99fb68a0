"""A tap run into a sink of the test's own; ``burler.testing.run_tap`` runs it into memory."""

from __future__ import annotations

from typing import Any

from burler import Tap, testing


def run_into(tap: Tap, config: dict[str, Any], sink: Any, **options: Any) -> Any:
    """Run a tap into a sink; ``options`` are those of ``run_session``."""
    session, settings = testing.open_session(tap.seal(), config)
    return testing.run_session(session, settings, sink, **options)
