"""Options of ``readStream.format("burler")``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from burler.errors import UsageError
from burler.spark.lakesource.options import (
    TASK_BYTES,
    FollowOptions,
    LakeOptions,
    Texts,
    absolute,
    follow_options,
    read_options,
)

_OWN = ("spool", "land_seconds", "keep_hours", "bad", "new_fields", "timestamps", "as_text", "task_bytes")
_FOLLOW = ("poll_seconds", "behind", "maxRowsPerTrigger", "maxFilesPerTrigger", "maxBytesPerTrigger")
_LOOK_SECONDS = 0.5
"""How often a query looks for new rows in its spool."""


@dataclass(frozen=True, slots=True)
class AppOptions:
    """What a stream over a tap is told beside what the tap itself is told (``burler.spark.source.options``).

    ``poll_seconds``: from the end of one run of the tap to the next. ``keep_hours``: how long rows stay in the spool
    after the sink has committed them.
    """

    given: Mapping[str, str] = field(repr=False)
    spool: str
    poll_seconds: float
    land_seconds: float
    keep_hours: float
    lake: LakeOptions
    follow: FollowOptions


def app_options(given: Mapping[str, str]) -> AppOptions:
    """Raises: UsageError: an option is wrong, or there is no spool."""
    from burler.spark.source.options import NAMES, parse

    texts = Texts(given, (*NAMES, *_OWN, *_FOLLOW), format="burler")
    for name in ("limit", "pushdown"):
        if texts.get(name) is not None:
            raise UsageError(f"format 'burler': option '{name}' is for spark.read alone.")
    parse(given)  # what is wrong with the tap's own options shows here, too
    spool = absolute(
        texts.needed(
            "spool",
            "a folder or URL of this query's own, beside its checkpoint, where the driver and all executors reach it. "
            "The tap's rows wait there, so that a batch can be read again after a crash.",
        )
    )
    follow = replace(follow_options(texts), poll_seconds=_LOOK_SECONDS, starting="earliest")
    return AppOptions(
        given=dict(given),
        spool=spool,
        poll_seconds=texts.number("poll_seconds", 60.0),
        land_seconds=max(texts.number("land_seconds", 5.0), 0.001),
        keep_hours=texts.number("keep_hours", 24.0),
        lake=LakeOptions(
            url=spool,
            bad=texts.one_of("bad", ("fail", "keep")),
            ignores_new=texts.one_of("new_fields", ("fail", "ignore")) == "ignore",
            may_lack=True,
            read=read_options(texts),
            task_bytes=texts.whole("task_bytes", least=1) or TASK_BYTES,
        ),
        follow=follow,
    )
