"""``read``: the files that fit a pattern and were not read before, one after the other, as pages; when a file counts as
read, and which were: the source state of kind ``burler/files``.

The value is JSON text: ``{"files": 3, "last": "orders-03.csv.gz", "read": "<11 letters a file>"}``. ``read`` holds the
digest of each file that was read and still is in the listing. No watermark: a file that comes late may sort lower than
all others and may carry an old time (``cp -p``, a restored backup, an upload that began long ago), so neither a name
nor a time says that a file was there before. What a file was when it was read says it; docs/files.md has the reasoning.
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from burler.config.secrets import mask
from burler.context import StreamRun, running
from burler.errors import BurlerError, DeclarationError, FileError
from burler.files.contents import Contents, table_of
from burler.files.options import Csv, Options, Patterns, patterns_of
from burler.numbers import is_measure
from burler.storage.find import File, Found, again, find
from burler.storage.location import is_web, shown
from burler.words import counted

logger = logging.getLogger("burler")

KIND = "burler/files"
ETAG = "odf/etag"
_LETTERS = 11
_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
_MIB = 1 << 20
_WORDS = {"order": ("time", "name"), "on_bad_file": ("fail", "skip"), "on_no_files": ("fail", "empty")}


def read(
    pattern: Patterns,
    *,
    stream: StreamRun | None = None,
    format: str | None = None,
    compression: str | None = None,
    member: str | None = None,
    csv: Csv | None = None,
    records_path: str | Sequence[str] = (),
    add: Iterable[str] = (),
    source: str = "odf/polling",
    remember: bool = True,
    order: str = "time",
    settle_seconds: float = 0.0,
    on_bad_file: str = "fail",
    on_no_files: str = "fail",
    storage_options: Mapping[str, Any] | None = None,
    max_line_bytes: int = 256 * _MIB,
    max_document_bytes: int = 256 * _MIB,
    max_unpacked_bytes: int = 64 * 1024 * _MIB,
    now: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
) -> Iterator[Any]:
    """Pages of the files that fit a pattern and were not read before: ``yield from burler.files.read("in/*.csv.gz")``.

    A file's pages are Arrow batches (CSV, Parquet) or bytes (JSON). A file that was read is noted in
    ``stream.source_state`` (kind ``burler/files``), and is not read again unless it changes: behind its last row where
    its pages go to the engine as they are (``yield from``, ``return``), else once the function has ended. In a full
    table of which some files were read before, the rows are added to the table as it stands
    (``stream.not_modified()``).

    Args:
        pattern: a path or URL of any store that fsspec knows, with ``*``, ``**``, ``?`` and ``[...]``, or several.
        stream: whose state it is; None: the stream that is running here, if any.
        format: csv, tsv, jsonl, json or parquet; None: each file's name says.
        compression: gz, bz2, xz, zst, zip or none; None: each file's name says.
        member: which files of a zip, as a pattern.
        csv: how CSV files are written.
        records_path: where the rows lie in a JSON document.
        add: columns to add: ``_file``, ``_row``, ``_modified``.
        source: the name of this source, where a stream reads several: one name stands for one set of patterns.
        remember: False: read all files in each run and note nothing.
        order: "time": oldest change first, then by name; "name".
        settle_seconds: files that changed less than so long ago are left for the next run.
        on_bad_file: "fail": a broken file ends the stream; "skip": it is left, said and counted, and read again in the
            next run. Rows that stand before the broken place are out. A full table that is read as a whole ends with
            an error then, after all other files: no ACTIVATE_VERSION follows a part of a table.
        on_no_files: "fail": a pattern that never had a file, or whose folder is not there any more, is an error;
            "empty": it is not.
        storage_options: what fsspec passes on to the store.
        max_line_bytes, max_document_bytes, max_unpacked_bytes: of a row of text, a JSON document, an unpacked file.
        now: seconds since 1970. monotonic: a clock in seconds.

    Raises:
        DeclarationError: an option that can't be. While it is read: FileError, MissingExtra; BurlerError where
            ``source`` stands for other files already.
    """
    limits = max_line_bytes, max_document_bytes, max_unpacked_bytes
    options = Options(format, compression, member, csv, records_path, add, *limits)
    for name, given in (("order", order), ("on_bad_file", on_bad_file), ("on_no_files", on_no_files)):
        if given not in _WORDS[name]:
            raise DeclarationError(f"burler.files.read: {name}={given!r}; it is one of {', '.join(_WORDS[name])}.")
    if not is_measure(settle_seconds) or settle_seconds < 0:
        raise DeclarationError(f"burler.files.read: settle_seconds={settle_seconds!r}; it is 0 or more.")
    return _Pages(
        patterns=patterns_of(pattern),
        options=options,
        run=stream,
        source=source,
        remember=remember,
        by_time=order == "time",
        settle_seconds=settle_seconds,
        skip_bad=on_bad_file == "skip",
        may_be_empty=on_no_files == "empty",
        storage_options=dict(storage_options or {}),
        now=now,
        monotonic=monotonic,
    )


@dataclass(slots=True, eq=False)
class _Pages:
    """An iterator of the pages of all files that are to be read.

    The engine says which pages came straight to it (``page_taken``). A file of which all pages did is noted when the
    page behind its last one is asked for: its rows stand before that place then. Whoever takes pages into his own hands
    (a loop, a list, a look ahead) may yield their rows at any time: such files are noted once the function has ended.
    """

    patterns: tuple[str, ...]
    options: Options
    run: StreamRun | None
    source: str
    remember: bool
    by_time: bool
    settle_seconds: float
    skip_bad: bool
    may_be_empty: bool
    storage_options: Mapping[str, Any] = field(repr=False)
    now: Callable[[], float]
    monotonic: Callable[[], float]
    _pages: Generator[Any, None, None] = field(init=False)
    _page: Any = None
    _straight: bool = False
    _held: list[File] = field(default_factory=list)  # read, and noted at the end
    _left: int = 0

    def __post_init__(self) -> None:
        self._pages = self._of_all()

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

    # ---- which files are read ------------------------------------------------------------------------------

    def _unread(self, progress: Progress) -> list[File]:
        """The files that are new, in the order in which they are read."""
        found = find(self.patterns, self.storage_options)
        self._check(found, progress)
        unread = progress.begin(found.files, forget=not found.missing)
        new = [file for file in unread if self._is_settled(file)]
        for file in new:
            self.options.check(file)
        left = len(unread) - len(new)
        late = f", {left} changed too lately (settle_seconds)" if left else ""
        logger.info("files: %d of %d to read%s.", len(new), len(found.files), late)
        if self.by_time:
            new.sort(key=lambda file: (file.modified or 0, file.name, file.path))
        return new

    def _check(self, found: Found, progress: Progress) -> None:
        """An empty listing is an error, unless files may be gone."""
        patterns = ", ".join(f"'{shown(pattern)}'" for pattern in self.patterns)
        missing = ", ".join(f"'{pattern}'" for pattern in found.missing)
        if found.files or self.may_be_empty:
            if missing and progress.known:
                logger.warning("files: the folder of %s is not there; what was read of it is kept in mind.", missing)
        elif not progress.known:
            relative = "Is the path right (a relative one counts from the folder the tap is started in)?"
            right = "Is the address right? Its server knows none (404)." if is_web(self.patterns[0]) else relative
            raise FileError(f"no file fits {patterns}.\n  {right} on_no_files='empty' where none need be there yet.")
        elif missing:
            raise FileError(
                f"the folder of {missing} is not there, and files of it were read before.\n"
                "  Is the disk mounted, the server the right one? on_no_files='empty' where it need not be there."
            )
        elif progress.count:
            logger.warning(
                "files: no file fits %s any more; %d were read before, and are forgotten.", patterns, progress.count
            )

    def _is_settled(self, file: File) -> bool:
        """Whether a file changed long enough ago. A clock that goes a little ahead is waited for; a time far in the
        future (a wrong clock, once) will not come, and a file that waits for it would never be read."""
        if not self.settle_seconds or file.modified is None:
            return True
        age_seconds = self.now() - file.modified / 1_000_000
        if age_seconds >= -self.settle_seconds:
            return age_seconds >= self.settle_seconds
        logger.warning("files: '%s' changed in the future, as its store says; settle_seconds does not hold it.", file)
        return True

    # ---- their pages ---------------------------------------------------------------------------------------

    def _of_all(self) -> Generator[Any, None, None]:
        run = self.run = self.run if self.run is not None else running()
        noted_in = run if self.remember else None
        # Another text makes all files be read again.
        identity = repr(([str(mask(pattern)) for pattern in self.patterns], self.options.identity))
        progress = Progress(noted_in, source=self.source, of=identity, monotonic=self.monotonic)
        files = self._unread(progress)
        untold = [file for file in files if not file.is_told]
        if untold and noted_in is not None:
            logger.warning(
                "files: of %d files, such as '%s', the store says neither when they changed nor gives it a tag (ETag): "
                "nobody can tell whether they have, so they are read in each run.",
                len(untold),
                untold[0],
            )
        if run is not None and progress.known:
            run.not_modified()
        contents = Contents(self.options, table_of(run))
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
                if not self.skip_bad:
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
        run = self.run
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
        elif run is not None and self.remember:
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
        if self.run is not None and not self.run.manual:
            self.run.save_bookmark()

    def _leave(self, file: File, progress: Progress, reason: str, fact: str) -> None:
        logger.warning("files: '%s' is left out: %s", file, fact)
        run = self.run
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
        name = self.run.name if self.run is not None else ""
        left = f"{counted(self._left, 'file')} {'was' if self._left == 1 else 'were'}"
        raise FileError(
            f"stream '{name}': {left} left out (the log says why), and so this is not the whole "
            "table: no ACTIVATE_VERSION is sent, and the next run reads all files again.\n"
            "  Mend the files or move them away; or declare versions=False, or a replication_key."
        )


# ---- which files were read -------------------------------------------------------------------------------------------


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
