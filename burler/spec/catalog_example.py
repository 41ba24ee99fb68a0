"""Small catalogs for the pages of rules: one correct stream, changed in one thing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_WIDTH = 90


def example(
    *,
    fields: Mapping[str, Any] | None = None,
    schema: Any = None,
    stream: Mapping[str, Any] | None = None,
    root: Mapping[str, Any] | None = None,
    field_metadata: Mapping[str, Any] | None = None,
    metadata: Sequence[Any] | None = None,
    without: Sequence[str] = (),
    others: Sequence[str] = (),
) -> str:
    """The text of a catalog with the stream ``users``, whose key is ``id``.

    Args:
        fields: further fields, or ``id`` anew; None takes one out.
        schema: in place of the one that the fields make.
        stream: further members of the entry.
        root: metadata of the stream.
        field_metadata: metadata by field's name, in place of the usual inclusion.
        metadata: further entries of the metadata.
        without: members of the entry to be left out.
        others: further streams, given by their names, which are their ids in lower case with a hyphen behind.
    """
    given = {"id": {"type": "integer"}, **(fields or {})}
    properties = {name: node for name, node in given.items() if node is not None}
    said = {name: {"inclusion": "automatic" if name == "id" else "available"} for name in properties}
    said.update(field_metadata or {})
    entries = [{"breadcrumb": ["properties", name], "metadata": values} for name, values in said.items() if values]
    entry: dict[str, Any] = {
        "tap_stream_id": "users",
        "stream": "users",
        "key_properties": ["id"],
        **(stream or {}),
        "schema": {"type": "object", "properties": properties} if schema is None else schema,
        "metadata": [*([{"breadcrumb": [], "metadata": root}] if root else []), *entries, *(metadata or [])],
    }
    kept = {key: value for key, value in entry.items() if key not in without}
    more = [{**kept, "tap_stream_id": f"{name.lower()}-", "stream": name} for name in others]
    return pretty({"streams": [kept, *more]})


def pretty(value: Any, indent: int = 0) -> str:
    """JSON with as much on a line as fits."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= _WIDTH or not isinstance(value, dict | list):
        return line
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key, ensure_ascii=False)}: {pretty(one, indent + 2)}" for key, one in value.items()]
    else:
        parts = [pretty(one, indent + 2) for one in value]
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    body = f",\n{inner}".join(parts)
    return f"{opening}\n{inner}{body}\n{' ' * indent}{closing}"
