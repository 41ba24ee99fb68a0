"""Offsets of a stream over a lake: the bookmark of ``burler lake read``, as JSON in Spark's checkpoint.

    {"generation": "5f1c...", "sequence": 12}

says that all rows of commits 1 to 12 are out; ``"file"`` names, in the middle of a commit of several files, the last
that is. A stream over a tap has the Singer state in it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from burler.errors import LakeError, StateError, UsageError
from burler.lake.replay import START, Position
from burler.lake.snapshot import Snapshot


class OtherLake(UsageError):
    """An offset is of another lake, or of another manifest than the one that is there now."""


@dataclass(frozen=True, slots=True)
class Offset:
    """A position in the manifest of one generation; None where nothing has been read, which any manifest begins with.

    ``state``: the Singer state that covers no more than the rows up to here; streams over taps alone have one.
    """

    generation: str | None
    position: Position
    state: Mapping[str, Any] | None = None

    def to_wire(self) -> dict[str, Any]:
        """The same position gives the same text: Spark compares offsets as text."""
        wire: dict[str, Any] = {"generation": self.generation, "sequence": self.position.sequence}
        if self.position.file is not None:
            wire["file"] = self.position.file
        if self.state is not None:
            wire["state"] = _sorted(self.state)
        return wire

    @property
    def is_start(self) -> bool:
        """Whether nothing lies before it."""
        return self.position == START


def from_wire(wire: Any) -> Offset:
    """From a checkpoint.

    Raises:
        StateError: it is none that this module wrote.
    """
    match wire:
        case {"generation": str() | None as generation, "sequence": int() as sequence}:
            file, state = wire.get("file"), wire.get("state")
            if isinstance(file, str | None) and isinstance(state, dict | None) and sequence >= 0:
                return Offset(generation, Position(sequence, file), state)
    raise StateError(
        f"the checkpoint holds an offset that is not of this format: {str(wire)[:80]}. "
        "It is of another query: give this one a checkpointLocation of its own."
    )


def in_snapshot(offset: Offset, snapshot: Snapshot) -> Position:
    """Where an offset lies in the manifest of now.

    Raises:
        OtherLake: it lies nowhere there; says why and what to do. LakeError: there is no manifest.
    """
    if offset.is_start:
        return START
    if snapshot.generation is None:
        raise LakeError(
            f"stream '{snapshot.stream}' has no manifest, so nothing says which rows are new.\n"
            "Make one: burler lake rebuild LAKE"
        )
    continued = snapshot.continues.get(offset.generation, -1) if offset.generation is not None else -1
    sequence = offset.position.sequence
    if offset.generation != snapshot.generation and sequence > continued:
        raise OtherLake(_told(snapshot, "was made anew since the query's last batch, so what is new can't be told"))
    if sequence > snapshot.sequence:
        raise OtherLake(
            _told(snapshot, f"ends with commit {snapshot.sequence}, the query has read {sequence}: it is an older copy")
        )
    return offset.position


def _told(snapshot: Snapshot, fact: str) -> str:
    return (
        f"stream '{snapshot.stream}': the manifest of the lake {fact}.\n"
        'To read all of it once more into the same sink: option("behind", "again") (an upsert takes that).\n'
        "To begin a new query: another checkpointLocation."
    )


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(one) for one in value] if isinstance(value, list | tuple) else value
