"""``read``: the files that fit a pattern and were not read before, one after the other, as pages; when a file counts as
read; how one file is opened and read as what it is."""

from __future__ import annotations

import contextlib
import fnmatch
import logging
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, BinaryIO, cast

from burler.config.secrets import mask
from burler.context import StreamRun, running
from burler.errors import DeclarationError, FileError
from burler.files.added import Adder, check_added
from burler.files.columnar_pages import columnar_batches
from burler.files.csv_options import Csv
from burler.files.csv_pages import Table, csv_batches
from burler.files.json_pages import Peeked, json_document_page
from burler.files.progress import Progress
from burler.files.store_errors import named, said
from burler.formats import FormatError
from burler.formats.compression import Decompressed
from burler.formats.jsonl import json_lines
from burler.formats.names import COMPRESSIONS, format_of, split_name
from burler.formats.zipped import members
from burler.numbers import is_count, is_measure
from burler.pages import JsonPage
from burler.paths import path_of
from burler.storage.find import File, Found, again, find
from burler.storage.location import printable, shown
from burler.storage.reading import CountedFile
from burler.words import counted

logger = logging.getLogger("burler")

_MIB = 1 << 20
_WORDS = {"order": ("time", "name"), "on_bad_file": ("fail", "skip"), "on_no_files": ("fail", "empty")}
FORMATS = ("csv", "tsv", "jsonl", "json", "parquet")
"""What files hold. ``jsonl``: an object a line. ``json``: one document, or an array."""

PACKINGS = ("gz", "bz2", "xz", "zst", "zip")

Patterns = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


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
    for name, given in (("order", order), ("on_bad_file", on_bad_file), ("on_no_files", on_no_files)):
        if given not in _WORDS[name]:
            raise DeclarationError(f"burler.files.read: {name}={given!r}; it is one of {', '.join(_WORDS[name])}.")
    if not is_measure(settle_seconds) or settle_seconds < 0:
        raise DeclarationError(f"burler.files.read: settle_seconds={settle_seconds!r}; it is 0 or more.")
    reading = _Reading(
        patterns_of(pattern),
        options,
        source,
        remember,
        order,
        settle_seconds,
        on_bad_file == "skip",
        on_no_files == "empty",
        dict(storage_options or {}),
        now,
        monotonic,
    )
    return _Pages(reading, stream)


def patterns_of(given: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """One pattern or several, as texts.

    Raises:
        DeclarationError: none, or something that is no path.
    """
    several = [given] if isinstance(given, str | os.PathLike) else list(given)
    if not several or not all(isinstance(one, str | os.PathLike) and os.fspath(one) for one in several):
        raise DeclarationError(f"burler.files: a pattern is a path or a URL, such as 'data/*.csv', not {given!r}.")
    return tuple(str(os.fspath(one)) for one in several)


# ---- from file to file ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reading:
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


class _Pages:
    """An iterator of the pages of all files that are to be read.

    The engine says which pages came straight to it (``page_taken``). A file of which all pages did is noted when the
    page behind its last one is asked for: its rows stand before that place then. Whoever takes pages into his own hands
    (a loop, a list, a look ahead) may yield their rows at any time: such files are noted once the function has ended.
    """

    def __init__(self, reading: _Reading, stream: StreamRun | None) -> None:
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


def _to_read(reading: _Reading, progress: Progress, run: StreamRun | None) -> list[File]:
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


def _check_found(reading: _Reading, progress: Progress, found: Found) -> None:
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


def _is_settled(file: File, reading: _Reading) -> bool:
    """Whether a file changed long enough ago. A clock that goes a little ahead is waited for; a time far in the future
    (a wrong clock, once) will not come, and a file that waits for it would never be read."""
    if not reading.settle_seconds or file.modified is None:
        return True
    age_seconds = reading.now() - file.modified / 1_000_000
    if age_seconds < -reading.settle_seconds:
        logger.warning("files: '%s' changed in the future, as its store says; settle_seconds does not hold it.", file)
        return True
    return age_seconds >= reading.settle_seconds


def _files(count: int) -> str:
    return f"{counted(count, 'file')} {'was' if count == 1 else 'were'}"


def table_of(run: StreamRun | None) -> Table:
    """Which columns a stream wants, and which it knows."""
    if run is None:
        return Table({})
    known = frozenset(path[1] for path in run._metadata if len(path) == 2 and path[0] == "properties")
    return Table(run.schema, known)


# ---- one file -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Options:
    """How files are read; see ``read``. None of ``format`` and ``compression``: each file's name says."""

    format: str | None = None
    compression: str | None = None
    member: str | None = None
    csv: Csv | None = None
    records_path: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
    max_line_bytes: int = 1 << 28
    max_document_bytes: int = 1 << 28
    max_unpacked_bytes: int = 1 << 36

    @classmethod
    def checked(
        cls,
        *,
        format: str | None,
        compression: str | None,
        member: str | None,
        csv: Csv | None,
        records_path: str | Sequence[str],
        add: Iterable[str],
        **limits: int,
    ) -> Options:
        """What an author gave, in its one form.

        Args:
            limits: ``max_line_bytes``, ``max_document_bytes``, ``max_unpacked_bytes``.

        Raises:
            DeclarationError: an option that can't be.
        """
        for name, given, known in (("format", format, FORMATS), ("compression", compression, (*PACKINGS, "none"))):
            if given is not None and given not in known:
                raise DeclarationError(f"burler.files: {name} {given!r} is not known. Known: {', '.join(known)}.")
        odd = next((name for name, limit in limits.items() if not is_count(limit, 1)), None)
        if odd is not None:
            raise DeclarationError(
                f"burler.files: {odd}={limits[odd]!r:.60}; it is a whole number of bytes, 1 or more."
            )
        return cls(format, compression, member, csv, path_of(records_path), check_added(add), **limits)

    @property
    def identity(self) -> str:
        """What of this decides which rows come; limits and block sizes do not."""
        csv = None if self.csv is None else replace(self.csv, block_bytes=1)
        return repr((self.format, self.compression, self.member, csv, self.records_path, self.add))

    def packing(self, name: str) -> str | None:
        """How a file is packed."""
        if self.compression is None:
            return split_name(name)[1]
        return COMPRESSIONS.get(self.compression)

    def holds(self, name: str) -> str | None:
        """What a file (or a member of a zip) holds; None if neither the author nor its name says."""
        if self.format is not None:
            return self.format
        found = format_of(name)
        return found if found in FORMATS else None

    def is_wanted(self, member: str) -> bool:
        """Whether a file in a zip is meant. What programs leave beside files is not, unless the pattern says so."""
        pattern = self.member
        base = member.rpartition("/")[2]
        hidden = (base.startswith("."), (pattern or "").rpartition("/")[2].startswith("."))
        foreign = (member.startswith("__MACOSX/"), (pattern or "").startswith("__MACOSX/"))
        if hidden == (True, False) or foreign == (True, False):
            return False
        return self.holds(member) is not None if pattern is None else fnmatch.fnmatchcase(member, pattern)

    def check(self, file: File) -> None:
        """Refuse a file of which nobody says what it holds, or that options do not fit, before any is read.

        Raises:
            FileError: so.
        """
        if self.records_path and self.holds(file.label) == "jsonl":
            raise FileError(
                f"file '{file}': records_path leads into a JSON document, and this is JSON lines, each of them a row.\n"
                "  Leave it out, or say format='json'."
            )
        if self.holds(file.label) is None and self.packing(file.label) != "zip":
            raise FileError(
                f"file '{file}': its name does not say what it holds ({', '.join(FORMATS)}).\n"
                "  Say it with format=, or narrow the pattern to files that are meant."
            )


class Contents:
    """Reads files as some options say, for one stream.

    Args:
        on_footer: is given the schema of each Parquet file before its first row.
    """

    def __init__(self, options: Options, table: Table, on_footer: Callable[[Any], Any] | None = None) -> None:
        self._options, self._table, self._on_footer = options, table, on_footer
        self._warned: set[str] = set()
        self.kind = ""
        """What the page that was given last is from: one of ``FORMATS``."""

    def pages(self, file: File) -> Generator[Any, None, None]:
        """The pages of a file.

        Raises:
            FileError: it is broken. FileNotFoundError: it is gone.
        """
        packing, name = self._options.packing(file.label), str(file)
        if packing == "zip":
            yield from self._zipped(file, name)
            return
        yield from self._content(
            self._options.holds(file.label), partial(self._open, file, name, packing), file, name, file.label, packing
        )

    def _zipped(self, file: File, name: str) -> Iterator[Any]:
        options = self._options
        with named(name), self._stored(file, name) as packed:
            for member, opened in _members(packed, options):
                whole = f"{name}/{member}"
                kind = options.holds(member)
                if kind is None:
                    raise FileError(f"file '{whole}': its name does not say what it holds; say it with format=.")
                yield from self._content(kind, opened, file, whole, f"{file.label}/{printable(member)}", "zip")

    def _open(self, file: File, name: str, packing: str | None) -> Decompressed:
        return Decompressed(self._stored(file, name), packing, limit_bytes=self._options.max_unpacked_bytes)

    def _stored(self, file: File, name: str) -> CountedFile:
        with said(name):
            return CountedFile(file.store.open(file.path, "rb"), partial(said, name))

    def _content(
        self,
        kind: str | None,
        opened: Callable[[], Decompressed],
        file: File,
        name: str,
        label: str,
        packing: str | None,
    ) -> Iterator[Any]:
        adder = Adder(self._options.add, file, label)
        make = {"csv": self._csv, "tsv": self._tsv, "jsonl": self._lines, "json": self._json}
        if kind == "parquet":
            pages = self._parquet(opened, file, name, packing)
        else:
            pages = make[kind or "csv"](opened, name)
        with named(name):
            for page in pages:
                self.kind = kind or ""
                yield adder.page(page)

    def _csv(self, opened: Callable[[], Decompressed], name: str, default: Csv | None = None) -> Iterator[Any]:
        csv = self._options.csv or default or Csv()
        with opened() as source:
            yield from csv_batches(source, name, csv, self._table, max_line_bytes=self._options.max_line_bytes)

    def _tsv(self, opened: Callable[[], Decompressed], name: str) -> Iterator[Any]:
        return self._csv(opened, name, Csv(delimiter="\t"))

    def _lines(self, opened: Callable[[], Decompressed], name: str) -> Iterator[Any]:
        with opened() as source:
            yield from self._line_pages(source)

    def _line_pages(self, source: Any) -> Iterator[JsonPage]:
        for lines, _ in json_lines(source, most_line_bytes=self._options.max_line_bytes, allow_nan=True):
            yield JsonPage(lines, ())

    def _json(self, opened: Callable[[], Decompressed], name: str) -> Iterator[Any]:
        options = self._options
        with opened() as source:
            peeked = Peeked(source)
            if not options.records_path and peeked.has_lines():
                yield from self._line_pages(peeked)
                return
            yield from json_document_page(
                peeked, name, records_path=options.records_path, max_document_bytes=options.max_document_bytes
            )

    def _parquet(self, opened: Callable[[], Decompressed], file: File, name: str, packing: str | None) -> Iterator[Any]:
        """Parquet is read from its end: what is packed is copied into a temporary file first."""
        with self._stored(file, name) if packing is None else opened() as source:
            yield from columnar_batches(source, "parquet", name, self._table, self._warned, self._on_footer)


def _members(packed: CountedFile, options: Options) -> Iterator[tuple[str, Callable[[], Decompressed]]]:
    """See ``zipped.members``."""
    try:
        yield from members(cast(BinaryIO, packed), options.is_wanted, limit_bytes=options.max_unpacked_bytes)
    except FormatError as error:
        if error.kind != "member":
            raise
        fits = f"no member fits '{options.member}'"
        what = fits if options.member else f"no member's name says what it is ({', '.join(FORMATS)})"
        raise FormatError(
            f"{what}. {error.fact}.\n  Say which with member='*.csv', or what they are with format="
        ) from None
