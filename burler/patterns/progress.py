"""Where a loop notes how far it got: in the stream's bookmark, or in ``stream.state``."""

from __future__ import annotations

import datetime as dt
from typing import Any

from burler.context import StreamRun, spec_of, specs_of
from burler.declare.spec import StreamSpec
from burler.errors import BurlerError, StreamError
from burler.singer.metadata import FULL_TABLE

KEEP = ("bookmark", "state", None)


def failed(stream: StreamRun | None, message: str) -> BurlerError:
    """The error for something that a pattern can't do, with the stream's name where there is a stream."""
    if stream is None:
        return BurlerError(message)
    return StreamError(stream.name, f"stream '{stream.name}': {message}")


def is_full_table(stream: StreamRun) -> bool:
    """Whether every run reads everything. Such a run never goes on where another one stopped: its rows carry a version
    of their own, and at its end targets drop all rows of other versions."""
    return stream.replication_method == FULL_TABLE


def is_manual(stream: StreamRun) -> bool:
    """Whether the bookmark moves only where the author says so (``bookmark_strategy="manual"``)."""
    return bool(stream.manual)


def is_substream(stream: StreamRun) -> bool:
    """Whether its function is called for each row of a parent, so that one ``stream.state`` serves many calls."""
    spec = spec_of(stream)
    return spec is not None and spec.parent is not None


def lookback_of(stream: StreamRun | None) -> float | dt.timedelta | None:
    """How far each run begins before where the last one got to; ``stream.bookmark`` is that much less already. None for
    a stream whose retries may be given another bookmark, of which that is not true."""
    spec: StreamSpec | None = None if stream is None else spec_of(stream)
    if spec is None or (spec.retry is not None and spec.retry.setup is not None):
        return None
    return spec.lookback


def saved_bookmark(stream: StreamRun | None) -> Any:
    """The bookmark of an earlier run, less the lookback; None if there is none, or if it counts for nothing here."""
    if stream is None or is_full_table(stream) or stream.raw_bookmark == stream.start_date:
        return None
    return stream.raw_bookmark


class StatePlace:
    """A value under a name in ``stream.state``.

    Where the function emits rows of other streams, too, the streams that the value is true of are noted beside it: one
    that is selected later has not had what lies before it, so the value counts for nothing then.
    """

    def __init__(self, stream: StreamRun, key: str) -> None:
        self._stream, self._key, self._streams_key = stream, key, f"{key}_streams"
        self._wanted = _emits(stream)

    def load(self) -> Any:
        """The value that an earlier run has noted; None if there is none that counts."""
        state = self._stream.state
        known = state.get(self._streams_key)
        if self._wanted and not set(self._wanted) <= set(known if isinstance(known, list) else ()):
            return None
        return state.get(self._key)

    def store(self, value: Any) -> None:
        """Note a value: all rows that it speaks of have been yielded. None takes it away."""
        state = self._stream.state
        for key, content in ((self._key, value), (self._streams_key, self._wanted or None)):
            if value is None or content is None:
                state.pop(key, None)
            else:
                state[key] = content


def _emits(stream: StreamRun) -> list[str]:
    """The selected ones of a stream and those that its function emits, too; none if it emits no others."""
    beside = [name for name, spec in specs_of(stream).items() if spec.emitted_by == stream.name]
    return sorted(name for name in (stream.name, *beside) if stream.selected(name)) if beside else []


class Progress:
    """How far a loop got. It begins where the last run's loop left off, and is noted as it goes.

    Attributes:
        kept: the place of the note that counts in this run: "bookmark", "state" or None. A full table has none.
        position: the value that an earlier run has noted in ``stream.state``; None if there is none.
        bookmark: the saved bookmark, less the lookback; None if there is none, or if the note stands in
            ``stream.state``: the bookmark may be that of another field then.
    """

    def __init__(self, stream: StreamRun | None, keep: str | None, state_key: str, *, what: str) -> None:
        if keep not in KEEP:
            raise failed(stream, f"{what}: keep={keep!r:.60} is unknown. Known: 'bookmark', 'state', None.")
        self._stream = stream
        self.kept = None if stream is None or is_full_table(stream) else keep
        self.position: Any = None
        self.bookmark: Any = None if keep == "state" else saved_bookmark(stream)
        if stream is None or self.kept is None:
            return
        if self.kept == "bookmark" and not is_manual(stream):
            raise failed(
                stream,
                f"{what} notes how far it got as the bookmark, which needs bookmark_strategy='manual'.\n"
                "  Or say keep='state' (it is noted in stream.state), or keep=None (it is not noted).",
            )
        if self.kept == "state":
            if is_substream(stream):
                raise failed(
                    stream,
                    f"{what}: keep='state' would mix parents up, since stream.state is one for all. Say keep=None.",
                )
            self._place = StatePlace(stream, state_key)
            self.position = self._place.load()
        claim(stream, "the bookmark" if self.kept == "bookmark" else f"stream.state[{state_key!r}]", what=what)

    def save(self, value: Any) -> None:
        """All rows up to ``value`` have been yielded."""
        if self._stream is None or self.kept is None:
            return
        if self.kept == "bookmark":
            self._stream.save_bookmark(value)
            return
        self._place.store(value)
        state_is_due(self._stream)


def claim(stream: StreamRun, place: str, *, what: str) -> None:
    """Say that a loop notes its position there. A retry begins with a ``stream.state`` of its own, and may claim anew.

    Raises:
        StreamError: another loop of the same run does so: what it has noted would be taken for this one's.
    """
    of, places = getattr(stream, "_claims", (None, None))
    if of is not stream.state or places is None:
        places = set[str]()
        stream._claims = (stream.state, places)  # type: ignore[attr-defined]
    if place in places:
        raise failed(
            stream,
            f"{what}: another loop of this run notes its position in {place} too, so that after a kill one would go on "
            "where the other stood.\n  Give each a state_key= of its own (and keep='state'), or declare partitions.",
        )
    places.add(place)


def state_is_due(stream: StreamRun) -> None:
    """A STATE may come here, for what has changed in ``stream.state``; the bookmark in it says what it would say
    anyway. With ``manual`` none is asked for: that would vouch for the greatest value that is out."""
    if not is_manual(stream):
        stream.save_bookmark()
