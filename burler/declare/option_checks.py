"""Values of a stream's options that need more than a look: how far to look back, exceptions, functions, counts."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from burler.call import place_of, wanted
from burler.declare.spec import UserFunction
from burler.errors import DeclarationError
from burler.numbers import is_count, is_measure

SETUP_PARAMETERS = ("client", "config", "stream", "error", "retry", "partition", "parent", "state")
ORDERS = ("asc", "none")
MOST_WORKERS = 1000  # each is a thread
MOST_RETRIES = 1_000_000
MOST_MS = 10**12  # as the settings of the same names take
MOST_SECONDS = 10**9


def lookback_of(given: Any, where: str) -> float | timedelta | None:
    """A timedelta or a number, 0 or more; 0 is no lookback.

    Raises:
        DeclarationError: below 0, not finite, or something else.
    """
    if isinstance(given, timedelta):
        if given < timedelta(0):
            raise DeclarationError(f"{where}: lookback {given!r:.60} is below 0; it is how far to go back.")
        return given or None
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise DeclarationError(
            f"{where}: lookback must be a timedelta or a number (seconds for date-times, days for dates, else units of "
            f"the key), not {given!r:.60}."
        )
    if given < 0 or not _finite(given):
        raise DeclarationError(f"{where}: lookback {given!r:.60} must be 0 or more, and finite; it goes back by it.")
    return given or None


def format_of(given: Any, where: str) -> str:
    """A form of ``strftime``.

    Raises:
        DeclarationError: no text, or one that says nothing of a time.
    """
    if not isinstance(given, str) or "%" not in given:
        raise DeclarationError(
            f"{where}: bookmark_format must be a form as strftime takes it, such as '%Y-%m-%dT%H:%M:%S.%3fZ', not "
            f"{given!r:.60}."
        )
    return given


def _finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number that no float holds
        return True


def exceptions_of(given: Any, where: str) -> tuple[type[BaseException], ...]:
    """An exception class, or several of them.

    Raises:
        DeclarationError: what is no class below Exception: a stop (KeyboardInterrupt, SystemExit) is never retried.
    """
    several = tuple(given) if isinstance(given, list | tuple) else (given,)
    for one in several:
        if isinstance(one, type) and issubclass(one, Exception):
            continue
        if isinstance(one, type) and issubclass(one, BaseException):
            raise DeclarationError(
                f"{where}: retry_sync_on can't be {one.__name__}: it stops a run. Name classes below Exception."
            )
        raise DeclarationError(
            f"{where}: retry_sync_on must be an exception class or a tuple of them, such as (TimeoutError, "
            f"ConnectionError), not {one!r:.60}."
        )
    if not several:
        raise DeclarationError(f"{where}: retry_sync_on names no exception. Name one, or leave it out.")
    return several


def count_of(name: str, given: Any, where: str) -> int:
    """``workers`` (1 or more) or ``max_retries`` (0 or more).

    Raises:
        DeclarationError: another number, or none.
    """
    least, most = (1, MOST_WORKERS) if name == "workers" else (0, MOST_RETRIES)
    if not is_count(given, least) or given > most:
        raise DeclarationError(f"{where}: {name} must be a whole number from {least} to {most:,}, not {given!r:.60}.")
    return given


def milliseconds_of(name: str, given: Any, where: str) -> int:
    """A wait in milliseconds, a whole number above 0.

    Raises:
        DeclarationError: another number, or none.
    """
    if not is_count(given, 1) or given >= MOST_MS:
        raise DeclarationError(
            f"{where}: {name} must be a whole number of milliseconds from 1 to {MOST_MS - 1:,}, such as 5000, not "
            f"{given!r:.60}."
        )
    return given


def seconds_of(name: str, given: Any, where: str) -> float:
    """A time in seconds, a number above 0.

    Raises:
        DeclarationError: another number, or none.
    """
    if not is_measure(given) or not 0 < given < MOST_SECONDS:
        raise DeclarationError(
            f"{where}: {name} must be a number of seconds above 0 and below {MOST_SECONDS:,}, such as 3600, not "
            f"{given!r:.60}."
        )
    return given


def setup_of(given: Any, where: str) -> UserFunction:
    """The function that is called before each retry.

    Raises:
        DeclarationError: no function, or parameters that nothing is given for.
    """
    if not callable(given) or isinstance(given, type):
        raise DeclarationError(
            f"{where}: setup_retry must be a function, such as def setup_retry(client, error, retry): ..., not "
            f"{given!r:.60}."
        )
    names = wanted(given, SETUP_PARAMETERS, what=f"{where}: its setup_retry function")
    return UserFunction(given, names, place_of(given))


def runs_at_once(function: UserFunction, what: str) -> UserFunction:
    """Refuse a generator where a function is called for what it does.

    Raises:
        DeclarationError: it is one.
    """
    if inspect.isgeneratorfunction(inspect.unwrap(function.fn)):
        raise DeclarationError(
            f"{what} ({function.place}) has a 'yield', so a call would run nothing of it. Leave out the yield."
        )
    return function


def runs_on(function: UserFunction, what: str) -> UserFunction:
    """Refuse what is no generator where each ``yield`` says something, and the function goes on behind it.

    Raises:
        DeclarationError: it is none.
    """
    fn = function.fn
    if not any(map(inspect.isgeneratorfunction, (fn, inspect.unwrap(fn), vars(type(fn)).get("__call__")))):
        raise DeclarationError(
            f"{what} ({function.place}) has no 'yield', so it would call nobody. Yield once when it is subscribed, "
            "and each time the stream should be polled."
        )
    return function


def overlap_of(given: Any, where: str) -> bool:
    """Whether a tail function is called before the sync function.

    Raises:
        DeclarationError: neither True nor False.
    """
    if not isinstance(given, bool):
        raise DeclarationError(f"{where}: overlap must be True or False, not {given!r:.60}.")
    return given


def partition_order_of(given: Any, where: str) -> str | None:
    """How partitions follow each other: "asc", "none", or None for nothing said.

    Raises:
        DeclarationError: another word.
    """
    if given is not None and given not in ORDERS:
        raise DeclarationError(f"{where}: order {given!r:.60} of partitions is unknown. Known: {', '.join(ORDERS)}.")
    order: str | None = given
    return order


def partition_key_of(given: Any, where: str) -> str | Callable[[dict[str, Any]], str] | None:
    """What names a partition in the state: a field of it, or a function of it that gives text.

    Raises:
        DeclarationError: something else, or a function that does not take one argument.
    """
    if given is None or (isinstance(given, str) and given):
        return given
    if not callable(given) or isinstance(given, type):
        raise DeclarationError(
            f"{where}: the key of a partition must be a field's name or a function of the partition, such as "
            f"lambda partition: partition['id'], not {given!r:.60}."
        )
    cure = f"{where}: the function that makes a partition's key ({place_of(given)})"
    if inspect.iscoroutinefunction(given) or inspect.isgeneratorfunction(given):
        raise DeclarationError(f"{cure} must be a plain function that returns text.")
    try:
        inspect.signature(given).bind({})
    except TypeError:
        raise DeclarationError(f"{cure} must take one argument, the partition.") from None
    except ValueError:
        pass  # made in C, as operator.itemgetter("id"); it shows at its first call
    key: Callable[[dict[str, Any]], str] = given
    return key
