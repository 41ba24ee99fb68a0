"""S3's own ways to write: exclusive creation, and what to think of a reply that got lost."""

from __future__ import annotations

import contextlib
import errno
import logging
import secrets
import threading
from collections.abc import Callable, Iterator
from typing import Any

from burler.storage.bucket import PATIENCE_SECONDS

logger = logging.getLogger("burler")

_WORD_SECONDS = 30.0
_LAST_SECONDS = 10.0  # of a store that has not answered once: for aborting what was begun
_MARK = "burler"


class Patience:
    """Calls of an s3fs store of our own, each of which ends. The libraries try many times, and may then wait for a free
    connection for ever: those that timed out are not always given back."""

    def __init__(self, store: Any) -> None:
        self._call = store.call_s3
        self._seconds = PATIENCE_SECONDS
        store.call_s3 = self

    def __call__(self, method: str, *args: Any, **more: Any) -> Any:
        """As ``S3FileSystem.call_s3``."""
        word = threading.Timer(_WORD_SECONDS, self._say, (more.get("Key"),))
        word.daemon = True
        word.start()
        try:
            return self.ended(self._call, method, *args, **more)
        finally:
            word.cancel()

    def ended(self, call: Callable[..., Any], *args: Any, **more: Any) -> Any:
        """What a method of the store gives.

        Raises:
            TimeoutError: it gave nothing. And what the store raises.
        """
        from fsspec.exceptions import FSTimeoutError

        seconds = self._seconds
        try:
            return call(*args, timeout=seconds, **more)
        except FSTimeoutError:
            self._seconds = min(seconds, _LAST_SECONDS)
            raise TimeoutError(f"no answer within {seconds:g} seconds") from None

    def _say(self, key: str | None) -> None:
        what = f"batch file '{key}'" if key else "batch files"
        logger.warning(
            "%s: the store has not answered for %g seconds; it is given up after %g.",
            what,
            _WORD_SECONDS,
            self._seconds,
        )


class S3Writes:
    """Writes objects through an s3fs store, each with a mark of its own in its metadata.

    s3fs asks again when a reply gets lost. If the first request did complete the object, the second is told that it
    exists, or that there is no such upload; by its mark burler knows its own.
    """

    def __init__(self, store: Any) -> None:
        self._store = store
        self._mark = secrets.token_hex(12)

    @staticmethod
    def options(given: dict[str, Any], *, presigning: bool) -> dict[str, Any]:
        """Options for s3fs: a store of our own (``Patience`` changes it); signed URLs get the signature that all
        regions take (version 4)."""
        given = {**given, "skip_instance_cache": True}
        if not presigning:
            return given
        config = {"signature_version": "s3v4", **(given.get("config_kwargs") or {})}
        return {**given, "config_kwargs": config}

    def open(self, path: str, part_bytes: int) -> Any:
        """Begin an object that must not be there."""
        more = {**(self._store.s3_additional_kwargs.get("Metadata") or {}), _MARK: self._mark}
        return self._store.open(path, "xb", block_size=part_bytes, Metadata=more)

    def finish(self, file: Any) -> None:
        """Complete an object.

        Raises:
            FileExistsError: there is another one of this name. And what s3fs raises.
        """
        try:
            self._complete(file)
        except Exception:
            if not self._is_ours(file):
                raise
            file.closed = True

    def _complete(self, file: Any) -> None:
        try:
            file.close()
        except OSError as error:
            if error.errno != errno.ENOSYS:
                raise
            # A store that does not know If-None-Match (501 NotImplemented): look, then write.
            self._store.invalidate_cache(file.path)
            if self._store.exists(file.path):
                raise FileExistsError from None
            file.mode = "wb"
            file.commit()

    def _is_ours(self, file: Any) -> bool:
        with contextlib.suppress(Exception):
            head = self._store.call_s3("head_object", Bucket=file.bucket, Key=file.key)
            return bool(head["Metadata"].get(_MARK) == self._mark)
        return False

    def try_upload(self, path: str) -> None:
        """Begin an upload and abort it: whether these credentials may write here."""
        bucket, key, _ = self._store.split_path(path)
        begun = self._store.call_s3("create_multipart_upload", Bucket=bucket, Key=key)
        with contextlib.suppress(Exception):
            self._store.call_s3("abort_multipart_upload", Bucket=bucket, Key=key, UploadId=begun["UploadId"])


class S3Uploads:
    """Uploads that were begun and neither completed nor aborted: S3 keeps their parts, and bills them, for ever."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def old(
        self, folder: str, wanted: Callable[[str], bool], before: float, dry_run: bool
    ) -> Iterator[tuple[str, float]]:
        """Abort those below a folder that were begun before a time (seconds since 1970), and whose path in it is
        ``wanted``; yields (path, when it was begun)."""
        bucket, inside, _ = self._store.split_path(f"{folder.rstrip('/')}/x")
        inside = inside[:-1]
        for upload in list(self._all(bucket, inside)):
            name, begun = upload["Key"][len(inside) :], upload["Initiated"].timestamp()
            if begun >= before or not wanted(name):
                continue
            if not dry_run:
                with contextlib.suppress(FileNotFoundError):  # completed or aborted meanwhile
                    self._store.call_s3(
                        "abort_multipart_upload", Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"]
                    )
            yield name, begun

    def _all(self, bucket: str, inside: str) -> Iterator[dict[str, Any]]:
        page: dict[str, Any] = {}
        while True:
            found = self._store.call_s3("list_multipart_uploads", Bucket=bucket, Prefix=inside, **page)
            yield from found.get("Uploads") or ()
            if not found.get("IsTruncated"):
                return
            page = {"KeyMarker": found["NextKeyMarker"], "UploadIdMarker": found["NextUploadIdMarker"]}
