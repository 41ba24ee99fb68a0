"""Neighbouring RECORDs of one stream and version, on their way to a writer: as whole lines, or their rows alone."""

from __future__ import annotations

import datetime as dt

from burler import times
from burler.singer.messages import encode


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
