"""One call of an object store, made again until it is known what has become of it.

What a store says about a write is not always what happened: a reply gets lost, a request is asked for twice by a
library, and then the second one is refused because of the first. So every write carries a mark of its own, by which
it is known again.
"""

from __future__ import annotations

import enum
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol, Self, TypeVar

from burler.clock import Clock, patience_left
from burler.storage.base import OutcomeUnknown, StoredFile
from burler.storage.faults import open_filesystem
from burler.storage.location import Location

logger = logging.getLogger("burler")

Result = TypeVar("Result")

PATIENCE_SECONDS = 180.0
"""So long an answer is waited for, with all tries. A part of 8 MiB needs 0.4 Mbit/s then."""
START_PATIENCE_SECONDS = 10.0
"""So long a store is waited for that has not answered once: its address may be wrong."""
MARK = "burler"
"""The name of the mark in an object's metadata."""
ABSENT = ""
"""A condition: there must be no such object."""
_WORD_SECONDS = 5.0
_CALL_SECONDS = 60.0
_SLOWEST_BYTES_A_SECOND = 50_000
_SHORTEST_WAIT_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 5.0
_CLOCK = Clock()


class Verdict(enum.Enum):
    """What an error of a store means for the call that it ended."""

    MISSING = "there is no such object"
    REFUSED = "the condition did not hold: nothing was done"
    BUSY = "nothing was done; ask again"
    LOST = "no answer, or a broken one: it may have been done"
    UNSUPPORTED = "the store does not know such conditions"
    EMPTY = "the range begins behind the end of the object"
    WRONG = "anything else: rights, bucket, a bad request"


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What a store says of one object without its content."""

    tag: str
    size_bytes: int
    mark: str


@dataclass(frozen=True, slots=True)
class ObjectPart:
    """A part of an object, and what it is a part of."""

    data: bytes
    tag: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload in parts that was begun, at a time in seconds since 1970, and has not ended."""

    key: str
    id: str
    begun: float


class Bucket(Protocol):
    """A bucket (container) of an object store, asked once a call. Keys are whole.

    Every method raises what the store's library raises; ``verdict`` says what that means. Conditions are ``ABSENT``,
    the tag that an object must have, or None.
    """

    keeps_conditions: bool | None
    """Whether conditions hold; None: it must be found out."""
    wrong_tag: str
    """A tag that no object has."""
    in_order: bool
    """Whether listings come in the order of their keys."""

    def verdict(self, error: BaseException) -> Verdict:
        """What an error of this bucket's library means."""

    def get(self, key: str, start: int, stop: int | None) -> ObjectPart:
        """Bytes of an object from ``start`` to before ``stop``, or to its end."""

    def head(self, key: str) -> ObjectInfo:
        """What is known of an object."""

    def put(self, key: str, body: BinaryIO, size_bytes: int, *, mark: str, condition: str | None) -> str:
        """Make or replace an object; its tag. ``body`` is read from its start, in parts where it is big."""

    def delete(self, key: str, *, condition: str | None) -> None:
        """Remove an object."""

    def list(self, prefix: str, after: str, most: int | None = None) -> tuple[list[StoredFile], str]:
        """A page of the objects whose keys begin so (``path`` is the key), and what to give as ``after`` for the next
        page; empty at first and at the end. ``most``: no more of them are wanted; a store may send more."""

    def folders(self, prefix: str) -> set[str]:
        """What stands between ``prefix`` and the next ``/`` of the keys that have one."""

    def try_upload(self, key: str) -> None:
        """Ask whether these credentials may write, without writing, where there is a way to."""
        return

    def sign(self, key: str, seconds: int) -> str:
        """A URL with which anybody can read an object for so long."""

    def uploads(self, prefix: str) -> Iterable[Upload]:
        """Uploads of objects whose keys begin so; empty where they end by themselves."""
        return ()

    def abort(self, upload: Upload) -> None:
        """Abort an upload; fine if it has ended."""
        return


class FilesystemBucket(Bucket):
    """A bucket that stands on a store of fsspec's."""

    def __init__(self, filesystem: Any, bucket: str) -> None:
        self._fs, self._bucket = filesystem, bucket

    def sign(self, key: str, seconds: int) -> str:
        """See ``Bucket.sign``."""
        return str(self._fs.sign(f"{self._bucket}/{key}" if self._bucket else key, expiration=seconds))

    @classmethod
    def open(cls, location: Location, **more: Any) -> tuple[Self, str]:
        """The bucket of a URL, and the path in it. ``more``: options of our own for the store's library."""
        options = {"use_listings_cache": False, **location.options, **more}
        opened, path = open_filesystem(location.url, options, location.words, own=True)
        bucket, _, inside = path.partition("/")
        return cls(opened, bucket), inside.strip("/")

    @staticmethod
    def seconds(size_bytes: int = 0) -> float:
        """How long one call may take, of so many bytes."""
        return _CALL_SECONDS + size_bytes / _SLOWEST_BYTES_A_SECOND

    @staticmethod
    def range(start: int, stop: int | None) -> dict[str, str]:
        """The header that asks for a part of an object; none for the whole."""
        return {} if not start and stop is None else {"Range": f"bytes={start}-{'' if stop is None else stop - 1}"}

    @staticmethod
    def part(data: bytes, tag: str, content_range: str | None) -> ObjectPart:
        """What came, and of how many bytes it is a part: all of them where ``Content-Range`` does not say."""
        whole = (content_range or "").rpartition("/")[2]
        return ObjectPart(data, tag, int(whole) if whole.isdigit() else len(data))

    @staticmethod
    def mark(metadata: Mapping[str, str] | None) -> str:
        """The mark that an object was written with; stores change the case of names."""
        return {name.lower(): value for name, value in (metadata or {}).items()}.get(MARK, "")


class Retry:
    """Makes calls again where that helps, and no longer than one's patience.

    Args:
        verdict: of an error.
        patience_seconds: for one call with all its tries.
    """

    def __init__(
        self, verdict: Callable[[BaseException], Verdict], *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self.verdict, self.patience_seconds = verdict, patience_seconds

    def call(self, place: str, call: Callable[[], Result]) -> Result:
        """What ``call`` gives, which may be made any number of times.

        Raises:
            Exception: what the last try has raised.
        """
        tries = _Tries(self.patience_seconds, place)
        while True:
            try:
                return call()
            except Exception as error:
                if self.verdict(error) not in (Verdict.BUSY, Verdict.LOST) or not tries.wait():
                    raise

    def write(
        self,
        place: str,
        call: Callable[[str], str],
        seen: Callable[[], ObjectInfo | None],
        refused: Callable[[Verdict], Exception | None],
    ) -> str:
        """The tag of an object that ``call`` writes under a condition, with the mark it is given.

        Args:
            seen: looks at the object; None: there is none.
            refused: the error to raise where the condition did not hold, if that is what a verdict means.

        Raises:
            OutcomeUnknown: no answer came, and there is none about the object either. And what ``refused`` gives, and
                what the store raises.
        """
        mark, lost, tries = secrets.token_hex(12), False, _Tries(self.patience_seconds, place)
        while True:
            try:
                return call(mark)
            except Exception as error:
                verdict = self.verdict(error)
                lost = lost or verdict is Verdict.LOST
                if verdict in (Verdict.LOST, Verdict.REFUSED, Verdict.MISSING):
                    found = self._seen(place, seen)
                    if found is not None and found.mark == mark:
                        return found.tag
                answer = refused(verdict)
                if answer is not None:
                    raise answer from None
                if verdict in (Verdict.BUSY, Verdict.LOST) and tries.wait():
                    continue
                if lost:
                    raise OutcomeUnknown(_unknown(place)) from error
                raise

    def _seen(self, place: str, seen: Callable[[], ObjectInfo | None]) -> ObjectInfo | None:
        try:
            return self.call(place, seen)
        except Exception as error:
            raise OutcomeUnknown(_unknown(place)) from error


class _Tries:
    """The waits between the tries of one call."""

    def __init__(self, patience_seconds: float, place: str) -> None:
        self._patience, self._place = min(patience_seconds, patience_left()), place
        self._begun, self._count, self._told = _CLOCK.monotonic(), 0, False

    def wait(self) -> bool:
        """Wait before the next try; False: patience has ended, and there is none."""
        past = _CLOCK.monotonic() - self._begun
        if past >= self._patience:
            return False
        if past >= _WORD_SECONDS and not self._told:
            self._told = True
            logger.warning("%s: no good answer for %.0f seconds; given up after %g.", self._place, past, self._patience)
        longest = min(_LONGEST_WAIT_SECONDS, _SHORTEST_WAIT_SECONDS * 2 ** min(self._count, 20))
        self._count += 1
        _CLOCK.sleep(_CLOCK.uniform(longest / 2, longest))
        return True


def _unknown(place: str) -> str:
    return f"{place}: no answer came, and nobody knows whether it was written. Is the store reachable from here?"
