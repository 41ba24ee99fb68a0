"""Pages that are no rows of Python: JSON in bytes, and Arrow. They become lines without becoming dicts, if they can."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from burler.errors import StreamError
from burler.pages import JsonPage, PageError
from burler.pipeline.repeats import Repeats
from burler.pipeline.shape import Shaper
from burler.pipeline.shape_exact import Exact
from burler.pipeline.shape_json import JsonDecoder
from burler.pipeline.unknown import Unknown
from burler.pipeline.yielded import rows_of
from burler.singer.bookmark_values import KeyValues

if TYPE_CHECKING:
    from burler.call import Given
    from burler.engine.writer.outlet import Outlet
    from burler.pipeline.arrow_direct import ArrowDirect
    from burler.pipeline.arrow_lines import ArrowShaper

Written = tuple[list[Any], StreamError | None]

_ALL = slice(None)
_PART_BYTES = 2 * 1024 * 1024  # lines that are made at once
_MOST_ROWS = 5000
_MOST_MISSES = 8


class OtherPages:
    """Writes such pages to an outlet.

    Args:
        write_rows: the way of dicts, for pages that can't go another one.
    """

    def __init__(
        self,
        outlet: Outlet,
        shaper: Shaper,
        write_rows: Callable[[list[dict[str, Any]], Given, Repeats | None], Written],
    ) -> None:
        self._outlet = outlet
        self._shaper = shaper
        self._write_rows = write_rows
        self._json: JsonDecoder | None = None
        self._arrow: ArrowShaper | None = None
        self._direct: ArrowDirect | None = None
        self._misses = 0  # pages in a row that could not go as columns
        self._scratch = Exact(shaper.strictly)

    def write(self, part: Any, given: Given, *, by_row: bool, repeats: Repeats | None = None) -> Written:
        """Write a page. The rows before one that does not fit are written, it and those after it are not.

        Args:
            by_row: the rows are wanted one by one: by a function of the author's, or up to a limit.
            repeats: rows that are out already do not go out again.
        """
        keys: list[list[Any]] = []
        steps = self._json_steps if isinstance(part, JsonPage) else self._arrow_steps
        for more, error in steps(part, given, by_row, repeats):
            keys.append(more)
            if error is not None:
                return KeyValues.joined(keys), error
        return keys[0] if len(keys) == 1 else KeyValues.joined(keys), None

    def _rows(self, page: Any, given: Given, repeats: Repeats | None, part: slice = _ALL) -> Iterator[Written]:
        """A page by the way of dicts. What stands before the place where it breaks goes out before the error."""
        error: StreamError | None = None
        try:
            rows = rows_of(page)
        except (PageError, RecursionError) as broken:
            rows = broken.rows if isinstance(broken, PageError) else []
            fact = broken if isinstance(broken, PageError) else "the page is nested too deep to be read"
            spec = self._outlet.planned.spec
            place = spec.sync.place if spec.sync is not None else spec.place
            error = StreamError(spec.tap_stream_id, f"stream '{spec.tap_stream_id}' ({place}): {fact}.")
        rows = rows[part]
        for first in range(0, len(rows), _MOST_ROWS):
            yield self._write_rows(rows[first : first + _MOST_ROWS], given, repeats)
        if error is not None:
            yield [], error

    def _json_steps(self, page: JsonPage, given: Given, by_row: bool, repeats: Repeats | None) -> Iterator[Written]:
        if page.records_path is None:
            page = JsonPage(page.data, self._outlet.planned.spec.records_path)
        if self._json is None:
            self._json = JsonDecoder(self._shaper.schema, self._shaper.rules)
        structs = None if by_row else self._json.decode(page)
        if structs is None or self._json.compiled is None:
            yield from self._rows(page, given, repeats)
            return
        step = max(1, min(_MOST_ROWS, _PART_BYTES * len(structs) // max(1, len(page.data))))
        moment = self._outlet.now()
        for first in range(0, len(structs), step):
            part = structs[first : first + step]
            with self._outlet.page(moment, repeats) as output:
                done, keys = self._shaper.write(self._json.compiled, part, None, output)
            if repeats is not None:
                repeats.page_ended(keys)
            yield keys, None
            if 0 < done < len(part):
                self._shaper.count(rows_of(page)[first : first + done])
            if done < len(part):  # and the rest too: the page is read once more, not once for each part of it
                yield from self._rows(page, given, repeats, slice(first + done, None))
                return

    def _arrow_steps(self, page: Any, given: Given, by_row: bool, repeats: Repeats | None) -> Iterator[Written]:
        from burler.pipeline.arrow_lines import ArrowShaper

        if self._outlet.form == "columns" and not by_row and repeats is None and self._misses < _MOST_MISSES:
            keys = self._as_columns(page)
            if keys is not None:
                yield keys, None
                return
        if self._arrow is None:
            form, rules = self._shaper.schema, self._shaper.rules
            self._arrow = ArrowShaper(form, self._scratch, key=self._shaper.key, rules=rules)
        moment = self._outlet.now()
        for batch in _batches(page):
            self._scratch.unknown = Unknown(onto=self._shaper.unknown)
            made = None
            if not by_row:
                with self._outlet.page(moment, repeats) as output:
                    with contextlib.suppress(RecursionError):  # nested too deep: the way of dicts says so
                        made = self._arrow.lines(batch, output.prefix, output.suffix)
                    if made is not None:
                        lines = bytes(made.data)  # a lake cuts and searches it
                        output.pass_on(lines, made.count)
            if made is None:
                yield from self._rows(batch, given, repeats)
                continue
            if self._scratch.unknown:
                self._shaper.unknown.merge(self._scratch.unknown)
            if repeats is not None:
                repeats.page_ended(made.keys)
            yield made.keys, None

    def _as_columns(self, page: Any) -> list[Any] | None:
        """Write a page as columns, without a text in between; its keys, or None where it must become lines."""
        from burler.pipeline.arrow_direct import ArrowDirect

        outlet, shaper = self._outlet, self._shaper
        if self._direct is None:
            self._direct = ArrowDirect(
                shaper.schema, outlet.files.columns(), self._scratch, key=shaper.key, rules=shaper.rules
            )
        self._scratch.unknown = Unknown(onto=shaper.unknown)
        made = None
        with contextlib.suppress(RecursionError):
            made = self._direct.batch(page)
        if made is None:
            self._misses += 1
            return None
        self._misses = 0
        if self._scratch.unknown:
            shaper.unknown.merge(self._scratch.unknown)
        outlet.files.write_columns(made.table)
        return made.keys


def _batches(page: Any) -> Iterator[Any]:
    """A table or a batch in batches of some megabyte."""
    rows = page.num_rows
    step = max(1, min(_MOST_ROWS, _PART_BYTES * rows // max(1, page.nbytes)))
    if hasattr(page, "to_batches"):
        yield from (batch for batch in page.to_batches(max_chunksize=step) if batch.num_rows)
        return
    for first in range(0, rows, step):
        yield page.slice(first, step)
