"""One file's pages: opened, unpacked, read as what it is."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, BinaryIO, cast

from burler.errors import DeclarationError, FileError
from burler.files.added import Adder, check_added
from burler.files.columnar_pages import columnar_batches
from burler.files.csv_options import Csv
from burler.files.csv_pages import Table, csv_batches
from burler.files.json_pages import Peeked, json_document_page
from burler.files.store_errors import StoreFile, named, said
from burler.formats import FormatError
from burler.formats.compression import Decompressed
from burler.formats.jsonl import json_lines
from burler.formats.names import COMPRESSIONS, format_of, split_name
from burler.formats.zipped import members
from burler.numbers import is_count
from burler.pages import JsonPage
from burler.paths import path_of
from burler.storage.find import File
from burler.storage.location import printable

FORMATS = ("csv", "tsv", "jsonl", "json", "parquet")
"""What files hold. ``jsonl``: an object a line. ``json``: one document, or an array."""

PACKINGS = ("gz", "bz2", "xz", "zst", "zip")


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

    def _stored(self, file: File, name: str) -> StoreFile:
        with said(name):
            return StoreFile(file.store.open(file.path, "rb"), name)

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


def _members(packed: StoreFile, options: Options) -> Iterator[tuple[str, Callable[[], Decompressed]]]:
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
