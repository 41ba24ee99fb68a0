"""Removing batch files that are old (BATCH proposal)."""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burler.batch.naming import is_hidden_below, is_ours_below
from burler.batch.storage import check_prefix, check_root, root_path
from burler.batch.storage_local import CURES, remove_if_dead
from burler.batch.storage_s3 import S3Uploads
from burler.errors import ConfigError, UsageError
from burler.files.store_times import modified_seconds
from burler.localfile import errors
from burler.storage.faults import faults, is_forbidden, open_filesystem, said
from burler.storage.location import hide_options

logger = logging.getLogger("burler")

_AT_ONCE = 500
_OPTIONS = "the storage options"


@dataclass(frozen=True, slots=True)
class Removed:
    """A file that ``prune`` removed, or would have. ``modified``: in seconds since 1970."""

    url: str
    size_bytes: int
    modified: float


def prune(
    root: str,
    *,
    older_than_seconds: float,
    prefix: str = "",
    dry_run: bool = False,
    options: Mapping[str, Any] | None = None,
    now: Callable[[], float] = time.time,
) -> list[Removed]:
    """Remove old batch files of burler's, and what killed runs have left of files that they were writing.

    A run can't remove its own files: it ends before anybody knows whether the target has read them, a target may read
    them again after an error, and those built on the Singer SDK remove none. So it is done apart from runs, by age:
    give one that is well above the longest time for which a target may lie behind.

    Removed are files whose names are of burler's making (``<tap>--<stream>-<run>-<n>`` and a known ending), in the
    folder and in those below it (not in hidden ones, nor through links), and nothing else. Temporary files go whatever
    their age if the process that wrote them has ended, unfinished uploads to S3 if they are old.

    Args:
        root: a folder, or a URL of a store.
        older_than_seconds: since the last change; 0 or more.
        prefix: as in ``batch_config.storage.prefix``: only files whose path below the root begins so.
        dry_run: remove nothing, and give what would have been.
        options: for the store's library.
        now: seconds since 1970.

    Returns:
        What was removed, by name.

    Raises:
        ConfigError: an age, root, prefix or options that can't be. UsageError, StorageError: the place can't be read or
        changed; what was removed until then stays so. A folder below it that can't be read is said in the log.
    """
    if not older_than_seconds >= 0:
        raise ConfigError(f"batch files to remove are 0 seconds old or more, not {older_than_seconds!r}.")
    hide_options(options or {})
    check_root(root, "the folder of batch files")
    check_prefix(prefix, "prefix")
    before = now() - older_than_seconds
    folder = root_path(root, "the folder of batch files")
    if folder is not None:
        return list(_prune_local(folder, prefix, before, dry_run))
    return _prune_remote(root, prefix, before, dry_run, dict(options or {}))


def _prune_local(folder: Path, prefix: str, before: float, dry_run: bool) -> Iterator[Removed]:
    inside, _, own = prefix.rpartition("/")
    place = folder / inside
    try:
        with errors(place, "listed", CURES, missing_is_an_answer=True):
            entries = sorted(_files(place, own))
    except FileNotFoundError:
        raise UsageError(f"{place} is not there. Give the folder of batch files (batch_config.storage.root).") from None
    for name in entries:
        ours = is_ours_below(name, own)
        if not ours and not is_hidden_below(name, own):
            continue
        path = place / name
        with errors(path, "removed", CURES):
            try:
                info = path.lstat()
                if not stat.S_ISREG(info.st_mode):
                    continue
                old = info.st_mtime < before
                if ours and old and not dry_run:
                    path.unlink()
            except FileNotFoundError:  # another was quicker
                continue
        if old if ours else remove_if_dead(path, old=old, dry_run=dry_run) is not None:
            yield Removed(f"file://{path}", info.st_size, info.st_mtime)


def _files(place: Path, own: str) -> Iterator[str]:
    """Paths below a folder, of what is no folder. Of the folders in it those whose names begin so are gone into."""
    folders = [""]
    while folders:
        inside = folders.pop()
        try:
            with os.scandir(place / inside) as found:
                for entry in found:
                    if not entry.is_dir(follow_symlinks=False):
                        yield inside + entry.name
                    elif _is_entered(entry.name, inside, own):
                        folders.append(f"{inside}{entry.name}/")
        except OSError as error:
            if not inside:
                raise
            _not_entered(str(place / inside), error)


def _is_entered(name: str, inside: str, own: str) -> bool:
    return not name.startswith(".") and (bool(inside) or name.startswith(own))


def _not_entered(place: str, error: Exception) -> None:
    """Say which folder was left out; one that is gone is no loss."""
    if not isinstance(error, FileNotFoundError):
        logger.warning("batch files below %s stay: it can't be listed: %s.", place, said(error))


def _prune_remote(root: str, prefix: str, before: float, dry_run: bool, options: dict[str, Any]) -> list[Removed]:
    scheme, _, rest = root.partition("://")
    inside, _, own = prefix.rpartition("/")
    url = f"{scheme.lower()}://{'/'.join(part for part in (*rest.split('/'), *inside.split('/')) if part)}"
    store, place = open_filesystem(
        url, options, needed_for="burler batch clean", name="the folder of batch files", options_name=_OPTIONS
    )
    paths, gone, ageless = [], [], []
    with faults(url, "listed", at_start=True, options_name=_OPTIONS):
        for name, info in sorted(_objects(store, place, own), key=lambda found: found[0]):
            if not is_ours_below(name, own) and not is_hidden_below(name, own):
                continue
            modified = modified_seconds(store, info)
            if modified is None:
                ageless.append(name)
            elif modified < before:
                paths.append(info["name"])
                gone.append(Removed(f"{url}/{name}", int(info.get("size") or 0), modified))
    if ageless:
        logger.warning(
            "batch files of %s stay (%d, such as %s): the store does not say when they were written.",
            url,
            len(ageless),
            ageless[0],
        )
    with faults(url, "cleaned", at_start=True, options_name=_OPTIONS):
        for start in range(0, 0 if dry_run else len(paths), _AT_ONCE):
            store.rm(paths[start : start + _AT_ONCE])
        if scheme.lower() in ("s3", "s3a"):
            for key, begun in S3Uploads(store).old(place, lambda name: is_ours_below(name, own), before, dry_run):
                gone.append(Removed(f"{url}/{key}", 0, begun))
    return gone


def _objects(store: Any, place: str, own: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """As ``_files``, of a store: (path below the place, what the store says of the file)."""
    folders = [""]
    while folders:
        inside = folders.pop()
        try:
            listed = list(store.ls(f"{place}/{inside}".rstrip("/"), detail=True)) if inside else _listed(store, place)
        except Exception as error:  # stores have errors of their own
            if not inside or not (isinstance(error, FileNotFoundError) or is_forbidden(error)):
                raise
            _not_entered(f"{place}/{inside}".rstrip("/"), error)
            continue
        for info in listed:
            name = str(info["name"]).rstrip("/").rpartition("/")[2]
            if info.get("type") == "file":
                yield inside + name, info
            elif name and _is_entered(name, inside, own):
                folders.append(f"{inside}{name}/")


def _listed(store: Any, place: str) -> list[dict[str, Any]]:
    """What is directly in a store's folder. In a bucket, a folder without files is not there."""
    store.invalidate_cache()
    try:
        return list(store.ls(place, detail=True))
    except FileNotFoundError:
        bucket = place.partition("/")[0]
        if not bucket or bucket == place:
            raise
        store.info(bucket)
        return []
