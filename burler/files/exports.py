"""``export``: ask a source for an export, wait until it is made, fetch it, read it."""

from __future__ import annotations

import contextlib
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

from burler.clock import FunctionClock
from burler.context import StreamRun, running
from burler.errors import BurlerError, DeclarationError, FileError, HttpError, NotFoundError
from burler.extras import require
from burler.files.contents import Contents, table_of
from burler.files.options import Csv, Options
from burler.formats.names import COMPRESSIONS, HEAD_BYTES, format_of, format_of_media_type, kind_of
from burler.storage.find import File
from burler.storage.location import shown

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
    options = Options.checked(
        format=format,
        compression=compression,
        member=member,
        csv=csv,
        records_path=records_path,
        add=add,
        max_line_bytes=max_line_bytes,
        max_document_bytes=max_document_bytes,
        max_unpacked_bytes=max_unpacked_bytes,
    )
    if keep_job and (not isinstance(what, str) or what in ("", _UNNAMED)):
        raise DeclarationError(
            "burler.files.export: keep_job needs what='...': a job that an earlier run asked for is found by it, so it "
            "says what is asked for, with its parameters."
        )
    asked = _Export(
        what,
        request,
        ready,
        download,
        cancel,
        poll_seconds,
        backoff,
        longest_poll_seconds,
        limit_seconds,
        options,
        folder,
        max_download_bytes,
        sleep,
        monotonic,
    )
    return _pages(asked, stream, keep_seconds if keep_job else 0.0, now)


def _pages(asked: _Export, stream: StreamRun | None, keep_seconds: float, now: Callable[[], float]) -> Iterator[Any]:
    run = stream if stream is not None else running()
    if not keep_seconds:
        job = asked.job()
        try:
            parts = asked.wait(job)
        except BaseException:
            asked.give_up(job)
            raise
        yield from asked.read(parts, run)
        return
    if run is None:
        raise DeclarationError("burler.files.export: keep_job needs a running stream: export(stream=stream, ...).")
    kept = _Kept(run, asked.what, keep_seconds, now)
    try:
        yield from asked.read(_wait_for_kept(asked, kept), run)
    except BaseException as error:
        if not _is_passing(error):
            kept.forget()
        raise
    kept.done()


def _wait_for_kept(asked: _Export, kept: _Kept) -> list[Part]:
    """Wait for a job that stands in the state; one of an earlier run that is gone is asked for once more."""
    taken_up = kept.job()
    if taken_up is not None:
        logger.info("export: %s: the job that the last run asked for is waited for.", asked.what)
        try:
            return asked.wait(taken_up)
        except NotFoundError:
            logger.warning("export: %s: the job of the last run is gone; it is asked for anew.", asked.what)
    job = asked.job()
    kept.keep(job)
    return asked.wait(job)


def _is_passing(error: BaseException) -> bool:
    """Whether the job itself may be well: the run was ended, time was up, nobody answered."""
    if isinstance(error, HttpError):
        return error.status is None or error.status == 429 or error.status >= 500
    return isinstance(error, _TooLong) or not isinstance(error, Exception)


class _TooLong(FileError):
    """A job was not ready in time."""


@dataclass(frozen=True, slots=True)
class _Export:
    """What ``export`` was asked for."""

    what: str
    request: Callable[[], Any]
    ready: Callable[[Any], Any]
    download: Any
    cancel: Callable[[Any], Any] | None
    poll_seconds: float
    backoff: float
    longest_poll_seconds: float
    limit_seconds: float
    options: Options
    folder: str | Path | None
    max_download_bytes: int | None
    sleep: Callable[[float], Any]
    monotonic: Callable[[], float]

    def __post_init__(self) -> None:
        for name in ("poll_seconds", "longest_poll_seconds", "limit_seconds"):
            if not getattr(self, name) > 0:
                raise DeclarationError(f"burler.files.export: {name}={getattr(self, name)!r}; it is more than 0.")
        if not self.backoff >= 1:
            raise DeclarationError(f"burler.files.export: backoff={self.backoff!r}; it is 1 or more.")
        for name in ("request", "ready"):
            if not callable(getattr(self, name)):
                kind = type(getattr(self, name)).__name__
                raise DeclarationError(f"burler.files.export: {name} is a function, not {kind}.")
        if not callable(self.download) and not hasattr(self.download, "download"):
            raise DeclarationError("burler.files.export: download is a burler.http.Client or a function (part, path).")

    def job(self) -> Any:
        """Ask for the export."""
        job = self.request()
        if job is None:
            raise DeclarationError("burler.files.export: request() gave None; it gives the job, such as its id.")
        logger.info("export: %s was asked for.", self.what)
        return job

    def wait(self, job: Any) -> list[Part]:
        """Look at a job until it is done, less and less often.

        Raises:
            FileError: it is not for longer than ``limit_seconds``. And whatever ``ready`` raises.
        """
        begun, pause, looks = self.monotonic(), self.poll_seconds, 1
        while (found := self.ready(job)) is None:
            seconds = self.monotonic() - begun
            if seconds >= self.limit_seconds:
                times = "once" if looks == 1 else f"{looks} times"
                raise _TooLong(
                    f"export: {self.what} was not ready after {seconds:,.0f} seconds; it was looked at {times}.\n"
                    "  Ask for less at a time, or raise limit_seconds."
                )
            FunctionClock(sleep=self.sleep, monotonic=self.monotonic).pause(min(pause, self.limit_seconds - seconds))
            pause = min(pause * self.backoff, self.longest_poll_seconds)
            looks += 1
        several = found if isinstance(found, list | tuple) else [found]
        parts = [Part(one) if isinstance(one, str) and one else one for one in several]
        wrong = [type(one).__name__ for one in parts if not isinstance(one, Part)]
        if wrong:
            raise DeclarationError(
                "burler.files.export: ready(job) gives None, a URL, a burler.files.Part or a list of these, "
                f"not {wrong[0]}."
            )
        return parts

    def give_up(self, job: Any) -> None:
        """Nobody waits for a job any more."""
        if self.cancel is None:
            return
        try:
            self.cancel(job)
        except Exception as error:
            logger.warning("export: %s could not be cancelled: %s", self.what, shown(str(error)))

    def read(self, parts: list[Part], run: StreamRun | None) -> Iterator[Any]:
        """The pages of what was made."""
        table = table_of(run)
        for part in parts:
            with self._downloaded(part) as (file, kind):
                given = self.options
                packing = given.compression or _packing(Path(file.path)) or "none"
                kind = given.format or given.holds(part.label) or kind
                options = replace(given, format=kind, compression=packing)
                options.check(file)
                if run is not None:
                    run.tally.add("files")
                yield from Contents(options, table).pages(file)

    @contextlib.contextmanager
    def _downloaded(self, part: Part) -> Iterator[tuple[File, str | None]]:
        """A part as a file, and what it holds by its media type. The file is gone afterwards, whatever happens.

        Raises:
            FileError: it is not as its maker says, or too big. And whatever the download raises.
        """
        with tempfile.TemporaryDirectory(prefix="burler-export-", dir=self.folder) as place:
            path = Path(place, "part")
            fetch = getattr(self.download, "download", None)
            if fetch is None:
                headers = self.download(part, path)
            else:
                headers = fetch(part.url, path, max_bytes=self.max_download_bytes)
            if not path.is_file():
                raise FileError(f"export '{shown(part.label)}': download(part, path) wrote no file.")
            _check(part, path, self.max_download_bytes)
            known = headers.items() if isinstance(headers, Mapping) else ()
            media_type = next((str(value) for name, value in known if str(name).lower() == "content-type"), "")
            store = require("fsspec", extra="files", needed_for="burler.files.export").filesystem("file")
            file = File(str(path), part.label, path.stat().st_size, None, store=store, title=part.label)
            yield file, None if format_of(part.label) else format_of_media_type(media_type)


def _check(part: Part, path: Path, max_bytes: int | None) -> None:
    size, name = path.stat().st_size, shown(part.label)
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


def _packing(path: Path) -> str | None:
    """How a file is packed, by its first bytes: on the way, a client may have unpacked what its name calls packed."""
    with path.open("rb") as file:
        found = kind_of(file.read(HEAD_BYTES))
    return found if found in COMPRESSIONS.values() else None


class _Kept:
    """A job in ``stream.state``, until its rows are out."""

    def __init__(self, run: StreamRun, what: str, keep_seconds: float, now: Callable[[], float]) -> None:
        self._run, self._what, self._seconds, self._now = run, what, keep_seconds, now

    def _jobs(self) -> dict[str, Any]:
        jobs = self._run.state.get(_KEY)
        return dict(jobs) if isinstance(jobs, dict) else {}

    def job(self) -> Any:
        """The job of an earlier run, if the same was asked for and it is not too old; None else. Others that are too
        old are forgotten."""
        jobs = {what: entry for what, entry in self._jobs().items() if self._is_young(entry)}
        self._put(jobs)
        return jobs[self._what]["job"] if self._what in jobs else None

    def _is_young(self, entry: Any) -> bool:
        at = entry.get("at") if isinstance(entry, dict) and "job" in entry else None
        return isinstance(at, int | float) and self._now() - at < self._seconds

    def keep(self, job: Any) -> None:
        """Put a job into the state, and let a STATE come now: the wait may be long."""
        self._put({**self._jobs(), self._what: {"job": job, "at": round(self._now())}})
        self._now_out()

    def forget(self) -> None:
        """Its rows are out, or there will be none."""
        jobs = self._jobs()
        jobs.pop(self._what, None)
        self._put(jobs)
        self._now_out()

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

    def _now_out(self) -> None:
        """Have the state taken as it stands here."""
        if not self._run.manual:
            self._run.save_bookmark()

    def _put(self, jobs: dict[str, Any]) -> None:
        if jobs:
            self._run.state[_KEY] = jobs
        else:
            self._run.state.pop(_KEY, None)
