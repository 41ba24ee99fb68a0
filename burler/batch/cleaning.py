"""Removing batch files that are old (BATCH proposal)."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from burler.batch.storage import WORDS, check_prefix, is_ours, locate
from burler.errors import ConfigError, UsageError
from burler.storage import open_location
from burler.storage.base import UNKNOWN_TIME, StoredFile, is_hidden

logger = logging.getLogger("burler")

_AT_ONCE = 8
_WORDS = dataclasses.replace(
    WORDS, place="the folder of batch files", options="the storage options", use="burler batch clean"
)


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
    location = locate(root, _WORDS, options)
    check_prefix(prefix, "prefix")
    before = now() - older_than_seconds
    inside, _, own = prefix.rpartition("/")
    store = open_location(location)
    begin = f"{inside}/" if inside else ""
    if location.folder is not None:
        if not (location.folder / inside).is_dir():
            raise UsageError(
                f"{location.folder / inside} is not there. Give the folder of batch files (batch_config.storage.root)."
            )
    else:
        store.look(inside)

    def ours(file: StoredFile) -> bool:
        return is_ours(file.path[len(begin) :], own)

    def remove(file: StoredFile) -> bool:
        """Whether it is gone, or would be."""
        if not ours(file):
            return store.remove_left(file.path, old=file.modified < before, dry_run=dry_run)
        if not dry_run:
            store.remove(file.path)
        return True

    def not_entered(path: str, error: OSError) -> None:
        if path.startswith(prefix) and not is_hidden(path):
            place = store.locate(path)
            logger.warning("batch files below %s stay: it can't be listed: %s.", place, error.strerror or error)

    found = list(store.files(inside, hidden=True, unreadable=not_entered))
    found = [file for file in found if ours(file) or is_ours(file.path[len(begin) :], own, hidden=True)]
    if location.folder is not None:
        found = [file for file in found if not (location.folder / file.path).is_symlink()]
    ageless = [file for file in found if file.modified == UNKNOWN_TIME]
    if ageless:
        logger.warning(
            "batch files of %s stay (%d, such as %s): the store does not say when they were written.",
            location.url,
            len(ageless),
            ageless[0].path,
        )
    old = [file for file in found if file.modified < before or not ours(file)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        gone = [file for file, is_gone in zip(old, pool.map(remove, old), strict=True) if is_gone]
    gone += store.abort_uploads(inside, lambda path: is_ours(path, own), before=before, dry_run=dry_run)
    url = location.url if location.folder is None else f"file://{location.folder}"
    return [Removed(f"{url}/{file.path}", file.size_bytes, file.modified) for file in gone]
