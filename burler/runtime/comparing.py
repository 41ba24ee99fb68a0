"""Pages of a tail are compared with what went out before: the outlet's side of ``pipeline/repeats``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from burler.pipeline.repeats import Repeats
from burler.pipeline.repeats_bad import BadOnce, Unheard
from burler.pipeline.repeats_page import Page
from burler.pipeline.repeats_top import bodies_at
from burler.pipeline.shape import ShapedPage, Shaper
from burler.pipeline.shape_lines import Output
from burler.pipeline.unknown import Unknown

if TYPE_CHECKING:
    from burler.runtime.outlet import Outlet

_encoder = msgspec.json.Encoder(decimal_format="number")


class Comparing:
    """Belongs to one outlet.

    Args:
        shapers: those of the outlet.
        make_shaper: makes another one.
    """

    def __init__(self, outlet: Outlet, shapers: Sequence[Shaper], make_shaper: Callable[[], Shaper]) -> None:
        self._outlet, self._shapers, self._make_shaper = outlet, shapers, make_shaper
        self._again: Shaper | None = None
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
        before = [one.exact.unknown for one in self._shapers] if repeats.holds or repeats.sifts else []
        for one, unknown in zip(self._shapers, before, strict=False):
            one.exact.unknown = Unknown(onto=unknown)
        try:
            yield
        finally:
            for bad in self._bad:
                bad.known = None
            for one, unknown in zip(self._shapers, before, strict=False):
                if outlet.rows > rows or outlet.repeated == repeated:
                    unknown.merge(one.exact.unknown)
                one.exact.unknown = unknown

    def came(
        self,
        repeats: Repeats,
        output: Output,
        keys: list[Any],
        count: int,
        again: Callable[[list[int]], Sequence[bytes]],
    ) -> None:
        """Take the repeats out of a page that was shaped, and note what is in it.

        Args:
            keys: the values of the replication key, one for each of its ``count`` lines.
            again: gives some of its rows as JSON, if they are out already.
        """
        if repeats.sifts:  # it has seen them
            return
        if repeats.holds:
            output.buffer[:], repeated = repeats.sift(output.buffer, output.prefix, output.suffix, keys)
            output.count -= repeated
            self._outlet.repeated += repeated
            return
        first = count - output.count  # those before it are out

        def bodies(places: list[int]) -> Sequence[bytes]:
            if places[0] < first:
                return again(places)
            return bodies_at(output.buffer, output, output.count, [place - first for place in places])

        repeats.passed(keys, count, bodies)

    def rows(self, repeats: Repeats, output: Output, page: ShapedPage, rows: list[dict[str, Any]]) -> None:
        """The same for rows that were shaped."""
        skipped = set(page.skipped)
        taken = [row for i, row in enumerate(rows[: page.taken]) if i not in skipped] if skipped else rows
        self.came(repeats, output, page.keys, page.count, lambda places: self._shape_again([taken[i] for i in places]))

    def _shape_again(self, rows: list[dict[str, Any]]) -> list[bytes]:
        """The JSON of rows that are out."""
        if self._again is None:
            self._again = self._make_shaper()
        planned = self._outlet.planned
        self._again.bad = Unheard(planned.stream, planned.key_properties, self._again.rules)
        self._again.exact.unknown = Unknown()
        made = bytearray()
        self._again.shape(rows, made, b"", b"\n")
        return bytes(made).split(b"\n")[:-1]

    def fitted(self, repeats: Repeats, rows: list[dict[str, Any]], keys: list[Any]) -> Page | None:
        """Rows as a post_transform function would see them, with the repeats among them; None if that can't be told."""
        try:
            bodies = _encoder.encode_lines(rows).split(b"\n")[:-1]
        except (TypeError, ValueError, RecursionError):  # what JSON has no form for will be refused
            return None
        # NaN and null, bytes and text are one in JSON; to the function they are not.
        page = repeats.page(bodies, keys, [repr(row).encode("utf-8", "backslashreplace") for row in rows])
        self._outlet.repeated += len(page.repeats)
        return page
