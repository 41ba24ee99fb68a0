"""What a run that commits is given: the lake, its own name, how it waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from burler.clock import Clock
from burler.lake import layout
from burler.lake.locking.lock import LockSettings
from burler.lake.locking.locks import new_writer_id
from burler.storage.base import Store


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a tap into a lake, by a ``LakeWriter`` or a ``LakeDriver``: see their arguments."""

    store: Store
    tap_id: str
    writer_id: str
    clock: Clock
    locks: LockSettings | None
    tail: bool
    should_stop: Callable[[], bool]
    encoding: str | None

    @classmethod
    def of(
        cls,
        store: Store,
        tap_id: str,
        writer_id: str | None,
        clock: Clock | None,
        locks: LockSettings | None,
        tail: bool,
        should_stop: Callable[[], bool],
        encoding: str | None,
    ) -> Self:
        """With what goes without saying for each None.

        Raises:
            UsageError: the tap's name can't be a folder's.
        """
        layout.component(tap_id)
        writer_id = writer_id or new_writer_id()
        return cls(store, tap_id, writer_id, clock or Clock(), locks, tail, should_stop, encoding)
