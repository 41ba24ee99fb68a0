"""Where the bookmark of a stream stands once a run has ended (B305, B306, B316, B323, B324), and how far it went."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from burler.spec.states import (
    MISSING,
    ZONES,
    entry_of,
    epoch_unit,
    has_bookmark,
    has_zone,
    knows_more,
    mentions,
    of_kind,
)

if TYPE_CHECKING:
    from burler.spec.bookmarks import BookmarkWatch


def look_at_end(
    watch: BookmarkWatch, *, whole: bool, last_state: Any, seconds: float, now: dt.datetime, own_layout: bool
) -> None:
    """Hold the last STATE against the rows of a stream that has some, and no partitions.

    Args:
        own_layout: the state is laid out in a way of the tap's own: that a stream is not found in it says nothing.
    """
    own = watch.bookmark_in(last_state)
    if whole and last_state is not None:
        entry = entry_of(last_state, watch.stream, watch.tap_stream_id)
        if own is not MISSING:
            if not knows_more(entry, watch.key):
                _lags(watch, own)
        elif entry is MISSING:
            if not own_layout and not watch.findings.seen("B316", watch.stream):
                _is_missing(watch, last_state)
        elif not has_bookmark(entry):
            _is_empty(watch, entry)
    if own is not MISSING:
        _far_ahead(watch, own)
        _slow(watch, own, seconds, now)


def _is_missing(watch: BookmarkWatch, last_state: Any) -> None:
    if not any(mentions(last_state, name) for name in (watch.stream, watch.tap_stream_id) if name):
        watch.say(
            "B305",
            f"rows came up to {watch.greatest_shown!s}, and the last STATE has no bookmark of the stream: each run "
            "reads everything again",
        )


def _is_empty(watch: BookmarkWatch, entry: Any) -> None:
    if watch.value is not MISSING:
        watch.findings.add(
            "B316",
            f"the last STATE no longer has the bookmark of '{watch.stream}', which was {watch.value!s}: a target keeps "
            "the last STATE only",
            stream=watch.stream,
        )
    elif not entry or (isinstance(entry, Mapping) and all(value is None for value in entry.values())):
        watch.say(
            "B305",
            f"rows came up to {watch.greatest_shown!s}, and what the last STATE has of the stream is empty: each run "
            "reads everything again",
        )


def _lags(watch: BookmarkWatch, own: Any) -> None:
    said, greatest = watch.said(own), watch.greatest
    began = None if watch.given is MISSING else watch.said(watch.given)
    if said is None or said >= greatest or _is_cut_of(said, greatest):
        return
    if began is not None and said <= began:
        if watch.nothing_new:
            return  # rows at the bookmark, and those that the tap looks back to
        watch.say(
            "B305",
            f"rows came up to {watch.greatest_shown!s}, and the bookmark stands at {own!s} as before: each run reads "
            "them again",
        )
    else:
        watch.say(
            "B323",
            f"rows came up to {watch.greatest_shown!s}, and the last bookmark is {own!s}: the rows between come again "
            "with each run",
        )


def _is_cut_of(said: Any, greatest: Any) -> bool:
    """Whether a bookmark is the last row's time in whole seconds, minutes, hours or days: so the source's filter may
    want it, and it is the rows of that second or day that come again, as Singer allows."""
    if not isinstance(said, dt.datetime):
        unit = None if isinstance(said, str) else epoch_unit(greatest)  # of numbers that are times since 1970
        lengths = [] if unit is None else [unit * seconds for seconds in (1, 60, 3_600, 86_400)]
        return any(said == greatest // length * length for length in lengths)
    try:
        there = greatest.astimezone(said.tzinfo)
    except OverflowError:  # the last day of the year 9999
        return False
    moment = there.replace(microsecond=said.microsecond if said.microsecond % 1000 else 0)
    cuts = (
        there.replace(microsecond=greatest.microsecond // 1000 * 1000),
        moment,
        moment.replace(second=0),
        moment.replace(minute=0, second=0),
        moment.replace(hour=0, minute=0, second=0),
    )
    return said in cuts


def _far_ahead(watch: BookmarkWatch, own: Any) -> None:
    said = watch.said(own)
    if watch.findings.seen("M201"):
        return  # the last row may have stood in a line that can't be read
    if isinstance(said, dt.datetime) and not has_zone(own) and said - watch.greatest <= ZONES:
        return  # it may be the rows' local time
    if watch.states and said is not None and said > watch.greatest and own != watch.given:
        watch.say(
            "B324",
            f"the last bookmark is {own!s}, and the last row has {watch.greatest_shown!s}: what appears between them "
            "in the source is never read",
        )


def _slow(watch: BookmarkWatch, own: Any, seconds: float, now: dt.datetime) -> None:
    least = watch.limits.min_advance_ratio
    ratio = _ratio(watch, own, seconds)
    if ratio is None or seconds < watch.limits.min_advance_seconds or ratio >= least:
        return
    said = of_kind(own, "time")
    if said is None or (now - said).total_seconds() <= 2 * seconds:
        return  # it has caught up
    watch.say(
        "B306",
        f"the bookmark went on by {ratio:.3g} s for each second of the run (at least {least:g} are needed to catch up)",
    )


def facts_of_bookmark(watch: BookmarkWatch, last_state: Any, seconds: float) -> Mapping[str, Any]:
    """See ``burler.verify.result.StreamFacts.bookmark``; ``seconds``: how long the run read."""
    own = watch.bookmark_in(last_state)
    ratio = _ratio(watch, own, seconds)
    return {
        "from": None if watch.given is MISSING else watch.given,
        "to": None if own is MISSING else own,
        "advanced_seconds": _advanced_seconds(watch, own),
        "ratio": None if ratio is None else round(ratio, 3),
    }


def _advanced_seconds(watch: BookmarkWatch, own: Any) -> float | None:
    """How far a bookmark of date-times went; None where it is none."""
    began = watch.given if watch.given is not MISSING else watch.first
    if watch.kind != "time" or own is MISSING or began is MISSING:
        return None
    one, other = of_kind(began, "time"), of_kind(own, "time")
    return None if one is None or other is None else (other - one).total_seconds()


def _ratio(watch: BookmarkWatch, own: Any, seconds: float) -> float | None:
    """Seconds that the bookmark went on for each second of the run."""
    advanced = _advanced_seconds(watch, own)
    return None if advanced is None or seconds <= 0 else advanced / seconds
