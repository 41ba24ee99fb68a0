"""A tap of a module."""

from __future__ import annotations

from typing import Any

import burler

tap = burler.tap("tap-pickled")


@tap.sync("rows", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
def rows() -> Any:
    return [{"id": 1}]
