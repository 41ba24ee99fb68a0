"""Streams that are synced in one run: a sync function, and the functions of its substreams, one generator.

For each row of a parent its children's functions run, depth first, and what they yield stands right behind the row. So
a bookmark that has reached a row says that what belongs to all rows before it is out (specs 11.8), and reading on from
that row, inclusive, brings its children again.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy
import logging
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

from burler.context import StreamRun, bind
from burler.declare.spec import UserFunction
from burler.errors import BurlerError, StreamError
from burler.pipeline.pages import PageError, as_page
from burler.pipeline.pages import rows_of as rows_of_page
from burler.pipeline.pull import describe
from burler.runtime.logs import short

logger = logging.getLogger(__name__)

Given = dict[str, Callable[[], Any]]


class Member:
    """One stream of a run that has a function of its own: its ``stream`` object, its context, its children.

    ``names`` are the streams whose rows its function may yield: its own, and those that it emits. None: any.
    """

    def __init__(
        self,
        name: str,
        function: UserFunction,
        run: StreamRun,
        given: Given,
        *,
        names: frozenset[str] | None = None,
        records_paths: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.name = name
        self.records_paths = records_paths or {}
        self.function = function
        self.run = run
        self.given = given
        self.names = names
        self.children: dict[str, list[Member]] = {}
        self.context = contextvars.copy_context()
        self.context.run(bind, run)

    @property
    def place(self) -> str:
        """file:line of its function."""
        return self.function.place


def rows_of(root: Member, call: Callable[[Member, Any], Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """``(stream, row)`` of the root and all its descendants. ``call`` calls a member's function for a parent's row.

    It runs in the root's own context, so the root's function is advanced directly, those below in theirs.
    """
    yield from _walk(root, root, None, call, lambda step, *args: step(*args))


def _walk(
    root: Member, member: Member, parent: Any, call: Callable[[Member, Any], Any], run: Callable[..., Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    # Closed by name: left to the collector, an error of theirs would go nowhere.
    with contextlib.closing(_rows(member, parent, call, run, top=member is root)) as rows:
        for name, row in rows:
            yield name, row
            for child in member.children.get(name, ()):
                yield from _walk(root, child, _copy(row), call, child.context.run)


def _copy(row: Mapping[str, Any]) -> Any:
    """A child's own copy of its parent's row: a function that changes it would change what goes out."""
    if type(row) is not dict or any(isinstance(value, dict | list) for value in row.values()):
        return copy.deepcopy(row)
    return dict(row)


def _rows(
    member: Member, parent: Any, call: Callable[[Member, Any], Any], run: Callable[..., Any], *, top: bool
) -> Generator[tuple[str, Mapping[str, Any]], None, None]:
    """What one call of a function gives, row by row. Its generators are closed with ours, innermost first."""
    stack: list[tuple[str, Iterator[Any]]] = []
    try:
        item = run(call, member, parent)
        name = member.name
        while True:
            if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
                name, item = item
                if member.names is not None and name not in member.names:
                    raise _not_emitted(name, member)
            if isinstance(item, Mapping):
                yield name, item
            elif item is not None or stack:
                page = as_page(item)
                # Each row may be a parent, so a page of another kind becomes rows here.
                item = item if page is None else _page_rows(page, name, member)
                stack.append((name, _iterator(item, member, run)))
            while stack:
                name, iterator = stack[-1]
                try:
                    item = run(next, iterator)
                    break
                except StopIteration:
                    stack.pop()
            else:
                return
    except (Exception, SystemExit) as error:
        if top or isinstance(error, BurlerError):
            raise
        raise StreamError(
            member.name, f"stream '{member.name}' ({member.place}), called for a row of its parent: {short(error)}"
        ) from error
    finally:
        with contextlib.ExitStack() as closing:  # the last one first, and one that raises keeps no other open
            for _name, iterator in stack:
                closing.callback(_close, iterator, member, run)


def _page_rows(page: Any, name: str, member: Member) -> Iterator[dict[str, Any]]:
    """The rows of a page; those before the place where it breaks come before the error."""
    try:
        yield from rows_of_page(page, member.records_paths.get(name, ()))
    except PageError as error:
        yield from error.rows
        raise StreamError(member.name, f"stream '{member.name}' ({member.place}): {error}.") from None


def _close(iterator: Iterator[Any], member: Member, run: Callable[..., Any]) -> None:
    """End an iterator in its function's context. What it raises must not take the place of the error that ends it."""
    close = getattr(iterator, "close", None)
    try:
        if close is not None:
            run(close)
    except (Exception, SystemExit) as error:
        logger.warning("stream '%s': its function raised when it was closed: %s", member.name, short(error))


def _not_emitted(name: str, member: Member) -> StreamError:
    return StreamError(
        member.name,
        f"stream '{member.name}' ({member.place}): yielded rows of '{name}', which it does not emit. "
        f"Declare it: tap.stream({name!r}, emitted_by={member.name!r}, ...)",
    )


def _iterator(item: Any, member: Member, run: Callable[..., Any]) -> Iterator[Any]:
    if item is None or isinstance(item, str) or not hasattr(item, "__iter__"):
        raise StreamError(
            member.name,
            f"stream '{member.name}' ({member.place}): yielded {describe(item)}; "
            "yield rows (dicts), lists or iterators of rows, bytes of JSON, Arrow tables, or (stream, rows).",
        )
    made: Iterator[Any] = run(iter, item)
    return made
