"""``export``: ask a source for an export, wait until it is made, fetch it, read it."""

from __future__ import annotations

import hashlib
import logging
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from burler.clock import Clock, FunctionClock
from burler.context import StreamRun, running
from burler.errors import BurlerError, DeclarationError, FileError, HttpError, NotFoundError
from burler.extras import require
from burler.files.contents import Contents, table_of
from burler.files.options import Csv, Options
from burler.formats.names import COMPRESSIONS, HEAD_BYTES, format_of, format_of_media_type, kind_of
from burler.storage.find import File
from burler.storage.location import shown
from burler.words import counted

logger = logging.getLogger("burler")

_KEY = "burler/exports"
"""In ``stream.state``, which is the author's own otherwise."""
_MIB = 1 << 20
_UNNAMED = "the export"
Job = TypeVar("Job")


@dataclass(frozen=True, slots=True)
class Part:
    """One file of an export.

    Attributes:
        url: where it is: a URL, or a path on the client's server.
        name: its name, where the URL does not say what the file holds: ``"orders.csv.gz"``.
        size_bytes, sha256, md5: what the file must be, as its maker says; None: nobody says. Checksums as hex digits.
    """

    url: str
    name: str | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    md5: str | None = None

    @property
    def label(self) -> str:
        """The name, or the end of the URL."""
        return self.name or unquote(urlsplit(self.url).path.rpartition("/")[2]) or "export"


Found = str | Part | Sequence[str | Part] | None


class Downloader(Protocol):
    """What fetches a file: a ``burler.http.Client``, or anything else with this method."""

    def download(self, path: str, to: Path, /, *, max_bytes: int | None) -> Any:
        """Write what is at a URL into a file; may give the headers of the reply."""


def export(
    *,
    request: Callable[[], Job],
    ready: Callable[[Job], Found],
    download: Downloader | Callable[[Part, Path], Any],
    cancel: Callable[[Job], Any] | None = None,
    what: str = _UNNAMED,
    stream: StreamRun | None = None,
    poll_seconds: float = 2.0,
    backoff: float = 1.5,
    longest_poll_seconds: float = 60.0,
    limit_seconds: float = 3600.0,
    keep_job: bool = False,
    keep_seconds: float = 86_400.0,
    format: str | None = None,
    compression: str | None = None,
    member: str | None = None,
    csv: Csv | None = None,
    records_path: str | Sequence[str] = (),
    add: Iterable[str] = (),
    folder: str | Path | None = None,
    max_download_bytes: int | None = None,
    max_line_bytes: int = 256 * _MIB,
    max_document_bytes: int = 256 * _MIB,
    max_unpacked_bytes: int = 64 * 1024 * _MIB,
    sleep: Callable[[float], Any] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
    now: Callable[[], float] = time.time,
) -> Iterator[Any]:
    """Pages of files that the source makes when it is asked to: ``yield from burler.files.export(...)``.

    Args:
        request: asks for the export and gives the job: whatever ``ready`` and ``cancel`` need to name it.
        ready: looks at the job: None while it is not done; else a URL, a ``Part``, or a list of these (an empty one
            is an export without rows). Raises if the job failed.
        download: a ``burler.http.Client``, or a function ``(part, path)`` that writes the part into a file.
        cancel: gives a job up that nobody waits for any more. Errors in it are logged.
        what: what is asked for, in words, for errors; for ``keep_job`` it is the job's name, and must say all that
            decides what the export holds.
        stream: None: the stream that is running here, if any.
        poll_seconds: before the second look; the first one is at once.
        backoff: each wait is so many times as long as the one before.
        longest_poll_seconds: no wait is longer.
        limit_seconds: from the first look on; then it is an error.
        keep_job: keep the job in ``stream.state``: a run that was ended while it waited is followed by one that waits
            for the same job, if the same (``what``) is asked for within ``keep_seconds``. The job must be JSON.
        format, compression, member, csv, records_path, add, max_...: as ``read`` takes them. What the files hold is
            told by ``format``, their names, or their content type; how they are packed by their first bytes.
        folder: where files are put while they are read; they are removed afterwards, whatever happens.
        sleep, monotonic, now: the clocks, in seconds.

    Raises:
        DeclarationError: an option that can't be. While it runs: FileError (not ready in time, damaged, broken), and
            whatever the functions raise.
    """
    limits = max_line_bytes, max_document_bytes, max_unpacked_bytes
    options = Options(format, compression, member, csv, records_path, add, *limits)
    if not (min(poll_seconds, longest_poll_seconds, limit_seconds) > 0 and backoff >= 1):
        raise _wrong("poll_seconds, longest_poll_seconds and limit_seconds are more than 0, and backoff is 1 or more")
    if keep_job and (not isinstance(what, str) or what in ("", _UNNAMED)):
        raise _wrong(
            "keep_job needs what='...': a job that an earlier run asked for is found by it, so it says what is asked "
            "for, with its parameters"
        )
    clock = FunctionClock(sleep=sleep, monotonic=monotonic, now=now)
    read = partial(_read, options, partial(_fetch, download, max_download_bytes), folder)

    def asked() -> Job:
        job = request()
        if job is None:
            raise _wrong("request() gave None; it gives the job, such as its id")
        logger.info("export: %s was asked for.", what)
        return job

    def parts_of(job: Job) -> list[Part]:
        return _wait(partial(ready, job), what, (poll_seconds, backoff, longest_poll_seconds), limit_seconds, clock)

    def pages() -> Iterator[Any]:
        run = stream if stream is not None else running()
        if not (keep_job and keep_seconds):
            job = asked()
            try:
                parts = parts_of(job)
            except BaseException:
                try:
                    if cancel is not None:
                        cancel(job)
                except Exception as error:
                    logger.warning("export: %s could not be cancelled: %s", what, shown(str(error)))
                raise
            yield from read(parts, run)
            return
        if run is None:
            raise _wrong("keep_job needs a running stream: export(stream=stream, ...)")
        kept = _Kept(run, what, keep_seconds, clock)
        try:
            yield from read(kept.parts(asked, parts_of), run)
        except BaseException as error:
            if not _is_passing(error):
                kept.forget()
            raise
        kept.done()

    return pages()


def _wrong(fact: str) -> DeclarationError:
    return DeclarationError(f"burler.files.export: {fact}.")


# ---- waiting ---------------------------------------------------------------------------------------------------------


class _TooLong(FileError):
    """A job was not ready in time."""


def _is_passing(error: BaseException) -> bool:
    """Whether the job itself may be well: the run was ended, time was up, nobody answered."""
    if isinstance(error, HttpError):
        return error.status is None or error.status == 429 or error.status >= 500
    return isinstance(error, _TooLong) or not isinstance(error, Exception)


def _wait(
    ready: Callable[[], Any], what: str, pauses: tuple[float, float, float], limit: float, clock: Clock
) -> list[Part]:
    """Look at a job until it is done, less and less often.

    Args:
        pauses: the first one in seconds, how many times as long each next one is, and the longest.

    Raises:
        FileError: it is not within the limit, in seconds. And whatever ``ready`` raises.
    """
    pause, backoff, longest = pauses
    begun, looks = clock.monotonic(), 1
    while (found := ready()) is None:
        seconds = clock.monotonic() - begun
        if seconds >= limit:
            raise _TooLong(
                f"export: {what} was not ready after {seconds:,.0f} seconds and {counted(looks, 'look')}.\n"
                "  Ask for less at a time, or raise limit_seconds."
            )
        clock.pause(min(pause, limit - seconds))
        pause = min(pause * backoff, longest)
        looks += 1
    several = found if isinstance(found, list | tuple) else [found]
    parts = [Part(one) if isinstance(one, str) and one else one for one in several]
    wrong = [type(one).__name__ for one in parts if not isinstance(one, Part)]
    if wrong:
        raise _wrong(f"ready(job) gives None, a URL, a burler.files.Part or a list of these, not {wrong[0]}")
    return parts


class _Kept:
    """A job in ``stream.state``, until its rows are out."""

    def __init__(self, run: StreamRun, what: str, keep_seconds: float, clock: Clock) -> None:
        self._run, self._what, self._seconds, self._clock = run, what, keep_seconds, clock

    def parts(self, asked: Callable[[], Any], parts_of: Callable[[Any], list[Part]]) -> list[Part]:
        """Wait for the job of an earlier run, if the same was asked for and it is not too old; one that is gone is
        asked for once more."""
        if (entry := self._jobs().get(self._what)) is not None:
            logger.info("export: %s: the job that the last run asked for is waited for.", self._what)
            try:
                return parts_of(entry["job"])
            except NotFoundError:
                logger.warning("export: %s: the job of the last run is gone; it is asked for anew.", self._what)
        job = asked()
        self._save({self._what: {"job": job, "at": round(self._clock.time())}})  # now: the wait may be long
        return parts_of(job)

    def forget(self) -> None:
        """Its rows are out, or there will be none."""
        self._save({})

    def done(self) -> None:
        """Its rows are out.

        Raises:
            BurlerError: so are those of another one of this name: after a kill, one would take up the other's job.
        """
        self.forget()
        if not self._run.source_state.claim(uuid4().hex, source=f"{_KEY}: {self._what}"):
            raise BurlerError(
                f"stream '{self._run.name}': burler.files.export: what='{shown(self._what)}' was asked for twice "
                "in one run of its function, and keep_job finds a job by it.\n  Name each: what='orders of 2024'."
            )

    def _jobs(self) -> dict[str, Any]:
        """Those that are not too old."""
        least = self._clock.time() - self._seconds
        return {what: entry for what, entry in self._run.state.get(_KEY, {}).items() if entry["at"] > least}

    def _save(self, own: dict[str, Any]) -> None:
        """Put the job into the state, or take it out, and have that taken as it stands here. Others that are too old
        are forgotten."""
        others = self._jobs()
        others.pop(self._what, None)
        if jobs := {**others, **own}:
            self._run.state[_KEY] = jobs
        else:
            self._run.state.pop(_KEY, None)
        if not self._run.manual:
            self._run.save_bookmark()


# ---- fetching and reading --------------------------------------------------------------------------------------------


def _read(
    options: Options,
    fetch: Callable[[Part, Path], str | None],
    folder: str | Path | None,
    parts: list[Part],
    run: StreamRun | None,
) -> Iterator[Any]:
    """The pages of what was made. A file is gone afterwards, whatever happens."""
    table = table_of(run)
    store = require("fsspec", extra="files", needed_for="burler.files.export").filesystem("file")
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="burler-export-", dir=folder) as place:
            path = Path(place, "part")
            kind = fetch(part, path)
            with path.open("rb") as stored:  # a client may have unpacked what its name calls packed
                first = kind_of(stored.read(HEAD_BYTES))
            found = replace(
                options,
                format=options.format or options.holds(part.label) or kind,
                compression=options.compression or (first if first in COMPRESSIONS.values() else "none"),
            )
            file = File(str(path), part.label, path.stat().st_size, None, store=store, title=part.label)
            found.check(file)
            if run is not None:
                run.tally.add("files")
            yield from Contents(found, table).pages(file)


def _fetch(download: Any, max_bytes: int | None, part: Part, path: Path) -> str | None:
    """Fetch a part; gives what it holds by its media type, where its name does not say.

    Raises:
        FileError: it is not as its maker says, or too big. And whatever the download raises.
    """
    fetch, name = getattr(download, "download", None), shown(part.label)
    headers = download(part, path) if fetch is None else fetch(part.url, path, max_bytes=max_bytes)
    if not path.is_file():
        raise FileError(f"export '{name}': download(part, path) wrote no file.")
    size = path.stat().st_size
    if max_bytes is not None and size > max_bytes:
        raise FileError(f"export '{name}' has {size:,} bytes; max_download_bytes is {max_bytes:,}.")
    if part.size_bytes is not None and size != part.size_bytes:
        raise FileError(f"export '{name}' came with {size:,} bytes, and should have {part.size_bytes:,}.")
    for kind, wanted in (("sha256", part.sha256), ("md5", part.md5)):
        if wanted is None:
            continue
        with path.open("rb") as file:
            found = hashlib.file_digest(file, partial(hashlib.new, kind, usedforsecurity=False)).hexdigest()
        if found != wanted.strip().lower():
            raise FileError(f"export '{name}' came damaged: its {kind} is {found}, and should be {wanted}.")
    if format_of(part.label) or not isinstance(headers, Mapping):
        return None
    types = (str(value) for name, value in headers.items() if str(name).lower() == "content-type")
    return format_of_media_type(next(types, ""))
