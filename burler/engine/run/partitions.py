"""Partitions: one call of the sync function for each dict that the author's partitions function gives, each with the
key of its entry in the state."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from burler.context import bind
from burler.declare.spec import StreamSpec
from burler.engine.family import Partition
from burler.engine.run.calls import Calls
from burler.engine.run.failures import Retries, is_retried
from burler.errors import BurlerError, MessageError, StreamError
from burler.log_settings import describe
from burler.logs import short
from burler.pages import copied


@dataclass(frozen=True, slots=True)
class GivenPartition:
    """The one partition of a run that is a part of another one (``engine/remote``), which knows the others, and says
    when full tables count.

    Attributes:
        versions: those that the rows of full tables carry.
    """

    partition: Partition
    versions: Mapping[str, int] = field(default_factory=dict)


class Partitions:
    """What the function of a stream is called for, one after the other; several threads may ask.

    Args:
        given: finds them.
        is_one: there is but one.

    Attributes:
        exhausted: the last one has been given.
    """

    def __init__(self, given: Iterator[Partition], *, is_one: bool = False) -> None:
        self._given, self._is_one = given, is_one
        self._lock = threading.Lock()
        self._over = self.exhausted = False

    @classmethod
    def one(cls, partition: Partition) -> Partitions:
        """A single one: of the stream as a whole, or of a run that is a part."""
        return cls(iter([partition]), is_one=True)

    def next(self) -> Partition | None:
        """The next one; None behind the last.

        Raises:
            StreamError: the partitions function failed, or gave something that is no partition.
        """
        with self._lock:
            if self._over:
                return None
            try:
                found = next(self._given, None)
            except BaseException:
                self._over = True
                raise
            self._over = self.exhausted = found is None or self._is_one
            return found


class PartitionsFunction:
    """Asks the author's function for one partition after the other; by one thread at a time."""

    def __init__(self, spec: StreamSpec, calls: Calls, retries: Retries) -> None:
        assert spec.partitions is not None
        self._spec, self._function, self._calls, self._retries = spec, spec.partitions, calls, retries
        self._name = spec.tap_stream_id

    def __iter__(self) -> Iterator[Partition]:
        """All of them.

        Raises:
            StreamError: the function failed, gave something that is no partition, or one twice.
        """
        run, tries = self._calls.whole, 0
        seen: set[str] = set()
        before: set[str] = set()  # of earlier tries
        items: Iterator[Any] | None = None
        while True:
            # In the context of whichever worker asks: what it may call is bound here, the worker binds its own task
            # next.
            bind(run)
            try:
                given, items = self._next(items)
            except StreamError as error:
                cause = error.__cause__
                if cause is None or not is_retried(self._spec, cause, tries):
                    raise
                tries += 1
                self._retries.begin(self._spec, "its partitions", cause, tries, self._calls.given(run))
                self._calls.of_partitions.begin()
                items, before = None, set(seen)
                continue
            if given is _NO_MORE:
                self._calls.of_partitions.end()
                return
            # Its own: the function may fill one dict again and again, and a sync function may change it.
            values = copied(given)
            key = self._key(values)
            if key not in seen:
                seen.add(key)
                yield Partition(values, key, len(seen) - 1)
            elif key not in before:
                raise self._wrong(f"gave the partition {key} twice; each has one bookmark.")

    def _next(self, items: Iterator[Any] | None) -> tuple[Any, Iterator[Any]]:
        """What the function gives next, and what gives the others; it is called where nothing does yet."""
        try:
            if items is None:
                given = self._calls.given(self._calls.whole)
                made = self._calls.session.invoke(self._function, given, stream=self._name)
                if isinstance(made, Mapping):
                    raise self._wrong("gave one dict; put it into a list, or yield it.")
                if made is None or isinstance(made, str | bytes) or not hasattr(made, "__iter__"):
                    raise self._wrong(f"gave {describe(made)}; yield dicts, or return a list of them.")
                items = iter(made)
            return next(items, _NO_MORE), items
        except BurlerError:
            raise
        except (Exception, SystemExit) as error:
            fact = f"stream '{self._name}': its partitions function ({self._function.place}) failed: {short(error)}"
            raise StreamError(self._name, fact) from error

    def _wrong(self, fact: str) -> StreamError:
        place = self._function.place
        return StreamError(self._name, f"stream '{self._name}': its partitions function ({place}) {fact}")

    def _key(self, partition: Any) -> str:
        if partition == {}:
            raise self._wrong("gave an empty dict; a partition says which it is, such as {'account': 'a'}.")
        if not isinstance(partition, dict):
            raise self._wrong(f"gave {describe(partition)}; a partition is a dict such as {{'account': 'a'}}.")
        key: Any
        named = self._spec.partition_key
        if callable(named):
            try:
                key = named(dict(partition))
            except Exception as error:
                raise self._wrong(f"has a key that failed: {short(error)}") from error
        elif named is not None and named not in partition:
            raise self._wrong(f"gave a partition without '{named}', its key; it has {', '.join(map(str, partition))}.")
        elif named is not None:
            key = partition.get(named)
            key = str(key) if isinstance(key, int) and not isinstance(key, bool) else key
        else:
            key = canonical(partition, self._wrong)
        if not isinstance(key, str) or not key:
            raise self._wrong(f"gave a partition whose key is {describe(key)}; a key is text.")
        return key


_NO_MORE: Any = object()
_SORTED = msgspec.json.Encoder(order="sorted")


def canonical(partition: Mapping[str, Any], wrong: Callable[[str], StreamError]) -> str:
    """A partition as canonical JSON, the key of its entry."""
    if all(type(name) is str and type(value) in (str, int) for name, value in partition.items()):
        with contextlib.suppress(ValueError, OverflowError):  # then what is wrong with it is said below
            return _SORTED.encode(partition).decode()
    from burler.lake.hashing import canonical_bytes

    try:
        return canonical_bytes(partition).decode()
    except (MessageError, TypeError, ValueError, RecursionError) as error:
        raise wrong(f"gave a partition that is no JSON: {error}") from None
