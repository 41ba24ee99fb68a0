"""Fields that a stream's schema does not know: how many were dropped, and a schema that keeps them.

They were counted in ``pipeline/unknown``; fields that a user deselected never are.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import Any

import msgspec

from burler.config.secrets import mask, masked
from burler.events import DroppedField, Remarks
from burler.log_settings import log_settings
from burler.records.shape.unknown import FURTHER, show
from burler.words import counted

logger = logging.getLogger(__name__)

_SHOWN = 20  # fields with count and example
_LONGEST = 2000  # bytes of schema in a log line
_EXAMPLE, _PATH = 40, 100  # characters


def warn(stream: str, remarks: Remarks) -> None:
    """Two warnings: the fields, the most frequent first, with count (and example, where values are shown); and the
    schema, on one line, as JSON.

    A schema of over 2 kB is cut to its most frequent fields, and stands whole in a DEBUG line.
    """
    fields = remarks.dropped
    shown = [_line(field, remarks.rows) for field in fields[:_SHOWN]]
    if len(fields) > len(shown):
        shown.append(f"and {len(fields) - len(shown)} more")
    if remarks.further:
        shown.append(f"{FURTHER} ({remarks.further} times)")
    logger.warning("stream '%s': fields that its schema does not know were dropped: %s", stream, ", ".join(shown))
    text = _json(kept_schema(fields))
    if len(text) <= _LONGEST:
        logger.warning("stream '%s': merged into its schema, this keeps them (from samples): %s", stream, text)
        return
    logger.debug("stream '%s': merged into its schema, this keeps all of them (from samples): %s", stream, text)
    count, text = _beginning(fields)
    logger.warning(
        "stream '%s': merged into its schema, this keeps %d of the %d fields (from samples; BURLER_LOG_LEVEL=DEBUG "
        "shows all): %s",
        stream,
        count,
        len(fields),
        text,
    )


def kept_schema(fields: Iterable[DroppedField]) -> dict[str, Any]:
    """The part of a JSON Schema that would have kept the fields: it is to be merged into the stream's own.

    Made of samples of the values, so each field may be null::

        {"properties": {"address": {"properties": {"floor": {"type": ["null", "integer"]}}}}}
    """
    out: dict[str, Any] = {}
    # The short paths first: in a union a field may be unknown to one branch, and hold unknown fields in another.
    for field in sorted(fields, key=lambda one: len(one.path)):
        node = out
        for part in field.path:
            node = _into(node, part)
        node.update(field.schema)
    return out


def _into(node: dict[str, Any], part: str | None) -> dict[str, Any]:
    """The schema of a field or of the items, below another one that may have been there before."""
    types = node.get("type")
    wanted = "array" if part is None else "object"
    if isinstance(types, list) and wanted not in types:
        node["type"] = [*types, wanted]
    below: dict[str, Any]
    if part is None:
        below = node.setdefault("items", {})
    else:
        below = node.setdefault("properties", {}).setdefault(part, {})
    return below


def _beginning(fields: tuple[DroppedField, ...]) -> tuple[int, str]:
    """As many of the most frequent fields as a line has room for (one at least), and their schema."""
    count, text = 1, _json(kept_schema(fields[:1]))
    while len(more := _json(kept_schema(fields[: count + 1]))) <= _LONGEST:
        count, text = count + 1, more
    return count, text


def _line(field: DroppedField, rows: int) -> str:
    """``address.floor (12 of 40 rows, e.g. 3)``; below an array ``(12 times, ...)``."""
    if None in field.path:
        count = counted(field.count, "time")
    else:
        count = f"{field.count:,} of {counted(rows, 'row')}" if field.count <= rows else counted(field.count, "row")
    example = _example(field)
    return f"{_cut(show(field.path), _PATH)} ({count}{f', e.g. {example}' if example else ''})"


def _example(field: DroppedField) -> str:
    """The first example that says something, without secrets, in at most forty characters, where values are shown."""
    if not log_settings.values or not field.examples:
        return ""
    telling = [example for example in field.examples if example not in (None, "", [], {})]
    names = [part for part in field.path if part is not None]
    shown = mask((telling or field.examples)[0], names[-1] if names else "")
    return _cut(masked(json.dumps(shown, ensure_ascii=False, default=str)), _EXAMPLE)


def _cut(text: str, most: int) -> str:
    """Text from a source, safe in a log line: nothing that ends the line or moves the cursor, and not too long."""
    plain = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[: most + 1])
    return plain if len(plain) <= most else plain[: most - 3] + "..."


def _json(schema: dict[str, Any]) -> str:
    text = msgspec.json.encode(schema).decode()
    return text if text.isprintable() else json.dumps(schema, separators=(",", ":"))
