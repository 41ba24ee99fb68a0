"""How CSV files of a BATCH stand: the options, what can't be, and what readers accept (BATCH proposal: ``options``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from burler.batch_config import CSV_DEFAULTS
from burler.errors import BatchError, BurlerError, ConfigError

BOM = "\ufeff"
_LIKE_A_VALUE = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|true|false", re.ASCII | re.IGNORECASE)
_LINE_ENDS = ("\n", "\r\n")
_KNOWN = tuple(CSV_DEFAULTS)
_UTF8 = ("utf-8", "utf8", "utf-8-sig")


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """Attributes:
    delimiter: one letter of ASCII between fields.
    quote_char: one letter of ASCII round fields, doubled inside of them; None (readers only): quotes are letters.
    header: whether the first row has the names of the columns.
    null: the text that means null where it stands without quotes.
    line_end: what ends a row (writers; readers take both).
    columns: the names of the columns in their order, for files without header (readers only; empty: the schema's).
    """

    delimiter: str = CSV_DEFAULTS["delimiter"]
    quote_char: str | None = CSV_DEFAULTS["quote_char"]
    header: bool = CSV_DEFAULTS["header"]
    null: str = CSV_DEFAULTS["null"]
    line_end: str = CSV_DEFAULTS["line_end"]
    columns: tuple[str, ...] = ()


def writing_options(given: Mapping[str, Any]) -> CsvOptions:
    """The ``format_options`` of files to be written.

    Raises:
        ConfigError: unknown ones, and files that nobody could read without doubt.
    """
    for name in given:
        if name not in _KNOWN:
            raise ConfigError(f"csv: the option '{name:.60}' is unknown. Known: {', '.join(_KNOWN)}.")
    made = CsvOptions(**{name: value for name, value in given.items() if value is not None})
    _check(made, lambda said: ConfigError(f"batch_config.encoding.format_options: {said}"))
    if made.quote_char is None or made.quote_char == "":
        raise ConfigError("batch_config.encoding.format_options: quote_char is needed: text is written in quotes.")
    if made.line_end not in _LINE_ENDS:
        raise ConfigError(
            f"batch_config.encoding.format_options: line_end must be '\\n' or '\\r\\n', not {made.line_end!r:.60}."
        )
    return made


def reading_options(given: Mapping[str, Any]) -> CsvOptions:
    """The ``options`` of a message, also of other writers: what is absent is as burler writes it.

    Raises:
        BatchError: options that can't be, or that ask for something this reader can't do.
    """
    said = {name: value for name, value in given.items() if value is not None}
    said["quote_char"] = given.get("quote_char", CSV_DEFAULTS["quote_char"]) or None
    for name, value in said.items():
        if name not in (*_KNOWN, "columns") and not _says_nothing(name, value, said["quote_char"]):
            raise BatchError(
                f"csv: the option {name:.60} = {value!r:.60} is not known to this reader. "
                f"Known: {', '.join((*_KNOWN, 'columns'))}; text is UTF-8, a quote is escaped by doubling it."
            )
    columns = said.get("columns", ())
    if not isinstance(columns, list | tuple) or not all(isinstance(name, str) for name in columns):
        raise BatchError("csv: the option columns must be a list of names.")
    plain = {name: value for name, value in said.items() if name in _KNOWN}
    made = CsvOptions(**plain, columns=tuple(columns))
    _check(made, lambda text: BatchError(f"csv: {text}"))
    return made


def _says_nothing(name: str, value: Any, quote: Any) -> bool:
    """Whether an option of another writer's only says what this reader takes for granted."""
    if name == "encoding":
        return str(value).lower() in _UTF8
    return name == "escape_char" and value in ("", quote)


def _check(made: CsvOptions, error: Callable[[str], BurlerError]) -> None:
    if not isinstance(made.header, bool):
        raise error(f"header must be true or false, not {made.header!r:.60}.")
    if not isinstance(made.null, str):
        raise error(f"null must be text, not {made.null!r:.60}.")
    for name, value in (("delimiter", made.delimiter), ("quote_char", made.quote_char)):
        if value is not None and value != "" and (problem := _of_letter(value)):
            raise error(f"{name} must be one letter of ASCII, such as ',', a tab or '|'; {value!r:.60} {problem}.")
    if not made.delimiter:
        raise error("delimiter must be one letter of ASCII, such as ',', a tab or '|'.")
    if made.delimiter == made.quote_char:
        raise error(f"delimiter and quote_char can't both be {made.delimiter!r}. Take another quote_char.")
    for inside in (made.delimiter, made.quote_char, "\n", "\r"):
        if inside and inside in made.null:
            raise error(
                f"null {made.null!r:.60} must not hold {inside!r}: it stands without quotes. Take '' or 'NULL'."
            )
    if _LIKE_A_VALUE.fullmatch(made.null) or made.null.startswith(BOM) or made.null == "\\.":
        raise error(f"null {made.null!r:.60} could be a value itself. Take '' or 'NULL'.")


def _of_letter(value: Any) -> str:
    """What is wrong with a delimiter or a quote."""
    if not isinstance(value, str) or len(value) != 1:
        return "is not one letter"
    if value in "\r\n\0" or not value.isascii():
        return "can't be one"
    return "stands in numbers and in true and false" if value.isalnum() or value in "+-." else ""
