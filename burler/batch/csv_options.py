"""How CSV files of a BATCH stand: the options, what can't be, and what readers accept (BATCH proposal: ``options``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from burler.batch_config import CSV_DEFAULTS
from burler.formats.csv import Dialect

_LIKE_A_VALUE = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|true|false", re.ASCII | re.IGNORECASE)
_LINE_ENDS = ("\n", "\r\n")
_KNOWN = tuple(CSV_DEFAULTS)
_UTF8 = ("utf-8", "utf8", "utf-8-sig")


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """The wire form of a dialect.

    Attributes:
        header: whether the first row has the names of the columns.
        columns: the names of the columns in their order, for files without header (readers only; empty: the schema's).
    """

    dialect: Dialect
    header: bool = True
    columns: tuple[str, ...] = ()

    @property
    def null(self) -> str:
        """The text that means null where it stands without quotes."""
        return self.dialect.nulls[0]


def writing_options(given: Mapping[str, Any]) -> CsvOptions:
    """The ``format_options`` of files to be written.

    Raises:
        ValueError: unknown ones, and files that nobody could read without doubt.
    """
    for name in given:
        if name not in _KNOWN:
            raise ValueError(f"the option '{name:.60}' is unknown. Known: {', '.join(_KNOWN)}")
    made = _options({name: value for name, value in given.items() if value is not None})
    if made.dialect.quote_char is None:
        raise ValueError("quote_char is needed: text is written in quotes")
    if made.dialect.line_end not in _LINE_ENDS:
        raise ValueError(f"line_end must be '\\n' or '\\r\\n', not {made.dialect.line_end!r:.60}")
    return made


def reading_options(given: Mapping[str, Any]) -> CsvOptions:
    """The ``options`` of a message, also of other writers: what is absent is as burler writes it.

    Raises:
        ValueError: options that can't be, or that ask for something this reader can't do.
    """
    said = {name: value for name, value in given.items() if value is not None}
    said["quote_char"] = given.get("quote_char", CSV_DEFAULTS["quote_char"])
    for name, value in said.items():
        if name not in (*_KNOWN, "columns") and not _says_nothing(name, value, said["quote_char"]):
            raise ValueError(
                f"the option {name:.60} = {value!r:.60} is not known to this reader. "
                f"Known: {', '.join((*_KNOWN, 'columns'))}; text is UTF-8, a quote is escaped by doubling it"
            )
    columns = said.get("columns", ())
    if not isinstance(columns, list | tuple) or not all(isinstance(name, str) for name in columns):
        raise ValueError("the option columns must be a list of names")
    return _options(said, tuple(columns))


def _says_nothing(name: str, value: Any, quote: Any) -> bool:
    """Whether an option of another writer's only says what this reader takes for granted."""
    if name == "encoding":
        return str(value).lower() in _UTF8
    return name == "escape_char" and value in ("", quote)


def _options(given: Mapping[str, Any], columns: tuple[str, ...] = ()) -> CsvOptions:
    said = {**CSV_DEFAULTS, **given}
    header, null, quote = said["header"], said["null"], said["quote_char"] or None
    if not isinstance(header, bool):
        raise ValueError(f"header must be true or false, not {header!r:.60}")
    if not isinstance(null, str):
        raise ValueError(f"null must be text, not {null!r:.60}")
    dialect = Dialect(said["delimiter"], quote, nulls=(null,), blank_is_null=True, line_end=said["line_end"])
    for letter in filter(None, (dialect.delimiter, quote)):
        if letter.isalnum() or letter in "+-.":
            raise ValueError(f"{letter!r} stands in numbers and in true and false: take ',', a tab or '|'")
    inside = next((one for one in (dialect.delimiter, quote, "\n", "\r") if one and one in null), None)
    if inside:
        raise ValueError(f"null {null!r:.60} must not hold {inside!r}: it stands without quotes. Take '' or 'NULL'")
    if _LIKE_A_VALUE.fullmatch(null) or null.startswith("\ufeff") or null == "\\.":
        raise ValueError(f"null {null!r:.60} could be a value itself. Take '' or 'NULL'")
    return CsvOptions(dialect, header, columns)
