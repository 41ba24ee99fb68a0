"""Singer messages: what travels from the engine to a sink, and how a line of JSON becomes one.

What flows is a short list of item types. ``Records`` is a *page*: rows of
one stream with one ``time_extracted``, already as JSON lines, so that every sink writes the
same bytes and no sink touches a row.

Wire form: Singer SPEC 0.3.0. Types are written in upper case and read in any case.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

import msgspec

from burler.errors import MessageError
from burler.times import format_time

__all__ = [
    "ActivateVersion",
    "ArrowPage",
    "Batch",
    "Records",
    "Schema",
    "State",
    "Vouched",
    "encode",
    "format_time",
    "parse_line",
    "record_prefix_suffix",
    "to_line",
]

UTC = dt.UTC
_exact_decoder = msgspec.json.Decoder(float_hook=Decimal)
_encoder = msgspec.json.Encoder(decimal_format="number")


@dataclass(frozen=True, slots=True)
class Schema:
    """SCHEMA: must come before the first row of its stream."""

    stream: str
    schema: dict[str, Any]
    key_properties: tuple[str, ...] = ()
    bookmark_properties: tuple[str, ...] = ()

    def to_wire(self) -> dict[str, Any]:
        """The message as a plain dict with exactly the keys that the schema hash is made of."""
        wire: dict[str, Any] = {
            "type": "SCHEMA",
            "stream": self.stream,
            "schema": self.schema,
            "key_properties": list(self.key_properties),
        }
        if self.bookmark_properties:
            wire["bookmark_properties"] = list(self.bookmark_properties)
        return wire


class Vouched(Protocol):
    """What the maker of rows knows of them; the answer may cost some time, so it is only given if asked for."""

    @property
    def kinds(self) -> tuple[Any, ...]:
        """What the rows would be: see ``burler.records.shape.proof``."""

    def __call__(self) -> bool:
        """Whether each row is exactly that. To be asked before the page's buffer is reused."""


@dataclass(frozen=True, slots=True)
class Records:
    """A page of RECORD lines of one stream.

    ``lines`` holds ``count`` complete lines, each ended by ``\\n``. The buffer may be reused by whoever
    made it as soon as ``Sink.write`` returns: a sink that keeps it must copy it.
    """

    stream: str
    lines: bytes | bytearray | memoryview
    count: int
    time_extracted: dt.datetime
    version: int | None = None
    bare: bool = False
    """The lines are the rows alone, one JSON object each, without the message around them."""
    vouched: Vouched | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ArrowPage:
    """A page of rows as a RecordBatch of pyarrow, in the columns of the stream's batch files."""

    stream: str
    table: Any
    time_extracted: dt.datetime
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """BATCH: rows of one stream that stand in files (BATCH proposal).

    ``manifest``: URLs of the files. ``compression``: None, "gzip" or "zstd", of whole files (a Parquet file's own codec
    stands in ``format_options``). ``size``: rows in a file, at the most. ``file_stats``: of each file its rows, or None
    where nobody has counted them, and its bytes as stored. ``dialect``: "both", "sip" (the proposal's keys alone) or
    "meltano" (those of that SDK alone).
    """

    stream: str
    manifest: tuple[str, ...]
    format: str = "jsonl"
    compression: str | None = None
    format_options: Mapping[str, Any] = field(default_factory=dict)
    compression_options: Mapping[str, Any] = field(default_factory=dict)
    size: int | None = None
    time_extracted: dt.datetime | None = None
    version: int | None = None
    file_stats: tuple[tuple[int | None, int], ...] | None = None
    dialect: str = "both"

    def to_wire(self) -> dict[str, Any]:
        """The message as a plain dict."""
        wire: dict[str, Any] = {"type": "BATCH", "stream": self.stream}
        if self.dialect != "meltano":
            if self.time_extracted is not None:
                wire["time_extracted"] = format_time(self.time_extracted)
            if self.size is not None:
                wire["size"] = self.size
            wire["format"] = {"name": self.format, "options": dict(self.format_options)}
            wire["compression"] = {
                "name": self.compression,
                "options": dict(self.compression_options),
                "enabled": self.compression is not None,
            }
        if self.dialect != "sip":
            wire["encoding"] = {"format": self.format, "compression": self.compression or "none"}
        wire["manifest"] = list(self.manifest)
        if self.version is not None:
            wire["version"] = self.version
        if self.file_stats is not None and self.dialect != "meltano":
            wire["file_stats"] = [
                {"bytes": size} if records is None else {"records": records, "bytes": size}
                for records, size in self.file_stats
            ]
        return wire


@dataclass(frozen=True, slots=True)
class ActivateVersion:
    """ACTIVATE_VERSION: rows of older versions of the stream no longer count."""

    stream: str
    version: int

    def to_wire(self) -> dict[str, Any]:
        """The message as a plain dict."""
        return {"type": "ACTIVATE_VERSION", "stream": self.stream, "version": self.version}


@dataclass(frozen=True, slots=True)
class State:
    """STATE: covers every message before it in the sequence, and nothing after it.

    ``full``: the whole state, where ``value`` holds only what has changed (``state_scope: touched``). ``number``: which
    of a run's it is, from 1 on; 0 of another program's.
    """

    value: dict[str, Any] = field(default_factory=dict)
    full: dict[str, Any] | None = None
    number: int = 0

    @property
    def whole(self) -> dict[str, Any]:
        """The whole state."""
        return self.value if self.full is None else self.full

    def to_wire(self) -> dict[str, Any]:
        """The message as a plain dict."""
        return {"type": "STATE", "value": self.value}


class EncodedState(State):
    """A STATE whose value is JSON already; it is read once somebody asks for it."""

    json: bytes
    full = None

    def __init__(self, json: bytes, number: int = 0) -> None:
        object.__setattr__(self, "json", json)
        object.__setattr__(self, "number", number)

    @functools.cached_property
    def value(self) -> dict[str, Any]:
        """What its line says."""
        value: dict[str, Any] = msgspec.json.decode(self.json)
        return value


Message = Schema | Records | ArrowPage | Batch | ActivateVersion | State


def encode(wire: Any) -> bytes:
    """One JSON document in UTF-8 without a line end; Decimals digit for digit."""
    return _encoder.encode(wire)


def to_line(message: Schema | Batch | ActivateVersion | State) -> bytes:
    """One complete line."""
    if isinstance(message, EncodedState):
        return b'{"type":"STATE","value":' + message.json + b"}\n"
    return _encoder.encode(message.to_wire()) + b"\n"


def record_prefix_suffix(stream: str, time_extracted: dt.datetime, version: int | None = None) -> tuple[bytes, bytes]:
    """The constant bytes before and after each row of a page."""
    prefix = b'{"type":"RECORD","stream":' + _encoder.encode(stream) + b',"record":'
    suffix = b',"time_extracted":"' + format_time(time_extracted).encode() + b'"'
    if version is not None:
        suffix += b',"version":' + str(version).encode()
    return prefix, suffix + b"}\n"


def parse_line(line: bytes | str) -> dict[str, Any]:
    """A line as a plain dict with its type in upper case; for tools and tests, not for the hot path.

    Raises:
        MessageError: no JSON object, or no ``type``.
    """
    try:
        wire = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError) as error:
        try:
            wire = _exact_decoder.decode(line)  # a number beyond floats, as 1e400
        except (msgspec.DecodeError, UnicodeError, ArithmeticError):
            raise MessageError(f"not a line of JSON: {error}") from None
    except RecursionError:
        raise MessageError("not a line of JSON that can be read: nested too deeply") from None
    if not isinstance(wire, dict) or not isinstance(wire.get("type"), str):
        raise MessageError("not a Singer message: a JSON object with a text 'type' was expected")
    wire["type"] = wire["type"].upper()
    return wire
