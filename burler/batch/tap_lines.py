"""Any tap's lines, of which only BATCH messages matter: everything else passes byte for byte, and is not looked
into."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, BinaryIO

import msgspec

from burler.batch.message import batch_of, with_keys
from burler.errors import BatchError, MessageError
from burler.singer.lines import LineCut, MessageHead, blocks, decode_head, decode_outermost
from burler.singer.messages import Batch, parse_line

logger = logging.getLogger(__name__)

_LETTERS = (b"\\u004", b"\\u005", b"\\u006", b"\\u007")
"""How a JSON text may spell letters of a type."""
_WANTED = (b"batch", b"schema", *_LETTERS)


@dataclass(frozen=True, slots=True)
class Found:
    """A BATCH message. ``schema``: the JSON Schema of its stream, in which the key's fields are ``required``; ``line``:
    as it came, with its line end."""

    number: int
    batch: Batch
    schema: Mapping[str, Any]
    line: bytes


@dataclass(frozen=True, slots=True)
class Activation:
    """An ACTIVATE_VERSION of a stream; ``line``: as it came."""

    stream: str
    line: bytes


Piece = bytes | Found | Activation


class TapLines:
    """Cuts blocks into whole lines that pass, and BATCH messages.

    Args:
        activations: give ACTIVATE_VERSION messages apart, too.
        warn: gets a sentence for lines that are no Singer messages. They pass like the others: a target may know more.
    """

    def __init__(self, *, activations: bool = False, warn: Callable[[str], object] = logger.warning) -> None:
        self.lines = 0
        self._activations = activations
        self._warn: Callable[[str], object] | None = warn
        self._wanted = (*_WANTED, b"activate_version") if activations else _WANTED
        self._cut = LineCut()
        self._schemas: dict[str, bytes] = {}
        self._parsed: dict[str, Mapping[str, Any]] = {}

    def read(
        self,
        source: BinaryIO | int,
        take: Callable[[Piece], object],
        *,
        flush: Callable[[], object],
        tick: Callable[[], object],
        should_stop: Callable[[], bool],
    ) -> None:
        """Hand what comes to ``take``, piece by piece, until the end of ``source`` or until it is to stop; ``flush``
        follows each block.

        Raises:
            MessageError: see ``take``; and what ``take`` of the caller's raises.
        """
        for block in blocks(source, tick=tick, due=lambda: None, stop=should_stop):
            for piece in self.take(block):
                take(piece)
            flush()
        for piece in self.finish(stopped=should_stop()):
            take(piece)

    def take(self, block: bytes) -> Iterator[Piece]:
        """Yield what ends in this block, in order: bytes of whole lines, and BATCH messages.

        Raises:
            MessageError: a line that may be a BATCH or SCHEMA is no JSON; a BATCH that can't be read, or came before
                the SCHEMA of its stream. What stood before it has been given.
        """
        if whole := self._cut.take(block):
            yield from self._whole(whole)

    def finish(self, *, stopped: bool) -> Iterator[Piece]:
        """Yield what stands behind the last line end. ``stopped``: it may be broken off, and is left out."""
        last = self._cut.rest()
        if last and not stopped:
            yield from self._whole(last)

    def _whole(self, whole: bytes) -> Iterator[Piece]:
        first = self.lines + 1
        self.lines += whole.count(b"\n") or 1
        if self._warn is not None:
            self._look_for_strangers(first, whole)
        if not self._may_matter(whole):
            yield whole
            return
        passing: list[bytes] = []
        for number, line in enumerate(_split(whole), first):
            try:
                found = self._look(number, line) if self._may_matter(line) else None
            except MessageError:
                yield from _joined(passing)
                raise
            if found is None:
                passing.append(line)
                continue
            yield from _joined(passing)
            passing = []
            yield found
        yield from _joined(passing)

    def _look_for_strangers(self, first: int, whole: bytes) -> None:
        """Say it once where a line begins as no object of JSON does, or the first of all has no type: whatever writes
        this is no tap."""
        if first > 1 and whole.startswith(b"{") and whole.count(b"\n{") == whole.count(b"\n", 0, -1):
            return
        for number, line in enumerate(_split(whole), first):
            text = line.strip()
            if text and (not text.startswith(b"{") or (number == 1 and not _has_type(text))):
                assert self._warn is not None
                self._warn(f"line {number}: it is no Singer message, and passes as it came")  # it may hold secrets
                self._warn = None
                return

    def _may_matter(self, lines: bytes) -> bool:
        lower = lines.lower()
        return any(wanted in lower for wanted in self._wanted)

    def _look(self, number: int, line: bytes) -> Found | Activation | None:
        head = _head_of(number, line)
        kind = head.type.upper()
        if kind == "SCHEMA" and head.stream is not None:
            self._schemas[head.stream] = line
            self._parsed.pop(head.stream, None)
        if self._activations and kind == "ACTIVATE_VERSION" and head.stream is not None:
            return Activation(head.stream, line)
        if kind != "BATCH":
            return None
        try:
            batch = batch_of(parse_line(line))
        except MessageError as error:
            raise BatchError(f"line {number}: {error}") from None
        except RecursionError:
            raise BatchError(f"line {number}: it is no JSON that can be read: nested too deeply") from None
        return Found(number, batch, self._schema(number, batch.stream), line)

    def _schema(self, number: int, stream: str) -> Mapping[str, Any]:
        if stream not in self._parsed:
            if stream not in self._schemas:
                raise BatchError(
                    f"line {number}: stream '{stream}': a BATCH came before the SCHEMA of its stream. "
                    "The tap must send SCHEMA first, as targets need it"
                )
            message = json.loads(self._schemas[stream], parse_float=Decimal)
            schema, keys = message.get("schema"), message.get("key_properties")
            if not isinstance(schema, dict):
                raise BatchError(f"line {number}: stream '{stream}': the 'schema' of its SCHEMA is no JSON object")
            self._parsed[stream] = with_keys(schema, keys if isinstance(keys, list) else None)
        return self._parsed[stream]


def _joined(lines: list[bytes]) -> Iterator[bytes]:
    if lines:
        yield b"".join(lines)


def _split(whole: bytes) -> list[bytes]:
    """Lines with their ends; a ``\\r`` is none."""
    lines = [line + b"\n" for line in whole.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _head_of(number: int, line: bytes) -> MessageHead:
    """Type and stream of a line; no type where it is JSON and no message."""
    if not line.strip():
        return MessageHead("")
    try:
        return decode_outermost(decode_head, line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:  # what msgspec refuses: NaN, a stream that is no text
        wire = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise MessageError(f"line {number}: it is no JSON ({error!s:.80}), and may be a BATCH or a SCHEMA") from None
    if not isinstance(wire, dict) or not isinstance(wire.get("type"), str):
        return MessageHead("")
    stream = wire.get("stream")
    return MessageHead(wire["type"], stream if isinstance(stream, str) else None)


def _has_type(line: bytes) -> bool:
    try:
        return bool(_head_of(0, line).type)
    except MessageError:
        return False


def never() -> bool:
    """Nobody tells us to stop."""
    return False


def nothing() -> None:
    """Nothing to do."""


def once(warn: Callable[[str], object]) -> Callable[[str], None]:
    """Passes a warning on once, whichever line it is about."""
    said: set[str] = set()

    def warn_once(text: str) -> None:
        fact = text.partition(": ")[2] if text.startswith("line ") else text
        if fact not in said:
            said.add(fact)
            warn(f"{text}; further ones without a word")

    return warn_once
