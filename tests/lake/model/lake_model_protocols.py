"""How writers may go about a shared stream: burler's way, and those that lose data.

Each part is a generator that yields calls; a protocol is one of each kind:

- ``acquire(me, lock)``: waits; gives the lock file it believes to hold.
- ``claim(me, lock, held)``: before the first data; gives the epoch, or None (lost).
- ``commit(me, lock, epoch, file)``: whether the manifest names the file now.
- ``release(me, lock, held)``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

from lake_model_world import ANY, OK, Acked, Commit, Enter, Leave, Lock, Read, Stale, Write

Calls = Generator[Any, Any, Any]
MANIFEST, STATE = "manifest", "state"


@dataclass(frozen=True)
class Protocol:
    """What a writer does with lock and manifest; ``data``: it also makes its data files as calls of their own.

    ``keep``: puts a file into the state of the lake, which it knows as it was when the run began; what it knows then,
    or None (lost). ``keeps_first``: before the commit.
    """

    acquire: Callable[[int, str], Calls]
    claim: Callable[[int, str, Lock, int], Calls]
    commit: Callable[[int, str, int, str], Calls]
    release: Callable[[int, str, Lock], Calls]
    keep: Callable[[str, Any], Calls] | None = None
    keeps_first: bool = False

    def writer(
        self, lock: str = "lock", *, commits: int = 1, data: bool = False, beats: bool = False
    ) -> Callable[[int], Calls]:
        """A writer of one schema version, as a generator function of its number.

        Data files have names that nobody else uses, so no other call can meet theirs; without ``data`` they are no
        calls, which leaves fewer states.
        """
        return lambda me: _write(me, self, lock, commits, data, beats)


def _write(me: int, protocol: Protocol, lock: str, commits: int, data: bool, beats: bool) -> Calls:
    known = () if protocol.keep is None else ((yield Read(STATE)) or ())
    held = yield from protocol.acquire(me, lock)
    ticket = yield Enter(lock)
    epoch = yield from protocol.claim(me, lock, held, ticket)
    done = 0
    while epoch is not None and done < commits:
        file = f"{lock}/{me}.{done}"
        if data:
            yield Write(file, "data", None)
        if beats:
            held = yield from renew(me, lock, held)
        if protocol.keep is not None and protocol.keeps_first:
            known = yield from protocol.keep(file, known)
        if held is None or not (yield from protocol.commit(me, lock, epoch, file)):
            epoch = None
            break
        if protocol.keep is not None and not protocol.keeps_first:
            known = yield from protocol.keep(file, known)
        if known is None:
            break
        yield Acked(file)
        done += 1
    yield Leave(lock)
    if epoch is not None:
        yield from protocol.release(me, lock, held)


# ---- locks --------------------------------------------------------------------------------------------


def by_the_seed(me: int, lock: str) -> Calls:
    """Singerlake Pt2 to the letter: look, PUT, read again and compare. A stale lock is put over."""
    while True:
        while (seen := (yield Read(lock))) is not None and not (yield Stale(seen.owner)):
            pass
        mine = Lock(me)
        yield Write(lock, mine, ANY)
        seen = yield Read(lock)
        if seen == mine:
            return mine


def create_only(me: int, lock: str) -> Calls:
    """Exclusive creation. Nobody is ever put aside."""
    mine = Lock(me)
    while (yield Write(lock, mine, None)) is not OK:
        pass
    return mine


def delete_if_stale(me: int, lock: str) -> Calls:
    """Exclusive creation; who finds a dead holder's lock removes it first."""
    mine = Lock(me)
    while True:
        seen = yield Read(lock)
        if seen is not None:
            if not (yield Stale(seen.owner)):
                continue
            yield Write(lock, None, ANY)
        if (yield Write(lock, mine, None)) is OK:
            return mine


def take_over(me: int, lock: str) -> Calls:
    """burler's: exclusive creation, and a conditional replace of what was seen unchanged for the ttl."""
    while True:
        seen = yield Read(lock)
        if seen is None:
            mine = Lock(me)
            if (yield Write(lock, mine, None)) is OK:
                return mine
        elif seen.owner == me:  # its own write, of which it was told something else
            return seen
        elif (yield Stale(seen.owner)):
            mine = Lock(me, seen.epoch + 1)
            if (yield Write(lock, mine, seen)) is OK:
                return mine


def renew(me: int, lock: str, held: Lock) -> Calls:
    """One heartbeat: the lock as it is now, or None if it is another's."""
    beaten = held._replace(beat=1)
    while (yield Write(lock, beaten, held)) is not OK:
        seen = yield Read(lock)
        if seen is None or seen.owner != me:
            return None
        if seen == beaten:
            return beaten
    return beaten


def release_any(_me: int, lock: str, _held: Lock) -> Calls:
    """DELETE, whoever's it is."""
    yield Write(lock, None, ANY)


def release_own(me: int, lock: str, held: Lock) -> Calls:
    """Conditional, on the tag that is known."""
    yield Write(lock, None, held)


# ---- claims -------------------------------------------------------------------------------------------


def no_claim(_me: int, _lock: str, _held: Lock, ticket: int) -> Calls:
    """None; the epoch is the number of the ticket, which the observer counts as no lock could."""
    return ticket
    yield


def epoch_of_the_lock(_me: int, _lock: str, held: Lock, _ticket: int) -> Calls:
    """The epoch that stands in the lock file."""
    return held.epoch
    yield


def claim(me: int, lock: str, held: Lock, _ticket: int) -> Calls:
    """burler's: the manifest names the writer with the next epoch; then the lock is read once more."""
    epoch = yield from _claimed(me, lock)
    seen = yield Read(lock)
    return epoch if seen is not None and seen.owner == me else None


def _claimed(me: int, lock: str) -> Calls:
    epoch = 0
    while True:
        manifest = yield Read(MANIFEST)
        if epoch and manifest.holder(lock) == (me, epoch):
            return epoch
        epoch = manifest.holder(lock)[1] + 1
        if (yield Write(MANIFEST, manifest.claimed(lock, me, epoch), manifest)) is OK:
            return epoch


# ---- commits ------------------------------------------------------------------------------------------


def commit_blind(me: int, lock: str, epoch: int, file: str) -> Calls:
    """Read, add, write."""
    manifest = yield Read(MANIFEST)
    yield Write(MANIFEST, manifest.adding(file), ANY, Commit(lock, epoch, me, file))
    return True


def commit_swap(me: int, lock: str, epoch: int, file: str) -> Calls:
    """Compare and swap; anybody may."""
    while True:
        manifest = yield Read(MANIFEST)
        if file in manifest.ids:
            return True
        if (yield Write(MANIFEST, manifest.adding(file), manifest, Commit(lock, epoch, me, file))) is OK:
            return True


def commit_fenced(me: int, lock: str, epoch: int, file: str) -> Calls:
    """burler's: compare and swap, only while the claim stands; its id tells whether it has happened already."""
    while True:
        manifest = yield Read(MANIFEST)
        if file in manifest.ids:
            return True
        if manifest.holder(lock) != (me, epoch) or file in manifest.removed:
            return False
        if (yield Write(MANIFEST, manifest.adding(file), manifest, Commit(lock, epoch, me, file))) is OK:
            return True


def commit_fenced_without_id(me: int, lock: str, epoch: int, file: str) -> Calls:
    """As ``commit_fenced``, but nobody looks for the commit's id."""
    while True:
        manifest = yield Read(MANIFEST)
        if manifest.holder(lock) != (me, epoch):
            return False
        counted = manifest.adding(file)._replace(ids=(*manifest.ids, file))
        if (yield Write(MANIFEST, counted, manifest, Commit(lock, epoch, me, file))) is OK:
            return True


def commit_by_greatest_epoch(me: int, lock: str, epoch: int, file: str) -> Calls:
    """Compare and swap, if no greater epoch has committed; the epoch is the lock's, and nobody claims it."""
    while True:
        manifest = yield Read(MANIFEST)
        if file in manifest.ids:
            return True
        if manifest.holder(lock)[1] > epoch:
            return False
        after = manifest.adding(file).claimed(lock, -1, epoch)
        if (yield Write(MANIFEST, after, manifest, Commit(lock, epoch, me, file))) is OK:
            return True


# ---- the state in the lake ----------------------------------------------------------------------------


def keep_swap(file: str, known: Any) -> Calls:
    """burler's: compare and swap, only while the state is as the run knows it, or as it has left it."""
    wanted = tuple(sorted({*known, file}))
    tried = False
    while True:
        there = yield Read(STATE)
        if tried and there == wanted:
            return wanted
        if (there or ()) != known:
            return None
        tried = True
        if (yield Write(STATE, wanted, there)) is OK:
            return wanted


def keep_blind(file: str, known: Any) -> Calls:
    """Add to what was there when the run began, and write."""
    wanted = tuple(sorted({*known, file}))
    yield Write(STATE, wanted, ANY)
    return wanted


# ---- protocols ----------------------------------------------------------------------------------------

SEED = Protocol(by_the_seed, no_claim, commit_blind, release_any)
CREATE_ONLY = Protocol(create_only, no_claim, commit_blind, release_any)
DELETE_IF_STALE = Protocol(delete_if_stale, no_claim, commit_blind, release_any)
TAKE_OVER_BLIND = Protocol(take_over, no_claim, commit_blind, release_own)
TAKE_OVER_SWAP = Protocol(take_over, no_claim, commit_swap, release_own)
EPOCH_IN_THE_LOCK = Protocol(take_over, epoch_of_the_lock, commit_by_greatest_epoch, release_own)
REAL = Protocol(take_over, claim, commit_fenced, release_own)
REAL_WITH_STATE = replace(REAL, keep=keep_swap)
STATE_FIRST = replace(REAL_WITH_STATE, keeps_first=True)
BLIND_STATE = replace(REAL, keep=keep_blind)
REAL_BUT_NO_ID = Protocol(take_over, claim, commit_fenced_without_id, release_own)
REAL_BUT_ANY_RELEASE = Protocol(take_over, claim, commit_fenced, release_any)
