"""``read``: what is to be read and how, checked; the pages come from ``pages``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from burler.context import StreamRun
from burler.errors import DeclarationError
from burler.files.contents import Options
from burler.files.csv_options import Csv
from burler.files.pages import Pages, Reading
from burler.numbers import is_measure

_MIB = 1 << 20
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
    _check_words(order=order, on_bad_file=on_bad_file, on_no_files=on_no_files)
    if not is_measure(settle_seconds) or settle_seconds < 0:
        raise DeclarationError(f"burler.files.read: settle_seconds={settle_seconds!r}; it is 0 or more.")
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
    return Pages(reading, stream)


def patterns_of(given: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """One pattern or several, as texts.

    Raises:
        DeclarationError: none, or something that is no path.
    """
    several = [given] if isinstance(given, str | os.PathLike) else list(given)
    if not several or not all(isinstance(one, str | os.PathLike) and os.fspath(one) for one in several):
        raise DeclarationError(f"burler.files: a pattern is a path or a URL, such as 'data/*.csv', not {given!r}.")
    return tuple(str(os.fspath(one)) for one in several)


_WORDS = {"order": ("time", "name"), "on_bad_file": ("fail", "skip"), "on_no_files": ("fail", "empty")}


def _check_words(**given: str) -> None:
    for name, value in given.items():
        if value not in _WORDS[name]:
            raise DeclarationError(f"burler.files.read: {name}={value!r}; it is one of {', '.join(_WORDS[name])}.")
