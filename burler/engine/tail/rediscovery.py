"""Discovery while a tail runs: which streams there are now, and what they look like."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from burler import logs
from burler.engine.run.signals import Stop
from burler.engine.run.stop import StopToken
from burler.engine.run.workers import stopper_here
from burler.engine.tail.sources import Source, planned_families, source_of

if TYPE_CHECKING:
    from burler.engine.run.sync import Run

logger = logging.getLogger(__name__)


def rediscover(engine: Run, sources: dict[str, Source], added: Callable[[Source], None], *, stop: StopToken) -> None:
    """Ask once more. What has changed begins with a new SCHEMA; where discovery fails, all stays as it is.

    Args:
        added: called with each source that is new.
        stop: what ends the discovery.
    """
    if engine.replan is None:
        return
    try:
        with stopper_here(engine.stopper).user_code(stop):
            plan = engine.replan()
    except Stop:
        return
    except Exception as error:
        logger.warning("discovery failed, the streams stay as they are: %s", logs.short(error))
        return
    with engine.lock, engine.changed:
        now, found = engine.clock.monotonic(), {one.spec.tap_stream_id: one for one in plan.runs}
        if sources and not found:
            logger.warning(
                "discovery found no stream that is wanted, which is taken for a failure: all stay as they are"
            )
            return
        engine.plan = plan
        engine.acknowledgements.follow(plan)
        for name in [name for name in sources if name not in found]:
            logger.warning("stream '%s': is gone, by what was discovered; it is read no more", name)
            source = sources.pop(name)
            source.gone, source.due = True, None
            _cut(engine, name)
        for name, planned in found.items():
            known = sources.get(name)
            if known is None:
                logger.info("stream '%s': is new, by what was discovered", name)
                sources[name] = source_of(planned, engine.settings, now)
                added(sources[name])
            elif known.planned.streams != planned.streams:
                logger.info("stream '%s': has changed, by what was discovered", name)
                new = source_of(planned, engine.settings, now)
                known.planned, known.memory, known.full = planned, new.memory, new.full
                known.interval_seconds, known.age_seconds = new.interval_seconds, new.age_seconds
                if not known.tries.for_good:
                    known.due = now
                if known.pushes:
                    _cut(engine, name)  # it may stay connected for days
        engine.events.tell(planned_families(sources.values()))
        engine.changed.notify_all()


def _cut(engine: Run, name: str) -> None:
    """The round of a stream that is under way ends."""
    for run in engine.running:
        if run.name == name:
            run.cut_now()
