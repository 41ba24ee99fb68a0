"""What a spool says of itself: whose it is, which Singer states its commits stand for, what has been removed from it.

A spool is a lake of its own that holds what a tap said until a streaming query has taken it. Beside its ``raw`` folder
stands ``burler-stream.json``; two processes change it, the pump and the query, by compare-and-swap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from burler.errors import LakeError, UsageError
from burler.lake.store import swap
from burler.storage.base import Store

PATH = "burler-stream.json"
_FORMAT = 1
_MOST_STATES = 500


@dataclass(slots=True)
class Stated:
    """A STATE, and the last commit when it came: its rows are among those of commits up to there."""

    generation: str | None
    sequence: int
    state: dict[str, Any]


@dataclass(slots=True)
class Note:
    """The note, as plain data.

    ``tap``, ``stream``: whose rows these are; ``names``: the names under which they come. ``states``: oldest first; the
    newest is where the tap goes on. ``given_up``: rows of commits up to here were removed. ``continued``: ends of
    batches that another spool held (generation, sequence): this one goes on from there with its first commit.
    """

    tap: str
    stream: str
    names: list[str]
    states: list[Stated] = field(default_factory=list)
    given_up: int = 0
    continued: list[tuple[str | None, int]] = field(default_factory=list)
    format: int = _FORMAT

    @property
    def newest(self) -> dict[str, Any] | None:
        """The state from which the tap goes on."""
        return self.states[-1].state if self.states else None

    def add(self, stated: Stated) -> None:
        """One more state; of those that speak of the same commit the last counts, and of very many every second."""
        if self.states and (self.states[-1].generation, self.states[-1].sequence) == (
            stated.generation,
            stated.sequence,
        ):
            self.states.pop()
        self.states.append(stated)
        if len(self.states) > _MOST_STATES:
            self.states = [*self.states[:-1:2], self.states[-1]]

    def state_at(self, generation: str | None, sequence: int) -> dict[str, Any] | None:
        """The newest state that covers no row behind a commit; None if none is known.

        ``sequence`` 0 stands for the beginning, which every manifest has.
        """
        fitting = [
            one
            for one in self.states
            if one.sequence <= sequence and (one.generation == generation or not one.sequence)
        ]
        return fitting[-1].state if fitting else None


def read_note(store: Store) -> Note | None:
    """The note; None where the spool is new.

    Raises:
        LakeError: it is broken.
    """
    blob = store.read(PATH)
    return None if blob is None else _decoded(blob.data, store)


def change_note(store: Store, begin: Callable[[], Note], change: Callable[[Note], None]) -> Note:
    """Change the note, or ``begin`` one, whatever others do meanwhile; as it is afterwards.

    Raises:
        LakeError: it is broken. StorageError: the store fails.
    """
    made: list[Note] = []

    def changed(data: bytes | None, _again: bool) -> bytes:
        note = begin() if data is None else _decoded(data, store)
        change(note)
        made[:] = [note]
        return msgspec.json.format(msgspec.json.encode(note), indent=1) + b"\n"

    swap(store, PATH, changed)
    return made[0]


def check_owner(note: Note | None, tap: str, stream: str, store: Store) -> None:
    """Refuse a spool that another tap or stream fills.

    Raises:
        UsageError: so.
    """
    if note is not None and (note.tap, note.stream) != (tap, stream):
        raise UsageError(
            f"the spool {store.url} holds stream '{note.stream}' of {note.tap}, not '{stream}' of {tap}. "
            'Give each query a folder of its own: option("spool", ...).'
        )


def _decoded(data: bytes, store: Store) -> Note:
    try:
        note = msgspec.json.decode(data, type=Note)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LakeError(
            f"{store.locate(PATH)} is broken ({error}).\nMove the whole spool away: a query with a checkpoint goes on "
            "from the state in it."
        ) from None
    if note.format != _FORMAT:
        raise LakeError(f"{store.locate(PATH)} has format {note.format}; this burler knows {_FORMAT}. Upgrade burler.")
    return note


def plain(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state as JSON has it: what comes back from the note equals what went in."""
    value: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(state))
    return value
