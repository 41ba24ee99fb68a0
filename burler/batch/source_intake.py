"""What becomes of files that a stream's function yields: passed on as they are, or read as rows."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

import msgspec

from burler.batch.source_files import BatchFiles, Rows, SourceFile, checked, shown_url
from burler.batch_config import CSV_DEFAULTS, PACKINGS, BatchConfig
from burler.context import StreamRun
from burler.records.columns.nodes import fields_of
from burler.singer.messages import Batch
from burler.words import some

logger = logging.getLogger("burler")

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Passed:
    """Files that go out as they are: one message for each.

    Attributes:
        bookmark: the replication key's greatest value in them, by the author's word; ``msgspec.UNSET`` without.
    """

    files: BatchFiles
    checked: tuple[SourceFile, ...]

    is_passed: ClassVar[bool] = True

    @property
    def bookmark(self) -> Any:
        """See the class. Files that have no rows, as far as they say so themselves, move it no more than rows would."""
        return self.files.bookmark if any(file.counted != 0 for file in self.checked) else msgspec.UNSET

    @property
    def count(self) -> int:
        """How many rows they have, as far as anybody knows. The author's number may be more than there are."""
        return sum(file.rows or 0 for file in self.checked)

    @property
    def size_bytes(self) -> int:
        """Their bytes as stored, as far as stores say."""
        return sum(file.size_bytes or 0 for file in self.checked)

    def batches(
        self, stream: str, *, time_extracted: dt.datetime | None, version: int | None, dialect: str
    ) -> list[Batch]:
        """The messages, in the files' order. ``file_stats`` has the rows only where a footer counts them."""
        made = []
        for file in self.checked:
            options: dict[str, Any] = {}
            if self.files.format == "csv":
                options = {**self.files.format_options, "line_end": file.line_end}
            elif file.types:
                options = {"compression": "none" if file.codec in (None, "uncompressed") else file.codec}
            message = Batch(
                stream,
                (file.url,),
                self.files.format,
                self.files.compression,
                options,
                size=file.rows,
                time_extracted=self.files.time_extracted or time_extracted,
                version=version,
                file_stats=None if file.size_bytes is None else ((file.counted, file.size_bytes),),
                dialect=dialect,
            )
            made.append(message)
        return made


class Intake:
    """Takes what one stream's function yields.

    Args:
        config: None: BATCH is off for this stream.
        rows_needed: why something of the tap must see each row, as "a hook is called for its rows"; None: nothing must.
    """

    def __init__(self, *, config: BatchConfig | None, rows_needed: str | None = None) -> None:
        self._config, self._rows_needed = config, rows_needed
        self._said = False

    def take(self, files: BatchFiles, run: StreamRun) -> Passed | Rows:
        """Look at files of a stream, and decide.

        Raises:
            FileError: one is not there, or is not what it should be. MissingExtra: see ``checked``.
        """
        found = checked(files)
        if self._config is None:
            return Rows(files, run, found)
        reason = next(_reasons(files, found, run, self._config, self._rows_needed), None)
        if reason is None:
            passed = Passed(files, tuple(file for file in found if not file.is_empty))
            uncounted = sum(file.rows is None for file in passed.checked)
            counts = {"passed_files": len(passed.checked), "bytes": passed.size_bytes, "uncounted_files": uncounted}
            for name, count in counts.items():
                if count:  # those that are read count where that is done
                    run.tally.add(name, count=count)
            return passed
        if not self._said:
            self._said = True
            logger.info("stream '%s': its files are read and written anew: %s.", run.name, reason)
        return Rows(files, run, found)


def _reasons(
    files: BatchFiles, found: Sequence[SourceFile], run: StreamRun, config: BatchConfig, rows_needed: str | None
) -> Iterator[str]:
    """Why files can't be passed on as they are, each as the end of a sentence: what needs the rows, what a message
    can't say, what the operator asked for, and each file's own.

    The stream's selected schema is held against their columns. What it says beyond names and (of Parquet and Arrow)
    types is not: nobody looks at the rows.
    """
    urls = [urlsplit(url) for url in files.urls]
    if rows_needed:
        yield rows_needed
    if (files.compression or "none") not in PACKINGS:
        yield f"no BATCH message can say '{files.compression}'"
    if config.dialect != "sip" and any(url.query for url in urls):
        yield f"their URLs have a query, which targets of dialect '{config.dialect}' cut off (dialect 'sip' does not)"
    if config.presign_seconds is not None and not all(url.query or url.scheme == "file" for url in urls):
        yield "presign_seconds asks for signed URLs, and these are not"
    if config.dialect == "meltano" and files.format == "csv" and dict(files.format_options) != dict(CSV_DEFAULTS):
        yield "dialect 'meltano' can't say how csv is written"
    if config.encoding_given:
        yield from _other_encoding(files, config)
    yield from _deselected_inside(run)
    for file in found:
        if not file.is_empty and (reason := file.remark or _columns(files, file, run)):
            yield f"'{shown_url(file.url)}': {reason}"


def _other_encoding(files: BatchFiles, config: BatchConfig) -> Iterator[str]:
    """Where the files are not what the operator asked for. The codec inside of Parquet and Arrow is no matter: such
    files say it themselves."""
    wanted = config.encoding
    if files.format != wanted.format:
        yield f"batch_config asks for {wanted.format}, and they are {files.format}"
    if files.compression != wanted.packing:
        asked, theirs = (f"packed with {one}" if one else "not packed" for one in (wanted.packing, files.compression))
        yield f"batch_config asks for {wanted.format} {asked}, and they are {theirs}"
    for name, value in files.format_options.items():
        option = wanted.format_options.get(name, CSV_DEFAULTS[name])
        if name != "line_end" and option != value:
            yield f"batch_config asks for csv with {name} {option!r}, and theirs is {value!r}"


def _deselected_inside(run: StreamRun) -> Iterator[str]:
    """A field within a field that is not selected: in files nobody takes it out."""
    for path in run._metadata:
        if len(path) > 2 and path[0] == "properties" and path[1] in (run.schema.get("properties") or {}):
            node: Any = run.schema
            for key in path:
                node = node.get(key) if hasattr(node, "get") else None
            if node is None:
                yield f"field '{'.'.join(path[1::2])}' is not selected"


def _columns(files: BatchFiles, file: SourceFile, run: StreamRun) -> str | None:
    """Where its columns are not the stream's selected fields."""
    wanted = tuple(run.schema.get("properties") or ())
    columns = file.columns or files.columns
    if columns is None:
        cure = "batch_files(columns=[...]) says it"
        return f"{files.format} does not say which fields its rows have ({cure})"
    if files.columns is not None and set(columns) != set(files.columns):
        return f"its columns are not those of columns= ({_differences(columns, files.columns, 'columns=')})"
    if set(columns) != set(wanted):
        return _differences(columns, wanted, "the selected schema")
    if file.keys is not None and (more := [key for key in file.keys if key not in wanted]):
        return f"its first row has '{more[0]}', which columns= does not name"
    if files.format == "csv" and not files.format_options["header"] and columns != wanted:
        return "it has no header, and its columns stand in another order than the schema's"
    if file.may_be_names and fields_of(run.schema)[columns[0]].names.isdisjoint({"string"}):
        return "its first row holds the names of the columns"
    if file.types is None:
        return None
    from burler.records.columns.arrow import mismatch

    return mismatch(file.types, run.schema, run.name)


def _differences(columns: Sequence[str], wanted: Sequence[str], of: str) -> str:
    more = [f"'{name[:60]}'" for name in columns if name not in wanted]
    less = [f"'{name[:60]}'" for name in wanted if name not in columns]
    has = f"it has {some(more, _SHOWN)}, which {of} does not" if more else ""
    lacks = f"{'and ' if more else 'it '}lacks {some(less, _SHOWN)}" if less else ""
    return f"{has} {lacks}".strip()
