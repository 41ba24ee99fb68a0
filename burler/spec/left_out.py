"""What is missing once the messages of a run have come to their end: STATEs and rows (B310, B318, M226)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burler.spec.messages import MessageCheck


def without_rows(check: MessageCheck) -> None:
    """Streams of which nothing came, or no more than the SCHEMA, in a run that began with no state."""
    if check.given is not None or any(one.code in ("M201", "M202") for one in check.findings):
        return  # what could not be read may have been the rows
    for name, stream in check.streams.items():
        if stream.schema is not None and not stream.rows and "BATCH" not in stream.forms:
            check.say("M226", "the SCHEMA comes, and not one row", None, name)
    for one in (check.declared or {}).values():
        if one.selected and check.streams.keys().isdisjoint(one.names):
            words = "the stream is selected, and nothing of it comes, not its SCHEMA either"
            check.say("M226", words, None, one.stream)


def without_state(check: MessageCheck) -> None:
    """Rows of incremental streams that no STATE covers."""
    for name, stream in check.streams.items():
        if stream.bookmarks is None or not stream.rows:
            continue
        if stream.bookmarks.covers(check.states.last if check.states.count else check.given):
            continue  # a STATE that says nothing new may be left out
        if not check.states.count:
            words = "rows of an incremental stream came, and no STATE: each run reads everything again"
            check.say("B310", words, None, name)
        elif count := check.rows_since_state.get(name):
            check.say("B318", f"{count} rows came after the last STATE: they come again with each run", None, name)
