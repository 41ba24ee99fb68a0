"""Which files were read: the source state of kind ``burler/files``.

The value is JSON text: ``{"files": 3, "last": "orders-03.csv.gz", "read": "<11 letters a file>"}``. ``read`` holds the
digest of each file that was read and still is in the listing. No watermark: a file that comes late may sort lower than
all others and may carry an old time (``cp -p``, a restored backup, an upload that began long ago), so neither a name
nor a time says that a file was there before. What a file was when it was read says it; docs/files.md has the reasoning.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from burler.errors import BurlerError
from burler.storage.find import File

if TYPE_CHECKING:
    from burler.context import StreamRun

logger = logging.getLogger("burler")

KIND = "burler/files"
ETAG = "odf/etag"
_LETTERS = 11
_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0


class Progress:
    """The files that were read, of one source of one stream.

    Args:
        stream: whose ``source_state`` holds it; None: nothing is known and nothing is saved.
        source: the name of the source.
        of: what else decides which rows come: patterns, options.
        monotonic: a clock, in seconds.

    Raises:
        BurlerError: the source's name stands for something else already.
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
        self._name = "" if stream is None else stream.name
        self._source, self._of, self._monotonic = source, of, monotonic
        self._read: dict[str, None] = {}
        self._last = ""
        self._saved_at, self._bytes, self._new = monotonic(), 0, 0
        self._unsaved = False
        self.mark: str | None = None
        """The name of the last file that another tool took (kamu's ``odf/etag``); None without one."""
        self.known = False
        """Whether an earlier run has left word."""
        if self._states is None:
            return
        if not self._states.claim(of, source=source):
            raise BurlerError(
                f"stream '{self._name}': burler.files.read: its source '{source}' stands for other files (or another "
                "resource) already, whose entry in the state it would replace.\n"
                "  Name each: burler.files.read(..., source='...')."
            )
        value = self._states.get(KIND, source=source, of=of)
        if value is not None:
            saved = parse(value)
            self.known = saved is not None
            digests, self._last = saved or ([], "")
            self._read = dict.fromkeys(digests)
            return
        self._say_what_does_not_count()
        mark: str | None = self._states.get(ETAG, source=source, of=of, foreign=True)  # it does not say of what it is
        if mark and mark.strip() and not mark.startswith(('"', "W/")):  # those are validators of HTTP, no names
            self.mark, self.known = mark, True

    def _say_what_does_not_count(self) -> None:
        """Files come again that were read before: nobody else would say why."""
        for entry in self._states.entries():
            if entry.get("kind") == KIND and entry.get("source") == self._source:
                digests, _ = parse(str(entry.get("value"))) or ([], "")
                logger.warning(
                    "stream '%s': files: %d files were read before, with another pattern, other options, other fields "
                    "(or --ignore-source-state): that does not count, and all files are read.",
                    self._name,
                    len(digests),
                )

    def is_read(self, file: File) -> bool:
        """Whether a file, as it is now, was read before."""
        if self.mark is not None:
            # It sorts at or before that name; by its path below the pattern if the name has folders in it.
            return (file.name if "/" in self.mark else file.name.rpartition("/")[2]) <= self.mark
        return file.digest in self._read

    @property
    def count(self) -> int:
        """How many files were read and not forgotten."""
        return len(self._read)

    def begin(self, files: Iterable[File], *, forget: bool = True) -> list[File]:
        """The files that are to be read, of all that there are; the others are kept in mind, what is gone is not.

        Args:
            forget: False: keep in mind what is gone, too.
        """
        new: list[File] = []
        kept: dict[str, None] = {} if forget else dict(self._read)
        for file in files:
            if not self.is_read(file):
                new.append(file)
            elif file.is_told:
                kept[file.digest] = None
        self._unsaved = self.mark is not None or kept.keys() != self._read.keys()
        self._read, self.mark = kept, None
        return new

    def done(self, file: File) -> bool:
        """A file's last row was yielded; says whether that was saved.

        A long list beside small files is saved where a quarter of it is new, once a second at the most and once a
        minute at the least, so that states stay small beside rows: what is not saved is read once more after a kill,
        and never lost. A file of which the store says nothing by which a
        change can be seen is not noted: it is read in each run (what has no validator has no state).
        """
        if not file.is_told:
            return False
        self._read[file.digest] = None
        self._last = file.label
        self._unsaved = True
        self._bytes += file.size_bytes or 0
        self._new += 1
        now = self._monotonic()
        pause = _PAUSE_SECONDS if 4 * self._new >= len(self._read) else _LONGEST_PAUSE_SECONDS
        if self._bytes < 2 * _LETTERS * len(self._read) and now - self._saved_at < pause:
            return False
        self._saved_at, self._bytes, self._new = now, 0, 0
        return self.save()

    def save(self) -> bool:
        """Hand over what was read to the stream, if it has changed; whether it has."""
        if self._states is None or not self._unsaved:
            return False
        found = {"files": len(self._read), "last": self._last, "read": "".join(self._read)}
        value = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
        self._states.set(KIND, value, source=self._source, of=self._of)
        self._unsaved = False
        return True


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
