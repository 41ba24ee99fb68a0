"""Lines of other programs as Singer messages: what is inside of a message stays bytes; a line that is none is told with
its number."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from burler.errors import MessageError
from burler.formats.jsonl import is_veiled, unveil, veil
from burler.log_settings import log_settings
from burler.singer.messages import Schema, encode

SHOWN_CHARACTERS = 80
_HEAD = re.compile(rb'\s*\{(?:\s*"(?:type|stream)"\s*:\s*"[^"\\]{0,80}"\s*,?)+')


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


_decode = msgspec.json.Decoder(Message).decode
_decode_open = msgspec.json.Decoder(dict[str, Raw]).decode
_KNOWN = frozenset(Message.__struct_fields__)
Numbered = tuple[int, Message, bytes, bytes]
"""Line number, message, the line, and keys of it that no Singer message has, as they came."""


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
            raise bad(number, line, f"its '{name}' holds half of a surrogate pair")
    return message, unveil(extras)


def _pair(key: str, value: Raw) -> bytes:
    return encode(key) + b":" + bytes(value)


def stream_of(number: int, message: Message, line: bytes) -> str:
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
    """A JSON value with all the digits of its numbers; None where there is none."""
    if raw is UNSET:
        return None
    try:
        return json.loads(bytes(raw), parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise bad(number, line, f"it can't be read ({error})") from None


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
