"""Streams that are synced in one run: a sync function, and the functions of its substreams, one generator.

Rows of a parent are read ahead, a lot of them (bounded by count, size and time), and go out; then the functions of its
substreams are called for each of them, in order. Behind the lot stands a marker: only then may the parent's bookmark
pass it, so reading on from there, inclusive, brings what is missing again.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy
import datetime as dt
import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

from burler.context import StreamRun, bind
from burler.declare.spec import UserFunction
from burler.errors import StreamError
from burler.pages import PageError, as_page
from burler.pipeline.describing import describe
from burler.pipeline.markers import Asked, CallFailed, CallIncomplete, Marker, Released, Skipped, Snapshot
from burler.pipeline.yielded import rows_of as rows_of_page
from burler.pipeline.yielded import size_of_row, tell_giver
from burler.runtime.came import Came
from burler.runtime.logs import short
from burler.runtime.signals import Stop

logger = logging.getLogger(__name__)

Given = dict[str, Callable[[], Any]]
Row = Mapping[str, Any]
Rows = Iterator[tuple[str, Row]]
Asking = tuple[str, Row, dict[str, Any]]

_UNCHANGING = frozenset((str, int, float, bool, type(None), bytes, Decimal, dt.datetime, dt.date, UUID))
_LOT_BYTES = 2 * 1024 * 1024  # of rows that are read ahead


class Member:
    """One stream of a run that has a function of its own: its ``stream`` object, its context, its children.

    ``names`` are the streams whose rows its function may yield: its own, and those that it emits.
    """

    __slots__ = ("children", "context", "function", "given", "name", "names", "records_paths", "run")

    def __init__(
        self,
        name: str,
        function: UserFunction,
        run: StreamRun,
        given: Given,
        *,
        names: frozenset[str],
        records_paths: Mapping[str, tuple[str, ...]],
    ) -> None:
        self.name = name
        self.records_paths = records_paths
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


@dataclass(slots=True)
class Walk:
    """How a family is walked.

    ``call`` calls a member's function for a parent's row. ``put`` takes markers. ``snapshot`` gives each
    ``stream.state`` as JSON. ``retry`` says whether a call that failed is made once more (and prepares it). ``where``
    names a parent's row. ``fatal``: errors that end the run. ``closed``: substreams that have ended; ``skipped``: those
    of them that were passed over here. ``most_rows``, ``most_seconds``: of reading ahead. ``children``: members that
    are called for rows of a stream. ``emitted``: rows that were emitted by name since the last look, by whose function
    did it, for whose children nobody has been called yet; ``emitting`` is held by who looks or emits. ``watched``: what
    came of substreams so far. ``asks``: streams whose bookmark function asks for ``children``; ``keys``: the
    replication keys of substreams, with what the schema says of their text.
    """

    call: Callable[[Member, Any], Any]
    put: Callable[[Marker], None]
    snapshot: Callable[[], Snapshot]
    retry: Callable[[Member, Exception, int, Any], bool]
    where: Callable[[str, Row], str]
    fatal: tuple[type[BaseException], ...]
    closed: set[str]
    most_rows: int
    most_seconds: float
    children: Mapping[str, list[Member]]
    emitted: dict[str, list[tuple[str, Row]]]
    emitting: AbstractContextManager[Any]
    watched: list[dict[str, Any]]
    skipped: set[str] = field(default_factory=set)
    asks: set[str] = field(default_factory=set)
    keys: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)


def rows_of(root: Member, walk: Walk) -> Rows:
    """``(stream, row)`` of the root and all its descendants.

    It runs in the root's own context, so the root's function is advanced directly, those below in theirs.
    """
    yield from _walk(walk, root, None, {}, lambda step, *args: step(*args))


def _walk(walk: Walk, member: Member, parent: Any, above: Mapping[str, Row], run: Callable[..., Any]) -> Rows:
    top = not above
    if not member.children:
        with contextlib.closing(_rows(member, parent, run, walk.call)) as rows:
            yield from rows
        return
    # Closed by name: left to the collector, an error of theirs would go nowhere.
    with contextlib.closing(_rows(member, parent, run, walk.call)) as rows:
        ended = False
        while not ended:
            lot: deque[tuple[str, Row]] = deque()
            error: BaseException | None = None
            size, begun = 0, time.monotonic()
            while True:
                try:
                    pair = next(rows)
                except StopIteration:
                    ended = True
                    break
                except (Exception, SystemExit) as failed:  # what was read ahead gets its children all the same
                    error = failed
                    break
                yield pair
                if walk.emitted or pair[0] in walk.children:
                    _take_emitted(walk, member, lot)
                    if pair[0] in walk.children:
                        lot.append(pair)
                        size += size_of_row(pair[1])
                    much = len(lot) >= walk.most_rows or size >= _LOT_BYTES
                    if much or time.monotonic() - begun >= walk.most_seconds:
                        break
            asked = yield from _children_of(walk, member, lot, above)
            states = walk.snapshot() if top else None
            while not _close_lot(walk, member, asked, states):
                _take_emitted(walk, member, lot, all_of_them=top)
                asked += yield from _children_of(walk, member, lot, above)
            if error is not None:
                raise error


def _take_emitted(walk: Walk, member: Member, lot: deque[tuple[str, Row]], *, all_of_them: bool = False) -> None:
    """Rows that the member's function has emitted by name are parents, too. ``all_of_them``: also those that a thread
    of a call has emitted behind its end."""
    with walk.emitting:
        for name in list(walk.emitted) if all_of_them else [member.name]:
            lot.extend(walk.emitted.pop(name, ()))


def _close_lot(walk: Walk, member: Member, asked: list[Asking], states: Snapshot | None) -> bool:
    """Put the marker behind a lot; False if rows were emitted meanwhile. No thread of the author's comes between."""
    with walk.emitting:
        if walk.emitted.get(member.name) or (states is not None and any(walk.emitted.values())):
            return False
        if states is not None:
            walk.put(Released(states, asked))
        elif asked:
            walk.put(Asked(asked))
        return True


def _children_of(
    walk: Walk, member: Member, lot: deque[tuple[str, Row]], above: Mapping[str, Row]
) -> Generator[tuple[str, Row], None, list[Asking]]:
    """What belongs to the rows that were read ahead; gives what bookmark functions ask for."""
    asked: list[Asking] = []
    while lot:
        name, row = lot.popleft()
        came: dict[str, Came] = {}
        if name in walk.asks:
            came = {child.name: Came(*walk.keys.get(child.name, (None, None))) for child in walk.children[name]}
        walk.watched.append(came)
        for child in walk.children[name]:
            if child.name in walk.closed:
                if child.name not in walk.skipped:
                    walk.skipped.add(child.name)
                    walk.put(Skipped(child.name))
                continue
            for pair in _call(walk, child, row, {name: row, **above}):
                if pair[0] in came:
                    came[pair[0]].count_row(pair[1])
                yield pair
        walk.watched.pop()
        for child_name, one in came.items():
            if one.is_mixed:
                error = StreamError(child_name, f"stream '{child_name}': '{one.key}' has values of two kinds")
                walk.put(CallFailed(child_name, walk.where(name, row), error, {name: row, **above}))
        if came:
            asked.append((name, row, {child_name: one.done() for child_name, one in came.items()}))
        _take_emitted(walk, member, lot)
    return asked


def _call(walk: Walk, child: Member, row: Row, above: Mapping[str, Row]) -> Rows:
    """A substream's function for one row of its parent. If it fails, that is noted, and the others go on."""
    tries = 0
    while True:
        parent = _copy(row)
        try:
            yield from _walk(walk, child, parent, above, child.context.run)
            child.context.run(child.run._call_ended)
            if child.run._incomplete:
                walk.put(CallIncomplete(child.name, child.run._incomplete, above))
            return
        except (Stop, KeyboardInterrupt, GeneratorExit):
            raise
        except walk.fatal:
            raise
        except BaseException as error:  # sys.exit() and the like are the call's own, too
            tries += 1
            failed: BaseException = error
            try:
                if isinstance(error, Exception) and walk.retry(child, error, tries, _copy(row)):
                    continue
            except StreamError as setup_failed:
                failed = setup_failed
            walk.put(CallFailed(child.name, walk.where(next(iter(above)), row), failed, above))
            return


def _copy(value: Any) -> Any:
    """A child's own copy of its parent's row: a function that changes it would change what goes out."""
    kind = type(value)
    if kind is dict:
        return {key: _copy(inner) for key, inner in value.items()}
    if kind is list:
        return [_copy(inner) for inner in value]
    return value if kind in _UNCHANGING else copy.deepcopy(value)


def _rows(
    member: Member, parent: Any, run: Callable[..., Any], call: Callable[[Member, Any], Any]
) -> Generator[tuple[str, Row], None, None]:
    """What one call of a function gives, row by row. Its generators are closed with ours, innermost first."""
    stack: list[tuple[str, Iterator[Any]]] = []
    try:
        item = run(call, member, parent)
        name = member.name
        while True:
            if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
                name, item = item
                if name not in member.names:
                    raise not_emitted(name, member)
            if isinstance(item, Mapping):
                yield name, item
            elif item is not None or stack:
                page = as_page(item)
                if page is not None and stack:
                    tell_giver(stack[-1][1], item)
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


def not_emitted(name: str, member: Member) -> StreamError:
    """The error for rows of a stream that a function does not emit, with the cure."""
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
