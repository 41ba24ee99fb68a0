"""Lines of any tap, decoded: a block at once in C where all of it is plain, else line by line, each with what is odd
about it. Nothing here raises: a line that is no message is a finding, and the next one counts again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from burler.singer.lines import OpenMessage

SHOWN = 80


class Line(OpenMessage, gc=False):
    """A message; of a RECORD its record is decoded, what else there is stays bytes."""

    record: dict[str, Any] | UnsetType = UNSET  # type: ignore[assignment]
    version: int | None = None


class Run(NamedTuple):
    """Neighbouring messages: the number of the first one's line, the messages, and the lines as they came."""

    first: int
    lines: list[Line]
    raw: list[bytes]


Say = Callable[[str, str, int], None]
"""Takes a breach: rule, message, line number."""

_decode = msgspec.json.Decoder(Line).decode
_decode_rows = msgspec.json.Decoder(dict[str, Any]).decode_lines
_LOG = re.compile(
    rb"\s*(?:\d{4}-\d\d-\d\d[ T]\d\d:\d\d|\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\b|time=|Traceback)", re.I
)
_MARK = b"\xef\xbb\xbf"


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
    said: list[tuple[str, str, int]] = []
    for number, line in enumerate(lines, first):
        message = _one(number, line, lambda *one: said.append(one))
        if message is None or said:  # what came before is looked at before this is told
            if run.lines:
                yield run
            run = Run(number if message is not None else number + 1, [], [])
            for one in said:
                say(*one)
            said.clear()
        if message is not None:
            run.lines.append(message)
            run.raw.append(line)
    if run.lines:
        yield run


def _one(number: int, line: bytes, say: Say) -> Line | None:
    if not line.strip():
        say("M201", "an empty line, which is no JSON: most targets end there", number)
        return None
    if line.startswith(_MARK):
        say("M201", "a line begins with a byte order mark, which JSON does not know", number)
        line = line.removeprefix(_MARK)
    try:
        line.decode("utf-8")
        return _decode(line)
    except UnicodeDecodeError as error:
        say("M201", f"a line is not UTF-8 ({error.reason} at byte {error.start + 1})", number)
        return None
    except (msgspec.DecodeError, RecursionError) as error:
        return _taken(number, line, error, say)


def _taken(number: int, line: bytes, refused: Exception, say: Say) -> Line | None:
    """What the typed decoder refuses; Python's takes NaN, halves of surrogate pairs and numbers of any size."""
    found: list[str] = []

    def constant(word: str) -> float:
        found.append(word)
        return float("nan")

    try:
        wire = json.loads(line.decode(), parse_constant=constant)
        if found:
            say("M201", f"a line holds {found[0]}, which JSON does not know", number)
            return None
        return _line_of(number, wire, refused, say)
    except RecursionError:
        say("M201", "a line is nested too deeply to be read", number)
    except json.JSONDecodeError as error:
        if _LOG.match(line):
            say("M201", f"a line on stdout is no JSON; it looks like a log line: {_shown(line)}", number)
        else:
            say("M201", f"a line is no JSON ({error.msg} at character {error.pos + 1}): {_shown(line)}", number)
    except ValueError:  # Python's limit for whole numbers
        say("M219", "a line holds a number of thousands of digits, which no target can take", number)
    return None


def _line_of(number: int, wire: Any, refused: Exception, say: Say) -> Line | None:
    """A message that the typed decoder refused, as far as it can be used."""
    if not isinstance(wire, dict) or not isinstance(wire.get("type"), str):
        say("M202", "a line is JSON and no message: an object with a text 'type' was expected", number)
        return None
    if isinstance(refused, RecursionError):
        raise refused
    if "out of range" in str(refused):
        say("M219", "a line holds a number beyond doubles, which many targets can't take", number)
    elif not isinstance(refused, msgspec.ValidationError):
        say("M219", "a line holds half of a surrogate pair, which most targets can't take", number)
    else:
        kind = wire["type"][:SHOWN]
        say("M202", f"a {kind} is not as it should be: {str(refused).replace('`', chr(39))}", number)
    wire = writable(wire)
    kinds: dict[str, type] = {"stream": str, "record": dict, "time_extracted": str, "version": int}
    given: dict[str, Any] = {key: wire[key] for key, kind in kinds.items() if isinstance(wire.get(key), kind)}
    if isinstance(given.get("version"), bool):
        del given["version"]
    for key in ("schema", "key_properties", "bookmark_properties", "value"):
        if key in wire:
            given[key] = Raw(json.dumps(wire[key]).encode())
    return Line(wire["type"], **given)


def writable(value: Any) -> Any:
    """A JSON value with "?" for each half of a surrogate pair, so that what is told of it can be written."""
    try:
        text = json.dumps(value, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        return json.loads(text.encode("utf-8", "replace"))
    except (TypeError, ValueError, RecursionError):  # no JSON, or too deep
        pass
    return value


def _shown(line: bytes) -> str:
    return repr(line[: 4 * SHOWN].decode("utf-8", "replace")[:SHOWN])


def value_of(raw: Raw | UnsetType) -> Any:
    """What stands in a part of a message; ``UNSET`` where there is none.

    Raises:
        ValueError: it can't be read: nested too deeply, or a number of thousands of digits.
    """
    if raw is UNSET:
        return raw
    try:
        return json.loads(bytes(raw))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def rows_of(lines: bytes) -> list[dict[str, Any]]:
    """Bare rows, as they stand in batch files."""
    try:
        return _decode_rows(lines)
    except (msgspec.DecodeError, RecursionError):  # half of a surrogate pair, as JSON allows it
        return [row for line in lines.split(b"\n") if line.strip() for row in _row(line)]


def _row(line: bytes) -> Iterator[dict[str, Any]]:
    try:
        yield json.loads(line)
    except (ValueError, RecursionError):
        return
