"""Lines of any tap, read: each message handed to a writer, records of one stream together; or all of them passed as
they came, with BATCH messages apart."""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from msgspec import UNSET

from burler import times
from burler.clock import Clock
from burler.errors import MessageError
from burler.singer.lines import (
    SHOWN_CHARACTERS,
    LineCut,
    Message,
    MessageHead,
    Numbered,
    bad,
    blocks,
    decode_one,
    exact,
    head_of,
    numbered,
    schema_of,
    stream_of,
)
from burler.singer.messages import ActivateVersion, Schema, State, encode

_LETTERS = (b"\\u004", b"\\u005", b"\\u006", b"\\u007")
"""How a JSON text may spell letters of a type."""
_STRANGER = "it is no Singer message, and passes as it came"  # it may hold secrets, so it is not shown


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A BATCH message as it came, without its line end. ``schema``: the stream's, the last SCHEMA before it."""

    number: int
    stream: str
    line: bytes
    schema: Schema


class Stopped(Exception):
    """Told to stop in the middle of a BATCH: ``Reader.read`` ends there, and looks at nothing behind it."""


class Reader(ABC):
    """What both readers have: lines are cut and counted, the last SCHEMA of each stream is known, and of each kind of
    oddity there is one sentence.

    Attributes:
        lines: how many came.
    """

    def __init__(self, warn: Callable[[str], object]) -> None:
        self.lines = 0
        self._warn = warn
        self._warned: set[str] = set()
        self._cut = LineCut()
        self._schemas: dict[str, Schema | tuple[int, bytes]] = {}

    def read(
        self,
        source: BinaryIO | int,
        *,
        tick: Callable[[], object],
        should_stop: Callable[[], bool],
        flush: Callable[[], object] = lambda: None,
        due: Callable[[], float | None] = lambda: None,
    ) -> None:
        """Take all lines, until the end of ``source`` or until it is to stop. A last line without a line end counts if
        it is whole; where it is to stop it may be broken off, and is left out.

        Args:
            tick, due: see ``burler.singer.lines.blocks``.
            flush: called after each block, and at the end; also before an error about a line.

        Raises:
            MessageError: a line is no message, or came before its SCHEMA. What stood before it has been taken.
        """
        try:
            for block in blocks(source, tick=tick, due=due, stop=should_stop):
                if whole := self._cut.take(block):
                    self._take(whole)
                flush()
            last = self._cut.rest()
            if last and not should_stop():
                self._take(last)
        except Stopped:
            pass
        except MessageError:
            flush()
            raise
        flush()

    def warn(self, text: str) -> None:
        """Say a sentence, but once, whichever line it is about."""
        fact = text.partition(": ")[2] if text.startswith("line ") else text
        if fact not in self._warned:
            self._warned.add(fact)
            self._warn(f"{text}; further ones without a word")

    @abstractmethod
    def _take(self, whole: bytes) -> None:
        """Lines that have come, the last one with its end."""

    def _schema(self, what: str, stream: str, number: int, line: bytes) -> Schema:
        """The last SCHEMA of a stream, for a message that needs one before it."""
        found = self._schemas.get(stream)
        if found is None:
            raise bad(number, line, f"{what} of stream '{stream}' came before its SCHEMA")
        if not isinstance(found, Schema):
            at, schema = found
            found = self._schemas[stream] = schema_of(at, decode_one(at, schema)[0], schema)
        return found


# ---- lines that pass -----------------------------------------------------------------------------------------


class PassingReader(Reader):
    """Lines pass byte for byte, most of them unseen; BATCH messages come apart, at their place. A line that is no
    Singer message passes like the others, with a warning: a target may know more.

    Args:
        write: gets complete lines.
        batch: gets BATCH messages.
        keeps_back: whether an ACTIVATE_VERSION of a stream does not pass. None: they all do.
    """

    def __init__(
        self,
        write: Callable[[bytes], object],
        warn: Callable[[str], object],
        *,
        batch: Callable[[BatchLine], object],
        keeps_back: Callable[[str], bool] | None = None,
    ) -> None:
        super().__init__(warn)
        self._write = write
        self._batch = batch
        self._keeps_back = keeps_back or (lambda stream: False)
        self._wanted = (b"batch", b"schema", *_LETTERS, *((b"activate_version",) if keeps_back else ()))

    def _take(self, whole: bytes) -> None:
        first = self.lines + 1
        self.lines += whole.count(b"\n") + (not whole.endswith(b"\n"))
        if _STRANGER not in self._warned:
            self._look_for_strangers(first, whole)
        if not self._may_matter(whole):
            self._write(whole)
            return
        passed = at = 0
        for number, line in enumerate(whole.split(b"\n"), first):
            begin, at = at, at + len(line) + 1
            if not self._may_matter(line):
                continue
            head = head_of(line)
            kind = "" if head is None else head.type.upper()
            if head is not None and head.stream and kind == "SCHEMA":
                self._schemas[head.stream] = number, line
            elif head is None or kind == "BATCH":
                self._pass(whole[passed:begin])
                passed = at
                self._take_batch(number, line, head)
            elif kind == "ACTIVATE_VERSION" and head.stream and self._keeps_back(head.stream):
                self._pass(whole[passed:begin])
                passed = at
        self._pass(whole[passed:])

    def _pass(self, lines: bytes) -> None:
        if lines:
            self._write(lines)

    def _take_batch(self, number: int, line: bytes, head: MessageHead | None) -> None:
        if head is None:
            raise bad(number, line, "it is no JSON, and may be a BATCH or a SCHEMA")
        stream = stream_of(number, head, line)
        self._batch(BatchLine(number, stream, line, self._schema("a BATCH", stream, number, line)))

    def _may_matter(self, lines: bytes) -> bool:
        lower = lines.lower()
        return any(wanted in lower for wanted in self._wanted)

    def _look_for_strangers(self, first: int, whole: bytes) -> None:
        """Say it where a line begins as no object of JSON does, or the first of all has no type: whatever writes this
        is no tap."""
        if first > 1 and whole.startswith(b"{") and whole.count(b"\n{") == whole.count(b"\n", 0, -1):
            return
        for number, line in enumerate(whole.split(b"\n"), first):
            text = line.strip()
            if text and (not text.startswith(b"{") or (number == 1 and not getattr(head_of(text), "type", ""))):
                self.warn(f"line {number}: {_STRANGER}")
                return


# ---- messages for a writer -----------------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class Ingested:
    """What came in: lines, and RECORDs of each stream."""

    lines: int
    records: dict[str, int]


class PageReader(Reader):
    """Each message goes to a writer; neighbouring RECORDs of one stream and version as a page.

    Args:
        rows: gets the rows of RECORDs, bare; by default ``writer.page`` gets them as whole lines.
        batch: gets BATCH messages, each with the time at which its block came, and gives the number of rows that it
            made of one.
        other: gets a line of an unknown type. By default those are skipped with a warning.
    """

    def __init__(
        self,
        writer: Taker,
        clock: Clock,
        warn: Callable[[str], object],
        *,
        batch: Callable[[BatchLine, dt.datetime], int],
        rows: Rows | None = None,
        other: Callable[[bytes], object] | None = None,
    ) -> None:
        super().__init__(warn)
        self._records: dict[str, int] = {}
        self._writer = writer
        self._clock = clock
        self._batch = batch
        self._rows = rows
        self._unknown = other

    @property
    def done(self) -> Ingested:
        """What has been read."""
        return Ingested(self.lines, self._records)

    def _take(self, whole: bytes) -> None:
        self._messages(numbered(self.lines + 1, whole))
        self.lines += whole.count(b"\n") + (not whole.endswith(b"\n"))

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
        self._schema("a RECORD", stream, number, line)
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
                self.warn(f"line {number}: time_extracted without a zone is taken as UTC")
            page.turn_to(text, time)
        record = b"" if message.record is UNSET else bytes(message.record)
        if record[:1] != b"{":
            raise bad(number, line, "the 'record' of a RECORD must be a JSON object")
        if extras and page.bare:
            self.warn(f"line {number}: keys of a RECORD that no Singer message has do not go into batch files")
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
        self._count(page.stream, count)

    def _count(self, stream: str, records: int) -> None:
        self._records[stream] = self._records.get(stream, 0) + records

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
            self._schema("an ACTIVATE_VERSION", stream, number, line)
            self._writer.activate_version(ActivateVersion(stream, message.version))
        elif kind == "BATCH":
            stream = stream_of(number, message, line)
            found = BatchLine(number, stream, line, self._schema("a BATCH", stream, number, line))
            self._count(stream, self._batch(found, now))
        elif self._unknown is not None:
            self._unknown(line)
        else:
            self.warn(f"line {number}: messages of the unknown type {message.type[:SHOWN_CHARACTERS]!r} are skipped")

    def _state(self, number: int, message: Message, line: bytes) -> None:
        if message.value is UNSET:
            raise bad(number, line, "a STATE without 'value'")
        self._writer.state(State(exact(number, line, message.value)))


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
