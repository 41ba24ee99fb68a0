"""A store that goes wrong on demand: what real stores do to a writer, one call at a time.

    store = FaultyStore(in_memory())
    store.fail("replace", LOST_REPLY, path="*/manifest.json")       # the next one of these calls
    store.fail("create", CONFLICT_FOR_NOTHING, nth=2, times=3)      # the second to fourth call from now on
    store.fail("read", StorageError("the disk is gone"))            # any error of one's own
    store.torn_listing(lambda path: path.endswith("-2.singer.gz"))  # listings lack it from now on
    store.before_call = lambda call: schedule.step(call)            # for stepping: runs before every call

``calls`` has every call in order, also those that failed; ``store.inner`` is what really is there.
A fault is used up by the calls it hits; ``unused()`` tells a test whether what it asked for has happened.
"""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from burler.errors import StorageError
from burler.lake import Store, StoredFile
from support.internals import lake_store

CONFLICT_FOR_NOTHING = "conflict for nothing"
"""Nothing was written and nobody else wrote: Conflict (``create``, ``publish``: OutcomeUnknown). What a 409 is, told to
the caller."""
LOST_REQUEST = "lost request"
"""Nothing was written: OutcomeUnknown."""
LOST_REPLY = "lost reply"
"""It was written: OutcomeUnknown."""
LATE = "late"
"""OutcomeUnknown, and the request arrives after the next call of this store to the same path (if its condition still
holds then)."""
REFUSED_AFTER_SUCCESS = "refused after success"
"""It was written, and a retry inside the library was told 412: Conflict, or FileExistsError."""

FAULTS = (CONFLICT_FOR_NOTHING, LOST_REQUEST, LOST_REPLY, LATE, REFUSED_AFTER_SUCCESS)
WRITES = ("create", "replace", "delete", "publish")


@dataclass(frozen=True)
class Call:
    """One call: ``operation`` is the method's name, or "publish" or "write" of a new file."""

    operation: str
    path: str


@dataclass
class _Fault:
    operation: str
    path: str
    what: str | BaseException
    wait: int
    left: int

    def hits(self, call: Call) -> bool:
        if self.left == 0 or self.operation not in (call.operation, "*") or not fnmatch.fnmatch(call.path, self.path):
            return False
        if self.wait:
            self.wait -= 1
            return False
        self.left -= 1
        return True


class FaultyStore:
    """See the module. Several of them may stand around one ``inner``: one for each writer."""

    def __init__(self, inner: Store, *, conditional: bool | None = None, holds: bool = True) -> None:
        self.inner = inner
        self.calls: list[Call] = []
        self.before_call: Callable[[Call], None] = lambda call: None
        self.after_call: Callable[[Call], None] = lambda call: None
        self._faults: list[_Fault] = []
        self._late: list[tuple[str, Callable[[], Any]]] = []
        self._torn: Callable[[str], bool] = lambda path: False
        self._conditional, self._holds = conditional, holds

    def fail(self, operation: str, what: str | BaseException, *, path: str = "*", nth: int = 1, times: int = 1) -> None:
        """Let calls fail: ``times`` of them (-1: all), from the ``nth`` from now on.

        Args:
            operation: the name of a method, "publish", "write", or "*".
            what: one of ``FAULTS`` (writes only), or an error to raise before anything happens.
            path: a pattern, as of ``fnmatch``.
        """
        if isinstance(what, str) and (what not in FAULTS or operation not in WRITES):
            raise ValueError(f"{operation}: {what}")
        self._faults.append(_Fault(operation, path, what, nth - 1, times))

    def torn_listing(self, without: Callable[[str], bool]) -> None:
        """From now on ``walk`` and ``files`` leave out paths (an old listing)."""
        self._torn = without

    def unused(self) -> list[str]:
        """Faults that hit no call, or fewer than asked for."""
        return [f"{fault.operation} {fault.path}: {fault.what}" for fault in self._faults if fault.left > 0]

    def deliver(self) -> None:
        """Let late requests arrive now."""
        late, self._late = self._late, []
        for _, act in late:
            _tried(act)

    @property
    def url(self) -> str:
        return self.inner.url

    @property
    def conditional(self) -> bool:
        return self.inner.conditional if self._conditional is None else self._conditional

    def __repr__(self) -> str:
        return f"FaultyStore({self.inner!r})"

    def read(self, path: str, /) -> lake_store.Blob | None:
        return self._call("read", path, lambda: self.inner.read(path))

    def create(self, path: str, data: bytes, /) -> str:
        return self._call("create", path, lambda: self.inner.create(path, data))

    def replace(self, path: str, data: bytes, /, *, tag: str) -> str:
        return self._call("replace", path, lambda: self.inner.replace(path, data, tag=tag))

    def delete(self, path: str, /, *, tag: str) -> None:
        return self._call("delete", path, lambda: self.inner.delete(path, tag=tag))

    def remove(self, path: str, /) -> None:
        return self._call("remove", path, lambda: self.inner.remove(path))

    def files(self, folder: str, /, *, hidden: bool = False) -> Iterator[StoredFile]:
        found = self._call("files", folder, lambda: list(self.inner.files(folder, hidden=hidden)))
        return (file for file in found if not self._torn(file.path))

    def folders(self, folder: str, /) -> list[str]:
        return self._call("folders", folder, lambda: self.inner.folders(folder))

    def new_file(self, folder: str, /) -> lake_store.NewFile:
        return _NewFaultyFile(self, folder, self._call("new_file", folder, lambda: self.inner.new_file(folder)))

    def open(self, path: str, /) -> BinaryIO:
        return self._call("open", path, lambda: self.inner.open(path))

    def locate(self, path: str, /) -> str:
        return self.inner.locate(path)

    def hold(self, path: str, /) -> lake_store.Hold | None:
        return self._call("hold", path, lambda: self.inner.hold(path) if self._holds else None)

    def _call(self, operation: str, path: str, act: Callable[[], Any]) -> Any:
        call = Call(operation, path)
        self.before_call(call)
        self.calls.append(call)
        fault = next((fault for fault in self._faults if fault.hits(call)), None)
        try:
            return act() if fault is None else self._go_wrong(call, fault.what, act)
        finally:
            if fault is None or fault.what != LATE:
                self._arrive(path)
            self.after_call(call)

    def _go_wrong(self, call: Call, what: str | BaseException, act: Callable[[], Any]) -> Any:
        place, exclusive = self.inner.locate(call.path), call.operation in ("create", "publish")
        if isinstance(what, BaseException):
            raise what
        if what == LATE:
            self._late.append((call.path, act))
        elif what in (LOST_REPLY, REFUSED_AFTER_SUCCESS):
            act()
        if what == REFUSED_AFTER_SUCCESS:
            raise FileExistsError(place) if exclusive else lake_store.Conflict(place)
        if what == CONFLICT_FOR_NOTHING and not exclusive:
            raise lake_store.Conflict(place)
        raise lake_store.OutcomeUnknown(f"{place}: {what}, says the test.")

    def _arrive(self, path: str) -> None:
        late = [act for where, act in self._late if where == path]
        self._late = [(where, act) for where, act in self._late if where != path]
        for act in late:
            _tried(act)


class _NewFaultyFile:
    def __init__(self, store: FaultyStore, folder: str, inner: lake_store.NewFile) -> None:
        self._store, self._folder, self._inner = store, folder, inner

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        self._store._call("write", self._folder, lambda: self._inner.write(data))

    def publish(self, path: str, /) -> None:
        self._store._call("publish", path, lambda: self._inner.publish(path))

    def discard(self) -> None:
        self._inner.discard()


def _tried(act: Callable[[], Any]) -> None:
    """A request nobody waits for any more."""
    with contextlib.suppress(lake_store.Conflict, FileExistsError, StorageError):
        act()
