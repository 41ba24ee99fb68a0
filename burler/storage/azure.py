"""Azure Blob Storage: conditional requests through adlfs' own client; tags are ETags.

adlfs can create exclusively, and knows no way to replace under a condition: so the client that it holds is asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, BinaryIO, TypeVar

from burler.extras import require
from burler.storage.base import StoredFile
from burler.storage.bucket import ABSENT, MARK, FilesystemBucket, ObjectInfo, ObjectPart, Verdict

Result = TypeVar("Result")

_WHOLE_BYTES = 16 << 20
_PAGE = 5_000
_ONCE = {"retry_total": 0}  # the client waits 15 seconds before it asks again, and tells nobody
_EXISTS = ("BlobAlreadyExists", "ConditionNotMet", "TargetConditionNotMet")
_BUSY = (408, 429)


class AzureBucket(FilesystemBucket):
    """See ``Bucket``: a container."""

    keeps_conditions = None
    wrong_tag = '"0x1"'
    in_order = True

    def verdict(self, error: BaseException) -> Verdict:
        """See ``Bucket.verdict``."""
        status, code = getattr(error, "status_code", None), str(getattr(error, "error_code", "") or "")
        if code == "ContainerNotFound":
            return Verdict.WRONG
        if status == 404 or isinstance(error, FileNotFoundError):
            return Verdict.MISSING
        if status == 412 or (status == 409 and code in _EXISTS) or isinstance(error, FileExistsError):
            return Verdict.REFUSED
        if status == 416:
            return Verdict.EMPTY
        if status in _BUSY or code == "ServerBusy":
            return Verdict.BUSY
        names = {kind.__name__ for kind in type(error).__mro__}
        unanswered = names & {"ServiceRequestError", "ServiceResponseError", "FSTimeoutError", "IncompleteReadError"}
        if (status or 0) >= 500 or unanswered or isinstance(error, ConnectionError | TimeoutError):
            return Verdict.LOST
        return Verdict.WRONG

    def get(self, key: str, start: int, stop: int | None) -> ObjectPart:
        """See ``Bucket.get``."""
        length = None if stop is None else stop - start

        async def read(client: Any) -> ObjectPart:
            found = await client.download_blob(offset=start, length=length, **_ONCE)
            about = found.properties
            return self.part(await found.readall(), about.etag, None if stop is None else about.content_range)

        return self._ask(key, read, _WHOLE_BYTES if length is None else length)

    def head(self, key: str) -> ObjectInfo:
        """See ``Bucket.head``."""

        async def look(client: Any) -> ObjectInfo:
            found = await client.get_blob_properties(**_ONCE)
            return ObjectInfo(found.etag, found.size, self.mark(found.metadata))

        return self._ask(key, look)

    def put(self, key: str, body: BinaryIO, size_bytes: int, *, mark: str, condition: str | None) -> str:
        """See ``Bucket.put``. The client sends what is big in blocks, and the condition with the list of them."""
        kept = {"overwrite": condition != ABSENT, **_unchanged(condition)}
        body.seek(0)

        async def write(client: Any) -> str:
            done = await client.upload_blob(body, length=size_bytes, metadata={MARK: mark}, **kept, **_ONCE)
            return str(done["etag"])

        return self._ask(key, write, size_bytes)

    def delete(self, key: str, *, condition: str | None) -> None:
        """See ``Bucket.delete``."""

        async def remove(client: Any) -> None:
            await client.delete_blob(**_unchanged(condition), **_ONCE)

        self._ask(key, remove)

    def list(self, prefix: str, after: str, most: int | None = None) -> tuple[list[StoredFile], str]:
        """See ``Bucket.list``."""

        async def page() -> tuple[list[StoredFile], str]:
            async with self._fs.service_client.get_container_client(self._bucket) as client:
                found = client.list_blobs(
                    name_starts_with=prefix, results_per_page=most or _PAGE, include=["metadata"], **_ONCE
                )
                pages = found.by_page(continuation_token=after or None)
                files: list[StoredFile] = []
                async for one in pages:
                    files = [_stored(blob) async for blob in one if not _is_folder(blob)]
                    break
                return files, pages.continuation_token or ""

        return self._run(page)

    def folders(self, prefix: str) -> set[str]:
        """See ``Bucket.folders``."""

        async def walk() -> set[str]:
            async with self._fs.service_client.get_container_client(self._bucket) as client:
                found = client.walk_blobs(name_starts_with=prefix, delimiter="/", **_ONCE)
                return {one.name[len(prefix) : -1] async for one in found if one.name.endswith("/")}

        return self._run(walk)

    def _ask(self, key: str, act: Callable[[Any], Awaitable[Result]], size: int = 0) -> Result:
        async def asked() -> Result:
            async with self._fs.service_client.get_blob_client(self._bucket, key) as client:
                return await act(client)

        return self._run(asked, size)

    def _run(self, act: Callable[[], Awaitable[Result]], size: int = 0) -> Result:
        from fsspec.asyn import sync

        result: Result = sync(self._fs.loop, act, timeout=self.seconds(size))
        return result


def _stored(blob: Any) -> StoredFile:
    return StoredFile(blob.name, int(blob.size), blob.last_modified.timestamp())


def _is_folder(blob: Any) -> bool:
    """Accounts with a hierarchical namespace list folders as well."""
    return (blob.metadata or {}).get("hdi_isfolder") == "true"


def _unchanged(condition: str | None) -> dict[str, Any]:
    """What the client is told so that a blob is changed only while it has a tag."""
    if not condition:
        return {}
    core = require("azure.core", extra="azure", needed_for="conditional requests on Azure")
    return {"etag": condition, "match_condition": core.MatchConditions.IfNotModified}


connect = AzureBucket.open
