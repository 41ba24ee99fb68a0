"""A format and a place for a table of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Format:
    """A format, a place for a table of it, and its options: ``open()`` is an export's view of the table."""

    kind: str
    place: str
    options: Mapping[str, str]
    folder: Path
    ask: Callable[[str], list[tuple]] | None = field(default=None, repr=False)

    def target(self, spark: Any = None, source: str = "tap-x/things") -> Any:
        from support.internals import opening

        return opening.open_target(self.kind, self.place, source=source, options=self.options, spark=lambda: spark)
