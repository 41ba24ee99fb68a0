"""Object stores: what S3, GCS, Azure and the stores of fsspec have in common.

An object is there whole or not at all, so there are no hidden names: a data file is kept here until it is whole, and
then sent under the condition that its name is free. Where a store keeps no conditions, burler looks before it
writes, and one writer alone may use the folder.
"""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import os
import secrets
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from burler.errors import StorageError
from burler.localfile import hidden_name
from burler.storage.base import (
    Blob,
    Conflict,
    FileStore,
    OutcomeUnknown,
    StoredFile,
    check_folder,
    check_path,
    is_hidden,
)
from burler.storage.bucket import ABSENT, START_PATIENCE_SECONDS, Bucket, ObjectInfo, ObjectPart, Retry, Verdict
from burler.storage.faults import faults, is_forbidden
from burler.storage.location import Location

Connect = Callable[[Location], tuple[Bucket, str]]
"""Gives the bucket of a URL, and the path in it. Nothing is asked for yet."""


class ObjectStore(FileStore):
    """A folder of a bucket. A forked process connects anew, and so does one that a store is sent to.

    Args:
        connect: makes the bucket.
        probing: find out whether the bucket keeps conditions before anything rests on it; else it is taken to keep them
            until it says that it knows none: enough for those who only create, under names of their own.
    """

    def __init__(self, location: Location, connect: Connect, *, probing: bool = True) -> None:
        self._location, self._connect, self._probing = location, connect, probing
        self._connected: tuple[int, Bucket, str, Retry] | None = None
        self._held: Conditions | None = None
        self._calls()

    @property
    def url(self) -> str:
        """As it was given."""
        return self._location.url

    @property
    def conditional(self) -> bool:
        """See ``Store.conditional``. Found out by trying, once."""
        return self._keeps().writes

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return ObjectStore, (self._location, self._connect), {"_held": self._held, "_probing": self._probing}

    def look(self, folder: str, /) -> bool:
        """See ``Store.look``."""
        bucket, prefix, early = self._early(folder)
        with self._faults(self.url, "looked at", at_start=True):
            page, after = early.call(self.url, lambda: bucket.list(prefix, "", 1))
        return bool(page or after)

    def try_writing(self, folder: str, /) -> None:
        """See ``FileStore.try_writing``."""
        bucket, prefix, early = self._early(folder)
        with self._faults(self.url, "looked at", at_start=True):
            try:
                early.call(self.url, lambda: bucket.list(prefix, "", 1))
            except Exception as error:
                if not is_forbidden(error):
                    raise
                early.call(self.url, lambda: bucket.try_upload(f"{prefix}{hidden_name()}"))

    def sign(self, path: str, seconds: int, /) -> str:
        """See ``FileStore.sign``."""
        return self._calls()[0].sign(self._key(path), seconds)

    def remove_left(self, path: str, /, *, old: bool, dry_run: bool = False) -> bool:
        """See ``FileStore.remove_left``."""
        if old and not dry_run:
            self.remove(path)
        return old

    def abort_uploads(
        self, folder: str, wanted: Callable[[str], bool], /, *, before: float, dry_run: bool = False
    ) -> Iterator[StoredFile]:
        """See ``FileStore.abort_uploads``."""
        bucket, prefix, retry = self._calls()
        inside = self._folder(folder)
        with self._faults(self.locate(folder) if folder else self.url, "cleaned", at_start=True):
            for upload in list(bucket.uploads(inside)):
                if upload.begun < before and wanted(upload.key[len(inside) :]):
                    if not dry_run:
                        retry.call(self.url, functools.partial(bucket.abort, upload))
                    yield StoredFile(upload.key[len(prefix) :], 0, upload.begun)

    def read(self, path: str, /) -> Blob | None:
        """A whole small file with its tag; None when there is none."""
        try:
            piece = self._fetch(path, 0, None)
        except FileNotFoundError:
            return None
        return Blob(piece.data, piece.tag)

    def create(self, path: str, data: bytes, /) -> str:
        """Make an object, or raise FileExistsError; see ``Store.create``."""
        return self._write(path, io.BytesIO(data), len(data), ABSENT)

    def replace(self, path: str, data: bytes, /, *, tag: str) -> str:
        """Compare and swap; see ``Store.replace``."""
        return self._write(path, io.BytesIO(data), len(data), tag)

    def delete(self, path: str, /, *, tag: str) -> None:
        """Compare and delete; see ``Store.delete``."""
        bucket, _, retry = self._calls()
        key, place, lost = self._key(path), self.locate(path), False
        condition = tag if self._keeps().deletes else None

        def act() -> None:
            nonlocal lost
            try:
                bucket.delete(key, condition=condition)
            except Exception as error:
                lost = lost or bucket.verdict(error) is Verdict.LOST
                raise

        with self._faults(place, "removed"):
            # Stores differ in what they say where there is nothing to remove, and some keep no such condition.
            if _tag(self._head(path)) != tag:
                raise Conflict(place)
            try:
                retry.call(place, act)
            except Exception as error:
                verdict = bucket.verdict(error)
                if verdict in (Verdict.MISSING, Verdict.REFUSED):
                    if self._head(path) is None:
                        return  # by us: a reply got lost, perhaps one that the library has told nobody about
                    raise Conflict(place) from None
                if lost:
                    raise OutcomeUnknown(
                        f"{place}: no answer came, and nobody knows whether it was removed."
                    ) from error
                raise

    def remove(self, path: str, /) -> None:
        """Remove an object; fine if it is not there."""
        bucket, _, retry = self._calls()
        key, place = self._key(path), self.locate(path)
        with self._faults(place, "removed"):
            try:
                retry.call(place, lambda: bucket.delete(key, condition=None))
            except Exception as error:
                if bucket.verdict(error) is not Verdict.MISSING:
                    raise

    def files(self, folder: str, /, *, hidden: bool = False, unreadable: object = None) -> Iterator[StoredFile]:
        """See ``Store.files``."""
        bucket, prefix, _ = self._calls()
        found = self._listed(self._folder(folder), hidden, self.locate(folder) if folder else self.url)
        for file in found if bucket.in_order else sorted(found, key=lambda file: file.path):
            yield StoredFile(file.path[len(prefix) :], file.size_bytes, file.modified)

    def folders(self, folder: str, /) -> list[str]:
        """Names of the visible folders directly inside ``folder``, sorted."""
        bucket, _, retry = self._calls()
        prefix, place = self._folder(folder), self.locate(folder) if folder else self.url
        with self._faults(place, "listed"):
            names = retry.call(place, lambda: bucket.folders(prefix))
        return sorted(name for name in names if name and not is_hidden(name))

    def new_file(self, folder: str, /, name: str = "") -> SpooledFile:
        """Begin a data file; it is kept here until it is published."""
        check_folder(folder, self.url)
        return SpooledFile(self._publish, self.url)

    def open(self, path: str, /) -> BinaryIO:
        """An object for reading from its start; FileNotFoundError when there is none."""
        place = self.locate(path)
        return stream(
            lambda start, stop: self._fetch(path, start, stop),
            lambda: StorageError(f"{place} was replaced while it was read. Run again."),
        )

    def locate(self, path: str, /) -> str:
        """The object's URL."""
        check_path(path, self.url)
        return f"{self.url}/{path}"

    def hold(self, path: str, /) -> None:
        """None: no store knows which processes live."""
        self._key(path)

    def _calls(self) -> tuple[Bucket, str, Retry]:
        """The bucket of this process, what stands before each path, and how calls are made."""
        if self._connected is None or self._connected[0] != os.getpid():
            bucket, path = self._connect(self._location)
            self._connected = (os.getpid(), bucket, f"{path}/" if path else "", Retry(bucket.verdict))
        return self._connected[1:]

    def _early(self, folder: str) -> tuple[Bucket, str, Retry]:
        """As ``_calls``, of a folder, with the patience of the first question."""
        bucket = self._calls()[0]
        return bucket, self._folder(folder), Retry(bucket.verdict, patience_seconds=START_PATIENCE_SECONDS)

    def _keeps(self) -> Conditions:
        if self._held is None:
            bucket, _, retry = self._calls()
            if bucket.keeps_conditions is not None:
                self._held = Conditions(bucket.keeps_conditions, bucket.keeps_conditions)
            elif not self._probing:
                return Conditions(True, True)
            else:
                with self._faults(self.url, "written", at_start=True):
                    self._held = _probed(bucket, retry, self._key(PROBE_FOLDER), self.url)
        return self._held

    def _faults(self, place: str, doing: str, **more: bool) -> contextlib.AbstractContextManager[None]:
        return faults(place, doing, self._location.words, **more)

    def _key(self, path: str) -> str:
        check_path(path, self.url)
        return self._calls()[1] + path

    def _folder(self, folder: str) -> str:
        """What the keys of a folder's files begin with."""
        return f"{self._key(folder)}/" if folder else self._calls()[1]

    def _fetch(self, path: str, start: int, stop: int | None) -> ObjectPart:
        bucket, _, retry = self._calls()
        key, place = self._key(path), self.locate(path)
        with self._faults(place, "read", missing_is_an_answer=True):
            try:
                return retry.call(place, lambda: bucket.get(key, start, stop))
            except Exception as error:
                verdict = bucket.verdict(error)
                if verdict is Verdict.MISSING:
                    raise FileNotFoundError(place) from None
                if verdict is not Verdict.EMPTY or start:
                    raise
            head = self._head(path)
            if head is None:
                raise FileNotFoundError(place)
            return ObjectPart(b"", head.tag, 0)

    def _head(self, path: str) -> ObjectInfo | None:
        bucket, _, retry = self._calls()
        try:
            return retry.call(self.locate(path), lambda: bucket.head(self._key(path)))
        except Exception as error:
            if bucket.verdict(error) is Verdict.MISSING:
                return None
            raise

    def _write(self, path: str, body: BinaryIO, size: int, condition: str) -> str:
        """Write under a condition; where the store keeps none, look first."""
        bucket, _, retry = self._calls()
        key, place = self._key(path), self.locate(path)

        taken: Exception = FileExistsError(place) if condition == ABSENT else Conflict(place)
        meant = {Verdict.REFUSED} if condition == ABSENT else {Verdict.REFUSED, Verdict.MISSING}
        conditional = self.conditional
        with self._faults(place, "written"):
            if not conditional and _tag(self._head(path)) != condition:
                raise taken
            kept = condition if conditional else None
            try:
                return retry.write(
                    place,
                    lambda mark: bucket.put(key, body, size, mark=mark, condition=kept),
                    lambda: self._head(path),
                    lambda verdict: taken if verdict in meant else None,
                )
            except Exception as error:
                if self._probing or not conditional or bucket.verdict(error) is not Verdict.UNSUPPORTED:
                    raise
            self._held = Conditions(False, False)
            return self._write(path, body, size, condition)

    def _publish(self, path: str, body: BinaryIO, size: int) -> None:
        self._write(path, body, size, ABSENT)

    def _listed(self, begin: str, hidden: bool, place: str) -> Iterator[StoredFile]:
        """Objects whose keys begin so, as they come; ``path`` is the key. Folders' own objects are left out."""
        bucket, _, retry = self._calls()
        after = ""
        while True:
            with self._faults(place, "listed"):
                page, after = retry.call(place, functools.partial(bucket.list, begin, after))
            for file in page:
                inside = file.path[len(begin) :]
                if inside and not inside.endswith("/") and (hidden or not is_hidden(inside)):
                    yield file
            if not after:
                return


def _tag(head: ObjectInfo | None) -> str:
    return ABSENT if head is None else head.tag


MEMORY_BYTES = 1 << 20
"""Of a file in memory; more goes to a temporary file that has no name."""

Publish = Callable[[str, BinaryIO, int], None]
"""(path, content, size in bytes) -> nothing, or FileExistsError."""


class SpooledFile:
    """See ``NewFile``. It is sent when it is published."""

    def __init__(self, publish: Publish, url: str) -> None:
        self._publish, self._url = publish, url
        self._file: tempfile.SpooledTemporaryFile[bytes] | None
        self._file = tempfile.SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115  # see discard
        self._close = weakref.finalize(self, _close, self._file)

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """See ``NewFile.write``."""
        file = self._open()
        with self._here():
            file.write(data)

    def publish(self, path: str, /) -> None:
        """See ``NewFile.publish``. After an error it may be tried again, under the same name too."""
        file = self._open()
        with self._here():
            size = file.tell()
        self._publish(path, cast(BinaryIO, file), size)
        self.discard()

    def discard(self) -> None:
        """See ``NewFile.discard``."""
        self._file = None
        self._close()

    def _open(self) -> tempfile.SpooledTemporaryFile[bytes]:
        if self._file is None:
            raise StorageError(f"{self._url}: a file that is published or discarded takes no more.")
        return self._file

    @contextlib.contextmanager
    def _here(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(
                f"{tempfile.gettempdir()}: a file for {self._url} can't be kept until it is whole: "
                f"{error.strerror or error}.\n  Make room there, or set TMPDIR to a folder that has room."
            ) from error


def _close(file: tempfile.SpooledTemporaryFile[bytes]) -> None:
    with contextlib.suppress(OSError):
        file.close()


FIRST_BYTES = 256 << 10
"""Of an object at first: line 1 of a data file, or a whole small file, is one request."""
MOST_BYTES = 4 << 20
"""Of an object at once. Two such blocks are held in memory."""
_BUFFER_BYTES = 64 << 10

Fetch = Callable[[int, int], ObjectPart]
"""(start, stop) -> those bytes. Raises burler's errors."""


def stream(fetch: Fetch, changed: Callable[[], Exception]) -> BinaryIO:
    """The object that ``fetch`` reads, from its start. The first block is read at once.

    Args:
        changed: the error to raise if the object becomes another one meanwhile.

    Raises:
        FileNotFoundError: there is none. And what ``fetch`` raises, then and later.
    """
    return cast(BinaryIO, io.BufferedReader(_Blocks(fetch, changed), _BUFFER_BYTES))


def _begun(fetch: Fetch, start: int, stop: int) -> Future[ObjectPart]:
    """A block that is being fetched, in a daemon thread: who stops reading waits for nothing."""
    part: Future[ObjectPart] = Future()

    def run() -> None:
        try:
            part.set_result(fetch(start, stop))
        except BaseException as error:
            part.set_exception(error)

    threading.Thread(target=run, name="store-read-ahead", daemon=True).start()
    return part


class _Blocks(io.RawIOBase):
    def __init__(self, fetch: Fetch, changed: Callable[[], Exception]) -> None:
        super().__init__()
        self._fetch, self._changed = fetch, changed
        first = fetch(0, FIRST_BYTES)
        self._tag, self._size = first.tag, first.size_bytes
        self._block, self._at = memoryview(first.data), 0
        self._fetched, self._length = len(first.data), FIRST_BYTES
        self._ahead: Future[ObjectPart] | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        if self._at == len(self._block) and not self._next():
            return 0
        size = min(len(buffer), len(self._block) - self._at)
        buffer[:size] = self._block[self._at : self._at + size]
        self._at += size
        return size

    def close(self) -> None:
        self._ahead = None
        self._block = memoryview(b"")
        self._at = 0
        super().close()

    def _next(self) -> bool:
        if self._fetched >= self._size:
            return False
        piece = (self._ahead or self._begin()).result()
        self._ahead = None
        if piece.tag != self._tag or not piece.data:
            raise self._changed()
        self._block, self._at = memoryview(piece.data), 0
        self._fetched += len(piece.data)
        if self._fetched < self._size:
            self._ahead = self._begin()
        return True

    def _begin(self) -> Future[ObjectPart]:
        self._length = min(MOST_BYTES, 4 * self._length)
        return _begun(self._fetch, self._fetched, min(self._fetched + self._length, self._size))


logger = logging.getLogger("burler")

PROBE_FOLDER = "raw"
_CONTENT = b"burler looks whether this store keeps conditions"


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a store was seen to keep.

    Attributes:
        writes: an object is created only where there is none, and replaced only while it has its tag.
        deletes: it is removed only while it has its tag.
    """

    writes: bool
    deletes: bool


def _probed(bucket: Bucket, retry: Retry, folder: str, url: str) -> Conditions:
    """Try a bucket: create twice, replace with a wrong tag and with the right one, delete with a wrong tag.

    Args:
        folder: the key below which a hidden object is made, and removed again.
        url: what the log calls the store.
    """
    key = f"{folder}/.burler-probe-{secrets.token_hex(8)}"
    try:
        writes = _writes(bucket, retry, key, url)
        delete = functools.partial(bucket.delete, key, condition=bucket.wrong_tag)
        deletes = writes and _outcome(bucket, retry, url, delete) is Verdict.REFUSED
    finally:
        with contextlib.suppress(Exception):
            bucket.delete(key, condition=None)
    if writes and not deletes:
        logger.info("%s: this store removes files without a condition; it is looked at first.", url)
    return Conditions(writes, deletes)


def _writes(bucket: Bucket, retry: Retry, key: str, url: str) -> bool:
    def put(condition: str) -> Verdict | None:
        body = io.BytesIO(_CONTENT)
        return _outcome(bucket, retry, url, lambda: bucket.put(key, body, len(_CONTENT), mark="", condition=condition))

    if put(ABSENT) is Verdict.UNSUPPORTED or put(ABSENT) is not Verdict.REFUSED:
        return False
    if put(bucket.wrong_tag) not in (Verdict.REFUSED, Verdict.MISSING):
        return False
    return put(retry.call(url, lambda: bucket.head(key)).tag) is None


def _outcome(bucket: Bucket, retry: Retry, url: str, act: Callable[[], object]) -> Verdict | None:
    """How a call ended; None: it was done."""
    try:
        retry.call(url, act)
    except Exception as error:
        verdict = bucket.verdict(error)
        if verdict in (Verdict.REFUSED, Verdict.UNSUPPORTED, Verdict.MISSING):
            return verdict
        raise
    return None
