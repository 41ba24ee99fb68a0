"""Removing batch files that are old (BATCH proposal; specs 5)."""

from __future__ import annotations

import datetime as dt
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burler.batch.naming import is_hidden, is_ours
from burler.batch.storage import check_prefix, check_root, hide_options, local_path
from burler.batch.storage_local import CURES, remove_if_dead
from burler.batch.storage_s3 import S3Uploads
from burler.batch.store_faults import faults, open_filesystem
from burler.errors import ConfigError, UsageError
from burler.lake.local_file import errors

# How stores call the time of a file's last change.
_TIMES = ("LastModified", "last_modified", "mtime", "updated", "modified", "created")
_AT_ONCE = 500


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

    Removed are files directly in the folder whose names are of burler's making (``<prefix><tap>--<stream>-<run>-<n>``
    and a known ending), and nothing else. Temporary files go whatever their age if the process that wrote them has
    ended, unfinished uploads to S3 if they are old.

    Args:
        root: a folder, or a URL of a store.
        older_than_seconds: since the last change; 0 or more.
        prefix: as in ``batch_config.storage.prefix``: only names that begin so; folders in it are gone into.
        dry_run: remove nothing, and give what would have been.
        options: for the store's library.
        now: seconds since 1970.

    Returns:
        What was removed, by name.

    Raises:
        ConfigError: an age, root or prefix that can't be. UsageError, StorageError: the place can't be read or changed;
        what was removed until then stays so.
    """
    if not older_than_seconds >= 0:
        raise ConfigError(f"batch files to remove are 0 seconds old or more, not {older_than_seconds!r}.")
    hide_options(options or {})
    check_root(root, "the folder of batch files")
    check_prefix(prefix, "prefix")
    before = now() - older_than_seconds
    folder = local_path(root, "the folder of batch files")
    if folder is not None:
        return list(_prune_local(folder, prefix, before, dry_run))
    return _prune_remote(root, prefix, before, dry_run, dict(options or {}))


def _prune_local(folder: Path, prefix: str, before: float, dry_run: bool) -> Iterator[Removed]:
    inside, _, own = prefix.rpartition("/")
    place = folder / inside
    try:
        with errors(place, "listed", CURES, missing_is_an_answer=True), os.scandir(place) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except FileNotFoundError:
        raise UsageError(f"{place} is not there. Give the folder of batch files (batch_config.storage.root).") from None
    for entry in entries:
        ours = is_ours(entry.name, own)
        if not ours and not is_hidden(entry.name, own):
            continue
        path = Path(entry.path)
        with errors(path, "removed", CURES):
            try:
                info = entry.stat(follow_symlinks=False)
                if not stat.S_ISREG(info.st_mode):
                    continue
                old = info.st_mtime < before
                if ours and old and not dry_run:
                    path.unlink()
            except FileNotFoundError:  # another was quicker
                continue
        if old if ours else remove_if_dead(path, old=old, dry_run=dry_run) is not None:
            yield Removed(f"file://{path}", info.st_size, info.st_mtime)


def _prune_remote(root: str, prefix: str, before: float, dry_run: bool, options: dict[str, Any]) -> list[Removed]:
    scheme, _, rest = root.partition("://")
    inside, _, own = prefix.rpartition("/")
    url = f"{scheme.lower()}://{'/'.join(part for part in (*rest.split('/'), *inside.split('/')) if part)}"
    store, place = open_filesystem(url, options, needed_for="burler batch clean", name="the folder of batch files")
    with faults(url, "listed", at_start=True):
        listed = sorted(_listed(store, place), key=lambda info: str(info["name"]))
    paths, gone = [], []
    for info in listed:
        name = str(info["name"]).rpartition("/")[2]
        if info.get("type") != "file" or not (is_ours(name, own) or is_hidden(name, own)):
            continue
        modified = _modified(info)
        if modified is not None and modified < before:
            paths.append(info["name"])
            gone.append(Removed(f"{url}/{name}", int(info.get("size") or 0), modified))
    with faults(url, "cleaned", at_start=True):
        for start in range(0, 0 if dry_run else len(paths), _AT_ONCE):
            store.rm(paths[start : start + _AT_ONCE])
        if scheme.lower() in ("s3", "s3a"):
            for key, begun in S3Uploads(store).old(place, lambda name: is_ours(name, own), before, dry_run):
                gone.append(Removed(f"{url}/{key}", 0, begun))
    return gone


def _listed(store: Any, place: str) -> list[dict[str, Any]]:
    """What is directly in a folder. In a bucket, a folder without files is not there."""
    store.invalidate_cache()
    try:
        return list(store.ls(place, detail=True))
    except FileNotFoundError:
        bucket = place.partition("/")[0]
        if not bucket or bucket == place:
            raise
        store.info(bucket)
        return []


def _modified(info: Mapping[str, Any]) -> float | None:
    """The time of a file's last change, in seconds since 1970; None where the store does not say: such a file stays."""
    value = next((info[key] for key in _TIMES if info.get(key)), None)
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, dt.datetime):
        return (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).timestamp()
    return float(value) if isinstance(value, int | float) else None
