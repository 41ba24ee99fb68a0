"""Lines of any tap as calls of a writer: blocks decoded in C, records of one stream kept together."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import UNSET

from burler import times
from burler.clock import Clock
from burler.errors import MessageError
from burler.singer.lines import (
    SHOWN_CHARACTERS,
    LineCut,
    Message,
    Numbered,
    bad,
    exact,
    numbered,
    schema_of,
    stream_of,
)
from burler.singer.messages import ActivateVersion, Schema, State, encode


@dataclass(slots=True)
class Ingested:
    """What came in: lines, and RECORDs of each stream."""

    lines: int = 0
    records: dict[str, int] = field(default_factory=dict)

    def count(self, stream: str, records: int) -> None:
        """So many records more of a stream."""
        self.records[stream] = self.records.get(stream, 0) + records


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A BATCH message as it came. ``schema``: the stream's, the last SCHEMA before it. ``received``: when it came, the
    same for all messages of a block."""

    number: int
    stream: str
    line: bytes
    schema: Schema
    received: dt.datetime


class Taker(Protocol):
    """Who gets the messages: a ``LakeWriter``, a ``BatchWriter``."""

    def schema(self, message: Schema) -> None:
        """A SCHEMA."""

    def activate_version(self, message: ActivateVersion) -> None:
        """An ACTIVATE_VERSION."""

    def state(self, message: State) -> None:
        """A STATE."""


Rows = Callable[[str, bytes, int, dt.datetime | None, int | None], object]
"""Takes bare rows: stream, lines, count, the earliest ``time_extracted`` (None: not known), version."""


class Reader:
    """Takes blocks of bytes, hands messages to a writer.

    Args:
        rows: gets the rows of RECORDs, bare; by default ``writer.page`` gets them as whole lines.
        batch: gets BATCH messages, and gives the number of rows that it made of one.
        other: gets a line of an unknown type with its stream, if it names one. By default those are skipped with a
            warning.
    """

    def __init__(
        self,
        writer: Taker,
        clock: Clock,
        warn: Callable[[str], object],
        *,
        batch: Callable[[BatchLine], int],
        rows: Rows | None = None,
        other: Callable[[bytes, str | None], object] | None = None,
    ) -> None:
        self.done = Ingested()
        self._writer = writer
        self._clock = clock
        self._warn = warn
        self._batch = batch
        self._rows = rows
        self._unknown = other
        self._warned: set[str] = set()
        self._schemas: dict[str, Schema] = {}
        self._cut = LineCut()

    def take(self, block: bytes) -> None:
        """Work on all lines that end in this block.

        Raises:
            MessageError: see ``burler.lake.writing.ingest.ingest``.
        """
        if whole := self._cut.take(block):
            self._lines(whole)

    def finish(self, *, stopped: bool) -> None:
        """The end of input. A last line without a line end counts if it is whole.

        ``stopped``: the reader was told to stop, so a line may be broken off, and is left alone.
        """
        last = self._cut.rest()
        if last and not stopped:
            self._lines(last)

    def _lines(self, whole: bytes) -> None:
        self._messages(numbered(self.done.lines + 1, whole))
        self.done.lines += whole.count(b"\n") + (not whole.endswith(b"\n"))

    def _messages(self, messages: Iterable[Numbered]) -> None:
        """Gather neighbouring RECORDs of one stream and version into a page; hand on the rest one by one."""
        page: RecordPage | BarePage | None = None
        now = self._clock.now()
        received = times.format_time(now)
        try:
            for number, message, line, extras in messages:
                kind = message.type if message.type == "RECORD" else message.type.upper()
                if kind != "RECORD":
                    self._done_with(page)
                    page = None
                    self._other(kind, number, message, line, now)
                    continue
                if page is None or message.stream != page.stream or message.version != page.version:
                    self._done_with(page)
                    page = self._new_page(number, message, line)
                self._add(page, number, message, line, extras, received)
        except MessageError:
            self._done_with(page)  # the records before the bad line are whole
            raise
        self._done_with(page)

    def _new_page(self, number: int, message: Message, line: bytes) -> RecordPage | BarePage:
        stream = stream_of(number, message, line)
        if stream not in self._schemas:
            raise bad(number, line, f"a RECORD of stream '{stream}' came before its SCHEMA")
        kind = RecordPage if self._rows is None else BarePage
        return kind(stream, message.version, number)

    def _add(
        self, page: RecordPage | BarePage, number: int, message: Message, line: bytes, extras: bytes, received: str
    ) -> None:
        text = message.time_extracted
        if text is None and not page.bare:
            text = received
        if text is not None and text != page.text:
            try:
                time, assumed = times.lake(text)
            except ValueError as error:
                raise bad(number, line, f"time_extracted: {error}") from None
            if assumed:
                self._warn_once("time_extracted without a zone is taken as UTC", number)
            page.turn_to(text, time)
        record = b"" if message.record is UNSET else bytes(message.record)
        if record[:1] != b"{":
            raise bad(number, line, "the 'record' of a RECORD must be a JSON object")
        if extras and page.bare:
            self._warn_once("keys of a RECORD that no Singer message has do not go into batch files", number)
        page.add(record, extras, timed=text is not None)

    def _done_with(self, page: RecordPage | BarePage | None) -> None:
        """Give a page to the writer. An error of the writer's is about the lines of the page."""
        if page is None or not page.count:
            return
        count, page.count = page.count, 0  # it is handed on once, whatever comes of it
        try:
            if self._rows is not None:
                self._rows(page.stream, b"".join(page.parts), count, page.earliest, page.version)
            else:
                self._writer.page(page.stream, b"".join(page.parts), count, page.times, page.version)  # type: ignore[attr-defined]
        except MessageError as error:
            raise type(error)(f"lines {page.number} and after: {error}") from None
        self.done.count(page.stream, count)

    def _other(self, kind: str, number: int, message: Message, line: bytes, now: dt.datetime) -> None:
        if kind == "SCHEMA":
            schema = schema_of(number, message, line)
            try:
                self._writer.schema(schema)
            except MessageError as error:
                raise bad(number, line, str(error)) from None
            self._schemas[schema.stream] = schema
        elif kind == "STATE":
            self._state(number, message, line)
        elif kind == "ACTIVATE_VERSION":
            stream = stream_of(number, message, line)
            if message.version is None:
                raise bad(number, line, "an ACTIVATE_VERSION without 'version'")
            if stream not in self._schemas:
                raise bad(number, line, f"an ACTIVATE_VERSION of stream '{stream}' came before its SCHEMA")
            self._writer.activate_version(ActivateVersion(stream, message.version))
        elif kind == "BATCH":
            stream = stream_of(number, message, line)
            if stream not in self._schemas:
                raise bad(number, line, f"a BATCH of stream '{stream}' came before its SCHEMA")
            self.done.count(stream, self._batch(BatchLine(number, stream, line, self._schemas[stream], now)))
        elif self._unknown is not None:
            self._unknown(line, message.stream)
        else:
            self._warn_once(f"messages of the unknown type {message.type[:SHOWN_CHARACTERS]!r} are skipped", number)

    def _state(self, number: int, message: Message, line: bytes) -> None:
        if message.value is UNSET:
            raise bad(number, line, "a STATE without 'value'")
        value = exact(number, line, message.value)
        try:
            encode(value)
        except UnicodeEncodeError:
            raise bad(number, line, "a STATE that holds half of a surrogate pair, which UTF-8 can't hold") from None
        self._writer.state(State(value))

    def _warn_once(self, fact: str, number: int) -> None:
        if fact not in self._warned:
            self._warned.add(fact)
            self._warn(f"line {number}: {fact}; further ones without a word")


class _Page:
    """What both kinds have. ``number``: the line of the first one in the input."""

    __slots__ = ("_time", "count", "number", "parts", "stream", "text", "times", "version")

    def __init__(self, stream: str, version: int | None, number: int) -> None:
        self.stream = stream
        self.version = version
        self.number = number
        self.count = 0
        self.parts: list[bytes] = []
        self.times: list[str] = []
        self.text: str | None = None
        self._time = ""


class RecordPage(_Page):
    """RECORD lines as the lake writes them."""

    __slots__ = ("_prefix", "_suffix")
    bare = False
    earliest = None

    def __init__(self, stream: str, version: int | None, number: int) -> None:
        super().__init__(stream, version, number)
        self._prefix = b'{"type":"RECORD","stream":' + encode(stream) + b',"record":'
        self._suffix = b""

    def turn_to(self, text: str, time: str) -> None:
        """From here on records have this time, as it came and in its one form."""
        self.text, self._time = text, time
        version = "" if self.version is None else f',"version":{self.version}'
        self._suffix = f',"time_extracted":"{time}"{version}'.encode()

    def add(self, record: bytes, extras: bytes, *, timed: bool) -> None:
        """Append a line. ``extras``: further keys of the message, each with a comma before it."""
        self.parts += (self._prefix, record, self._suffix, extras, b"}\n")
        self.times.append(self._time)
        self.count += 1


class BarePage(_Page):
    """Rows as batch files hold them. Only the earliest of their times is kept: a BATCH has one."""

    __slots__ = ("_earliest",)
    bare = True

    def __init__(self, stream: str, version: int | None, number: int) -> None:
        super().__init__(stream, version, number)
        self._earliest = ""

    def turn_to(self, text: str, time: str) -> None:
        """See ``RecordPage``."""
        self.text, self._time = text, time

    def add(self, record: bytes, extras: bytes, *, timed: bool) -> None:
        """Append a row; ``extras`` have no place. ``timed``: whether the RECORD says when it was read."""
        self.parts += (record, b"\n")
        self.count += 1
        if timed and (not self._earliest or self._time < self._earliest):
            self._earliest = self._time

    @property
    def earliest(self) -> dt.datetime | None:
        """The earliest time of its rows; None if none has one."""
        return times.moment(self._earliest) if self._earliest else None
