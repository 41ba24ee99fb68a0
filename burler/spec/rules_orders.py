"""The stream that the examples of the rules on bookmarks are about."""

from __future__ import annotations

ORDERS = (
    '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
    '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
    '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
)
"""Its SCHEMA: incremental by ``at``."""
