"""Pages that name the next one: cursors, tokens, links. And sync tokens, with which the next run goes on."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from burler.context import StreamRun, spec_of
from burler.patterns.items import items_of
from burler.patterns.progress import StatePlace, claim, failed, is_full_table, is_substream, state_is_due

logger = logging.getLogger(__name__)

Expired = type[Exception] | tuple[type[Exception], ...]


def cursor_pages(
    stream: StreamRun,
    fetch: Callable[[Any], tuple[Any, ...]],
    *,
    keep: bool = True,
    resume_at_end: bool = False,
    expired: Expired = (),
    state_key: str = "cursor",
) -> Iterator[Any]:
    """``yield from cursor_pages(stream, fetch)``: the rows of page after page, and a note of the next page's cursor in
    ``stream.state`` behind each, so that a run that was interrupted goes on with that page.

    Args:
        fetch: called with a cursor, None for the first page; gives ``(rows, next cursor)``, None or "" behind the last
            page. Or ``(rows, cursor, more)``: ``more`` says whether there is a next page. Rows are a list, an iterator,
            bytes of JSON or an Arrow table.
        keep: False for cursors that do not live until the next run. Some streams never keep one: full tables begin anew
            each time, substreams have one ``stream.state`` for all parents, and with ``signpost`` the bookmark would
            pass changes made since the interrupted run began.
        resume_at_end: for sources that give changes since a cursor: the last one stays in the state, and the next run
            goes on with it. That is the cursor given with ``more=False``; else that of the last page, which then comes
            again.
        expired: what ``fetch`` raises for a kept cursor that the source no longer knows: then the pages begin anew.
        state_key: the name in ``stream.state``: one for each loop, if a function has several.

    Raises:
        StreamError: the pages go round in a circle; ``fetch`` gave something else.
    """
    kept = _Kept(stream, state_key, keep=keep or resume_at_end, resume_at_end=resume_at_end)
    return _read(stream, fetch, kept, expired)


def _read(stream: StreamRun, fetch: Callable[[Any], tuple[Any, ...]], kept: _Kept, expired: Expired) -> Iterator[Any]:
    cursor = kept.cursor
    seen = {_digest(cursor)}  # some 100 bytes a page
    first = True
    while True:
        try:
            reply = fetch(cursor)
        except expired as error:
            if not first or cursor is None:
                raise
            logger.warning(
                "stream '%s': the cursor in the state has expired (%s); from the beginning", stream.name, error
            )
            cursor, first = None, False
            continue
        rows, following, more = _parts(reply, stream)
        yield from items_of(rows, stream, what="the fetch function of cursor_pages()")
        if not more:
            break
        digest = _digest(following)
        if digest in seen:
            raise _circle(stream, following, kept)
        seen.add(digest)
        kept.move(following)
        cursor, first = following, False
    kept.end(cursor, following)


class _Kept:
    """The cursor in ``stream.state``, if it is kept there."""

    def __init__(self, stream: StreamRun, state_key: str, *, keep: bool, resume_at_end: bool) -> None:
        self._stream = stream
        self._key = state_key
        self._place = StatePlace(stream, state_key)
        self._resume_at_end = resume_at_end
        spec = spec_of(stream)
        signpost = spec is not None and spec.signpost
        why_not = [
            why
            for why, so in (
                ("a full table", is_full_table(stream)),
                ("a substream", is_substream(stream)),
                ("a stream with a signpost", signpost),
            )
            if so
        ]
        self.keeps = keep and not why_not
        if resume_at_end and not self.keeps:
            logger.warning(
                "stream '%s': cursor_pages(resume_at_end=True) begins anew each run: it is %s. "
                "For changes alone declare replication_method='LOG_BASED'",
                stream.name,
                why_not[0],
            )
        self.cursor = self._place.load() if self.keeps else None
        if self.keeps:
            claim(stream, f"stream.state[{state_key!r}]", what="cursor_pages()")

    def move(self, following: Any) -> None:
        """All rows before the page of this cursor have been yielded."""
        if self.keeps:
            self._place.store(following)
            state_is_due(self._stream)

    def end(self, cursor: Any, following: Any) -> None:
        """The last page was that of ``cursor``; ``following`` came with it."""
        if not self.keeps:
            return
        last = following if following is not None else cursor
        self._place.store(last if self._resume_at_end else None)
        state_is_due(self._stream)

    def __str__(self) -> str:
        return f" A cursor is kept in bookmarks.{self._stream.name}.stream_state.{self._key}." if self.keeps else ""


def _parts(reply: Any, stream: StreamRun) -> tuple[Any, Any, bool]:
    """``(rows, next cursor or None, whether there is a next page)`` of what fetch gave."""
    if isinstance(reply, tuple) and len(reply) in (2, 3):
        # 0 is a cursor; what many sources send for "no more" is none.
        cursor = None if reply[1] is False or reply[1] == "" else reply[1]
        if len(reply) == 2:
            return reply[0], cursor, cursor is not None
    if isinstance(reply, tuple) and len(reply) == 3 and isinstance(reply[2], bool):
        if reply[2] and cursor is None:
            raise failed(stream, "cursor_pages(): fetch says that there is a next page, and gave None as its cursor.")
        return reply[0], cursor, reply[2]
    raise failed(
        stream,
        f"cursor_pages(): fetch gave a value of type {type(reply).__name__}. It gives (rows, next cursor), or "
        "(rows, cursor, more) with more=True or False.",
    )


def _circle(stream: StreamRun, cursor: Any, kept: _Kept) -> Exception:
    return failed(
        stream,
        f"the pages go round in a circle: cursor {cursor!r:.100} came before. Look at what fetch sends, and which "
        f"cursor it gives back; at the end it must give None (or more=False).{kept}",
    )


def _digest(cursor: Any) -> bytes:
    try:
        text = msgspec.json.encode(cursor, order="deterministic")
    except (TypeError, ValueError, OverflowError, RecursionError):
        text = repr(cursor).encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=8).digest()
