"""Lines of any tap as calls of a lake writer: blocks decoded in C, records of one stream kept together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import repeat
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from burler.errors import MessageError
from burler.lake.roll import Clock
from burler.lake.surrogates import is_veiled, unveil, veil
from burler.lake.timestamps import normalise_time
from burler.lake.writer import LakeWriter
from burler.singer.messages import ActivateVersion, Schema, State, encode, format_time

_SHOWN_CHARACTERS = 80


class Message(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Any Singer message; what is inside it stays bytes."""

    type: str
    stream: str | None = None
    record: Raw | UnsetType = UNSET
    time_extracted: str | None = None
    version: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    schema: Raw | UnsetType = UNSET
    key_properties: Raw | UnsetType = UNSET
    bookmark_properties: Raw | UnsetType = UNSET
    value: Raw | UnsetType = UNSET


@dataclass(slots=True)
class Ingested:
    """What came in: lines, and RECORDs of each stream."""

    lines: int = 0
    records: dict[str, int] = field(default_factory=dict)


_decode = msgspec.json.Decoder(Message).decode
_decode_open = msgspec.json.Decoder(dict[str, Raw]).decode
_KNOWN = frozenset(Message.__struct_fields__)
Numbered = tuple[int, Message, bytes, bytes]
"""Line number, message, the line, and keys of it that no Singer message has, as they came."""


class Reader:
    """Takes blocks of bytes, hands messages to the writer."""

    def __init__(self, writer: LakeWriter, clock: Clock, warn: Callable[[str], object]) -> None:
        self.done = Ingested()
        self._writer = writer
        self._clock = clock
        self._warn = warn
        self._warned: set[str] = set()
        self._streams: set[str] = set()
        self._begun: list[bytes] = []

    def take(self, block: bytes) -> None:
        """Work on all lines that end in this block.

        Raises:
            MessageError: see ``burler.lake.ingest.ingest``.
        """
        cut = block.rfind(b"\n")
        if cut < 0:
            self._begun.append(block)
            return
        whole = b"".join((*self._begun, block[:cut]))
        self._begun = [block[cut + 1 :]] if cut + 1 < len(block) else []
        self._lines(whole)

    def finish(self, *, stopped: bool) -> None:
        """The end of input. A last line without a line end counts if it is whole.

        ``stopped``: the reader was told to stop, so a line may be broken off, and is left alone.
        """
        last = b"".join(self._begun)
        if last and not stopped:
            self._lines(last)
        self._begun = []

    def _lines(self, whole: bytes) -> None:
        lines = whole.split(b"\n")
        first = self.done.lines + 1
        messages = _decode_all(whole, lines)
        if messages is not None:
            self._messages(zip(range(first, first + len(lines)), messages, lines, repeat(b""), strict=False))
        else:
            self._messages(_one_by_one(first, lines))
        self.done.lines += len(lines)

    def _messages(self, messages: Iterable[Numbered]) -> None:
        """Gather neighbouring RECORDs of one stream and version into a page; hand on the rest one by one."""
        page = _Page("", None)
        received = format_time(self._clock.now())
        try:
            for number, message, line, extras in messages:
                kind = message.type if message.type == "RECORD" else message.type.upper()
                if kind != "RECORD":
                    page = self._hand_on(page)
                    self._other(kind, number, message, line)
                    continue
                if message.stream != page.stream or message.version != page.version:
                    page = self._hand_on(page)
                    page = self._new_page(number, message, line)
                self._add(page, number, message, line, extras, received)
        except MessageError:
            self._hand_on(page)  # the records before the bad line are whole
            raise
        self._hand_on(page)

    def _new_page(self, number: int, message: Message, line: bytes) -> _Page:
        stream = _stream(number, message, line)
        if stream not in self._streams:
            raise _bad(number, line, f"a RECORD of stream '{stream}' came before its SCHEMA")
        return _Page(stream, message.version)

    def _add(self, page: _Page, number: int, message: Message, line: bytes, extras: bytes, received: str) -> None:
        text = message.time_extracted
        if text is None:
            text = received
        if text != page.text:
            try:
                time, assumed = normalise_time(text)
            except ValueError as error:
                raise _bad(number, line, f"time_extracted: {error}") from None
            if assumed:
                self._warn_once("time_extracted without a zone is taken as UTC", number)
            page.turn_to(text, time)
        record = b"" if message.record is UNSET else bytes(message.record)
        if record[:1] != b"{":
            raise _bad(number, line, "the 'record' of a RECORD must be a JSON object")
        page.add(record, extras)

    def _hand_on(self, page: _Page) -> _Page:
        """Give a page to the writer; an empty one to go on with."""
        if page.times:
            count = len(page.times)
            self._writer.page(page.stream, b"".join(page.parts), count, page.times, page.version)
            self.done.records[page.stream] = self.done.records.get(page.stream, 0) + count
        return _Page("", None)

    def _other(self, kind: str, number: int, message: Message, line: bytes) -> None:
        if kind == "SCHEMA":
            schema = _schema(number, message, line)
            try:
                self._writer.schema(schema)
            except MessageError as error:
                raise _bad(number, line, str(error)) from None
            self._streams.add(schema.stream)
        elif kind == "STATE":
            if message.value is UNSET:
                raise _bad(number, line, "a STATE without 'value'")
            value = _exact(number, line, message.value)
            try:
                encode(value)
            except UnicodeEncodeError:
                raise _bad(
                    number, line, "a STATE that holds half of a surrogate pair, which UTF-8 can't hold"
                ) from None
            self._writer.state(State(value))
        elif kind == "ACTIVATE_VERSION":
            stream = _stream(number, message, line)
            if message.version is None:
                raise _bad(number, line, "an ACTIVATE_VERSION without 'version'")
            if stream not in self._streams:
                raise _bad(number, line, f"an ACTIVATE_VERSION of stream '{stream}' came before its SCHEMA")
            self._writer.activate_version(ActivateVersion(stream, message.version))
        elif kind == "BATCH":
            raise _bad(number, line, "BATCH input is not supported yet. Turn BATCH off in the tap's config")
        else:
            self._warn_once(f"messages of the unknown type {message.type[:_SHOWN_CHARACTERS]!r} are skipped", number)

    def _warn_once(self, fact: str, number: int) -> None:
        if fact not in self._warned:
            self._warned.add(fact)
            self._warn(f"line {number}: {fact}; further ones without a word")


class _Page:
    """RECORD lines of one stream and version, as the lake writes them."""

    __slots__ = ("_prefix", "_suffix", "_time", "parts", "stream", "text", "times", "version")

    def __init__(self, stream: str, version: int | None) -> None:
        self.stream = stream
        self.version = version
        self.parts: list[bytes] = []
        self.times: list[str] = []
        self.text: str | None = None
        self._time = ""
        self._prefix = b'{"type":"RECORD","stream":' + encode(stream) + b',"record":'
        self._suffix = b""

    def turn_to(self, text: str, time: str) -> None:
        """From here on records have this time, as it came and in its one form."""
        self.text, self._time = text, time
        version = "" if self.version is None else f',"version":{self.version}'
        self._suffix = f',"time_extracted":"{time}"{version}'.encode()

    def add(self, record: bytes, extras: bytes) -> None:
        """Append a line. ``extras``: further keys of the message, each with a comma before it."""
        self.parts += (self._prefix, record, self._suffix, extras, b"}\n")
        self.times.append(self._time)


def _decode_all(whole: bytes, lines: list[bytes]) -> list[Message] | None:
    """All lines at once; None if one of them wants a closer look (blank, broken, of further keys)."""
    try:
        if not whole.isascii():
            whole.decode("utf-8")  # the decoder does not look into what it leaves as bytes
        return list(map(_decode, lines))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _one_by_one(first: int, lines: Iterable[bytes]) -> Iterable[Numbered]:
    for number, line in enumerate(lines, first):
        if line.strip():
            message, extras = _decode_one(number, line)
            yield number, message, line, extras


def _decode_one(number: int, line: bytes) -> tuple[Message, bytes]:
    """(message, further keys as they came, each with a comma before it)."""
    try:
        line.decode("utf-8")
        try:
            return _split_keys(line)
        except msgspec.DecodeError:
            veiled = veil(line)
            if veiled is None:
                raise
            return _unveiled(number, line, *_split_keys(veiled))
    except UnicodeDecodeError as error:
        raise _bad(number, line, f"it is not UTF-8 ({error.reason} at byte {error.start + 1})") from None
    except msgspec.ValidationError as error:
        raise _bad(number, line, f"it is no Singer message ({error})") from None
    except msgspec.DecodeError as error:
        raise _bad(number, line, f"it is no JSON ({error})") from None
    except RecursionError:
        raise _bad(number, line, "it is nested too deeply") from None


def _split_keys(line: bytes) -> tuple[Message, bytes]:
    """(message, further keys)."""
    try:
        return _decode(line), b""
    except msgspec.ValidationError:
        given = _decode_open(line)
    known = b",".join(_pair(key, given[key]) for key in given if key in _KNOWN)
    extras = b"".join(b"," + _pair(key, given[key]) for key in given if key not in _KNOWN)
    return _decode(b"{" + known + b"}"), extras


def _unveiled(number: int, line: bytes, message: Message, extras: bytes) -> tuple[Message, bytes]:
    """The message with its half surrogate pairs back in place; only in the parts that stay bytes."""
    for name in Message.__struct_fields__:
        value = getattr(message, name)
        if isinstance(value, Raw):
            setattr(message, name, Raw(unveil(bytes(value))))
        elif isinstance(value, str) and is_veiled(value):
            raise _bad(number, line, f"its '{name}' holds half of a surrogate pair")
    return message, unveil(extras)


def _pair(key: str, value: Raw) -> bytes:
    return encode(key) + b":" + bytes(value)


def _stream(number: int, message: Message, line: bytes) -> str:
    if not message.stream:
        raise _bad(number, line, f"a {message.type.upper()} without 'stream'")
    return message.stream


def _schema(number: int, message: Message, line: bytes) -> Schema:
    schema = _exact(number, line, message.schema)
    if not isinstance(schema, dict):
        raise _bad(number, line, "the 'schema' of a SCHEMA must be a JSON object")
    return Schema(
        _stream(number, message, line),
        schema,
        _names(number, line, "key_properties", message.key_properties),
        _names(number, line, "bookmark_properties", message.bookmark_properties),
    )


def _names(number: int, line: bytes, key: str, raw: Raw | UnsetType) -> tuple[str, ...]:
    """A list of names. Taps also send null or nothing for none, and a bare text for one."""
    names = _exact(number, line, raw)
    if names is None:
        return ()
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _bad(number, line, f"'{key}' must be a list of names")
    return tuple(names)


def _exact(number: int, line: bytes, raw: Raw | UnsetType) -> Any:
    """A JSON value with all the digits of its numbers; None where there is none."""
    if raw is UNSET:
        return None
    try:
        return json.loads(bytes(raw), parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise _bad(number, line, f"it can't be read ({error})") from None


def _bad(number: int, line: bytes, fact: str) -> MessageError:
    shown = line[: 4 * _SHOWN_CHARACTERS].decode("utf-8", "replace")[:_SHOWN_CHARACTERS]
    return MessageError(f"line {number}: {fact}. It begins: {shown}")
