"""The states of a lake's taps, as people look at them and set them: ``burler state``."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from burler.errors import LockLost, UsageError
from burler.lake import layout
from burler.lake.care.inventory import LOCK, holder_lives
from burler.lake.lake import Lake, not_there
from burler.lake.locks import LockFile
from burler.lake.state import LakeState, StoredState
from burler.storage.base import Store

_TTL_SECONDS = 300.0


def state_of(store: Store, tap_id: str | None) -> LakeState:
    """The state of a tap.

    Args:
        tap_id: None: of the only tap that the lake has.

    Raises:
        UsageError: there is no such tap, or there are several.
    """
    lake = Lake(store)
    there = lake.taps()
    if tap_id is None:
        if not there:
            raise UsageError(f"{store.url}: there is no tap in this lake yet: a run begins anew.")
        if len(there) != 1:
            raise UsageError(f"{store.url}: say which tap: --tap-id ID. It has: {', '.join(sorted(there.values()))}.")
        (tap_id,) = there.values()
    if layout.component(tap_id) not in there:
        raise UsageError(not_there(store.url, "tap", tap_id, there.values()))
    return LakeState(store, tap_id)


def set_state(
    state: LakeState, change: Callable[[dict[str, Any]], Mapping[str, Any]], *, now: Callable[[], float] = time.time
) -> None:
    """Change the value of a state by hand. A run that goes on from it later is held to the same config as before,
    unless nothing is left of it.

    Args:
        change: gets the value.
        now: seconds since 1970, by the store's clock.

    Raises:
        LockLost: a run writes this tap.
        StateError: what is there can't be read, and nothing of it is to stay. StorageError: the store fails.
    """
    _refuse_while_written(state, now())

    def changed(there: StoredState | None, _again: bool) -> StoredState:
        there = there or StoredState()
        value = dict(change(copy.deepcopy(there.value)))
        return replace(there, value=value, config=there.config if value else None)

    state.change(changed, mend=True)


def accept_config(state: LakeState, *, now: Callable[[], float] = time.time) -> bool:
    """Let the next run go on from a state with whatever config it has; False: there is no state.

    Raises:
        LockLost: a run writes this tap. StateError: the state can't be read. StorageError: the store fails.
    """
    _refuse_while_written(state, now())
    if state.read() is None:
        return False
    state.change(lambda there, _again: replace(there or StoredState(), config=None), previous=False)
    return True


def _refuse_while_written(state: LakeState, now: float) -> None:
    """A lock of one of the tap's streams that its holder keeps up: a run is at work."""
    for file in state.store.files(layout.tap_folder(state.tap_id)):
        if file.path.rpartition("/")[2] != LOCK or (blob := state.store.read(file.path)) is None:
            continue
        lock = LockFile.from_bytes(blob.data)
        lives = holder_lives(state.store, file.path, lock)
        ttl = _TTL_SECONDS if lock.ttl_ms is None else lock.ttl_ms / 1000
        if lives or (lives is None and now - file.modified < ttl):
            raise LockLost(
                f"{state.store.url}: a run writes '{state.tap_id}' just now ({lock.writer_id} holds "
                f"{state.store.locate(file.path)}). Nothing was changed. Wait for its end, or stop it."
            )
