"""Whether records are *clean*: whether a plain JSON reader with the schema's types reads them right.

Spark's JSON reader turns some values into others without a word (milliseconds into the year 55840, 1e400 into
infinity, the second of two equal keys into the only one) and others into NULL. A file is
``clean`` only if none of its records gives it the chance; all other files are read through exact,
slower code. So the one rule here is: in doubt, not clean.

A page is decoded with a strict msgspec type made from the schema (``burler.records.columns.strict``). If it
encodes to the same bytes again, all is said; if not, what a decoder cannot see is checked beside it:

* equal keys in one object: the page is encoded again, and must have as many keys as before;
* texts, numbers, names and nesting beyond the limits of Spark's reader: only long lines can have them;
* carriage returns between tokens: to Spark they end a line.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal

import msgspec

from burler import times
from burler.records.columns.strict import INT64, NeverClean, record_type
from burler.records.shape.proof import Plain, plain_record
from burler.singer.messages import Vouched

_encode_lines = msgspec.json.Encoder(decimal_format="number").encode_lines
Decode = Callable[[bytes | bytearray], Any]
_KEY = b'":'
_SPACED_KEY = re.compile(rb'"[ \t]+:')
_ESCAPED_KEY = re.compile(rb"\\u00(?:22|3[aA])")

_UNFIT = (msgspec.DecodeError, ValueError, OverflowError, RecursionError, AttributeError)
_CREDIT = 8
"""So many pages more than have passed may fail the fast check before it is given up."""

_MAX_NUMBER_CHARACTERS = 1_000
_MAX_NAME_BYTES = 50_000
_MAX_LINE_BYTES = 20_000_000
_MAX_BRACKETS = 990
"""Spark's limits are 1,000 digits, 50,000 characters a name, 20,000,000 a text, 1,000 levels; the last less
the message around the record."""
_LONG_NUMBER = re.compile(rb"[0-9.eE+-]{%d}" % _MAX_NUMBER_CHARACTERS)
_TEXT = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"([ \t]*:)?')  # whole: a quote in it begins none


class CleanCheck:
    """The check for the records of one schema. Pages may come in any order.

    ``never`` says why no record of this schema can be called clean; None if they can. ``kinds``: what its records hold
    if they are clean, where that is plain.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.never: str | None = None
        self.kinds: Plain | None = None
        self._credit = _CREDIT
        try:
            exact, fast = record_type(schema), record_type(schema, parse_times=True)
        except NeverClean as reason:
            self.never = str(reason)
        except (RecursionError, TypeError, ValueError, AttributeError) as error:
            self.never = f"the schema is of an odd shape ({type(error).__name__})"
        else:
            self.kinds = plain_record(schema)
            self._has_open_names = exact.open_names
            self._decode: Decode = msgspec.json.Decoder(_message_type(exact.record)).decode
            self._decode_fast: Decode = msgspec.json.Decoder(_message_type(fast.record)).decode
            self._moments = list(map(attrgetter, fast.moments)) if not fast.in_lists else []
            if fast.in_lists:
                self._credit = 0

    def vouched(self, lines: bytes | bytearray, said: Vouched) -> bool:
        """The same of lines that burler has made of rows, where their maker knows that they fit: then nothing is left
        to see but the lengths of lines. False says nothing."""
        if self.never is not None or self.kinds is None or said.kinds != self.kinds or not said():
            return False
        return not _has_long_line(lines) or self._long_lines_fit(bytes(lines[:-1]).split(b"\n"))

    def page(self, lines: bytes | bytearray | Iterable[bytes]) -> bool:
        """Whether all RECORD lines of a page are clean.

        ``lines`` is one buffer of complete lines, each ended by ``\\n``, or the single lines.
        """
        if self.never is not None:
            return False
        page = lines if isinstance(lines, (bytes, bytearray)) else b"".join(map(_ended, lines))
        if not page:
            return True
        if not page.endswith(b"\n") or b"\r" in page:
            return False
        rows = page[:-1].split(b"\n")
        if max(map(len, rows)) >= _MAX_NUMBER_CHARACTERS and not self._long_lines_fit(rows):
            return False
        return self._fast(page, rows) or self._exact(page, rows)

    def _fast(self, page: bytes | bytearray, rows: Sequence[bytes | bytearray]) -> bool:
        """Whether decoding and encoding gives the very same bytes: then nothing was lost or bent.

        So it is for pages that burler made; where it mostly fails it is no longer tried.
        """
        if self._credit <= 0:
            return False
        try:
            decoded = list(map(self._decode_fast, rows))
            same = _encode_lines(decoded) == page and _times_are_ours(decoded)
            same = same and all(_in_utc(decoded, moment) for moment in self._moments)
        except _UNFIT:
            same = False
        self._credit = min(_CREDIT, self._credit + 1) if same else self._credit - 1
        return same

    def _exact(self, page: bytes | bytearray, rows: Sequence[bytes | bytearray]) -> bool:
        try:
            decoded = list(map(self._decode, rows))
            return _times_are_ours(decoded) and _keys_are_distinct(page, _encode_lines(decoded))
        except _UNFIT:
            return False

    def _long_lines_fit(self, rows: Sequence[bytes | bytearray]) -> bool:
        for row in rows:
            size = len(row)
            if size < _MAX_NUMBER_CHARACTERS:
                continue
            if size > _MAX_LINE_BYTES or row.count(b"{") + row.count(b"[") > _MAX_BRACKETS:
                return False
            if _has_long_number(row):
                return False
            if size > _MAX_NAME_BYTES and self._has_open_names and _has_long_name(row):
                return False
        return True


def _message_type(record: Any) -> type:
    """A RECORD line as the lake writes it, and nothing else."""
    return msgspec.defstruct(
        "Message",
        [
            ("type", Literal["RECORD"]),
            ("stream", str),
            ("record", record),
            ("time_extracted", str),
            ("version", INT64 | msgspec.UnsetType, msgspec.UNSET),
        ],
        forbid_unknown_fields=True,
        gc=False,
    )


def _times_are_ours(decoded: list[Any]) -> bool:
    """``time_extracted`` is as the lake writes it; a page has few different ones."""
    return all(map(times.is_lake_form, {message.time_extracted for message in decoded}))


def _in_utc(decoded: list[Any], moment: Callable[[Any], Any]) -> bool:
    """All times of a column are in UTC (msgspec keeps other offsets). A missing parent is an AttributeError."""
    return {getattr(value, "tzinfo", dt.UTC) for value in map(moment, decoded)} <= {dt.UTC}


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"


def _keys_are_distinct(page: bytes | bytearray, encoded: bytes) -> bool:
    """No object of the page has a key twice: decoding it would have lost one.

    The mark of a key is ``":``. In text the quote is escaped, and stays so when encoded again: both
    sides count it alike, unless the page spells these two characters otherwise.
    """
    if page.count(_KEY) != encoded.count(_KEY):
        return False
    return not _SPACED_KEY.search(page) and not _ESCAPED_KEY.search(page)


def _has_long_line(page: bytes | bytearray) -> bool:
    """Whether a line is so long that it is looked at. In leaps, since to cut a page into lines costs more than all else
    that is done for a page that is known to be clean."""
    start, end = 0, len(page)
    while end - start > _MAX_NUMBER_CHARACTERS:
        cut = page.rfind(b"\n", start, start + _MAX_NUMBER_CHARACTERS)
        if cut < 0:
            return True
        start = cut + 1
    return False


def _has_long_number(row: bytes | bytearray) -> bool:
    """A number of more than 1,000 characters, or a text that looks like one.

    Such a run covers two neighbours of any sample taken each 500 bytes: most lines need no search.
    """
    half = _MAX_NUMBER_CHARACTERS // 2
    sample = bytes(row[::half]).translate(_NUMBER_MAP)
    return b"11" in sample and _LONG_NUMBER.search(row) is not None


_NUMBER_MAP = bytes(0x31 if byte in b"0123456789.eE+-" else 0x20 for byte in range(256))


def _has_long_name(row: bytes | bytearray) -> bool:
    return any(colon and len(text) > _MAX_NAME_BYTES for text, colon in _TEXT.findall(row))
