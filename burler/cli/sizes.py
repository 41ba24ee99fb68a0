"""Sizes in options: ``67108864``, ``64MiB``, ``500 kB``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    IntType = click.ParamType[int]
else:
    IntType = click.ParamType  # older ones have no type argument

_SIZE = re.compile(r"([0-9][0-9_,]*(?:\.[0-9]+)?)\s*(b|bytes?|[kmgt]i?b)?", re.IGNORECASE)
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}
_FORM = "Write a number of bytes, or one with its unit: 67108864, 64MiB, 500kB."


class SizeType(IntType):
    """A number of bytes, at least 1. ``kB``, ``MB``, ``GB``, ``TB`` count by 1,000, ``KiB`` and its like by 1,024."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See the class."""
        found = _SIZE.fullmatch(str(value).strip())
        if found is None:
            self.fail(f"{value!r} is no size. {_FORM}", param, ctx)
        unit = (found[2] or "b").lower()
        base = 1024 if "i" in unit else 1000
        size = float(found[1].replace(",", "").replace("_", "")) * base ** _POWERS.get(unit[0], 0)
        if size < 1 or size >= 2**63:
            self.fail(f"{value!r} is no size that a file can have. {_FORM}", param, ctx)
        return int(size)
