"""The pages of files, one file after the other, and when a file counts as read."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from burler.config.secrets import mask
from burler.context import StreamRun, running
from burler.errors import FileError
from burler.files.contents import Contents, Options
from burler.files.csv_pages import Table
from burler.files.progress import Progress
from burler.storage.find import File, Found, again, find
from burler.storage.location import shown
from burler.words import counted

logger = logging.getLogger("burler")


@dataclass(frozen=True, slots=True)
class Reading:
    """What ``read`` was asked for, checked."""

    patterns: tuple[str, ...]
    options: Options
    source: str
    remember: bool
    order: str
    settle_seconds: float
    skip_bad: bool
    may_be_empty: bool
    storage_options: Mapping[str, Any] = field(repr=False)
    now: Callable[[], float]
    monotonic: Callable[[], float]

    @property
    def of(self) -> str:
        """What decides which rows come, as text: another one makes all files be read again."""
        patterns = [str(mask(pattern)) for pattern in self.patterns]
        return repr((patterns, self.options.identity))


class Pages:
    """An iterator of the pages of all files that are to be read.

    The engine says which pages came straight to it (``page_taken``). A file of which all pages did is noted when the
    page behind its last one is asked for: its rows stand before that place then. Whoever takes pages into his own hands
    (a loop, a list, a look ahead) may yield their rows at any time: such files are noted once the function has ended.
    """

    def __init__(self, reading: Reading, stream: StreamRun | None) -> None:
        self._reading = reading
        self._run = stream
        self._pages = self._of_all()
        self._page: Any = None
        self._straight = False
        self._held: list[File] = []  # read, and noted at the end
        self._left = 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._pages)

    def page_taken(self, page: Any) -> None:
        """A page came to the engine without a detour."""
        self._straight = self._straight or page is self._page

    def close(self) -> None:
        """No more pages are wanted: a file that is open is closed."""
        self._pages.close()

    def _of_all(self) -> Generator[Any, None, None]:
        reading = self._reading
        run = self._run = self._run if self._run is not None else running()
        progress = Progress(
            run if reading.remember else None, source=reading.source, of=reading.of, monotonic=reading.monotonic
        )
        files = _to_read(reading, progress, run)
        if run is not None and progress.known:
            run.not_modified()
        contents = Contents(reading.options, table_of(run))
        for file in files:
            straight = True
            try:
                with contextlib.closing(contents.pages(file)) as pages:
                    for page in pages:
                        self._page, self._straight = page, False
                        yield page
                        straight = straight and self._straight
                        self._page = None
            except FileNotFoundError:
                self._leave(file, progress, "gone", "it is gone since it was listed")
            except FileError as error:
                if not reading.skip_bad:
                    if progress.save():
                        self._mark()
                    raise
                self._leave(file, progress, "broken", str(error))
            else:
                self._finish(file, progress, straight=straight)
        progress.save()

    def _finish(self, file: File, progress: Progress, *, straight: bool) -> None:
        """A file's last page was handed over. A file that has changed meanwhile is not noted: it is read again in the
        next run."""
        run = self._run
        if run is not None:
            run.tally.add("files")
            run.tally.add("bytes", count=file.size_bytes or 0)
        try:
            current = again(file)
        except OSError:
            current = None
        if current is not None and current.differs(file):
            logger.warning("files: '%s' was changed while it was read; it is read again in the next run.", file)
        elif straight:
            if progress.done(file):
                self._mark()
        elif run is not None and self._reading.remember:
            if not self._held:
                run.source_state.later(lambda: self._note_held(progress))
            self._held.append(file)

    def _note_held(self, progress: Progress) -> None:
        """The function has ended: what it took of these files is out."""
        for file in self._held:
            progress.done(file)
        progress.save()

    def _mark(self) -> None:
        """Have the state taken as it stands here, behind the rows of the files that were read."""
        if self._run is not None and not self._run.manual:
            self._run.save_bookmark()

    def _leave(self, file: File, progress: Progress, reason: str, fact: str) -> None:
        logger.warning("files: '%s' is left out: %s", file, fact)
        run = self._run
        if run is None:
            return
        run.tally.add("files_skipped", reason)
        whole = getattr(run, "sends_versions", run.replication_method == "FULL_TABLE")
        if whole and not progress.known:
            self._left += 1
            if self._left == 1:
                run.source_state.later(self._refuse_the_table)

    def _refuse_the_table(self) -> None:
        """ACTIVATE_VERSION never follows a part of a table: targets would drop the rows of what is missing.

        Raises:
            FileError: so.
        """
        name = self._run.name if self._run is not None else ""
        raise FileError(
            f"stream '{name}': {_files(self._left)} left out (the log says why), and so this is not the whole "
            "table: no ACTIVATE_VERSION is sent, and the next run reads all files again.\n"
            "  Mend the files or move them away; or declare versions=False, or a replication_key."
        )


def _to_read(reading: Reading, progress: Progress, run: StreamRun | None) -> list[File]:
    """The files that are new, in the order in which they are read."""
    found = find(reading.patterns, reading.storage_options)
    _check_found(reading, progress, found)
    unread = progress.begin(found.files, forget=not found.missing)
    new = [file for file in unread if _is_settled(file, reading)]
    for file in new:
        reading.options.check(file)
    left = len(unread) - len(new)
    late = f", {left} changed too lately (settle_seconds)" if left else ""
    logger.info("files: %d of %d to read%s.", len(new), len(found.files), late)
    untold = [file for file in new if not file.is_told]
    if untold and run is not None and reading.remember:
        logger.warning(
            "files: of %d files, such as '%s', the store says neither when they changed nor gives it a tag (ETag): "
            "nobody can tell whether they have, so they are read in each run.",
            len(untold),
            untold[0],
        )
    if reading.order == "time":
        new.sort(key=lambda file: (file.modified or 0, file.name, file.path))
    return new


def _check_found(reading: Reading, progress: Progress, found: Found) -> None:
    """An empty listing is an error, unless files may be gone."""
    patterns = ", ".join(f"'{shown(pattern)}'" for pattern in reading.patterns)
    missing = ", ".join(f"'{pattern}'" for pattern in found.missing)
    if found.files or reading.may_be_empty:
        if missing and progress.known:
            logger.warning("files: the folder of %s is not there; what was read of it is kept in mind.", missing)
        return
    if not progress.known:
        raise FileError(
            f"no file fits {patterns}.\n  Is the path right (a relative one counts from the folder the tap is started "
            "in)? on_no_files='empty' where none need be there yet."
        )
    if missing:
        raise FileError(
            f"the folder of {missing} is not there, and files of it were read before.\n"
            "  Is the disk mounted, the server the right one? on_no_files='empty' where it need not be there."
        )
    if progress.count:
        logger.warning(
            "files: no file fits %s any more; %d were read before, and are forgotten.", patterns, progress.count
        )


def _is_settled(file: File, reading: Reading) -> bool:
    """Whether a file changed long enough ago. A clock that goes a little ahead is waited for; a time far in the future
    (a wrong clock, once) will not come, and a file that waits for it would never be read."""
    if not reading.settle_seconds or file.modified is None:
        return True
    age_seconds = reading.now() - file.modified / 1_000_000
    if age_seconds < -reading.settle_seconds:
        logger.warning("files: '%s' changed in the future, as its store says; settle_seconds does not hold it.", file)
        return True
    return age_seconds >= reading.settle_seconds


def table_of(run: StreamRun | None) -> Table:
    """Which columns a stream wants, and which it knows."""
    if run is None:
        return Table({})
    known = frozenset(path[1] for path in run._metadata if len(path) == 2 and path[0] == "properties")
    return Table(run.schema, known)


def _files(count: int) -> str:
    return f"{counted(count, 'file')} {'was' if count == 1 else 'were'}"
