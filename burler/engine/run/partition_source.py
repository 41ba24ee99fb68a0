"""What the author's partitions function gives: dicts, each with the key of its entry in the state."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from burler.context import bind
from burler.engine.run.retries import is_retried, note, set_up
from burler.errors import BurlerError, MessageError, StreamError
from burler.logs import short
from burler.pipeline.describing import describe

if TYPE_CHECKING:
    from burler.engine.run.stream import SyncRun

_NO_MORE: Any = object()


class PartitionSource:
    """Asks the function for one partition after the other; by one thread at a time."""

    def __init__(self, sync: SyncRun) -> None:
        self._sync = sync
        self._spec = sync.spec
        self._name = sync.name
        self._iterator: Iterator[Any] | None = None
        self._seen: set[str] = set()
        self._seen_before: set[str] = set()  # the function was called anew
        self._retries = 0

    def next(self) -> tuple[dict[str, Any], str] | None:
        """The next partition and its key; None behind the last.

        Raises:
            StreamError: the function failed, gave something that is no partition, or one twice.
        """
        found = self._find()
        if found is not None:
            self._seen.add(found[1])
        return found

    def _find(self) -> tuple[dict[str, Any], str] | None:
        """The next partition and its key; None behind the last."""
        while True:
            try:
                given = self._next()
            except StreamError as error:
                self._set_up_retry(error)
                continue
            if given is _NO_MORE:
                self._sync.own_run._call_ended()
                self._sync.failures.of_partitions(self._sync.own_run._incomplete)
                return None
            # Its own: the function may fill one dict again and again, and a sync function may change it.
            partition = copy.deepcopy(given)
            key = self._key(partition)
            if key not in self._seen:
                return partition, key
            if key not in self._seen_before:
                raise self._wrong(f"gave the partition {key} twice; each has one bookmark.")

    def _set_up_retry(self, error: StreamError) -> None:
        """The partitions function failed: once more, and what it gave before is passed over."""
        cause = error.__cause__
        if cause is None or not is_retried(self._spec, cause, self._retries):
            raise error
        self._retries += 1
        note(self._spec, "its partitions", cause, self._retries, self._sync.retried)
        set_up(self._sync.engine.session, self._spec, self._sync.own_given, cause, self._retries)
        self._iterator = None
        self._sync.own_run._call_begins()
        self._seen_before = set(self._seen)

    def _next(self) -> Any:
        function = self._spec.partitions
        assert function is not None
        # In the context of whichever worker asks: what it may call is bound here, the worker binds its own task next.
        bind(self._sync.own_run)
        try:
            if self._iterator is None:
                made = self._sync.engine.session.invoke(function, self._sync.own_given, stream=self._name)
                if isinstance(made, Mapping):
                    raise self._wrong("gave one dict; put it into a list, or yield it.")
                if made is None or isinstance(made, str | bytes) or not hasattr(made, "__iter__"):
                    raise self._wrong(f"gave {describe(made)}; yield dicts, or return a list of them.")
                self._iterator = iter(made)
            return next(self._iterator, _NO_MORE)
        except BurlerError:
            raise
        except (Exception, SystemExit) as error:
            raise StreamError(
                self._name, f"stream '{self._name}': its partitions function ({function.place}) failed: {short(error)}"
            ) from error

    def _wrong(self, fact: str) -> StreamError:
        function = self._spec.partitions
        place = function.place if function is not None else self._spec.place
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


def canonical(partition: Mapping[str, Any], wrong: Any) -> str:
    """A partition as canonical JSON, the key of its entry."""
    from burler.lake.canonical import canonical_bytes

    try:
        return canonical_bytes(partition).decode()
    except (MessageError, TypeError, ValueError, RecursionError) as error:
        raise wrong(f"gave a partition that is no JSON: {error}") from None
