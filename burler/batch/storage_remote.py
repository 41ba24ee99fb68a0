"""Batch files in a store that fsspec reaches: sent in parts, visible as a whole.

Object stores (S3, GCS, Azure) show an object once its upload is completed, and forget one that is not; burler aborts
uploads that it gives up. On other stores (SFTP, memory, ...) a file has a hidden name until it is renamed.

No object is ever overwritten: the store is asked to refuse where it can (If-None-Match on S3); where it can't, burler
looks before it writes, and names are those of one run alone.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from burler.batch.naming import hidden_name, is_plain
from burler.batch.storage_s3 import Patience, S3Writes
from burler.config.secrets import hide
from burler.errors import ConfigError, StorageError
from burler.storage.faults import faults, is_forbidden, open_filesystem, said

logger = logging.getLogger("burler")

PART_BYTES = 8 << 20
"""What is held of a file in memory, and sent at once. S3 takes 10,000 parts: 80 GB in a file."""

OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci"})


class RemoteStorage:
    """A folder of a store.

    Args:
        root: its URL, looked at by ``check_root``.
        prefix: put before each name.
        options: for the store's library.
        presign_seconds: None, or URLs will be signed.

    Raises:
        ConfigError, UsageError, StorageError, MissingExtra: see ``open_storage``.
    """

    def __init__(
        self, root: str, prefix: str, options: Mapping[str, Any], *, presign_seconds: int | None = None
    ) -> None:
        scheme, _, rest = root.partition("://")
        self._scheme = scheme.lower()
        self._root = f"{self._scheme}://{'/'.join(part for part in rest.split('/') if part)}"
        self._prefix = prefix
        given = dict(options)
        if self._scheme in ("s3", "s3a"):
            given = S3Writes.options(given, presigning=presign_seconds is not None)
        self._store, path = open_filesystem(
            self._root, given, needed_for=f"writing batch files on {self._scheme}://", name="batch_config.storage.root"
        )
        self._check(path)
        if presign_seconds is not None:
            self._check_presign(presign_seconds)

    @property
    def root(self) -> str:
        """The folder's URL."""
        return self._root

    def __repr__(self) -> str:
        return f"RemoteStorage({self._root!r})"

    def new_file(self, name: str) -> NewRemoteFile:
        """See ``Storage.new_file``."""
        if not is_plain(name) or "/" in name or name.startswith("."):
            raise ValueError(f"a batch file can't be named {name!r}")
        url = f"{self._root}/{self._prefix}{name}"
        if self._scheme in OBJECT_STORES:
            return NewRemoteFile(self._store, url, S3Writes(self._store) if self._scheme in ("s3", "s3a") else None)
        return NewRemoteFile(self._store, url, None, hidden=True)

    def presign(self, url: str, seconds: int) -> str:
        """See ``Storage.presign``. The signature is hidden from logs and errors of this process."""
        with faults(url, "signed"):
            signed = str(self._store.sign(self._store._strip_protocol(url), expiration=seconds))
        hide(signed.partition("?")[2])
        return signed

    def leftovers(self) -> list[str]:
        """None: a store does not know which uploads are dead. ``prune`` removes old ones."""
        return []

    def remove_leftovers(self) -> int:
        """0; see ``leftovers``."""
        return 0

    def _check(self, path: str) -> None:
        """Ask the store for something: one that can't be reached, no credentials, on S3 a wrong bucket show before the
        first row is read. Who may only write may not look: that is no error."""
        if self._scheme in ("s3", "s3a"):
            bucket = path.partition("/")[0]
            patience = Patience(self._store)
            with faults(f"{self._scheme}://{bucket}", "looked at", at_start=True):
                try:
                    patience.ended(self._store.info, bucket)
                except PermissionError:
                    S3Writes(self._store).try_upload(f"{path}/{self._prefix}probe")
            return
        with faults(self._root, "looked at", at_start=True), contextlib.suppress(FileNotFoundError):
            try:
                self._store.info(f"{path}/{self._prefix}probe")
            except Exception as error:
                if not is_forbidden(error):
                    raise

    def _check_presign(self, seconds: int) -> None:
        cure = f"Leave it out, or use a store and credentials that sign URLs ({self._scheme}:// does not)."
        if self._scheme in ("s3", "s3a") and seconds > 7 * 86_400:
            raise ConfigError(
                f"batch_config.presign_seconds: {seconds} is more than a signature of S3 can last: 604800 (7 days)."
            )
        try:
            signed = self._store.sign(self._store._strip_protocol(f"{self._root}/probe"), expiration=seconds)
        except NotImplementedError:
            raise ConfigError(f"batch_config.presign_seconds: {self._scheme}:// has no signed URLs. {cure}") from None
        except Exception as error:  # keys that can't sign, each library in its own words
            raise ConfigError(f"batch_config.presign_seconds: no URL can be signed: {said(error)}.\n  {cure}") from None
        if "?" not in str(signed):
            raise ConfigError(f"batch_config.presign_seconds: no URL is signed without credentials. {cure}")
        hide(str(signed).partition("?")[2])


class NewRemoteFile:
    """See ``NewBatchFile``. ``s3``: S3's own ways; ``hidden``: the store shows files while they are written."""

    def __init__(self, store: Any, url: str, s3: S3Writes | None, *, hidden: bool = False) -> None:
        self._store, self._url, self._s3 = store, url, s3
        self._path = store._strip_protocol(url)
        folder, _, name = self._path.rpartition("/")
        self._begun = f"{folder}/{hidden_name(name, secrets.token_hex(8))}" if hidden else self._path
        self._published = False
        with faults(url, "written"):
            if hidden:
                store.makedirs(folder, exist_ok=True)
            self._file = self._opened(hidden)
        self._dropped = weakref.finalize(
            self, _throw_away, store, self._file, self._begun if hidden else None, os.getpid()
        )

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """See ``NewBatchFile.write``. Whole parts are sent at once; this waits for the network."""
        self._check_open()
        with self._discarding(), faults(self._url, "written"), memoryview(data) as given, given.cast("B") as view:
            for start in range(0, len(view), PART_BYTES):
                self._file.write(bytes(view[start : start + PART_BYTES]))

    def publish(self, name: str | None = None) -> str:
        """See ``NewBatchFile.publish``. An upload can't take another name at its end.

        Raises:
            StorageError: also where the name is taken.
        """
        self._check_open()
        with self._discarding(), faults(self._url, "written"):
            if name is not None and name != self._url.rpartition("/")[2]:
                raise StorageError(f"{self._url} can't get another name: an upload has its name from the beginning.")
            try:
                self._finish()
            except FileExistsError:
                raise StorageError(
                    f"{self._url} can't be written: there is a file of this name, which burler did not overwrite.\n"
                    "  Another tap writes under the same names: give each a batch_config.storage.prefix of its own."
                ) from None
        self._published = True
        self._dropped.detach()
        return self._url

    def discard(self) -> None:
        """See ``NewBatchFile.discard``. An upload is aborted, so that the store keeps no part of it."""
        self._dropped()

    def withdraw(self) -> None:
        """See ``NewBatchFile.withdraw``."""
        self.discard()
        if self._published:
            self._published = False
            self._remove()

    def _opened(self, hidden: bool) -> Any:
        if self._s3 is not None:
            return self._s3.open(self._path, PART_BYTES)
        if hidden:
            return self._store.open(self._begun, "wb", block_size=PART_BYTES)
        try:
            return self._store.open(self._path, "xb", block_size=PART_BYTES)
        except (NotImplementedError, ValueError):  # a library that knows no exclusive creation
            return self._store.open(self._path, "wb", block_size=PART_BYTES)

    def _finish(self) -> None:
        if self._s3 is not None:
            self._s3.finish(self._file)
            return
        if self._begun != self._path or self._file.mode != "xb":
            self._store.invalidate_cache()
            if self._store.exists(self._path):
                raise FileExistsError
        self._file.close()
        if self._begun != self._path:
            self._store.mv(self._begun, self._path)

    def _check_open(self) -> None:
        if self._published or not self._dropped.alive:
            raise StorageError(f"{self._url} was given up, or is finished: nothing can be written to it.")

    @contextlib.contextmanager
    def _discarding(self) -> Iterator[None]:
        """Whatever goes wrong, nothing of the file stays."""
        try:
            yield
        except BaseException:
            self.discard()
            raise

    def _remove(self) -> None:
        try:
            self._store.rm_file(self._path)
        except FileNotFoundError:
            pass
        except Exception as error:
            logger.warning("batch file %s, whose message did not go out, can't be removed: %s.", self._url, said(error))


def _throw_away(store: Any, file: Any, hidden: str | None, pid: int) -> None:
    """Give up a file that nobody will finish; in a forked process it is its parent's.

    A file of fsspec's that is simply dropped would complete its upload when it is collected.
    """
    if os.getpid() != pid:
        with contextlib.suppress(Exception):
            file.closed = True
        return
    try:
        if hidden is None:
            file.discard()
    except Exception as error:
        logger.warning("batch files: an upload can't be aborted, and the store keeps its parts: %s.", said(error))
    with contextlib.suppress(Exception):
        if hidden is None:
            file.closed = True
        else:
            file.close()
            store.rm_file(hidden)
