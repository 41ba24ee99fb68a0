"""What a tail tells the log when it begins and when it ends."""

from __future__ import annotations

import logging
from collections.abc import Collection, Container
from typing import TYPE_CHECKING

from burler.declare.strategies import Manual

if TYPE_CHECKING:
    from burler.engine.tail.sources import Source
    from burler.settings import Settings

logger = logging.getLogger(__name__)


def announce(sources: Collection[Source], settings: Settings) -> None:
    """What will be read, and how often; what a user may not expect of it."""
    pushes = sum(source.pushes for source in sources)
    logger.info(
        "tail: streams polled: %d (by default %g s apart), pushed: %d; STATE at the latest %g s after a record",
        len(sources) - pushes,
        settings.new_record_polling_interval_ms / 1000,
        pushes,
        settings.state_message_min_interval_ms / 1000,
    )
    for source in sources:
        spec = source.planned.spec
        if source.pushes and spec.bookmark_key and spec.order != "asc" and not isinstance(spec.strategy, Manual):
            logger.warning(
                "stream '%s': its tail function gives rows in no declared order (order='asc'): its bookmark moves "
                "only when the function returns",
                source.name,
            )
    once = [one.name for one in sources if one.full and not one.pushes and one.age_seconds is None]
    if once and settings.tail_max_rounds is None:
        logger.warning(
            "full tables are read once in a tail run: %s. With max_full_table_age_seconds they are read again",
            ", ".join(once[:10]) + (", ..." if len(once) > 10 else ""),
        )


def last_words(sources: Collection[Source], left: Collection[str], told: Container[str]) -> None:
    """What did not come to its end.

    Args:
        left: streams whose functions are blocked.
        told: streams whose errors the run's result has.
    """
    for name in left:
        logger.warning("stream '%s': its function is blocked, and is left behind; its finally does not run", name)
    for source in sources:
        if source.tries.failures and source.name not in told:
            logger.warning(
                "stream '%s': had failed %d times when the run was stopped; the next run goes on where the STATE says",
                source.name,
                source.tries.failures,
            )
