"""Those who work on a lake beside its writers, in the model: rebuild, vacuum, compact, who deletes a manifest."""

from __future__ import annotations

from collections.abc import Callable

from lake_model_protocols import MANIFEST, Calls, Protocol, release_own, take_over
from lake_model_world import ANY, OK, Commit, Listing, Lock, Manifest, Read, Write

NOBODY = -1


def rebuild(lock: str = "lock") -> Callable[[int], Calls]:
    """A manifest of all files that are there; all claims end. What is compared is read before the files are listed."""

    def calls(_me: int) -> Calls:
        while True:
            manifest = yield Read(MANIFEST)
            files = yield Listing()
            if (yield Write(MANIFEST, _rebuilt(manifest, files, lock), manifest)) is OK:
                return

    return calls


def rebuild_lists_first(lock: str = "lock") -> Callable[[int], Calls]:
    """The other way round: what was committed in between is forgotten."""

    def calls(_me: int) -> Calls:
        while True:
            files = yield Listing()
            manifest = yield Read(MANIFEST)
            if (yield Write(MANIFEST, _rebuilt(manifest, files, lock), manifest)) is OK:
                return

    return calls


def _rebuilt(manifest: Manifest | None, files: tuple[str, ...], lock: str) -> Manifest:
    removed = manifest.removed if manifest else ()
    epoch = manifest.holder(lock)[1] if manifest else 0
    kept = tuple(file for file in files if file not in removed)
    return Manifest(kept, removed=removed).claimed(lock, NOBODY, epoch + 1)


def vacuum(_me: int) -> Calls:
    """Removes files that no manifest names. First the manifest says so: who has made one of them can't commit it."""
    while True:
        manifest = yield Read(MANIFEST)
        orphans = () if manifest is None else _orphans((yield Listing()), manifest)
        if not orphans:
            return
        removed = tuple(sorted({*manifest.removed, *orphans}))
        if (yield Write(MANIFEST, manifest._replace(removed=removed), manifest)) is OK:
            break
    yield from _remove(orphans)


def silent_vacuum(_me: int) -> Calls:
    """As ``vacuum``, trusting that nobody commits a file that was an orphan for so long."""
    manifest = yield Read(MANIFEST)
    if manifest is not None:
        yield from _remove(_orphans((yield Listing()), manifest))


def _orphans(files: tuple[str, ...], manifest: Manifest) -> tuple[str, ...]:
    return tuple(file for file in files if file not in manifest.files)


def _remove(orphans: tuple[str, ...]) -> Calls:
    while orphans:
        yield Write(orphans[0], None, ANY)
        orphans = orphans[1:]


def delete_manifest(_me: int) -> Calls:
    """Somebody who thinks that it can be made anew, and is right."""
    yield Write(MANIFEST, None, ANY)


# ---- writers that make a missing manifest anew --------------------------------------------------------


def _read_or_adopt() -> Calls:
    """(what was read, to be compared; what it says or, where there is none, what a new one says)."""
    manifest = yield Read(MANIFEST)
    if manifest is not None:
        return manifest, manifest
    files = yield Listing()
    return None, Manifest(files, claims=(("generation", 0, 1),))


def adopting_claim(me: int, lock: str, _held: Lock, _ticket: int) -> Calls:
    """burler's, where the manifest may be missing."""
    epoch = 0
    while True:
        before, manifest = yield from _read_or_adopt()
        if epoch and manifest.holder(lock) == (me, epoch):
            return epoch
        epoch = manifest.holder(lock)[1] + 1
        if (yield Write(MANIFEST, manifest.claimed(lock, me, epoch), before)) is OK:
            return epoch


def trusting_commit(me: int, lock: str, epoch: int, file: str) -> Calls:
    """Where the claim is gone with the manifest, the writer takes it for granted that nobody else had one."""
    while True:
        before, manifest = yield from _read_or_adopt()
        if file in manifest.ids:
            return True
        if file in manifest.removed:
            return False
        if not _stands(manifest, lock, me, epoch) and not _lost_its_claims(manifest, lock):
            return False
        after = manifest.claimed(lock, me, epoch).adding(file)
        if (yield Write(MANIFEST, after, before, Commit(lock, epoch, me, file))) is OK:
            return True


def strict_commit(me: int, lock: str, epoch: int, file: str) -> Calls:
    """Where the claim is gone with the manifest, the writer has lost it."""
    while True:
        before, manifest = yield from _read_or_adopt()
        if file in manifest.ids:
            return True
        if not _stands(manifest, lock, me, epoch) or file in manifest.removed:
            return False
        after = manifest.adding(file)
        if (yield Write(MANIFEST, after, before, Commit(lock, epoch, me, file))) is OK:
            return True


def _stands(manifest: Manifest, lock: str, me: int, epoch: int) -> bool:
    return manifest.holder(lock) == (me, epoch)


def _lost_its_claims(manifest: Manifest, lock: str) -> bool:
    return bool(manifest.holder("generation")[1]) and manifest.holder(lock) == (NOBODY, 0)


TRUSTING = Protocol(take_over, adopting_claim, trusting_commit, release_own)
STRICT = Protocol(take_over, adopting_claim, strict_commit, release_own)


# ---- compaction ---------------------------------------------------------------------------------------


def compact(parts: tuple[str, ...]) -> Callable[[int], Calls]:
    """One file in the place of several, if all of them are still named when it commits. The parts stay."""
    return lambda me: _compact(me, parts, careful=True)


def compact_without_a_look(parts: tuple[str, ...]) -> Callable[[int], Calls]:
    """As ``compact``, but after a conflict it adds its file whatever has become of the parts."""
    return lambda me: _compact(me, parts, careful=False)


def _compact(me: int, parts: tuple[str, ...], *, careful: bool) -> Calls:
    name, seen = f"whole.{me}", True
    while True:
        manifest = yield Read(MANIFEST)
        if name in manifest.files:
            return
        if (careful or seen) and not set(parts) <= set(manifest.files):
            return
        seen = False
        left = tuple(sorted({name, *manifest.files} - set(parts)))
        if (yield Write(MANIFEST, manifest._replace(files=left), manifest)) is OK:
            return


def rows(files: tuple[str, ...], parts: tuple[str, ...]) -> list[str]:
    """What stands in files: a whole one has the rows of its parts."""
    return sorted(row for file in files for row in (parts if file.startswith("whole.") else (file,)))
