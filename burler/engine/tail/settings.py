"""What holds of one stream in a tail run: its interval and its age (tail-mode proposal, settings 2 and 3).

A catalog's metadata comes before the author's option, and that before the setting.
"""

from __future__ import annotations

import logging

from burler.engine.catalog.plan import PlannedStream
from burler.settings import Settings
from burler.singer.metadata import FULL_TABLE

logger = logging.getLogger(__name__)

INTERVAL = "new-record-polling-interval-ms"
AGE = "max-full-table-age-seconds"


def interval_seconds(planned: PlannedStream, settings: Settings) -> float:
    """The wait between the end of a poll of a stream and the next one, in seconds, above 0.

    Raises:
        CatalogError: the metadata holds something else than milliseconds.
    """
    own, option = planned.told(INTERVAL), planned.spec.new_record_polling_interval_ms
    said = next((one for one in (own, option) if one is not None), settings.new_record_polling_interval_ms)
    return float(said) / 1000


def full_table_age_seconds(planned: PlannedStream, settings: Settings) -> float | None:
    """How long after the beginning of its last reading a FULL_TABLE stream is read again, in seconds; None: never.

    Raises:
        CatalogError: the metadata holds something else than seconds.
    """
    own, option = planned.told(AGE), planned.spec.max_full_table_age_seconds
    said = next((one for one in (own, option) if one is not None), settings.max_full_table_age_seconds)
    return None if said is None else float(said)


def check(planned: PlannedStream) -> None:
    """Hold a stream's metadata against what a tail run asks of it, before the first message; warn of what has no
    effect: a key of a field, one of a stream that is read with another.

    Raises:
        CatalogError: a value that is no number of the right kind.
    """
    name = planned.tap_stream_id
    for crumb, values in planned.metadata.items():
        for key in (INTERVAL, AGE):
            if crumb and key in values:
                logger.warning(
                    "stream '%s': metadata '%s' of a field has no effect; it belongs to the breadcrumb []", name, key
                )
    said = [key for key in (INTERVAL, AGE) if planned.told(key) is not None]
    if said and planned.spec.root != name:
        logger.warning(
            "stream '%s': metadata '%s' has no effect: it is read with stream '%s'; write it there",
            name,
            "' and '".join(said),
            planned.spec.root,
        )
    elif AGE in said and planned.replication_method != FULL_TABLE:
        logger.warning(
            "stream '%s': metadata '%s' has no effect: its method is %s", name, AGE, planned.replication_method
        )
