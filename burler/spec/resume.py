"""A run that was resumed from a STATE of another one, held against that one, by the keys of its rows (B311 to B313,
B325 and B326)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from itertools import islice

from burler import times
from burler.spec.finding import Findings
from burler.spec.messages import MessageCheck
from burler.spec.order import marks_of
from burler.spec.statelog import KeptState
from burler.spec.states import MISSING, entry_of, knows_more
from burler.spec.stream import StreamCheck

_FEW = 5
"""A stream of fewer rows may come again whole: they may all stand at the bookmark."""
_LOOKED_AT = 100_000
_AT_BOOKMARK = 10_000


def compare(
    first: MessageCheck,
    state: KeptState,
    resumed: MessageCheck,
    findings: Findings,
    *,
    last: bool,
    lookbacks: Mapping[str, float] | None = None,
    exclusive: Collection[str] = (),
    held: Collection[str] = (),
) -> None:
    """Hold a resumed run against the first one.

    Args:
        first, resumed: both with ``log_all``; both runs had come to their end, or the first one was cut short and
            ``resumed`` was not.
        state: the STATE of the first run that the other one was given.
        last: whether it was the last one.
        lookbacks: by stream: how far before its bookmark a run begins on purpose, in seconds or in the key's numbers.
        exclusive: streams that go on behind their bookmark on purpose.
        held: streams whose bookmark waited on purpose in the first run, since rows may be missing.
    """
    for name, before in first.streams.items():
        if not before.rows:
            continue
        after = resumed.streams.get(name)
        if not _skipped(before, after, state, findings) and name not in exclusive:
            _left_out(before, after, state, findings)
        if after is None:
            continue
        _emptied(before, after, findings)
        if last and name not in held:
            _repeated(before, after, state, findings, (lookbacks or {}).get(name, 0))
        if first.whole or (before.bookmarks is not None and before.bookmarks.order.direction in ("asc", "same")):
            _missed(before, after, findings)


def compare_stopped(
    first: MessageCheck,
    state: KeptState,
    resumed: MessageCheck,
    findings: Findings,
    *,
    exclusive: Collection[str] = (),
) -> bool:
    """Hold a resumed run that was ended early against the first one, as far as that can be done: streams whose rows
    rise, once the resumed run is past all rows of the first one. Gives whether there was such a stream."""
    found = False
    for name, before in first.streams.items():
        after = resumed.streams.get(name)
        if before.rows and after is not None and _is_past(before, after):
            found = True
            if not _skipped(before, after, state, findings) and name not in exclusive:
                _left_out(before, after, state, findings)
    return found


def _is_past(before: StreamCheck, after: StreamCheck) -> bool:
    watch, other = before.bookmarks, after.bookmarks
    if watch is None or other is None or watch.kind is None or watch.kind != other.kind:
        return False
    if not watch.order.direction == other.order.direction == "asc":
        return False
    marks = marks_of([watch.greatest, other.greatest], watch.kind)
    return marks is not None and marks[0] < marks[1]


def compare_new(first: MessageCheck, again: MessageCheck, streams: Collection[str], findings: Findings) -> None:
    """Hold a run whose state said nothing of some streams against the first one: those streams must come whole, as for
    a user who has just selected them (B325).

    Args:
        first: a whole run that began without a state.
        again: a run from the last STATE of it, without what that said of ``streams``.
    """
    for name in streams:
        before, after = first.streams.get(name), again.streams.get(name)
        if before is None or not before.rows:
            continue
        missing = before.log.count
        if after is not None:
            missing = sum(1 for _row in islice(before.log.missing_in(after.log), _LOOKED_AT))
        if missing:
            findings.add(
                "B325",
                f"{missing} of {before.log.count} rows do not come when the state says nothing of the stream: who "
                "selects it later never gets its past",
                stream=name,
                count=missing,
            )


def _skipped(before: StreamCheck, after: StreamCheck | None, state: KeptState, findings: Findings) -> bool:
    """Rows that came after the STATE and that the resumed run does not have; whether there are any."""
    start = state.rows.get(before.name, 0)
    if start >= before.log.count:
        return False
    if after is None:
        lost, line, total = before.log.count - start, 0, before.log.count - start
        part = next(before.log.parts(start), None)
        line = part.lines[0] if part is not None else 0
    else:
        missing = _lost(before, after, start)
        if not missing:
            return False
        lost, line, total = len(missing), min(missing), before.log.count - start
    findings.add(
        "B312",
        f"{lost} of the {total} rows that came after the STATE of line {state.line} are missing in a run resumed from "
        f"it (the first one stood in line {line} of the first run): rows between are lost when a run breaks off there",
        stream=before.name,
        place=f"line {line} of the first run",
        count=lost,
    )
    return True


def _lost(before: StreamCheck, after: StreamCheck, start: int) -> list[int]:
    """The lines of those rows."""
    numbers: list[int] = []
    missing = list(islice(before.log.missing_in(after.log, start, numbers=numbers), _LOOKED_AT))
    if not missing:
        return []
    if not before.keys:
        # Rows without keys are compared as they are: those that hold the time of the run never come again as they were.
        changed = sum(1 for _row in islice(after.log.missing_in(before.log), len(missing)))
        return [line for line, _mark in missing][changed:]
    # A row that had come before the STATE as well, at the same place, was not lost with it.
    twice = before.log.found_before(start, {row: mark for row, (_line, mark) in zip(numbers, missing, strict=False)})
    return [line for row, (line, _mark) in zip(numbers, missing, strict=False) if row not in twice]


def _left_out(before: StreamCheck, after: StreamCheck | None, state: KeptState, findings: Findings) -> None:
    """Rows that stand at the bookmark itself, of which the resumed run has none: it asked for what is greater."""
    watch = before.bookmarks
    if watch is None or watch.kind != "time" or watch.partitioned or before.full_table or not before.keys:
        return
    entry = entry_of(state.value, before.name, before.tap_stream_id)
    if knows_more(entry, watch.key):
        return  # which rows stand at the bookmark, or that nothing has changed
    said = watch.bookmark_in(state.value)
    bookmark = None if said is MISSING else watch.said(said)
    marks = None if bookmark is None else marks_of([bookmark], watch.kind)
    there = set() if marks is None else before.log.at(marks[0], _AT_BOOKMARK)
    if there and (after is None or not after.log.has_any(there)):
        row = watch.spelled_otherwise.get(said)
        respelled = isinstance(row, str) and row != times.strict(row)  # else the tap writes all rows in one form
        fact = f"none of the {len(there)} rows with its bookmark's '{watch.key}' comes: "
        if respelled:
            fact += (
                f"the rows say {row!r:.60} and the bookmark {said!r:.60}. A source that compares text leaves out what "
                "lies between the two as text, for ever"
            )
        else:
            fact += "a row that gets that same value later is never read"
        findings.add(
            "B326",
            f"resumed from the STATE of line {state.line}, {fact}",
            stream=before.name,
            path=watch.key,
            place=f"line {state.line} of the first run",
            severity="error" if respelled else None,
        )


def _emptied(before: StreamCheck, after: StreamCheck, findings: Findings) -> None:
    """A full table that the resumed run replaces by a part of it."""
    version = after.versions.replaced
    if version is None or not before.full_table or not before.keys:
        return
    missing = sum(1 for _row in islice(before.log.missing_in(after.log), _LOOKED_AT))
    if missing:
        findings.add(
            "M212",
            f"a resumed run activates version {version} with {after.rows} rows, and {missing} of the {before.rows} "
            "rows that the first run had are not among them: targets drop these",
            stream=before.name,
            count=missing,
        )


def _repeated(before: StreamCheck, after: StreamCheck, state: KeptState, findings: Findings, lookback: float) -> None:
    """The last STATE, and yet everything comes again."""
    watch = before.bookmarks
    if watch is None or before.full_table or before.rows < _FEW or watch.order.direction == "same":
        return
    if lookback and before.log.span() <= lookback:
        return
    if after.rows >= before.rows and next(before.log.missing_in(after.log), None) is None:
        findings.add(
            "B311",
            f"resumed from the last STATE, all {before.rows} rows come again: the stream is INCREMENTAL in name only",
            stream=before.name,
            place=f"line {state.line} of the first run",
            count=after.rows,
        )


def _missed(before: StreamCheck, after: StreamCheck, findings: Findings) -> None:
    """Rows of the resumed run that the first one should have had: they lie below its greatest replication key."""
    watch = before.bookmarks
    if watch is None or watch.greatest is None or watch.kind is None or not before.keys:
        return
    given = None if watch.given is MISSING else watch.said(watch.given)
    marks = marks_of([watch.greatest, watch.greatest if given is None else given], watch.kind)
    if marks is None or after.bookmarks is None:
        return
    greatest, least = marks[0], -math.inf if given is None else marks[1]
    missing = [
        (line, mark)
        for line, mark in islice(after.log.missing_in(before.log), _LOOKED_AT)
        if not math.isnan(mark) and least <= mark < greatest
    ]
    if missing:
        findings.add(
            "B313",
            f"{len(missing)} rows of a resumed run were not in the first run, though their '{watch.key}' is below the "
            "greatest that it had: the first run missed them",
            stream=before.name,
            place=f"line {missing[0][0]} of the resumed run",
            count=len(missing),
        )
