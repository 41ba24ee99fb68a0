"""Functions of the author's that are asked for each row on its way out: post_transform, and bookmark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from burler.context import call_bound
from burler.declare.spec import UserFunction
from burler.errors import BadRecordError, StreamError
from burler.logs import short
from burler.pipeline.describing import describe
from burler.pipeline.repeats import Repeats
from burler.pipeline.shape import ShapedPage, Shaper
from burler.pipeline.shape_lines import Output

if TYPE_CHECKING:
    from burler.call import Given
    from burler.engine.writer.outlet import Outlet


class Asking:
    """Belongs to one outlet.

    Args:
        fitter: makes the rows that a post_transform function is given; ``shaper`` shapes what comes of them.
        invoke: calls a function with what it asks for.
    """

    def __init__(
        self, outlet: Outlet, fitter: Shaper, shaper: Shaper, invoke: Callable[[UserFunction, Given], Any]
    ) -> None:
        self._outlet, self._fitter, self._shaper, self._invoke = outlet, fitter, shaper, invoke

    def transformed(
        self, rows: list[dict[str, Any]], given: Given, output: Output, repeats: Repeats | None
    ) -> tuple[ShapedPage, list[int]]:
        """A page through the author's post_transform function, and which rows of it were taken. What comes out
        is shaped once more, so that no hook can break the SCHEMA. Rows that are out already don't go through it."""
        fitted = self._fitter.fit(rows)
        known = None if repeats is None else self._outlet.comparing.fitted(repeats, fitted.rows)
        asked: Sequence[int] = range(len(fitted.rows))
        if known is not None and known.repeats:
            asked = without(asked, known.repeats)
        made: list[dict[str, Any]] = []
        origin: list[int] = []
        failed = self._each(
            "post_transform", [fitted.rows[i] for i in asked], given, lambda i, out: _keep(asked[i], out, made, origin)
        )
        taken = asked[failed[0]] if failed else len(fitted.rows)
        page = self._shaper.shape_to(made, output)
        self._outlet.left_out += (failed[0] if failed else len(asked)) - len(made)
        broken: StreamError | None = None
        if page.error is not None:
            taken = origin[page.taken]
            function = self._outlet.planned.spec.post_transform
            assert function is not None
            place = f"as its post_transform function ({function.place}) gave it"
            broken = BadRecordError(page.error.stream, f"{place}: {page.error}")
        error = broken or (failed[1] if failed else None) or fitted.error
        if repeats is not None and known is not None:
            out = {origin[i] for i in without(range(page.taken), page.skipped)}
            repeats.note(known, fitted.keys, out=out, taken=taken)
        return ShapedPage(page.count, fitted.keys.up_to(taken), error), fitted.origin[:taken]

    def bookmarks(self, rows: list[dict[str, Any]], given: Given) -> tuple[list[Any], StreamError | None]:
        """The values that the author's bookmark function gives, up to the row for which it fails."""
        keys: list[Any] = []
        failed = self._each("bookmark", rows, given, lambda _i, key: keys.append(key))
        return keys, failed[1] if failed else None

    def _each(
        self, what: str, rows: list[dict[str, Any]], given: Given, take: Callable[[int, Any], None]
    ) -> tuple[int, StreamError] | None:
        """Call a function for each row; the row and the error at which it stopped, if it did."""
        outlet = self._outlet
        function: UserFunction = getattr(outlet.planned.spec, what)

        def each() -> tuple[int, StreamError] | None:
            current: dict[str, Any] = {}
            asked = {**given, "record": lambda: current}
            for i, current in enumerate(rows):  # noqa: B007  the lambda reads it
                outlet.hook_since = time.monotonic()
                try:
                    take(i, self._invoke(function, asked))
                except (Exception, SystemExit) as error:
                    name = outlet.planned.tap_stream_id
                    failed = StreamError(
                        name, f"stream '{name}': its {what} function ({function.place}) failed: {short(error)}"
                    )
                    failed.__cause__ = error
                    return i, failed
                finally:
                    outlet.hook_since = None
            return None

        stopped: tuple[int, StreamError] | None = call_bound(given["stream"](), each)
        return stopped


def without(places: Iterable[int], left_out: Iterable[int]) -> list[int]:
    """The places that are not left out."""
    dropped = set(left_out)
    return [place for place in places if place not in dropped]


def _keep(i: int, out: Any, made: list[dict[str, Any]], origin: list[int]) -> None:
    """Take what a post_transform function gave: a row, or None, which leaves it out."""
    if isinstance(out, dict):
        made.append(out)
        origin.append(i)
    elif out is not None:
        raise TypeError(f"it gives the row back, or None to leave it out, not {describe(out)}")
