"""``stream.catch_up()``: a tail function with overlap hands on what its sync function gives (docs/tail.md)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from burler.declare.spec import UserFunction
from burler.errors import StreamError
from burler.pipeline.markers import CaughtUp

if TYPE_CHECKING:
    from burler.runtime.unit import Unit


class CatchingUp:
    """Of one call of a tail function.

    Args:
        first: the sync function that stands beside it, if there is one.
    """

    def __init__(self, unit: Unit, first: UserFunction | None) -> None:
        self._unit = unit
        self._first = first
        self._done = False

    def begin(self, stream: str) -> Iterator[Any]:
        """What the sync function of the root gives. Of a full table it is a whole version.

        Raises:
            StreamError: the function is not declared so, or has asked for it before.
        """
        root = self._unit.root
        if self._first is None or stream != root.name or not self._overlaps or self._done:
            raise StreamError(
                stream,
                f"stream '{stream}' ({root.place}): catch_up() is for a tail function that is declared with "
                "overlap=True beside a sync function, once in a call. Without overlap the sync function runs before.",
            )
        self._done = True
        return self._rows(self._first)

    @property
    def _overlaps(self) -> bool:
        line = self._unit.line
        return line.spec(line.root).overlap

    def _rows(self, first: UserFunction) -> Iterator[Any]:
        unit, root = self._unit, self._unit.root
        planned = unit.line.planned.get(root.name)
        whole = root.run.full_table() if planned is not None and planned.versions else contextlib.nullcontext()
        with whole:
            given = unit.engine.session.invoke(first, root.given, stream=root.name)
            if hasattr(given, "__next__"):
                yield from given
            elif given is not None:
                yield given
        root.run._call_ended()
        unit.put(CaughtUp(root.name))

    def again(self) -> None:
        """The call begins once more."""
        self._done = False

    def check(self) -> None:
        """Rows, or the end, of a tail function with overlap that has not asked for the batch: that would never come.

        Raises:
            StreamError: it is one.
        """
        if self._unit.pushes and not self._done and self._overlaps:
            root = self._unit.root
            raise StreamError(
                root.name,
                f"stream '{root.name}' ({root.place}): overlap=True, and its tail function has not called "
                "stream.catch_up(): the rows of its sync function would never come. Say yield from stream.catch_up(), "
                "once it is subscribed.",
            )
