"""What people say of a lake's taps, and set: ``burler lake describe`` (notes in ``singerlake.json``, as Singerlake
Pt2, 2, has them), ``burler state`` (where the next run of a tap begins).
"""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from burler.errors import LockLost, UsageError
from burler.lake import catalogue, layout
from burler.lake.care.inventory import Listing
from burler.lake.lake import Lake, not_there
from burler.lake.state import LakeState, StoredState
from burler.storage.base import Store

_TTL_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class TapNotes:
    """What a lake says of a tap. None where it says nothing.

    ``state``, ``started``, ``ended`` and ``writer_id`` are of its last run, kept up by the writer; ``link`` leads to
    the job's log.
    """

    tap_id: str
    owner: str | None = None
    description: str | None = None
    documentation: str | None = None
    state: str | None = None
    started: str | None = None
    ended: str | None = None
    writer_id: str | None = None
    link: str | None = None


def describe(
    store: Store,
    tap_id: str,
    *,
    owner: str | None = None,
    description: str | None = None,
    documentation: str | None = None,
    status_link: str | None = None,
) -> TapNotes:
    """Change what a lake says of a tap, by compare-and-swap; what it says now.

    Args:
        owner, description, documentation: new texts; None leaves them as they are, an empty one removes them.
        status_link: where the log of the tap's job is.

    Raises:
        UsageError: an address that is none; the lake has no such tap (names those it has). LakeError:
            ``singerlake.json`` is broken.
    """
    for name, url in (("--documentation", documentation), ("--status-link", status_link)):
        if url and not re.fullmatch(r"https?://[^\s/]\S*", url):  # pages show these as links
            raise UsageError(
                f"{name} {url!r} is no address of a page. Write it whole, as https://wiki.example.com/crm."
            )
    known, there = catalogue.taps_of(catalogue.read_singerlake(store)), Lake(store).taps()
    if tap_id not in known and (not tap_id or layout.component(tap_id) not in there):
        raise UsageError(not_there(store.url, "tap", tap_id, {*known, *there.values()}))
    wanted = {"owner": owner, "description": description, "documentation": documentation}
    new = {key: value or None for key, value in wanted.items() if value is not None}
    if new or status_link is not None:
        catalogue.note_tap(store, tap_id, new, link=status_link)
    return notes_of(tap_id, catalogue.taps_of(catalogue.read_singerlake(store)).get(tap_id))


def notes_of(tap_id: str, notes: Any) -> TapNotes:
    """A tap's entry in ``singerlake.json`` as a dataclass. A status that is plain text is its state."""
    notes = notes if isinstance(notes, dict) else {}
    status = notes.get("status")
    status = status if isinstance(status, dict) else {"state": status}
    return TapNotes(
        tap_id=tap_id,
        owner=text_of(notes, "owner"),
        description=text_of(notes, "description"),
        documentation=text_of(notes, "documentation"),
        state=text_of(status, "state"),
        started=text_of(status, "started"),
        ended=text_of(status, "ended"),
        writer_id=text_of(status, "writer-id"),
        link=text_of(status, "link"),
    )


def text_of(notes: Mapping[str, Any], key: str) -> str | None:
    """A note as text; None where there is none."""
    value = notes.get(key)
    return None if value in (None, "") else str(value)


def state_of(store: Store, tap_id: str | None) -> LakeState:
    """The state of a tap.

    Args:
        tap_id: None: of the only tap that the lake has.

    Raises:
        UsageError: there is no such tap, or there are several.
    """
    there = Lake(store).taps()
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
    for lock in Listing(state.store, state.store.files(layout.tap_folder(state.tap_id)), now=now).locks:
        ttl = _TTL_SECONDS if lock.holder.ttl_ms is None else lock.holder.ttl_ms / 1000
        if lock.lives or (lock.lives is None and lock.age < ttl):
            raise LockLost(
                f"{state.store.url}: a run writes '{state.tap_id}' just now ({lock.holder.writer_id} holds "
                f"{state.store.locate(lock.file.path)}). Nothing was changed. Wait for its end, or stop it."
            )
