"""How a CSV file is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from burler.errors import DeclarationError
from burler.formats.csv import Dialect
from burler.numbers import is_count
from burler.records.columns.from_csv import Words


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
        except ValueError as error:
            raise DeclarationError(f"burler.files.Csv: {error}.") from None
        if not isinstance(self.header, bool):
            object.__setattr__(self, "header", _names(self.header))
        for name in ("null_values", "true_values", "false_values"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value,) if isinstance(value, str) else tuple(value))
        if not is_count(self.skip_rows, 0) or not is_count(self.block_bytes, 1):
            raise DeclarationError("burler.files.Csv: skip_rows is a whole number, 0 or more; block_bytes 1 or more.")
        if self.zone is not None:
            _check_zone(self.zone)

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

    def words(self) -> Words:
        """What cells mean."""
        return Words(self.null_values, self.true_values, self.false_values, self.zone)


def _names(given: Any) -> tuple[str, ...]:
    if isinstance(given, str) or not all(isinstance(name, str) and name for name in given) or not given:
        raise DeclarationError(f"burler.files.Csv: header is True, False or a tuple of names, not {given!r}.")
    names = tuple(given)
    if len(set(names)) < len(names):
        raise DeclarationError("burler.files.Csv: header names a column twice.")
    return names


def _check_zone(zone: str) -> None:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise DeclarationError(f"burler.files.Csv: zone {zone!r} is no time zone, such as 'UTC'.") from None
