"""``read``: from a pattern to pages, file by file, and what was read noted in the stream's source state."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from burler.config.secrets import mask
from burler.context import StreamRun, running
from burler.declare.records_path import path_of
from burler.errors import DeclarationError, FileError
from burler.files.added import check_added
from burler.files.contents import Contents, Options
from burler.files.csv_options import Csv
from burler.files.csv_pages import Table
from burler.files.listing import File, again, find, patterns_of
from burler.files.names import check_format, check_packing, shown
from burler.files.progress import Progress

logger = logging.getLogger("burler")

_MIB = 1 << 20
Patterns = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


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

    A file's pages are Arrow batches (CSV, Parquet) or bytes (JSON). Once its last row was yielded it is noted in
    ``stream.source_state`` (kind ``burler/files``), and is not read again unless it changes. In a full table of which
    some files were read before, the rows are added to the table as it stands (``stream.not_modified()``).

    Args:
        pattern: a path or URL of any store that fsspec knows, with ``*``, ``**``, ``?`` and ``[...]``, or several.
        stream: whose state it is; None: the stream that is running here, if any.
        format: csv, tsv, jsonl, json or parquet; None: each file's name says.
        compression: gz, bz2, xz, zst, zip or none; None: each file's name says.
        member: which files of a zip, as a pattern.
        csv: how CSV files are written.
        records_path: where the rows lie in a JSON document.
        add: columns to add: ``_file``, ``_row``, ``_modified``.
        source: the name of this source, where a stream reads several.
        remember: False: read all files in each run and note nothing.
        order: "time": oldest change first, then by name; "name".
        settle_seconds: files that changed less than so long ago are left for the next run.
        on_bad_file: "fail": a broken file ends the stream; "skip": it is left, said and counted, and read again in the
            next run. Rows that stand before the broken place are out.
        on_no_files: "fail": a pattern that never had a file is an error; "empty": it is not.
        storage_options: what fsspec passes on to the store.
        max_line_bytes, max_document_bytes, max_unpacked_bytes: of a row of text, a JSON document, an unpacked file.
        now: seconds since 1970. monotonic: a clock in seconds.

    Raises:
        DeclarationError: an option that can't be. While it is read: FileError, MissingExtra.

    Source: specs 4, rule 5.
    """
    check_format(format)
    check_packing(compression)
    _check_words(order=order, on_bad_file=on_bad_file, on_no_files=on_no_files)
    if settle_seconds < 0:
        raise DeclarationError(f"burler.files.read: settle_seconds={settle_seconds!r}; it is 0 or more.")
    options = Options(
        format,
        compression,
        member,
        csv,
        path_of(records_path),
        check_added(add),
        max_line_bytes,
        max_document_bytes,
        max_unpacked_bytes,
    )
    reading = Reading(
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
    return _pages(reading, stream)


_WORDS = {"order": ("time", "name"), "on_bad_file": ("fail", "skip"), "on_no_files": ("fail", "empty")}


def _check_words(**given: str) -> None:
    for name, value in given.items():
        if value not in _WORDS[name]:
            raise DeclarationError(f"burler.files.read: {name}={value!r}; it is one of {', '.join(_WORDS[name])}.")


def _pages(reading: Reading, stream: StreamRun | None) -> Iterator[Any]:
    run = stream if stream is not None else running()
    progress = Progress(
        run if reading.remember else None, source=reading.source, of=reading.of, monotonic=reading.monotonic
    )
    files = _to_read(reading, progress)
    if run is not None and progress.known:
        run.not_modified()
    contents = Contents(reading.options, table_of(run))
    for file in files:
        try:
            yield from contents.pages(file)
        except FileNotFoundError:
            _left(run, file, "gone", "it is gone since it was listed")
        except FileError as error:
            if not reading.skip_bad:
                yield from _saved(run, progress.save())
                raise
            _left(run, file, "broken", str(error))
        else:
            yield from _saved(run, _finished(run, file, progress))
    progress.save()


def _saved(run: StreamRun | None, saved: bool) -> Iterator[list[Any]]:
    """Have the state taken as it stands here, behind the rows of the files that were read."""
    if saved and run is not None:
        if not run.manual:
            run.save_bookmark()
        yield []


def _to_read(reading: Reading, progress: Progress) -> list[File]:
    """The files that are new, in the order in which they are read."""
    found = find(reading.patterns, reading.storage_options)
    if not found and not progress.known and not reading.may_be_empty:
        patterns = ", ".join(f"'{shown(pattern)}'" for pattern in reading.patterns)
        raise FileError(
            f"no file fits {patterns}.\n  Is the path right (a relative one counts from the folder the tap is started "
            "in)? on_no_files='empty' where none need be there yet."
        )
    unread = progress.begin(found)
    new = [file for file in unread if _is_settled(file, reading)]
    for file in new:
        reading.options.check(file)
    left = len(unread) - len(new)
    late = f", {left} changed too lately (settle_seconds)" if left else ""
    logger.info("files: %d of %d to read%s.", len(new), len(found), late)
    if reading.order == "time":
        new.sort(key=lambda file: (file.modified or 0, file.name, file.path))
    return new


def _is_settled(file: File, reading: Reading) -> bool:
    if not reading.settle_seconds or file.modified is None:
        return True
    return file.modified / 1_000_000 + reading.settle_seconds <= reading.now()


def _left(run: StreamRun | None, file: File, reason: str, fact: str) -> None:
    logger.warning("files: '%s' is left out: %s", file, fact)
    if run is not None:
        run.tally.add("files_skipped", reason)


def _finished(run: StreamRun | None, file: File, progress: Progress) -> bool:
    """A file's last row is out; whether that was handed to the stream. A file that has changed meanwhile is not noted:
    it is read again in the next run."""
    if run is not None:
        run.tally.add("files")
        run.tally.add("bytes", count=file.size_bytes or 0)
    try:
        current = again(file)
    except OSError:
        current = None
    if current is not None and current.differs(file):
        logger.warning("files: '%s' was changed while it was read; it is read again in the next run.", file)
        return False
    return progress.done(file)


def table_of(run: StreamRun | None) -> Table:
    """Which columns a stream wants, and which it knows."""
    if run is None:
        return Table({})
    known = frozenset(path[1] for path in run._metadata if len(path) == 2 and path[0] == "properties")
    return Table(run.schema, known)
