"""A stream's manifest: claimed and extended by compare-and-swap.

What makes the lake safe with several writers is here, not in any lock. A writer *claims* a schema
version before its first byte: the manifest then names it, with an epoch. A *commit* adds files only
while that claim stands; a later claim fences the earlier writer out (``LockLost``). The lock
(``burler.lake.locking.lock``) only keeps writers from doing that to each other. The manifest can be made anew from
the data files at any time, and is, when it is missing.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from burler.clock import Clock
from burler.errors import LakeError, LockLost
from burler.lake import layout
from burler.lake.manifests import document as doc
from burler.lake.manifests import replaced
from burler.lake.snapshot import DataFile, FileStats
from burler.lake.swap import swap
from burler.storage.base import Store

_log = logging.getLogger("burler.lake")


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to commit files of one schema version of one stream, until somebody claims it anew.

    ``taken``: names, relative to the manifest, that no new file may have although no such file may be there.
    """

    tap_id: str
    stream: str
    hash: str
    writer_id: str
    epoch: int
    generation: str
    taken: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit did: its sequence number, and the claim to use from now on."""

    sequence: int
    claim: Claim


def claim(
    store: Store,
    tap_id: str,
    stream: str,
    *,
    hash: str,
    writer_id: str,
    standing: Claim | None = None,
    clock: Clock | None = None,
) -> Claim:
    """Take over the right to commit files of schema version ``hash``; every earlier claim to it ends.

    To be done before the first byte of data is written, with the lock taken.

    Args:
        writer_id: no other writer that lives has it.
        standing: an earlier claim of this writer: if nobody has claimed since, it serves, and nothing is written.
        clock: time and chance; the system's by default.

    Raises:
        LakeError: the manifest is broken. StorageError: it can't be written.
    """
    taken: list[Claim] = []

    def change(document: doc.Document) -> bool:
        if standing is not None and _stands(document, standing):
            taken[:] = [replace(standing, taken=doc.taken_names(document, hash))]
            return False
        old = document["writers"].get(hash) or {}
        epoch = int(old.get("epoch", 0)) + 1
        document["writers"][hash] = {"writer-id": writer_id, "epoch": epoch}
        names = doc.taken_names(document, hash)
        taken[:] = [Claim(tap_id, stream, hash, writer_id, epoch, document["generation"], names)]
        return True

    def happened(document: doc.Document) -> bool:
        return _stands(document, taken[0])

    _swap(store, tap_id, stream, change, happened, clock)
    return taken[0]


def commit(
    store: Store,
    mine: Claim,
    files: Sequence[tuple[str, FileStats]],
    *,
    schema_line: bytes,
    confirm: Callable[[], object] | None = None,
    clock: Clock | None = None,
) -> Committed:
    """Add published data files to the manifest, in one step, if ``mine`` still stands.

    A file that is listed already keeps its entry: a commit that is done twice counts once.

    Args:
        files: (path relative to the manifest, statistics); their ``sequence`` is filled in here.
        schema_line: the canonical SCHEMA line they begin with.
        confirm: called where the manifest was made anew under us and names nobody: raises if we are not the writer.
        clock: time and chance; the system's by default.

    Raises:
        LockLost: somebody else has claimed this schema version since. The files stay as they are, in no
            manifest; no STATE that covers them may be written.
    """
    commit_id = secrets.token_hex(16)
    done: list[Committed] = []

    def change(document: doc.Document) -> bool:
        _fence(store, document, mine, confirm)
        document["writers"][mine.hash] = {"writer-id": mine.writer_id, "epoch": mine.epoch}
        doc.add_schema(document, schema_line, digest=mine.hash)
        names = doc.taken_names(document, mine.hash)
        renewed = replace(mine, generation=document["generation"], taken=names)
        known = set(document["files"]) if mine.generation == document["generation"] else ()
        new = [(name, stats) for name, stats in files if name not in known]
        if files and not new:
            done[:] = [Committed(document["sequence"], renewed)]
            return False
        sequence = doc.add_commit(document, commit_id)
        doc.add_files(document, [(name, replace(stats, sequence=sequence)) for name, stats in new])
        done[:] = [Committed(sequence, renewed)]
        return True

    def happened(document: doc.Document) -> bool:
        return commit_id in document["commit_ids"]

    _swap(store, mine.tap_id, mine.stream, change, happened, clock)
    return done[0]


def taken_names(store: Store, tap_id: str, stream: str, digest: str) -> frozenset[str]:
    """See ``Claim.taken``, for who has no claim; none where there is no manifest, or a broken one."""
    path = layout.manifest_path(tap_id, stream)
    blob = store.read(path)
    try:
        return frozenset() if blob is None else doc.taken_names(doc.from_bytes(blob.data, store.locate(path)), digest)
    except LakeError:  # whoever commits will tell
        return frozenset()


def register(
    store: Store, tap_id: str, stream: str, *, schema_line: bytes, hash: str | None = None, clock: Clock | None = None
) -> None:
    """Make a schema version known that has no data (yet): it enters ``versions``.

    ``hash``: the folder's name where it is not the one in base58.
    """
    commit_id = secrets.token_hex(16)

    def change(document: doc.Document) -> bool:
        known = set(document["versions"])
        if doc.add_schema(document, schema_line, digest=hash) in known:
            return False
        doc.add_commit(document, commit_id)
        return True

    def happened(document: doc.Document) -> bool:
        return commit_id in document["commit_ids"]

    _swap(store, tap_id, stream, change, happened, clock)


def _stands(document: doc.Document, mine: Claim) -> bool:
    return document["generation"] == mine.generation and _holder(document, mine.hash) == (mine.writer_id, mine.epoch)


def _holder(document: doc.Document, digest: str) -> tuple[str, int] | None:
    entry = document["writers"].get(digest)
    return None if not entry else (entry.get("writer-id", ""), int(entry.get("epoch", 0)))


def _fence(store: Store, document: doc.Document, mine: Claim, confirm: Callable[[], object] | None) -> None:
    """Let a commit through only if nobody has claimed since.

    A manifest that was removed under a running writer and made anew (another generation) has lost the
    claims: one that names nobody takes the old claim, if the lock is ours still.
    """
    holder = _holder(document, mine.hash)
    if holder == (mine.writer_id, mine.epoch):
        return
    if holder is None and document["generation"] != mine.generation:
        if confirm is not None:
            confirm()
        return
    raise LockLost(
        f"{store.url}: stream '{mine.stream}' (schema {mine.hash}): another writer has taken over "
        f"({'none named' if holder is None else f'{holder[0]}, epoch {holder[1]}'}). "
        "Nothing was lost: run again from the last STATE, with one writer a stream."
    )


def _swap(
    store: Store,
    tap_id: str,
    stream: str,
    change: Callable[[doc.Document], bool],
    happened: Callable[[doc.Document], bool],
    clock: Clock | None,
) -> None:
    """Compare-and-swap of the manifest.

    ``change`` alters a fresh document and says whether there is something to write. ``happened`` recognises
    an own write whose reply was lost.
    """
    path = layout.manifest_path(tap_id, stream)

    def changed(data: bytes | None, again: bool) -> bytes | None:
        if data is None:
            document = _adopt(store, tap_id, stream)
        else:
            document = doc.from_bytes(data, store.locate(path))
        if again and happened(document):
            return None
        return doc.to_bytes(document) if change(document) else None

    swap(store, path, changed, clock=clock)


def _adopt(store: Store, tap_id: str, stream: str) -> doc.Document:
    """A new manifest that holds every data file already there (somebody removed the old one)."""
    from burler.lake.measure import measure

    document = doc.new_document(tap_id, stream)
    folder = layout.stream_folder(tap_id, stream)
    found = sorted(map(DataFile, replaced.data_files(store, folder)), key=lambda file: file.order)
    if not found:
        return document
    _log.warning("stream '%s': no manifest, %d data files: a new one is made from them", stream, len(found))
    sequence = doc.add_commit(document, secrets.token_hex(16))
    files: list[tuple[str, FileStats | None]] = []
    for file in found:
        name = file.path[len(folder) + 1 :]
        try:
            line, stats = measure(store, file.path)
        except LakeError as error:
            _log.warning("%s", error)
            files.append((name, None))
            continue
        doc.add_schema(document, line, digest=file.hash)
        files.append((name, replace(stats, sequence=sequence)))
    doc.add_files(document, files)
    return document
