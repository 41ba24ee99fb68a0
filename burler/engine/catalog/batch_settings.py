"""What a stream's metadata say of BATCH messages."""

from __future__ import annotations

from burler.engine.catalog.plan import PlannedStream
from burler.errors import CatalogError
from burler.singer.keys import KEYS

ENABLED = "batch-enabled"


def batch_enabled(planned: PlannedStream) -> bool | None:
    """Whether a stream is to go out as BATCH messages; None where nothing is said of it alone.

    Raises:
        CatalogError: something else than true or false.
    """
    value = planned.metadata.get((), {}).get(ENABLED)
    if value is None:
        return None
    try:
        return bool(KEYS[ENABLED].read(value))
    except ValueError as wanted:
        raise CatalogError(
            f"stream '{planned.tap_stream_id}': metadata '{ENABLED}' must be {wanted}, not {value!r:.60}.\n"
            "Mend it in the catalog, at the stream's entry with the breadcrumb [], or leave it out."
        ) from None
