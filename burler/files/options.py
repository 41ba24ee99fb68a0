"""How files are to be read: what an author says of them, checked."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from burler.errors import DeclarationError, FileError
from burler.formats.csv import Dialect
from burler.formats.names import COMPRESSIONS, format_of, split_name
from burler.numbers import is_count
from burler.paths import path_of
from burler.storage.find import File

FORMATS = ("csv", "tsv", "jsonl", "json", "parquet")
"""What files hold. ``jsonl``: an object a line. ``json``: one document, or an array."""

ADDED: dict[str, dict[str, Any]] = {
    "_file": {"type": "string"},
    "_row": {"type": "integer"},
    "_modified": {"type": ["null", "string"], "format": "date-time"},
}
"""The columns that say where a row comes from, and the schema of each: the file's name (of a zip: with the member's
behind it), the number of the row in its file, from 1, and when the file was changed last."""

Patterns = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def patterns_of(given: Patterns) -> tuple[str, ...]:
    """One pattern or several, as texts.

    Raises:
        DeclarationError: none, or something that is no path.
    """
    several = [given] if isinstance(given, str | os.PathLike) else list(given)
    if not several or not all(isinstance(one, str | os.PathLike) and os.fspath(one) for one in several):
        raise _wrong(f"a pattern is a path or a URL, such as 'data/*.csv', not {given!r}")
    return tuple(str(os.fspath(one)) for one in several)


def _wrong(fact: str, of: str = "burler.files") -> DeclarationError:
    return DeclarationError(f"{of}: {fact}.")


@dataclass(frozen=True, slots=True)
class Csv:
    """How CSV files are written; as RFC 4180 has it if nothing is said.

    Attributes:
        delimiter: one letter between fields.
        quotechar: one letter round fields; None: quotes are letters like others.
        doublequote: whether a quote in a quoted field is written twice.
        strict_quotes: whether a quote stands at the begin and the end of a field and doubled inside of it, and nowhere
            else, and rows end with a line feed: a file with others is an error, since nobody knows where its rows end.
            False: a quote that begins no field is a letter, a field goes on behind the quote that ends it, up to the
            delimiter, and a carriage return ends a row as well. Then a field that begins with a quote by mistake takes
            all rows up to the next quote into it.
        escapechar: a letter that takes the meaning from the next one; None without one.
        encoding: of the text, as Python names it. A byte order mark is left out; UTF-8, and UTF-16 with its mark.
        header: whether the first row has the names of the columns. A tuple of names: it has not, and these are they.
        skip_rows: lines before the header (or before the first row) that are no CSV.
        null_values: texts that mean null where they stand without quotes. In fields that take no plain text (numbers,
            dates, truth values) quoted ones as well.
        true_values, false_values: texts that mean true and false, in fields that are boolean.
        zone: the time zone of date-times that say none: ``"UTC"``, ``"Europe/Paris"``; None: such a row does not fit.
            An hour that a clock change leaves out or brings twice does not fit either.
        block_bytes: how much is read at a time. A row that is longer makes it grow, up to ``max_line_bytes``.

    Raises:
        DeclarationError: an option that can't be.
    """

    delimiter: str = ","
    quotechar: str | None = '"'
    doublequote: bool = True
    escapechar: str | None = None
    encoding: str = "utf-8"
    header: bool | tuple[str, ...] = True
    skip_rows: int = 0
    null_values: tuple[str, ...] = ("",)
    true_values: tuple[str, ...] = ("true", "True", "TRUE")
    false_values: tuple[str, ...] = ("false", "False", "FALSE")
    zone: str | None = None
    block_bytes: int = 1 << 18
    strict_quotes: bool = field(default=True, repr=False)  # no part of a reading's identity: the same rows come

    def __post_init__(self) -> None:
        try:
            self.dialect()
            if self.zone is not None:
                ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, OSError):
            raise _wrong(f"zone {self.zone!r} is no time zone, such as 'UTC'", "burler.files.Csv") from None
        except ValueError as error:
            raise _wrong(str(error), "burler.files.Csv") from None
        for name in ("null_values", "true_values", "false_values"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value,) if isinstance(value, str) else tuple(value))
        if not is_count(self.skip_rows, 0) or not is_count(self.block_bytes, 1):
            raise _wrong("skip_rows is a whole number, 0 or more; block_bytes 1 or more", "burler.files.Csv")
        if isinstance(self.header, bool):
            return
        given: Any = self.header
        if isinstance(given, str) or not given or not all(isinstance(name, str) and name for name in given):
            raise _wrong(f"header is True, False or a tuple of names, not {self.header!r}", "burler.files.Csv")
        object.__setattr__(self, "header", tuple(self.header))

    def dialect(self) -> Dialect:
        """How the text is written.

        Raises:
            ValueError: a dialect that can't be.
        """
        return Dialect(
            self.delimiter,
            self.quotechar,
            doubled=self.doublequote,
            escape_char=self.escapechar,
            strict=self.strict_quotes,
            encoding=self.encoding,
            nulls=tuple(self.null_values),
            skip_lines=self.skip_rows,
        )


@dataclass(frozen=True, slots=True)
class Options:
    """How files are read; see ``read``. None of ``format`` and ``compression``: each file's name says.

    Raises:
        DeclarationError: an option that can't be.
    """

    format: str | None = None
    compression: str | None = None
    member: str | None = None
    csv: Csv | None = None
    records_path: Any = ()  # a tuple of names from then on, as add is
    add: Any = ()
    max_line_bytes: int = 1 << 28
    max_document_bytes: int = 1 << 28
    max_unpacked_bytes: int = 1 << 36

    def __post_init__(self) -> None:
        for name, known in (("format", FORMATS), ("compression", (*COMPRESSIONS, "none"))):
            given = getattr(self, name)
            if given is not None and given not in known:
                raise _wrong(f"{name} {given!r} is not known. Known: {', '.join(known)}")
        object.__setattr__(self, "records_path", path_of(self.records_path))
        object.__setattr__(self, "add", (self.add,) if isinstance(self.add, str) else tuple(dict.fromkeys(self.add)))
        for column in self.add:
            if column not in ADDED:
                raise _wrong(f"add={column!r}: there is no such column. Known: {', '.join(ADDED)}")
        for name in ("max_line_bytes", "max_document_bytes", "max_unpacked_bytes"):
            if not is_count(limit := getattr(self, name), 1):
                raise _wrong(f"{name}={limit!r:.60}; it is a whole number of bytes, 1 or more")

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
