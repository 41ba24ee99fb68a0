"""Pages of a tail are compared with what went out before: the outlet's side of ``pipeline/repeats``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from burler.pipeline.repeats import BadOnce, Page, Repeats
from burler.pipeline.shape import Shaper
from burler.pipeline.unknown import Unknown

if TYPE_CHECKING:
    from burler.engine.writer.outlet import Outlet

_encoder = msgspec.json.Encoder(decimal_format="number")


class Comparing:
    """Belongs to one outlet.

    Args:
        shapers: those of the outlet.
    """

    def __init__(self, outlet: Outlet, shapers: Sequence[Shaper]) -> None:
        self._outlet, self._shapers = outlet, shapers
        planned, key = outlet.planned, shapers[-1].key
        self._form = (planned.schema, planned.deselected, planned.key_properties, shapers[0].rules)
        self._textual = planned.key_format(key) if key is not None else None
        self._sorted = planned.order == "asc" and planned.spec.on_unsorted == "error"
        self._bad = [BadOnce(planned.stream, planned.key_properties, one.rules) for one in shapers]
        for one, bad in zip(shapers, self._bad, strict=True):
            one.bad = bad

    @contextlib.contextmanager
    def by(self, repeats: Repeats) -> Iterator[None]:
        """What is written meanwhile is compared with what is known. Where all of it was out already, nothing of it
        counts as unknown once more."""
        planned, outlet = self._outlet.planned, self._outlet
        repeats.serve(
            planned.tap_stream_id,
            self._form,
            key_properties=planned.key_properties,
            textual=self._textual,
            sorted_rows=self._sorted,
        )
        for bad in self._bad:
            bad.known = repeats.bad
        rows, repeated = outlet.rows, outlet.repeated
        before = [one.exact.unknown for one in self._shapers]
        for one, unknown in zip(self._shapers, before, strict=True):
            one.exact.unknown = Unknown(onto=unknown)
        try:
            yield
        finally:
            for bad in self._bad:
                bad.known = None
            for one, unknown in zip(self._shapers, before, strict=True):
                if outlet.rows > rows or outlet.repeated == repeated:
                    unknown.merge(one.exact.unknown)
                one.exact.unknown = unknown

    def fitted(self, repeats: Repeats, rows: list[dict[str, Any]]) -> Page | None:
        """Rows as a post_transform function would see them, with the repeats among them; None if that can't be told."""
        try:
            bodies = _encoder.encode_lines(rows).split(b"\n")[:-1]
        except (TypeError, ValueError, RecursionError):  # what JSON has no form for will be refused
            return None
        # NaN and null, bytes and text are one in JSON; to the function they are not.
        page = repeats.page(bodies, [repr(row).encode("utf-8", "backslashreplace") for row in rows])
        self._outlet.repeated += len(page.repeats)
        return page
