"""S3 and what speaks like it: conditional requests through s3fs.

s3fs' own ways to write are not used: its exclusive creation of an empty object is not exclusive, and of a big one the
condition goes to the wrong call; it asks again on its own when a reply gets lost, and does not when S3 asks for it
(409). Here each call is made once, and ``bucket.Retry`` decides what comes next.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from burler.storage.base import StoredFile
from burler.storage.bucket import ABSENT, MARK, FilesystemBucket, ObjectInfo, ObjectPart, Retry, Upload, Verdict
from burler.storage.faults import store_code
from burler.storage.location import Location

PART_BYTES = 16 << 20
"""What is sent at once of a data file, and held in memory."""
_MOST_PUT_BYTES = 5 << 30
_MOST_PARTS = 10_000
_READ_WHOLE_BYTES = 8 << 20  # of what is read whole: so much time is given

_VERDICTS = {
    "NoSuchKey": Verdict.MISSING,
    "404": Verdict.MISSING,
    "NotFound": Verdict.MISSING,
    "PreconditionFailed": Verdict.REFUSED,
    "412": Verdict.REFUSED,
    "ConditionalRequestConflict": Verdict.BUSY,
    "OperationAborted": Verdict.BUSY,
    "409": Verdict.BUSY,
    "NoSuchUpload": Verdict.BUSY,
    "SlowDown": Verdict.BUSY,
    "Throttling": Verdict.BUSY,
    "ThrottlingException": Verdict.BUSY,
    "RequestTimeout": Verdict.BUSY,
    "InvalidRange": Verdict.EMPTY,
    "416": Verdict.EMPTY,
    "NotImplemented": Verdict.UNSUPPORTED,
}


class S3Bucket(FilesystemBucket):
    """See ``Bucket``. Tags are ETags as S3 writes them."""

    keeps_conditions = None
    wrong_tag = '"00000000000000000000000000000000"'

    def __init__(self, filesystem: Any, bucket: str) -> None:
        super().__init__(filesystem, bucket)
        self._parts = Retry(self._part_verdict)
        # Directory buckets (S3 Express) list in no order.
        self.in_order = not bucket.endswith("--x-s3")

    def verdict(self, error: BaseException) -> Verdict:
        """See ``Bucket.verdict``."""
        from botocore import exceptions as said
        from botocore.parsers import ResponseParserError
        from fsspec.exceptions import FSTimeoutError

        cause = error if getattr(error, "response", None) else error.__cause__
        code = store_code(cause)
        if code:
            status = getattr(cause, "response", {}).get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if status in (429, 501) and code not in _VERDICTS:
                return Verdict.BUSY if status == 429 else Verdict.UNSUPPORTED
            return _VERDICTS.get(code, Verdict.LOST if status >= 500 else Verdict.WRONG)
        unanswered = (said.HTTPClientError, said.ConnectionError, said.IncompleteReadError, ResponseParserError)
        if isinstance(error, (*unanswered, FSTimeoutError, ConnectionError, TimeoutError)) or _is_broken_off(error):
            return Verdict.LOST
        return Verdict.MISSING if isinstance(error, FileNotFoundError) else Verdict.WRONG

    def get(self, key: str, start: int, stop: int | None) -> ObjectPart:
        """See ``Bucket.get``."""
        from fsspec.asyn import sync

        what = {"Bucket": self._bucket, "Key": key, **self.range(start, stop)}
        size = _READ_WHOLE_BYTES if stop is None else stop - start
        found: ObjectPart = sync(self._fs.loop, _read, self._fs, what, timeout=self.seconds(size))
        return found

    def head(self, key: str) -> ObjectInfo:
        """See ``Bucket.head``."""
        found = self._call("head_object", Key=key)
        return ObjectInfo(found["ETag"], found["ContentLength"], self.mark(found.get("Metadata")))

    def put(self, key: str, body: BinaryIO, size_bytes: int, *, mark: str, condition: str | None) -> str:
        """See ``Bucket.put``. A data file that is big goes in parts; what replaces another object goes at once, since
        the condition is then kept by one call."""
        metadata = {**(self._fs.s3_additional_kwargs.get("Metadata") or {}), MARK: mark}
        kept: dict[str, Any] = {}
        if condition is not None:
            kept = {"IfNoneMatch": "*"} if condition == ABSENT else {"IfMatch": condition}
        body.seek(0)
        if size_bytes <= PART_BYTES or (condition and size_bytes <= _MOST_PUT_BYTES):
            content = body.read(size_bytes)
            done = self._call("put_object", Key=key, Body=content, Metadata=metadata, size=size_bytes, **kept)
            return str(done["ETag"])
        return self._put_parts(key, body, size_bytes, metadata, kept)

    def delete(self, key: str, *, condition: str | None) -> None:
        """See ``Bucket.delete``."""
        kept: dict[str, Any] = {} if condition is None else {"IfMatch": condition}
        self._call("delete_object", Key=key, **kept)

    def list(self, prefix: str, after: str, most: int | None = None) -> tuple[list[StoredFile], str]:
        """See ``Bucket.list``."""
        more: dict[str, Any] = {"ContinuationToken": after} if after else {}
        if most is not None:
            more["MaxKeys"] = most
        page = self._call("list_objects_v2", Prefix=prefix, **more)
        files = [StoredFile(o["Key"], o["Size"], o["LastModified"].timestamp()) for o in page.get("Contents") or ()]
        return files, page["NextContinuationToken"] if page.get("IsTruncated") else ""

    def folders(self, prefix: str) -> set[str]:
        """See ``Bucket.folders``."""
        names: set[str] = set()
        more: dict[str, Any] = {}
        while True:
            page = self._call("list_objects_v2", Prefix=prefix, Delimiter="/", **more)
            names |= {found["Prefix"][len(prefix) : -1] for found in page.get("CommonPrefixes") or ()}
            if not page.get("IsTruncated"):
                return names
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def try_upload(self, key: str) -> None:
        """See ``Bucket.try_upload``: an upload is begun, and aborted."""
        begun = self._call("create_multipart_upload", Key=key)
        with contextlib.suppress(Exception):
            self._call("abort_multipart_upload", Key=key, UploadId=begun["UploadId"])

    def uploads(self, prefix: str) -> Iterator[Upload]:
        """See ``Bucket.uploads``."""
        page: dict[str, Any] = {}
        while True:
            found = self._call("list_multipart_uploads", Prefix=prefix, **page)
            for one in found.get("Uploads") or ():
                yield Upload(one["Key"], one["UploadId"], one["Initiated"].timestamp())
            if not found.get("IsTruncated"):
                return
            page = {"KeyMarker": found["NextKeyMarker"], "UploadIdMarker": found["NextUploadIdMarker"]}

    def abort(self, upload: Upload) -> None:
        """See ``Bucket.abort``."""
        with contextlib.suppress(FileNotFoundError):
            self._call("abort_multipart_upload", Key=upload.key, UploadId=upload.id)

    def _put_parts(
        self, key: str, body: BinaryIO, size: int, metadata: Mapping[str, str], kept: Mapping[str, str]
    ) -> str:
        """Nothing stays of an upload that is not completed."""
        part_bytes = max(PART_BYTES, -(-size // _MOST_PARTS))
        upload = {"Key": key, "UploadId": self._call("create_multipart_upload", Key=key, Metadata=metadata)["UploadId"]}
        try:
            parts = []
            for number in range(1, -(-size // part_bytes) + 1):
                content = body.read(part_bytes)
                part = {**upload, "PartNumber": number, "Body": content, "size": len(content)}
                sent = self._parts.call(key, functools.partial(self._call, "upload_part", **part))
                parts.append({"PartNumber": number, "ETag": sent["ETag"]})
            every = {**upload, "MultipartUpload": {"Parts": parts}, **kept}
            done = self._call("complete_multipart_upload", size=size, **every)
            return str(done["ETag"])
        except BaseException:
            with contextlib.suppress(Exception):
                self._call("abort_multipart_upload", **upload)
            raise

    def _part_verdict(self, error: BaseException) -> Verdict:
        """An upload that is gone does not come back: it is begun anew."""
        gone = store_code(error.__cause__) == "NoSuchUpload"
        return Verdict.WRONG if gone else self.verdict(error)

    def _call(self, method: str, *, size: int = 0, **more: Any) -> Any:
        return self._fs.call_s3(method, timeout=self.seconds(size), Bucket=self._bucket, **more)


async def _read(filesystem: Any, what: Mapping[str, Any]) -> ObjectPart:
    found = await filesystem._call_s3("get_object", **what)
    try:
        data = await found["Body"].read()
    finally:
        found["Body"].close()
    return S3Bucket.part(data, found["ETag"], found.get("ContentRange"))


def _is_broken_off(error: BaseException) -> bool:
    """Whether an answer began and broke off; aiohttp has errors of its own for that."""
    kinds = type(error).__mro__
    return any(kind.__module__.startswith("aiohttp.") and kind.__name__ == "ClientError" for kind in kinds)


def connect(location: Location) -> tuple[S3Bucket, str]:
    """The bucket of an ``s3://`` URL, and the path in it. See ``objects.Connect``."""
    config = dict(location.options.get("config_kwargs") or {})
    # Each call is made once; whoever makes it again must know that.
    config["retries"] = {
        **{name: value for name, value in (config.get("retries") or {}).items() if name != "max_attempts"},
        "total_max_attempts": 1,
    }
    bucket, inside = S3Bucket.open(location, config_kwargs=config)
    bucket._fs.retries = 1
    return bucket, inside
