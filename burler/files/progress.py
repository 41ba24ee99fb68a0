"""Which files were read: the source state of kind ``burler/files`` (specs 4, rule 5).

The value is JSON text: ``{"files": 3, "last": "orders-03.csv.gz", "read": "<11 letters a file>"}``. ``read`` holds the
digest of each file that was read and still is in the listing. No watermark: a file that comes late may sort lower than
all others and may carry an old time (``cp -p``, a restored backup, an upload that began long ago), so neither a name
nor a time says that a file was there before. What a file was when it was read says it; docs/files.md has the reasoning.
"""

from __future__ import annotations

import inspect
import json
import logging
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from burler.files.listing import File

if TYPE_CHECKING:
    from burler.context import StreamRun

logger = logging.getLogger("burler")

KIND = "burler/files"
ETAG = "odf/etag"
_LETTERS = 11
_PAUSE_SECONDS = 1.0


class Progress:
    """The files that were read, of one source of one stream.

    Args:
        stream: whose ``source_state`` holds it; None: nothing is known and nothing is saved.
        source: the name of the source.
        of: what else decides which rows come: patterns, options.
        monotonic: a clock, in seconds.
    """

    def __init__(
        self,
        stream: StreamRun | None,
        *,
        source: str,
        of: str,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._states: Any = None if stream is None else stream.source_state
        self._source, self._of, self._monotonic = source, of, monotonic
        self._read: dict[str, None] = {}
        self._last = ""
        self._saved_at, self._bytes = monotonic(), 0
        self._unsaved = False
        self.mark: str | None = None
        """The name of the last file that another tool took (kamu's ``odf/etag``); None without one."""
        self.known = False
        """Whether an earlier run has left word."""
        self._load()

    def _load(self) -> None:
        if self._states is None:
            return
        value = self._states.get(KIND, source=self._source, of=self._of)
        if value is not None:
            saved = parse(value)
            self.known = saved is not None
            digests, self._last = saved or ([], "")
            self._read = dict.fromkeys(digests)
            return
        self.mark = _foreign(self._states, self._source, self._of)
        self.known = self.mark is not None

    def is_read(self, file: File) -> bool:
        """Whether a file, as it is now, was read before."""
        if self.mark is not None:
            return _at_or_before(file, self.mark)
        return file.digest in self._read

    def begin(self, files: Iterable[File]) -> list[File]:
        """The files that are to be read, of all that there are; the others are kept in mind, what is gone is not."""
        new: list[File] = []
        kept: dict[str, None] = {}
        for file in files:
            if self.is_read(file):
                kept[file.digest] = None
            else:
                new.append(file)
        self._unsaved = self.mark is not None or kept.keys() != self._read.keys()
        self._read, self.mark = kept, None
        return new

    def done(self, file: File) -> bool:
        """A file's last row was yielded; says whether that was saved. A long list beside small files is saved once a
        second at the most, so that states stay small beside rows: what is not saved is read once more after a kill,
        and never lost."""
        self._read[file.digest] = None
        self._last = file.name
        self._unsaved = True
        self._bytes += file.size_bytes or 0
        now = self._monotonic()
        if self._bytes < 2 * _LETTERS * len(self._read) and now - self._saved_at < _PAUSE_SECONDS:
            return False
        self._saved_at, self._bytes = now, 0
        return self.save()

    def save(self) -> bool:
        """Hand over what was read to the stream, if it has changed; whether it has."""
        if self._states is None or not self._unsaved:
            return False
        self._states.set(KIND, self.value(), source=self._source, of=self._of)
        self._unsaved = False
        return True

    def value(self) -> str:
        """What is saved."""
        found = {"files": len(self._read), "last": self._last, "read": "".join(self._read)}
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def parse(value: str) -> tuple[list[str], str] | None:
    """The digests of a saved value, and the name of the last file; None if it is none that can be read."""
    try:
        found = json.loads(value)
        read = found["read"]
        if not isinstance(read, str) or len(read) % _LETTERS:
            raise ValueError("a list of digests that is cut")
    except (ValueError, KeyError, TypeError, RecursionError):
        logger.warning("files: the state does not say which files were read; all of them are read.")
        return None
    return [read[i : i + _LETTERS] for i in range(0, len(read), _LETTERS)], str(found.get("last") or "")


def _foreign(states: Any, source: str, of: str) -> str | None:
    """The file name that another tool has left as ``odf/etag``. Its states do not say what they speak of."""
    takes_foreign = "foreign" in inspect.signature(states.get).parameters
    more = {"foreign": True} if takes_foreign else {}
    found: str | None = states.get(ETAG, source=source, of=of, **more)
    if found is None or not found.strip() or found.startswith(('"', "W/")):  # a validator of HTTP, no name
        return None
    return found


def _at_or_before(file: File, mark: str) -> bool:
    """Whether a file sorts at or before a name, by its path below the pattern if the name has folders in it."""
    return (file.name if "/" in mark else file.name.rpartition("/")[2]) <= mark
