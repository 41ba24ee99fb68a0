"""Line 1 of a data file, read: the SCHEMA that its rows have."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Raw

from burler.errors import LakeError, MessageError
from burler.lake.datafile import CURE_DAMAGED
from burler.singer.messages import Schema, to_line
from burler.target.lines import one_by_one, schema_of


@dataclass(frozen=True, slots=True)
class Head:
    """``line``: as it stands in the file, without its end. ``message``: what it says, numbers digit for digit.
    ``is_plain``: every reader of Singer messages takes the line as it is."""

    line: bytes
    message: Schema
    is_plain: bool

    def line_out(self) -> bytes:
        """The line that goes out for it: the same, where it can."""
        return self.line + b"\n" if self.is_plain else to_line(self.message)


def head_of(line: bytes, place: str) -> Head:
    """Line 1 of a file, or the line that a manifest keeps of it.

    Args:
        line: with or without its end.
        place: what is named if it can't be read.

    Raises:
        LakeError: it is no SCHEMA message.
    """
    text = line.rstrip(b"\r\n")
    try:
        _, found, _, _ = next(iter(one_by_one(1, [text])), (0, None, b"", b""))
        if found is None or found.type.upper() != "SCHEMA":
            raise LakeError(f"{place}: line 1 is no SCHEMA message.\n{CURE_DAMAGED}")
        message = schema_of(1, found, text)
    except MessageError as error:
        raise LakeError(f"{place}: {error}.\n{CURE_DAMAGED}") from None
    # Readers compare the type as it is, and ask for key_properties even where there are none.
    keys = found.key_properties
    return Head(text, message, found.type == "SCHEMA" and isinstance(keys, Raw) and bytes(keys)[:1] == b"[")
