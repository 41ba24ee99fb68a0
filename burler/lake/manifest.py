"""A stream's manifest: what a lake holds of it, claimed and extended by compare-and-swap.

What makes a lake safe with several writers is here, not in any lock (``burler.lake.locks``):

1. **Claim.** Before the first byte of a file of a schema version a writer puts itself into the manifest, with an epoch
   that is one higher each time: every earlier claim ends (``claim``). It then reads its lock once more.
2. **Commit.** Files that are durable enter the manifest in one step, only while the claim stands; else ``LockLost``
   (``commit``). Each commit leaves an id, by which its writer knows it again where the reply was lost.
3. What ``vacuum`` took away as nobody's is remembered (``removed``): no late commit brings it back.

So a writer that slept for a week and wakes up commits nothing, and no STATE covers its rows. The manifest can be made
anew from the data files at any time, and is, when it is missing: as another generation, which names no writer. Who
commits there first must find that its lock is its own still. ``tests/lake/model`` searches all schedules of these
steps: ``claim`` and ``commit_fenced`` in ``lake_model_protocols``.

The document. ``versions`` and ``files`` are as the Singerlake text has them; what burler adds stands in keys beside
them::

    {"format": 1, "tap_id": "tap-crm", "stream": "users", "generation": "5f1c...", "sequence": 12,
     "versions": {"GkZ4VgVbUrW": "v1"},
     "files": ["GkZ4VgVbUrW/users-20230117T180903Z-20230117T181107Z.singer.gz"],
     "schemas": {"GkZ4VgVbUrW": {"base85": "UMnRs&Xg$g", "line": "{\\"key_properties\\":...}"}},
     "file_stats": {"GkZ4VgVbUrW/users-...": {"records": 3, "bytes": 512, "first": ..., "sequence": 12, ...}},
     "writers": {"GkZ4VgVbUrW": {"writer-id": "...", "epoch": 3}},
     "commit_ids": ["..."]}

``file_stats`` also has the files that a compacted one replaces, for as long as they are there. ``removed`` (name ->
time): see 3. ``continues`` (generation -> sequence) names the manifests that this one was made from by ``rebuild``, as
far as it counts the same commits as they did. The document is changed as a plain dict, so that keys of later formats
survive.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import msgspec

from burler.clock import Clock
from burler.errors import LakeError, LockLost
from burler.lake import layout, replaced
from burler.lake.datafile import measure
from burler.lake.hashing import spellings
from burler.lake.snapshot import DataFile, FileStats
from burler.lake.store import swap
from burler.storage.base import Store

FORMAT = 1
_KEPT_COMMIT_IDS = 100
_SAME = ("records", "bytes", "first", "last")
_log = logging.getLogger("burler.lake")

Document = dict[str, Any]


# ---- claims and commits ----------------------------------------------------------------------------------------------


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
    mine = standing

    def change(document: Document) -> bool:
        nonlocal mine
        names = taken_names(document, hash)
        if mine is not None and _stands(document, mine):  # the one before, or a try whose reply was lost
            mine = replace(mine, taken=names)
            return False
        old = document["writers"].get(hash) or {}
        epoch = int(old.get("epoch", 0)) + 1
        document["writers"][hash] = {"writer-id": writer_id, "epoch": epoch}
        mine = Claim(tap_id, stream, hash, writer_id, epoch, document["generation"], names)
        return True

    path, anew = layout.manifest_path(tap_id, stream), partial(_adopt, store, tap_id, stream)
    change_manifest(store, path, change, missing=anew, clock=clock)
    assert mine is not None
    return mine


def commit(
    store: Store,
    mine: Claim,
    files: Sequence[tuple[str, FileStats]],
    *,
    schema_line: bytes,
    confirm: Callable[[], object] | None = None,
    clock: Clock | None = None,
) -> Claim:
    """Add published data files to the manifest, in one step, if ``mine`` still stands; the claim to use from now on.

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
    renewed = mine

    def change(document: Document) -> bool:
        nonlocal renewed
        _fence(store, document, mine, confirm)
        document["writers"][mine.hash] = {"writer-id": mine.writer_id, "epoch": mine.epoch}
        add_schema(document, schema_line, digest=mine.hash)
        renewed = replace(mine, generation=document["generation"], taken=taken_names(document, mine.hash))
        known = set(document["files"]) if mine.generation == document["generation"] else ()
        new = [(name, stats) for name, stats in files if name not in known]
        if files and not new:
            return False
        sequence = add_commit(document, commit_id)
        add_files(document, [(name, replace(stats, sequence=sequence)) for name, stats in new])
        return True

    path, anew = layout.manifest_path(mine.tap_id, mine.stream), partial(_adopt, store, mine.tap_id, mine.stream)
    change_manifest(store, path, change, missing=anew, mark=commit_id, clock=clock)
    return renewed


def register(
    store: Store, tap_id: str, stream: str, *, schema_line: bytes, hash: str | None = None, clock: Clock | None = None
) -> None:
    """Make a schema version known that has no data (yet): it enters ``versions``.

    ``hash``: the folder's name where it is not the one in base58.
    """
    commit_id = secrets.token_hex(16)

    def change(document: Document) -> bool:
        known = set(document["versions"])
        if add_schema(document, schema_line, digest=hash) in known:
            return False
        add_commit(document, commit_id)
        return True

    path, anew = layout.manifest_path(tap_id, stream), partial(_adopt, store, tap_id, stream)
    change_manifest(store, path, change, missing=anew, mark=commit_id, clock=clock)


def ensure(store: Store, tap_id: str, stream: str, *, clock: Clock | None = None) -> str | None:
    """See that a stream has a manifest, before files of it that nobody has committed: where there is none they would be
    taken for its data. The hash of the newest schema version that it knows."""
    is_new, newest = False, None

    def anew() -> Document:
        nonlocal is_new
        is_new = True
        return _adopt(store, tap_id, stream)

    def change(document: Document) -> bool:
        nonlocal newest
        newest = next(reversed(document["versions"]), None)
        return is_new

    change_manifest(store, layout.manifest_path(tap_id, stream), change, missing=anew, clock=clock)
    return newest


def _stands(document: Document, mine: Claim) -> bool:
    return document["generation"] == mine.generation and _holder(document, mine.hash) == (mine.writer_id, mine.epoch)


def _holder(document: Document, digest: str) -> tuple[str, int] | None:
    entry = document["writers"].get(digest)
    return None if not entry else (entry.get("writer-id", ""), int(entry.get("epoch", 0)))


def _fence(store: Store, document: Document, mine: Claim, confirm: Callable[[], object] | None) -> None:
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


def change_manifest(
    store: Store,
    path: str,
    change: Callable[[Document], bool],
    *,
    missing: Callable[[], Document],
    mark: str | None = None,
    clock: Clock | None = None,
) -> None:
    """Compare-and-swap of a manifest.

    Args:
        change: alters a fresh document, and says whether there is something to write.
        missing: what is altered where there is none.
        mark: the commit id that ``change`` leaves: tells an own write whose reply was lost.

    Raises:
        LakeError: it is broken. StorageError: it can't be written.
    """

    def changed(data: bytes | None, again: bool) -> bytes | None:
        document = missing() if data is None else from_bytes(data, store.locate(path))
        if again and mark is not None and mark in document["commit_ids"]:
            return None
        return to_bytes(document) if change(document) else None

    swap(store, path, changed, clock=clock)


def _adopt(store: Store, tap_id: str, stream: str) -> Document:
    """A new manifest that holds every data file already there (somebody removed the old one)."""
    document = new_document(tap_id, stream)
    folder = layout.stream_folder(tap_id, stream)
    found = sorted(map(DataFile, replaced.data_files(store, folder)), key=lambda file: file.order)
    if not found:
        return document
    _log.warning("stream '%s': no manifest, %d data files: a new one is made from them", stream, len(found))
    sequence = add_commit(document, secrets.token_hex(16))
    files: list[tuple[str, FileStats | None]] = []
    for file in found:
        name = file.path[len(folder) + 1 :]
        try:
            seen = measure(store, file.path)
        except LakeError as error:
            _log.warning("%s", error)
            files.append((name, None))
            continue
        add_schema(document, seen.line, digest=file.hash)
        files.append((name, replace(seen.stats, sequence=sequence)))
    add_files(document, files)
    return document


# ---- the document ----------------------------------------------------------------------------------------------------

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _Stats(msgspec.Struct, gc=False):
    """What is looked into before a file's statistics are read (``FileStats``)."""

    sequence: _Count = 0
    replaces: dict[str, Any] | None = None


class _Writer(msgspec.Struct):
    epoch: _Count = 0


class _Shape(msgspec.Struct):
    """What a manifest must be: it may have been edited by hand. Without ``versions`` and ``files``, which a plain
    Singerlake manifest has, data would fall out of sight; versions may be numbers, as others write them."""

    versions: dict[str, Annotated[str, msgspec.Meta(max_length=20)] | int]
    files: list[str]
    schemas: dict[str, dict[str, Any]] = {}
    file_stats: dict[str, _Stats] = {}
    writers: dict[str, _Writer] = {}
    tap_id: str = ""
    stream: str = ""
    generation: str = ""
    sequence: _Count = 0
    commit_ids: list[Any] = []
    continues: dict[str, _Count] | None = None
    removed: dict[str, Any] | None = None


class NewerFormat(LakeError):
    """A manifest of a later burler: this one would lose what stands in it."""


def new_document(tap_id: str, stream: str) -> Document:
    """A manifest of no files, of a new generation."""
    return {
        "format": FORMAT,
        "tap_id": tap_id,
        "stream": stream,
        "generation": secrets.token_hex(16),
        "sequence": 0,
        "versions": {},
        "files": [],
        "schemas": {},
        "file_stats": {},
        "writers": {},
        "commit_ids": [],
    }


def to_bytes(document: Document) -> bytes:
    """JSON for people and programs: one entry a line."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def from_bytes(data: bytes, place: str) -> Document:
    """A manifest as a document; keys that a plain Singerlake manifest lacks are filled in empty.

    Raises:
        LakeError: no JSON, not of a manifest's shape, or of a newer format; names the file and the cure.
    """
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise broken(place, f"no valid JSON ({error})") from None
    if not isinstance(document, dict):
        raise broken(place, "no JSON object")
    document.setdefault("format", FORMAT)
    if document["format"] != FORMAT:
        number = document["format"]
        if isinstance(number, int) and number > FORMAT:
            raise NewerFormat(f"{place} has format {number}; this burler knows {FORMAT}. Upgrade burler.")
        raise broken(place, f"format {str(number)[:40]!r} is none of this burler's")
    try:
        checked = msgspec.convert(document, _Shape)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise broken(place, str(error)) from None
    for name in checked.files:
        if "/" not in name or {"", ".", ".."} & set(name.split("/")):
            raise broken(place, f"'files' holds {name!r}, which is no path of a data file inside the folder")
    document["versions"] = {digest: str(name) for digest, name in checked.versions.items()}
    for key in ("schemas", "file_stats", "writers", "generation", "sequence", "commit_ids"):
        document.setdefault(key, getattr(checked, key))
    return document


def broken(place: str, fact: str) -> LakeError:
    """What is said of a manifest that can't be used."""
    return LakeError(
        f"{place} is broken: {fact}.\nMake it anew: burler lake rebuild, which takes all from the data files that can "
        "be had from them."
    )


def add_schema(document: Document, line: bytes, *, digest: str | None = None) -> str:
    """Make a schema version known; its hash. A version that is known keeps its number.

    ``digest`` is the folder's name where another writer chose it by other rules.
    """
    base58, base85 = spellings(line)
    digest = digest or base58
    versions: dict[str, str] = document["versions"]
    if digest not in versions:
        numbers = [int(text[1:]) for text in versions.values() if text[:1] == "v" and text[1:].isdecimal()]
        versions[digest] = f"v{max(numbers, default=0) + 1}"
    known = document["schemas"].setdefault(digest, {})
    if digest in (base58, base85):
        known["base85"] = base85
    known["line"] = line.decode()
    return digest


def add_files(document: Document, files: Iterable[tuple[str, FileStats | None]]) -> None:
    """Add data files (paths relative to the manifest), or replace what is known about them.

    Files whose rows stand in a compacted one that is listed are passed over: they were committed before.

    Raises:
        LockLost: ``vacuum`` has taken one away as a file that no manifest named; its rows must come again.
        LakeError: a file that was replaced was taken away by hand, and its name used again.
    """
    gone, known = document.get("removed") or {}, document["file_stats"]
    held = known.keys() - set(document["files"])
    for name, stats in files:
        if name in gone:
            raise LockLost(
                f"stream '{document.get('stream')}': {name} was removed by 'burler lake vacuum' ({gone[name]}) before "
                "its commit. Nothing was lost: run again from the last STATE."
            )
        if name in held:
            if stats is not None and any(known[name].get(key) != stats.to_wire()[key] for key in _SAME):
                raise LakeError(
                    f"stream '{document.get('stream')}': {name} was compacted, then removed by hand, and its name was "
                    "used again.\nNothing was lost: run 'burler lake vacuum', then again from the last STATE."
                )
            continue
        if stats is not None:
            document["file_stats"][name] = stats.to_wire()
        document["files"].append(name)
    document["files"] = sorted(set(document["files"]), key=layout.sort_key)


def taken_names(document: Document, digest: str) -> frozenset[str]:
    """Names of files of a schema version that must not be given once more: ``add_files`` would not take them.

    Those that ``vacuum`` has taken away, and those whose rows stand in a compacted file.
    """
    names = (document.get("removed") or {}).keys() | (document["file_stats"].keys() - set(document["files"]))
    return frozenset(name for name in names if name.startswith(f"{digest}/"))


def add_commit(document: Document, commit_id: str) -> int:
    """Count a commit; its sequence number."""
    document["sequence"] += 1
    document["commit_ids"] = [*document["commit_ids"], commit_id][-_KEPT_COMMIT_IDS:]
    return int(document["sequence"])
