"""STATEs into a spool's note: each with the commit up to which its rows are there."""

from __future__ import annotations

from typing import Any, NoReturn

from burler.errors import UsageError
from burler.lake.lake import Lake
from burler.singer.messages import Message, State
from burler.sinks import Sink
from burler.spark.streaming.note import Note, Stated, change_note, plain
from burler.storage.base import Store


class SpooledStates(Sink):
    """The sink behind the lake: notes each STATE with the commit up to which its rows are in the spool.

    A STATE comes here only when everything before it is committed, so the sequence read now covers it; rows that were
    committed since without a STATE make it no less true.
    """

    def __init__(self, store: Store, note: Note) -> None:
        self._store = store
        self._note = note
        self._generation = next((one.generation for one in reversed(note.states) if one.sequence), None)
        self.state = note.newest

    def write(self, message: Message) -> None:
        """Keep a STATE; nothing else comes this far.

        Raises:
            StorageError: the spool can't be written. The STATE then counts for nobody.
            UsageError: rows that an earlier STATE stands for were removed from it; nor may this one count.
        """
        if not isinstance(message, State):
            return
        whole = plain(message.whole)
        self._note = change_note(self._store, self._lost, lambda note: note.add(self._stated(note, whole)))
        self.state = whole
        if self._told is not None:
            self._told(message)

    def _stated(self, note: Note, whole: dict[str, Any]) -> Stated:
        place = spooled(self._store, note)
        if place is None:
            if self._generation is not None:
                self._lost()
            return Stated(None, 0, whole)
        snapshot = Lake(self._store).snapshot(*place)
        if self._generation not in (None, snapshot.generation):
            self._lost()
        self._generation = snapshot.generation
        return Stated(snapshot.generation, snapshot.sequence, whole)

    def _lost(self) -> NoReturn:
        raise UsageError(
            f"the spool {self._store.url} was removed or made anew while the tap was filling it.\nStart the query "
            "again with its checkpoint: the tap then goes on from the state in that, and no row is lost."
        )


def spooled(store: Store, note: Note) -> tuple[str, str] | None:
    """(tap id, stream) of the rows in a spool; None where it has none yet.

    Raises:
        UsageError: the tap sends the stream under several names.
    """
    found = [one.names for one in Lake(store).streams() if one.stream in note.names]
    if len(found) > 1:
        shown = ", ".join("/".join(one) for one in found)
        raise UsageError(f"the spool {store.url} holds several streams: {shown}. Give each query one of its own.")
    return found[0] if found else None
