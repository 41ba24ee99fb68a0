"""What a read takes of a lake's stream: one snapshot, the files in it that count, the columns they have together."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from burler.errors import UsageError
from burler.lake.choice import Choice
from burler.lake.datafile import measure
from burler.lake.lake import Lake
from burler.lake.replay import Position
from burler.lake.snapshot import DataFile, Snapshot
from burler.spark.lakefiles import Activation, LakeFile, LakeStream, SchemaVersion, lake_stream
from burler.spark.lakesource.options import LakeOptions
from burler.spark.lakesource.pruned import only
from burler.spark.lakesource.ranges import between
from burler.spark.united import United, unite_stream
from burler.storage.base import Store
from burler.suggest import did_you_mean

_log = logging.getLogger("burler.spark.singerlake")
HOW_TO_NAME = 'Set option("stream", ...) and option("tap", ...).'


@dataclass(frozen=True, slots=True)
class Chosen:
    """A stream as one snapshot has it, and what is wanted of it.

    ``files`` in replay order. ``versions``: the schema versions of the files, and all that came before them.
    ``active``: the last ACTIVATE_VERSION, where rows of other versions are left out.
    """

    lake: LakeStream
    files: tuple[LakeFile, ...]
    active: Activation | None = None


def load(store: Store, options: LakeOptions) -> LakeStream:
    """The stream as its manifest has it now.

    Raises:
        UsageError: there is no such stream. LakeError: the manifest is broken.
    """
    there = Lake(store)
    return lake_stream(store, there.snapshot(*there.one(options.tap, options.stream, how=HOW_TO_NAME)))


def picture(lake: LakeStream) -> Snapshot:
    """The snapshot that a stream was made from."""
    assert lake.snapshot is not None  # ``lake_stream`` always says it
    return lake.snapshot


def choose(lake: LakeStream, options: LakeOptions) -> Chosen:
    """What a batch read takes.

    Raises:
        UsageError: no such schema version, or a sequence that the lake has not come to. LakeError: see ``between``.
    """
    snapshot = picture(lake)
    if options.after is None and options.to is None:
        files: Iterable[DataFile] = snapshot.files
    else:
        files = between(snapshot, Position(options.after or 0), _end(snapshot, options.to))
    chosen = picked(lake, files, options)
    if options.versions == "all":
        return Chosen(lake, chosen)
    active = _active(lake)
    if active is not None:
        chosen = tuple(one for one in chosen if one.rank > active.rank or not one.is_older_than(active.version))
    return Chosen(lake, chosen, active)


def _end(snapshot: Snapshot, to: int | None) -> Position:
    if to is not None and to > snapshot.sequence:
        raise UsageError(
            f"stream '{snapshot.stream}': to_sequence={to}, but its last commit is {snapshot.sequence}. "
            "Leave the option out to read all there is."
        )
    return Position(snapshot.sequence if to is None else to)


def _active(lake: LakeStream) -> Activation | None:
    """The last ACTIVATE_VERSION in replay order."""
    learned, last = _learned(lake), None
    for file in lake.files:
        version = learned.get(file.rank, file.activate_version)
        if version is not None:
            last = Activation(version, file.rank)
    return last


def _learned(lake: LakeStream) -> dict[int, int]:
    """Activations in files of which no manifest knows whether they hold one: rank -> version. They are read for it."""
    unknown = [file for file in lake.files if file.records is None]
    if unknown:
        _log.warning(
            "stream '%s': no manifest knows %d of its files: each is read here first, for ACTIVATE_VERSION. "
            'Make one: burler lake rebuild; or read with option("versions", "all")',
            lake.stream,
            len(unknown),
        )
    found = {file.rank: measure(lake.store, file.lake_path).stats.activate_version for file in unknown}
    return {rank: version for rank, version in found.items() if version is not None}


def picked(lake: LakeStream, files: Iterable[DataFile], options: LakeOptions) -> tuple[LakeFile, ...]:
    """Those of ``files`` that can hold what is wanted, in replay order."""
    choice = Choice.among(picture(lake), options.schema, options.times)
    below = len(picture(lake).folder) + 1
    by_name = {**lake.replaced, **{one.name: one for one in lake.files}}
    found = [by_name[file.path[below:]] for file in files if choice.wants(file)]
    return tuple(sorted(found, key=lambda one: one.rank))


def versions_up_to(lake: LakeStream, files: Sequence[LakeFile]) -> tuple[SchemaVersion, ...]:
    """The schema versions that ``files`` have, and all that came before the last of them; all where there are none."""
    used = {file.hash for file in files}
    last = max((at for at, one in enumerate(lake.versions) if one.hash in used), default=len(lake.versions) - 1)
    return tuple(lake.versions[: last + 1])


def united(lake: LakeStream, versions: Sequence[SchemaVersion], options: LakeOptions) -> United:
    """The columns of these schema versions together, less those that ``fields`` leaves out.

    Raises:
        UsageError: the lake knows no schema, or ``fields`` names a column that there is not.
    """
    wanted = Choice.among(picture(lake), options.schema, options.times).hashes
    versions = [one for one in versions if wanted is None or one.hash in wanted]
    if not versions:
        raise UsageError(f"stream '{lake.stream}': the lake knows no schema of it, so there are no columns.")
    whole = unite_stream(lake.stream, versions, options.read)
    if options.fields is None:
        return whole
    names = [name for name, _ in whole.record.fields]
    unknown = [name for name in options.fields if name not in names]
    if unknown:
        hint = did_you_mean(unknown[0], names)
        raise UsageError(f"stream '{lake.stream}' has no field '{unknown[0]}'.{hint} Its fields: {', '.join(names)}.")
    return only(whole, options.fields)


def without_folder(file: LakeFile) -> LakeFile:
    """A file as it travels to an executor: without the list of what it replaces, which may be long."""
    return dataclasses.replace(file, replaces=None)
