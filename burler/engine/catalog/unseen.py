"""The replication key of a parent that runs unseen, for its substreams alone: in the form that it would go out in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from burler.engine.catalog.plan import key_format
from burler.pipeline.shape import Shaper


class UnseenKey:
    """Takes the key of rows that are not shaped.

    Args:
        schema: of the whole row, from the catalog.
    """

    def __init__(self, stream: str, key: str, schema: Mapping[str, Any]) -> None:
        node = (schema.get("properties") or {}).get(key)
        self._key = key
        self.textual = key_format(schema, key)
        self._shaper: Shaper | None = None
        if isinstance(node, dict):
            alone = {"type": "object", "properties": {key: node}}
            self._shaper = Shaper(stream, alone, key=key, keys_required=False)

    def of(self, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The values of some rows; as they are, where they fit no schema."""
        values = [row.get(self._key) for row in rows]
        if self._shaper is None:
            return values
        fitted = self._shaper.fit([{self._key: value} for value in values])
        return fitted.keys if len(fitted.keys) == len(values) else values
