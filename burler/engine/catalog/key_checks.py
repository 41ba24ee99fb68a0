"""What options of time ask of the key, held against the schema before the first message (not mid-sync)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from burler.declare.spec import StreamSpec
from burler.errors import DeclarationError


def check_key(spec: StreamSpec, key: str | None, schema: Mapping[str, Any]) -> None:
    """Refuse a ``lookback`` or ``signpost`` that the key's type has no room for.

    Raises:
        DeclarationError: the schema says that the key is text, or a number where a time is needed.
    """
    kind = _kind(schema, key) if key is not None and spec.bookmark is None else None
    if kind is None:
        return
    where = f"stream '{spec.tap_stream_id}' ({spec.place})"
    if spec.lookback is not None and kind == "text":
        raise DeclarationError(f"{where}: lookback: the key '{key}' is text, and nothing is so much before a text.")
    if isinstance(spec.lookback, timedelta) and kind == "number":
        raise DeclarationError(
            f"{where}: lookback is a timedelta, but the key '{key}' is a number. Say it in its unit: lookback=100."
        )
    if spec.signpost and kind in ("text", "number"):
        raise DeclarationError(f"{where}: signpost asks for a date-time or date as key, and '{key}' is a {kind}.")


def _kind(schema: Mapping[str, Any], key: str) -> str | None:
    """What values of a key are: "time", "number", "text"; None where the schema leaves it open."""
    node = (schema.get("properties") or {}).get(key)
    if not isinstance(node, dict):
        return None
    types = node.get("type")
    listed = {types} if isinstance(types, str) else set(types or ())
    listed -= {"null"}
    if listed and listed <= {"integer", "number"}:
        return "number"
    if listed != {"string"}:
        return None
    said = node.get("format")
    if said in ("date-time", "date"):
        return "time"
    return "number" if said == "singer.decimal" else None if said else "text"
