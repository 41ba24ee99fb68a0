"""``@ensure_ordering("created_at", "ASC")``: the order in which a function's records come, as its author believes it.

    @burler.verify.ensure_ordering("created_at", "ASC")
    def contacts_page(client, page):
        return client.get("/contacts", params={"page": page}).json()["data"]

It works on any function that gives records: a list, pages, a generator of records or of pages. What the function gives
is handed on as it is, and looked at on its way: in a normal run, and outside of one, a record that comes against the
order raises; ``burler verify`` notes it instead and shows a map of where the order turns.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Literal, TypeVar, cast

from burler.context import running
from burler.errors import DeclarationError, OrderingError
from burler.spec.states import moment_of

Function = TypeVar("Function", bound=Callable[..., Any])
Note = Callable[[str, str, str, str, Mapping[str, Any] | None], None]
"""Stream, function, field and order; and two records that are in the other one, if that is what is noted."""
_notes: dict[int, Note] = {}
_ABSENT: Any = object()
_SHOWN = 60
_NUMBER = re.compile(r"-?\d{1,40}(?:\.\d{1,40})?", re.ASCII)


@contextlib.contextmanager
def noting_order(tap: Any, note: Note) -> Iterator[None]:
    """While this is entered, functions of a tap raise nothing: what they give is noted."""
    _notes[id(tap)] = note
    try:
        yield
    finally:
        del _notes[id(tap)]


def ensure_ordering(key: str, order: Literal["ASC", "DESC", "asc", "desc"] = "ASC") -> Callable[[Function], Function]:
    """Decorator: the records of each call rise (or fall) by a field; equal values may follow each other.

    Args:
        key: the field; ``address.since`` is one inside of an object.
        order: "ASC" or "DESC".

    Raises:
        DeclarationError: the order is neither; the function gives no records (a coroutine function, a class).
        OrderingError: (when records come) one comes against the order, is without the field, or holds what can't be
            compared with the one before it.
    """
    direction = order.upper() if isinstance(order, str) else order
    if direction not in ("ASC", "DESC"):
        raise DeclarationError(f"ensure_ordering({key!r}, {order!r}): the order is 'ASC' or 'DESC'.")
    if not isinstance(key, str) or not key:
        raise DeclarationError(f"ensure_ordering({key!r}): the name of a field was expected.")

    def decorate(function: Function) -> Function:
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function) or not callable(function):
            raise DeclarationError(f"ensure_ordering({key!r}): put it above a function that gives records.")
        place = _place(function)

        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generating(*given: Any, **named: Any) -> Iterator[Any]:
                yield from _Order(key, direction, place).through(function(*given, **named))

            return cast(Function, generating)

        @functools.wraps(function)
        def returning(*given: Any, **named: Any) -> Any:
            return _Order(key, direction, place).of(function(*given, **named))

        return cast(Function, returning)

    return decorate


class _Order:
    """The order of one call's records."""

    def __init__(self, key: str, order: str, place: str) -> None:
        self._key, self._order, self._place = key, order, place
        self._path = key.split(".")
        self._row = 0
        self._shown: Any = _ABSENT

    def of(self, given: Any) -> Any:
        """What a function has returned, looked at now, or while it is read."""
        if isinstance(given, Mapping):
            self._see(given)
            return given
        if isinstance(given, str | bytes | bytearray) or not isinstance(given, Iterable):
            return given
        if isinstance(given, Collection):
            for item in given:
                self._item(item)
            return given
        return self.through(given)

    def through(self, items: Iterable[Any]) -> Iterator[Any]:
        """Records or pages, handed on."""
        for item in items:
            if isinstance(item, Iterator):
                yield self.through(item)
                continue
            self._item(item)
            yield item

    def _item(self, item: Any) -> None:
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
            return  # rows of another stream
        if isinstance(item, Mapping):
            self._see(item)
        elif isinstance(item, list | tuple):
            for one in item:
                if isinstance(one, Mapping):
                    self._see(one)

    def _see(self, record: Mapping[str, Any]) -> None:
        self._row += 1
        if self._row == 1:
            self._begin()
        value: Any = record.get(self._key, _ABSENT)  # a name may have dots in it
        if value is _ABSENT and len(self._path) > 1:
            value = record
            for part in self._path:
                value = value.get(part, _ABSENT) if isinstance(value, Mapping) else _ABSENT
        if value is _ABSENT or value is None:
            word = "without the field" if value is _ABSENT else "with null in"
            self._against(f"record {self._row} comes {word} '{self._key}'", value)
            return
        if self._shown is not _ABSENT and not _keeps(self._shown, value, rising=self._order == "ASC"):
            self._against(
                f"record {self._row} has '{self._key}' {_cut(value)} after {_cut(self._shown)}, against {self._order}",
                value,
            )
        self._shown = value

    def _begin(self) -> None:
        run = running()
        note = _notes.get(id(run.tap)) if run is not None else None
        if run is not None and note is not None:
            note(run.name, self._place, self._key, self._order, None)

    def _against(self, fact: str, value: Any) -> None:
        run = running()
        stream = run.name if run is not None else ""
        before = None if self._shown is _ABSENT else self._shown
        shown = None if value is _ABSENT else value
        note = _notes.get(id(run.tap)) if run is not None else None
        if note is not None:
            flip = {"row": self._row, "before": before, "value": shown, "fact": fact}
            note(stream, self._place, self._key, self._order, flip)
            return
        where = f"stream '{stream}': " if stream else ""
        raise OrderingError(
            stream,
            f"{where}{self._place}: {fact}.\n  Sort the request, or declare the order that the source keeps.",
            key=self._key,
            order=self._order,
            before=before,
            value=shown,
            row=self._row,
        )


def _keeps(before: Any, value: Any, *, rising: bool) -> bool:
    """Whether a value may follow another. Texts that are both moments are compared as such, others as text or, where
    both are numbers, as numbers: sources sort either way, and only what is wrong both ways is wrong for sure."""
    pairs = [(before, value)]
    if isinstance(before, str) and isinstance(value, str):
        one, other = moment_of(before), moment_of(value)
        if one is not None and other is not None:
            pairs = [(one, other)]
        elif _NUMBER.fullmatch(before) and _NUMBER.fullmatch(value):
            pairs.append((Decimal(before), Decimal(value)))
    try:
        return any(bool(first <= second if rising else first >= second) for first, second in pairs)
    except (TypeError, ArithmeticError):
        return False


def _cut(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _place(function: Callable[..., Any]) -> str:
    from burler.call import short_path

    code = getattr(inspect.unwrap(function), "__code__", None)
    name = getattr(function, "__name__", "function")
    return name if code is None else f"{name} ({short_path(code.co_filename)}:{code.co_firstlineno})"
