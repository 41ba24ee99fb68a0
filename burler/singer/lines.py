"""Lines of any program as Singer messages: blocks from a pipe, cut where lines end, each line decoded no further than
its outermost keys. What is inside of a message stays bytes; a line that is none is told with its number."""

from __future__ import annotations

import io
import json
import os
import re
import select
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from itertools import repeat
from typing import Annotated, Any, BinaryIO, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from burler.errors import MessageError
from burler.log_settings import log_settings
from burler.singer.messages import Schema, encode
from burler.surrogates import decode_veiled, is_veiled, unveil, veil

Decoded = TypeVar("Decoded")
SHOWN_CHARACTERS = 80
_HEAD = re.compile(rb'\s*\{(?:\s*"(?:type|stream)"\s*:\s*"[^"\\]{0,80}"\s*,?)+')
BLOCK_BYTES = 1 << 20
_LONGEST_SLEEP_SECONDS = 1.0


class MessageHead(msgspec.Struct, gc=False):
    """What stands around the inside of a message, which is skipped, as further keys are."""

    type: str
    stream: str | None = None
    time_extracted: str | None = None
    version: int | None = None


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


class OpenMessage(Message, forbid_unknown_fields=False, gc=False):
    """The same; keys that no message has are passed over."""


_decode = msgspec.json.Decoder(Message).decode
decode_open = msgspec.json.Decoder(OpenMessage).decode
decode_head = msgspec.json.Decoder(MessageHead).decode
_decode_keys = msgspec.json.Decoder(dict[str, Raw]).decode
_KNOWN = frozenset(Message.__struct_fields__)
Numbered = tuple[int, Message, bytes, bytes]
"""Line number, message, the line, and keys of it that no Singer message has, as they came."""


def numbered(first: int, whole: bytes) -> Iterable[Numbered]:
    """The messages of some lines, the first of which has this number, each with what is unusual about it.

    Args:
        whole: the last line may have no end.

    Raises:
        MessageError: a line is no message; those before it were given.
    """
    lines = whole.split(b"\n")
    if not lines[-1]:
        del lines[-1]
    messages = decode_all(whole, lines)
    if messages is None:
        return one_by_one(first, lines)
    return zip(range(first, first + len(lines)), messages, lines, repeat(b""), strict=False)


def decode_all(whole: bytes, lines: list[bytes]) -> list[Message] | None:
    """All lines at once; None if one of them wants a closer look (blank, broken, of further keys)."""
    try:
        if not whole.isascii():
            whole.decode("utf-8")  # the decoder does not look into what it leaves as bytes
        return list(map(_decode, lines))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def one_by_one(first: int, lines: Iterable[bytes]) -> Iterable[Numbered]:
    """Line by line, with what is unusual about each; blank lines are passed over.

    Raises:
        MessageError: a line is no message.
    """
    for number, line in enumerate(lines, first):
        if line.strip():
            message, extras = decode_one(number, line)
            yield number, message, line, extras


def decode_one(number: int, line: bytes) -> tuple[Message, bytes]:
    """(message, further keys as they came, each with a comma before it).

    Raises:
        MessageError: the line is no message.
    """
    try:
        line.decode("utf-8")
        (message, extras), veiled = decode_veiled(_split_keys, line)
        return _unveiled(number, line, message, extras) if veiled else (message, extras)
    except UnicodeDecodeError as error:
        raise bad(number, line, f"it is not UTF-8 ({error.reason} at byte {error.start + 1})") from None
    except msgspec.ValidationError as error:
        raise bad(number, line, f"it is no Singer message ({error})") from None
    except msgspec.DecodeError as error:
        raise bad(number, line, f"it is no JSON ({error})") from None
    except RecursionError:
        raise bad(number, line, "it is nested too deeply") from None


def _split_keys(line: bytes) -> tuple[Message, bytes]:
    """(message, further keys)."""
    try:
        return _decode(line), b""
    except msgspec.ValidationError:
        given = _decode_keys(line)
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
            raise bad(number, line, f"its '{name}' holds half of a surrogate pair")
    return message, unveil(extras)


def _pair(key: str, value: Raw) -> bytes:
    return encode(key) + b":" + bytes(value)


def stream_of(number: int, message: Message | MessageHead, line: bytes) -> str:
    """The stream of a message, which must name one."""
    if not message.stream:
        raise bad(number, line, f"a {message.type.upper()} without 'stream'")
    return message.stream


def schema_of(number: int, message: Message, line: bytes) -> Schema:
    """A SCHEMA message whose inside has been read."""
    schema = exact(number, line, message.schema)
    if not isinstance(schema, dict):
        raise bad(number, line, "the 'schema' of a SCHEMA must be a JSON object")
    return Schema(
        stream_of(number, message, line),
        schema,
        _names(number, line, "key_properties", message.key_properties),
        _names(number, line, "bookmark_properties", message.bookmark_properties),
    )


def _names(number: int, line: bytes, key: str, raw: Raw | UnsetType) -> tuple[str, ...]:
    """A list of names. Taps also send null or nothing for none, and a bare text for one."""
    names = exact(number, line, raw)
    if names is None:
        return ()
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise bad(number, line, f"'{key}' must be a list of names")
    return tuple(names)


def exact(number: int, line: bytes, raw: Raw | UnsetType) -> Any:
    """A JSON value with all the digits of its numbers, which can be written again; None where there is none."""
    if raw is UNSET:
        return None
    try:
        value = json.loads(bytes(raw), parse_float=Decimal)
        encode(value)
    except UnicodeEncodeError:
        raise bad(number, line, "it holds half of a surrogate pair, which UTF-8 can't hold") from None
    except (ValueError, RecursionError) as error:
        raise bad(number, line, f"it can't be read ({error})") from None
    return value


def bad(number: int, line: bytes, fact: str) -> MessageError:
    """An error about a line. Of a BATCH nothing is shown: URLs may be signed, and so be secret. Of other lines what no
    row stands in: type and stream; or all of it, where it is something that a program has printed."""
    if b"BATCH" in line[: 8 * SHOWN_CHARACTERS].upper():
        return MessageError(f"line {number}: {fact}")
    if not log_settings.values:
        head = _HEAD.match(line)
        line = head[0] if head else b"" if b'"' in line or b"{" in line else line
    shown = line[: 4 * SHOWN_CHARACTERS].decode("utf-8", "replace")[:SHOWN_CHARACTERS]
    return MessageError(f"line {number}: {fact}{f'. It begins: {shown}' if shown.strip() else ''}")


# ---- the outermost keys of odd lines ------------------------------------------------------------------------

_TEXT_OR_BRACKET = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]')  # a text that breaks off is one, too
_BELOW_OUTERMOST = 2


def decode_outermost(decode: Callable[[bytes], Decoded], line: bytes) -> Decoded:
    """``decode(line)``, for a type that says nothing of values below the outermost keys.

    A decoder looks through all of a line. It refuses half of a surrogate pair, and what is nested deeper than the stack
    of its Python allows where it is called; other programs write both.

    Text of a line that holds half of a pair comes out veiled (``burler.surrogates``).

    Raises:
        msgspec.DecodeError, UnicodeDecodeError: as ``decode``.
    """
    try:
        return decode(line)
    except RecursionError:
        line = shallow(line)
    except msgspec.DecodeError:
        line = veil(line) or line
    try:
        return decode(line)
    except RecursionError:
        return decode(shallow(line))
    except msgspec.DecodeError:
        return decode(veil(line) or line)


def shallow(line: bytes) -> bytes:
    """A JSON object with an empty array in place of each array and object inside of it."""
    kept: list[bytes] = []
    depth = start = 0
    for found in _TEXT_OR_BRACKET.finditer(line):
        token = found[0]
        if token in (b"{", b"["):
            depth += 1
            if depth == _BELOW_OUTERMOST:
                kept.append(line[start : found.start()])
        elif token in (b"}", b"]"):
            if depth == _BELOW_OUTERMOST:
                kept.append(b"[]")
                start = found.end()
            depth -= 1
    return b"".join((*kept, line[start:]))


def head_of(line: bytes) -> MessageHead | None:
    """Type and stream of a line, whatever else is odd about it; no type where it is JSON and no message, None where it
    is no JSON."""
    try:
        return decode_outermost(decode_head, line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:  # what msgspec refuses: NaN, a stream that is no text
        wire = json.loads(line)
    except (ValueError, RecursionError):
        return None
    kind, stream = (wire.get("type"), wire.get("stream")) if isinstance(wire, dict) else (None, None)
    return MessageHead(kind if isinstance(kind, str) else "", stream if isinstance(stream, str) else None)


# ---- bytes from a pipe, and where lines end ------------------------------------------------------------------


def blocks(
    source: BinaryIO | int,
    *,
    tick: Callable[[], object],
    due: Callable[[], float | None],
    stop: Callable[[], bool],
) -> Iterator[bytes]:
    """What ``source`` has, as soon as it has it, up to about a MiB at a time.

    ``tick`` is called between blocks and, while there is nothing to read, when ``due()`` seconds are over. A
    source without a file descriptor is read as it comes, and blocks as it will.
    """
    read, fd = reading(source)
    if fd is None:
        while not stop() and (block := read(BLOCK_BYTES)):
            yield block
            tick()
        return
    poll = select.poll()
    poll.register(fd, select.POLLIN | select.POLLPRI | select.POLLHUP | select.POLLERR)
    waiting = False  # what a buffered reader holds already, poll cannot see
    while not stop():
        if waiting and not poll.poll(_sleep_milliseconds(due())):
            tick()
            continue
        block = read(BLOCK_BYTES)
        if not block:
            return
        while len(block) < BLOCK_BYTES and poll.poll(0) and (more := read(BLOCK_BYTES)):
            block += more
        waiting = True
        yield block
        tick()


def reading(source: BinaryIO | int) -> tuple[Callable[[int], bytes], int | None]:
    """(a read that gives what there is, the descriptor to wait on; None where there is none)."""
    if isinstance(source, int):
        return (lambda size: os.read(source, size)), source
    try:
        fd = source.fileno()
    except (OSError, AttributeError):
        return source.read, None
    if isinstance(source, io.BufferedReader):
        return source.read1, fd
    return (source.read if isinstance(source, io.RawIOBase) else (lambda size: os.read(fd, size))), fd


def _sleep_milliseconds(due: float | None) -> int:
    seconds = _LONGEST_SLEEP_SECONDS if due is None else min(due, _LONGEST_SLEEP_SECONDS)
    return max(1, int(seconds * 1000) + 1)


class LineCut:
    """Blocks of bytes cut where lines end: holds the part of a line that has not ended yet.

    Args:
        most_bytes: a longer line is let go, and passed over up to its end; None: a line may be of any length.

    Attributes:
        passed: how many lines that were let go have ended in the last block (0 or 1).
        too_long: whether a line has become too long in it.
    """

    def __init__(self, most_bytes: int | None = None) -> None:
        self.most_bytes = most_bytes
        self.passed = 0
        self.too_long = False
        self._begun: list[bytes] = []
        self._begun_bytes = 0
        self._endless = False

    @property
    def begun(self) -> bytes:
        """What stands behind the last line end."""
        return b"".join(self._begun)

    def take(self, block: bytes) -> bytes:
        """All lines that end in this block, with their ends; nothing where none does."""
        self.passed, self.too_long = 0, False
        if self._endless:
            end = block.find(b"\n") + 1
            if not end:
                return b""
            self._endless, self.passed = False, 1
            block = block[end:]
        cut = block.rfind(b"\n") + 1
        whole = b""
        if cut:
            whole = b"".join((*self._begun, block[:cut]))
            self._begun, self._begun_bytes = [], 0
            block = block[cut:]
        if block:
            self._begun.append(block)
            self._begun_bytes += len(block)
            if self.most_bytes is not None and self._begun_bytes > self.most_bytes:
                self._begun, self._begun_bytes = [], 0
                self._endless = self.too_long = True
        return whole

    def rest(self) -> bytes:
        """What stands behind the last line end; afterwards there is nothing."""
        last, self._begun, self._begun_bytes = self.begun, [], 0
        return last
