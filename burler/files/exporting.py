"""``export``: ask a source for an export, wait until it is made, fetch it, read it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from burler.context import StreamRun, running
from burler.errors import BurlerError, DeclarationError, HttpError, NotFoundError
from burler.files.contents import Contents, Options
from burler.files.csv_options import Csv
from burler.files.downloading import Part, downloaded, parts_of
from burler.files.pages import table_of
from burler.files.polling import Polling, TooLong
from burler.storage.location import shown

logger = logging.getLogger("burler")

_KEY = "burler/exports"
"""In ``stream.state``, which is the author's own otherwise."""
_MIB = 1 << 20
_UNNAMED = "the export"
Job = TypeVar("Job")
Found = str | Part | Sequence[str | Part] | None


class Downloader(Protocol):
    """What fetches a file: a ``burler.http.Client``, or anything else with this method."""

    def download(self, path: str, to: Path, /, *, max_bytes: int | None) -> Any:
        """Write what is at a URL into a file; may give the headers of the reply."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What ``export`` was asked for, checked."""

    what: str
    request: Callable[[], Any]
    ready: Callable[[Any], Any]
    cancel: Callable[[Any], Any] | None
    download: Any
    polling: Polling
    options: Options
    folder: str | Path | None
    max_download_bytes: int | None

    def __post_init__(self) -> None:
        for name, function in (("request", self.request), ("ready", self.ready)):
            if not callable(function):
                raise DeclarationError(f"burler.files.export: {name} is a function, not {type(function).__name__}.")
        if not callable(self.download) and not hasattr(self.download, "download"):
            raise DeclarationError("burler.files.export: download is a burler.http.Client or a function (part, path).")


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
        poll_seconds, backoff, longest_poll_seconds, limit_seconds: how often to look, and for how long; see
            ``Polling``.
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
    polling = Polling(poll_seconds, backoff, longest_poll_seconds, limit_seconds, sleep, monotonic)
    asked = Asked(what, request, ready, cancel, download, polling, options, folder, max_download_bytes)
    return _pages(asked, stream, keep_seconds if keep_job else 0.0, now)


def _pages(asked: Asked, stream: StreamRun | None, keep_seconds: float, now: Callable[[], float]) -> Iterator[Any]:
    run = stream if stream is not None else running()
    if keep_seconds and run is None:
        raise DeclarationError("burler.files.export: keep_job needs a running stream: export(stream=stream, ...).")
    kept = _Kept(run, asked, keep_seconds, now) if keep_seconds and run is not None else None
    if kept is None:
        yield from _read(asked, _wait_or_cancel(asked, _job(asked)), run)
        return
    try:
        yield from _read(asked, _wait_for_kept(asked, kept), run)
    except BaseException as error:
        if not _is_passing(error):
            kept.forget()
        raise
    kept.done()


def _wait_or_cancel(asked: Asked, job: Any) -> list[Part]:
    try:
        return _wait(asked, job)
    except BaseException:
        _cancel(asked, job)
        raise


def _wait_for_kept(asked: Asked, kept: _Kept) -> list[Part]:
    """Wait for a job that stands in the state; one of an earlier run that is gone is asked for once more."""
    taken_up = kept.job()
    if taken_up is not None:
        logger.info("export: %s: the job that the last run asked for is waited for.", asked.what)
        try:
            return _wait(asked, taken_up)
        except NotFoundError:
            logger.warning("export: %s: the job of the last run is gone; it is asked for anew.", asked.what)
    job = _job(asked)
    kept.keep(job)
    return _wait(asked, job)


def _job(asked: Asked) -> Any:
    job = asked.request()
    if job is None:
        raise DeclarationError("burler.files.export: request() gave None; it gives the job, such as its id.")
    logger.info("export: %s was asked for.", asked.what)
    return job


def _wait(asked: Asked, job: Any) -> list[Part]:
    return parts_of(asked.polling.until(lambda: asked.ready(job), f"export: {asked.what}"))


def _is_passing(error: BaseException) -> bool:
    """Whether the job itself may be well: the run was ended, time was up, nobody answered."""
    if isinstance(error, HttpError):
        return error.status is None or error.status == 429 or error.status >= 500
    return isinstance(error, TooLong) or not isinstance(error, Exception)


def _cancel(asked: Asked, job: Any) -> None:
    if asked.cancel is None:
        return
    try:
        asked.cancel(job)
    except Exception as error:
        logger.warning("export: %s could not be cancelled: %s", asked.what, shown(str(error)))


def _read(asked: Asked, parts: list[Part], run: StreamRun | None) -> Iterator[Any]:
    table = table_of(run)
    for part in parts:
        with downloaded(part, asked.download, folder=asked.folder, max_bytes=asked.max_download_bytes) as found:
            file, kind, packing = found
            given = asked.options
            kind = given.format or given.holds(part.label) or kind
            options = replace(given, format=kind, compression=given.compression or packing or "none")
            options.check(file)
            if run is not None:
                run.tally.add("files")
            yield from Contents(options, table).pages(file)


class _Kept:
    """A job in ``stream.state``, until its rows are out."""

    def __init__(self, run: StreamRun, asked: Asked, keep_seconds: float, now: Callable[[], float]) -> None:
        self._run, self._asked, self._seconds, self._now = run, asked, keep_seconds, now

    def _jobs(self) -> dict[str, Any]:
        jobs = self._run.state.get(_KEY)
        return dict(jobs) if isinstance(jobs, dict) else {}

    def job(self) -> Any:
        """The job of an earlier run, if the same was asked for and it is not too old; None else. Others that are too
        old are forgotten."""
        jobs = {what: entry for what, entry in self._jobs().items() if self._is_young(entry)}
        self._put(jobs)
        return jobs[self._asked.what]["job"] if self._asked.what in jobs else None

    def _is_young(self, entry: Any) -> bool:
        at = entry.get("at") if isinstance(entry, dict) and "job" in entry else None
        return isinstance(at, int | float) and self._now() - at < self._seconds

    def keep(self, job: Any) -> None:
        """Put a job into the state, and let a STATE come now: the wait may be long."""
        self._put({**self._jobs(), self._asked.what: {"job": job, "at": round(self._now())}})
        self._now_out()

    def forget(self) -> None:
        """Its rows are out, or there will be none."""
        jobs = self._jobs()
        jobs.pop(self._asked.what, None)
        self._put(jobs)
        self._now_out()

    def done(self) -> None:
        """Its rows are out.

        Raises:
            BurlerError: so are those of another one of this name: after a kill, one would take up the other's job.
        """
        self.forget()
        if not self._run.source_state.claim(uuid4().hex, source=f"{_KEY}: {self._asked.what}"):
            raise BurlerError(
                f"stream '{self._run.name}': burler.files.export: what='{shown(self._asked.what)}' was asked for twice "
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
