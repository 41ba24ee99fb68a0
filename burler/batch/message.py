"""BATCH messages as they come over the wire: both dialects, read into one form, and what they say of CSV (BATCH
proposal: ``options``)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Any, cast

import msgspec

from burler import times
from burler.batch_config import CODECS, CSV_DEFAULTS, FORMATS, PACKINGS
from burler.errors import BatchError
from burler.formats.csv import Dialect
from burler.formats.names import COMPRESSIONS
from burler.formats.names import FORMATS as SPELLED
from burler.singer.messages import Batch

AGAIN = "Run the tap again with the last STATE that its target has stored."
"""A state that the tap itself has kept (``--out-file``) may be past the file that can't be read."""


@cache
def message_schema() -> dict[str, Any]:
    """The JSON Schema of a BATCH message."""
    text = resources.files("burler.batch").joinpath("message.schema.json").read_text(encoding="utf-8")
    return cast(dict[str, Any], json.loads(text))


_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Named(msgspec.Struct):
    """``format`` or ``compression`` of the proposal."""

    name: str | None = None
    options: dict[str, Any] | None = None
    enabled: bool | None = None


class _Encoding(msgspec.Struct):
    """What the Singer SDK's targets read."""

    format: str | None = None
    compression: str | None = None


class _FileStats(msgspec.Struct):
    bytes: int
    records: int | None = None


class _BatchMessage(msgspec.Struct):
    """Both dialects; of ``format`` and ``compression`` other writers give the name alone."""

    stream: _Name
    manifest: list[_Name]
    format: _Named | str | None = None
    compression: _Named | str | None = None
    encoding: _Encoding | None = None
    size: _Count | None = None
    time_extracted: str | None = None
    version: _Count | None = None
    file_stats: list[_FileStats] | None = None


def batch_of(wire: Mapping[str, Any]) -> Batch:
    """A BATCH message from its plain dict.

    What is absent is as the proposal has it: JSON lines, no compression. Keys that are not known are passed over.

    Raises:
        BatchError: it is no BATCH message, or its two dialects contradict each other.
    """
    stream = wire.get("stream")
    where = f"stream '{stream}': " if stream and isinstance(stream, str) else ""
    try:
        said = msgspec.convert(wire, _BatchMessage)
    except msgspec.ValidationError as error:
        raise BatchError(f"{where}a BATCH that is not as it should be: {error}".replace("`", "'")) from None
    form, packing = (one if isinstance(one, _Named) else _Named(one) for one in (said.format, said.compression))
    encodings = []
    if said.encoding is None or said.format is not None or said.compression is not None:
        encodings.append(_encoding(form.name, None if packing.enabled is False else packing.name, where))
    if said.encoding is not None:
        encodings.append(_encoding(said.encoding.format, said.encoding.compression, where))
    if encodings[0] != encodings[-1]:
        (one, packed), (other, also) = encodings
        raise BatchError(
            f"{where}a BATCH that contradicts itself: its 'format' and 'compression' say {one}, {packed or 'none'}; "
            f"its 'encoding' says {other}, {also or 'none'}"
        )
    moment = times.lenient_moment(said.time_extracted)
    if moment is None and said.time_extracted is not None:
        fact = "must be an RFC 3339 date-time, within the years 1 to 9999 in UTC"
        raise BatchError(f"{where}the 'time_extracted' of a BATCH {fact}, not {said.time_extracted!r:.60}")
    if said.file_stats is not None and len(said.file_stats) != len(said.manifest):
        raise BatchError(f"{where}the 'file_stats' of a BATCH must have the bytes of each file")
    return Batch(
        said.stream,
        tuple(said.manifest),
        *encodings[0],
        {**({"delimiter": "\t"} if form.name == "tsv" else {}), **(form.options or {})},
        packing.options or {},
        size=said.size,
        time_extracted=moment,
        version=said.version,
        file_stats=None if said.file_stats is None else tuple((one.records, one.bytes) for one in said.file_stats),
        dialect="sip" if said.encoding is None else "meltano" if said.format is None else "both",
    )


def _encoding(form: str | None, packing: str | None, where: str) -> tuple[str, str | None]:
    """Format and compression as burler calls them."""
    spelled = SPELLED.get((form or "jsonl").lower(), "")
    name = {"tsv": "csv", "json": "jsonl"}.get(spelled, spelled)
    if not name:
        raise BatchError(f"{where}a BATCH of the unknown format '{form:.60}'. Known: {', '.join(FORMATS)}")
    if name in CODECS:
        return name, None  # the files say themselves
    packed = COMPRESSIONS.get((packing or "").lower())
    if (packed or (packing or "none").lower()) not in PACKINGS:
        raise BatchError(f"{where}a BATCH of the unknown compression '{packing:.60}'. Known: {', '.join(PACKINGS)}")
    return name, packed


def with_keys(schema: Mapping[str, Any], keys: Sequence[str] | None) -> Mapping[str, Any]:
    """A schema whose rows must have the key's fields."""
    given = schema.get("required")
    required = given if isinstance(given, list | tuple) else ()
    more = [key for key in keys or () if key not in required]
    return {**schema, "required": [*required, *more]} if more else schema


# ---- how it says that CSV is written ---------------------------------------------------------------------------------

_LIKE_A_VALUE = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|true|false", re.ASCII | re.IGNORECASE)
_LINE_ENDS = ("\n", "\r\n")
_CSV_OPTIONS = tuple(CSV_DEFAULTS)
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
        if name not in _CSV_OPTIONS:
            raise ValueError(f"the option '{name:.60}' is unknown. Known: {', '.join(_CSV_OPTIONS)}")
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
        if name not in (*_CSV_OPTIONS, "columns") and not _says_nothing(name, value, said["quote_char"]):
            raise ValueError(
                f"the option {name:.60} = {value!r:.60} is not known to this reader. "
                f"Known: {', '.join((*_CSV_OPTIONS, 'columns'))}; text is UTF-8, a quote is escaped by doubling it"
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
