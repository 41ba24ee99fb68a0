"""Lines of any tap, decoded: a block at once in C where all of it is plain, else line by line, each with what is odd
about it. Nothing here raises: a line that is no message is a finding, and the next one counts again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

SHOWN = 80


class Line(msgspec.Struct, gc=False):
    """A message; of a RECORD its record is decoded, what else there is stays bytes."""

    type: str
    stream: str | None = None
    record: dict[str, Any] | UnsetType = UNSET
    time_extracted: str | None = None
    version: int | None = None
    schema: Raw | UnsetType = UNSET
    key_properties: Raw | UnsetType = UNSET
    bookmark_properties: Raw | UnsetType = UNSET
    value: Raw | UnsetType = UNSET


class Run(NamedTuple):
    """Neighbouring messages: the number of the first one's line, the messages, and the lines as they came."""

    first: int
    lines: list[Line]
    raw: list[bytes]


Say = Callable[[str, str, int], None]
"""Takes a breach: rule, message, line number."""

_decode = msgspec.json.Decoder(Line).decode
_LOG = re.compile(
    rb"\s*(?:\d{4}-\d\d-\d\d[ T]\d\d:\d\d|\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\b|time=|Traceback|  File \")",
    re.I,
)


def decode_block(whole: bytes, first: int, say: Say) -> Iterator[Run]:
    """Runs of neighbouring messages; what is no message goes to ``say``.

    Args:
        whole: complete lines, without the last line end.
    """
    lines = whole.split(b"\n")
    try:
        if not whole.isascii():
            whole.decode("utf-8")
        yield Run(first, list(map(_decode, lines)), lines)
        return
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    run = Run(first, [], [])
    for number, line in enumerate(lines, first):
        message = _one(number, line, say)
        if message is not None:
            run.lines.append(message)
            run.raw.append(line)
            continue
        if run.lines:
            yield run
        run = Run(number + 1, [], [])
    if run.lines:
        yield run


def _one(number: int, line: bytes, say: Say) -> Line | None:
    if not line.strip():
        return None
    try:
        line.decode("utf-8")
        return _decode(line)
    except UnicodeDecodeError as error:
        say("M201", f"a line is not UTF-8 ({error.reason} at byte {error.start + 1})", number)
        return None
    except msgspec.ValidationError as error:
        return _odd(number, line, str(error), say)
    except (msgspec.DecodeError, RecursionError) as error:
        return _no_json(number, line, str(error), say)


def _no_json(number: int, line: bytes, reason: str, say: Say) -> Line | None:
    """What the strict decoder refuses; Python's takes NaN, halves of surrogate pairs and numbers of any size."""
    found: list[str] = []

    def constant(word: str) -> float:
        found.append(word)
        return float("nan")

    try:
        wire = json.loads(line, parse_constant=constant)
    except (ValueError, RecursionError):
        if _LOG.match(line):
            say("M201", f"a line on stdout is no JSON; it looks like a log line: {_shown(line)}", number)
        else:
            say("M201", f"a line is no JSON ({reason}): {_shown(line)}", number)
        return None
    if found:
        say("M201", f"a line holds {found[0]}, which JSON does not know", number)
        return None
    say(
        "M219",
        "a line holds what many targets can't take (half of a surrogate pair, or a number beyond doubles)",
        number,
    )
    return _line_of(number, wire, say)


def _odd(number: int, line: bytes, reason: str, say: Say) -> Line | None:
    try:
        wire = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return _line_of(number, wire, say, reason)


def _line_of(number: int, wire: Any, say: Say, reason: str = "") -> Line | None:
    """A message that the typed decoder refused, as far as it can be used."""
    if not isinstance(wire, dict) or not isinstance(wire.get("type"), str):
        say("M202", "a line is JSON and no message: an object with a text 'type' was expected", number)
        return None
    if reason.startswith("Number out of range"):
        say("M219", "a line holds a number beyond doubles, which many targets can't take", number)
    elif reason:
        kind = wire["type"][:SHOWN]
        say("M202", f"a {kind} is not as it should be: {reason.replace('`', chr(39))}", number)
    kinds: dict[str, type | tuple[type, ...]] = {"stream": str, "record": dict, "time_extracted": str, "version": int}
    given: dict[str, Any] = {key: wire[key] for key, kind in kinds.items() if isinstance(wire.get(key), kind)}
    for key in ("schema", "key_properties", "bookmark_properties", "value"):
        if key in wire:
            given[key] = Raw(json.dumps(wire[key]).encode())
    return Line(wire["type"], **given)


def _shown(line: bytes) -> str:
    return repr(line[: 4 * SHOWN].decode("utf-8", "replace")[:SHOWN])


def value_of(raw: Raw | UnsetType) -> Any:
    """What stands in a part of a message; ``UNSET`` where there is none."""
    return raw if raw is UNSET else json.loads(bytes(raw))
