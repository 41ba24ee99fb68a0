"""Google Cloud Storage: conditional requests through gcsfs; an object's generation is its tag.

gcsfs can create exclusively, and knows no way to replace under a condition: so the calls of the JSON API are made here.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Mapping
from typing import Any, BinaryIO

from burler import times
from burler.storage.base import StoredFile
from burler.storage.bucket import MARK, FilesystemBucket, ObjectInfo, ObjectPart, Verdict
from burler.storage.location import Location

PART_BYTES = 16 << 20
"""What is sent at once of a data file, and held in memory: a multiple of 256 KiB."""
_BUSY = (408, 409, 429)
_NONE = "0"  # the generation of what is not there
_KIND = "application/octet-stream"
_FIELDS = "nextPageToken,prefixes,items(name,size,updated)"


class GcsBucket(FilesystemBucket):
    """See ``Bucket``. Tags are generations, as text."""

    keeps_conditions = None
    wrong_tag = "1"
    in_order = True

    def verdict(self, error: BaseException) -> Verdict:
        """See ``Bucket.verdict``."""
        if isinstance(error, FileNotFoundError):
            return Verdict.MISSING
        if isinstance(error, FileExistsError):  # what gcsfs makes of 412
            return Verdict.REFUSED
        code = int(getattr(error, "code", 0) or 0)
        if code == 416:
            return Verdict.EMPTY
        if code in _BUSY:
            return Verdict.BUSY
        modules = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
        unanswered = isinstance(error, ConnectionError | TimeoutError) or modules & {"aiohttp", "requests"}
        names = {kind.__name__ for kind in type(error).__mro__}
        if code >= 500 or unanswered or names & {"FSTimeoutError", "ChecksumError"}:
            return Verdict.LOST
        return Verdict.WRONG

    def get(self, key: str, start: int, stop: int | None) -> ObjectPart:
        """See ``Bucket.get``."""
        size = PART_BYTES if stop is None else stop - start
        headers, data = self._call("GET", self._object, key, size=size, alt="media", headers=self.range(start, stop))
        tag = headers.get("X-Goog-Generation") or self.head(key).tag  # imitations leave it out
        return self.part(data, tag, headers.get("Content-Range"))

    def head(self, key: str) -> ObjectInfo:
        """See ``Bucket.head``."""
        found = self._json("GET", self._object, key, fields="generation,size,metadata")
        return ObjectInfo(str(found["generation"]), int(found["size"]), self.mark(found.get("metadata")))

    def put(self, key: str, body: BinaryIO, size_bytes: int, *, mark: str, condition: str | None) -> str:
        """See ``Bucket.put``. A data file that is big goes in parts, under the condition with which it was begun."""
        kept: dict[str, Any] = {} if condition is None else {"ifGenerationMatch": condition or _NONE}
        about = json.dumps({"name": key, "contentType": _KIND, "metadata": {MARK: mark}})
        body.seek(0)
        if size_bytes <= PART_BYTES or condition:
            edge = b"burler-" + mark.encode()
            sent = b"\r\n".join([
                b"--" + edge, b"Content-Type: application/json; charset=UTF-8", b"", about.encode(),
                b"--" + edge, f"Content-Type: {_KIND}".encode(), b"", body.read(size_bytes),
                b"--" + edge + b"--", b"",
            ])  # fmt: skip
            kind = {"Content-Type": f"multipart/related; boundary={edge.decode()}"}
            done = self._json(
                "POST", self._upload, size=size_bytes, uploadType="multipart", headers=kind, data=_Body(sent), **kept
            )
            return str(done["generation"])
        return self._put_parts(about, body, size_bytes, kept)

    def delete(self, key: str, *, condition: str | None) -> None:
        """See ``Bucket.delete``."""
        kept: dict[str, Any] = {} if condition is None else {"ifGenerationMatch": condition}
        self._call("DELETE", self._object, key, **kept)

    def list(self, prefix: str, after: str, most: int | None = None) -> tuple[list[StoredFile], str]:
        """See ``Bucket.list``."""
        more: dict[str, Any] = {"pageToken": after} if after else {}
        if most is not None:
            more["maxResults"] = most
        page = self._json("GET", self._objects, prefix=prefix, fields=_FIELDS, **more)
        files = [
            StoredFile(one["name"], int(one["size"]), times.lenient(one["updated"])[0].timestamp())
            for one in page.get("items") or ()
        ]
        return files, page.get("nextPageToken", "")

    def folders(self, prefix: str) -> set[str]:
        """See ``Bucket.folders``."""
        names: set[str] = set()
        more: dict[str, Any] = {}
        while True:
            page = self._json("GET", self._objects, prefix=prefix, delimiter="/", fields=_FIELDS, **more)
            names |= {found[len(prefix) : -1] for found in page.get("prefixes") or ()}
            if not page.get("nextPageToken"):
                return names
            more = {"pageToken": page["nextPageToken"]}

    @property
    def _objects(self) -> str:
        return f"b/{self._bucket}/o"

    @property
    def _object(self) -> str:
        return f"b/{self._bucket}/o/{{}}"

    @property
    def _upload(self) -> str:
        return f"{self._fs._location}/upload/storage/v1/b/{self._bucket}/o"

    def _put_parts(self, about: str, body: BinaryIO, size: int, kept: Mapping[str, Any]) -> str:
        kind = {"Content-Type": "application/json; charset=UTF-8", "X-Upload-Content-Type": _KIND}
        headers, _ = self._call("POST", self._upload, uploadType="resumable", headers=kind, data=about.encode(), **kept)
        place, sent, answer = headers["Location"], 0, b""
        while sent < size:
            content = body.read(PART_BYTES)
            part = {"Content-Range": f"bytes {sent}-{sent + len(content) - 1}/{size}", "Content-Type": _KIND}
            headers, answer = self._call("PUT", place, size=len(content), headers=part, data=_Body(content))
            sent += len(content)
            taken = int(headers["Range"].rpartition("-")[2]) + 1 if "Range" in headers else sent
            if taken != sent and sent < size:  # a part was taken in part
                body.seek(taken)
                sent = taken
        return str(json.loads(answer)["generation"])

    def _json(self, *args: Any, **more: Any) -> Any:
        return json.loads(self._call(*args, **more)[1])

    def _call(self, method: str, path: str, *args: str, size: int = 0, **more: Any) -> Any:
        return self._fs.call(method, path, *args, timeout=self.seconds(size), **more)


class _Body(io.BytesIO):
    """What is sent, perhaps again by gcsfs: the network library closes what it has sent once."""

    def close(self) -> None:
        """Nothing."""


def connect(location: Location) -> tuple[GcsBucket, str]:
    """The bucket of a ``gs://`` URL, and the path in it. See ``objects.Connect``."""
    library = logging.getLogger("gcsfs")
    if library.level == logging.NOTSET:  # it prints a traceback for each answer that is no success
        library.setLevel(logging.CRITICAL)
    return GcsBucket.open(location)
