"""What writers share while they are stepped: files of a store, an observer's notes, and what each call does to them.

A file's tag is a digest of its content, as an ETag on S3: content that comes back has its old tag again.
"""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

OK, CONFLICT, EXISTS, UNKNOWN, DOWN = "ok", "conflict", "exists", "unknown", "down"
TTL_SECONDS = 300.0
SHORT_SECONDS = 0.1
NOON = dt.datetime(2024, 1, 2, 12, 0, 0, tzinfo=dt.UTC)


class Shared(NamedTuple):
    """What writers share, and what an observer notes.

    Args:
        files: (path, bytes), sorted.
        faults: how many writes of the first writer may still go wrong.
        deaths: how many writers may still die.
        holds: None where the store knows no signs of life; else (path, writer) of those that are held.
        acked: rows whose STATE is out, as they stand in data files.
        log: (path of the manifest, hash, epoch, writer, data file) of commits.
        inside: (lock, writer) who believes that it is his.
        torn: the manifest was no JSON at some time. wronged: a lock was removed by one who does not own it.
    """

    files: tuple[tuple[str, bytes], ...] = ()
    faults: int = 0
    deaths: int = 0
    holds: frozenset[tuple[str, int]] | None = None
    dead: frozenset[int] = frozenset()
    late: tuple[tuple[Call, int], ...] = ()
    acked: frozenset[bytes] = frozenset()
    log: tuple[tuple[str, str, int, int, str], ...] = ()
    inside: frozenset[tuple[str, int]] = frozenset()
    torn: bool = False
    wronged: bool = False

    def get(self, path: str) -> bytes | None:
        """The content of a file."""
        return next((data for name, data in self.files if name == path), None)

    def put(self, path: str, data: bytes | None, me: int) -> Shared:
        """With this content of a file, or without the file. Commits are noted."""
        if data is None and json.loads(self.get(path) or b"{}").get("writer-id") != name_of(me):
            self = self._replace(wronged=True)
        kept = [entry for entry in self.files if entry[0] != path]
        if data is not None:
            kept.append((path, data))
        after = self._replace(files=tuple(sorted(kept)))
        if data is None or not path.endswith("/manifest.json"):
            return after
        new = manifest_of(data)
        if new is None:
            return after._replace(torn=True)
        before = manifest_of(self.get(path) or b"{}") or {}
        log = [
            (path, digest, new["writers"].get(digest, {}).get("epoch", 0), me, name)
            for name in sorted(set(new["files"]) - set(before.get("files", ())))
            for digest in [name.partition("/")[0]]
        ]
        return after._replace(log=(*self.log, *log))

    def manifests(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """(folder with '/', document) of each manifest there is."""
        for path, data in self.files:
            if path.endswith("/manifest.json"):
                yield path[: -len("manifest.json")], manifest_of(data) or {"files": [], "sequence": 0}

    def broken(self) -> Iterator[str]:
        """P1 to P7 of ``lake_model_world``, where they do not hold, and more."""
        locks = [lock for lock, writer in self.inside if writer not in self.dead]
        if len(locks) != len(set(locks)):
            yield "P1: two believe that they hold a lock"
        there = {path for path, _ in self.files}
        listed = {folder + name for folder, document in self.manifests() for name in document["files"]}
        rows = b"".join(data for path, data in self.files if path in listed)
        if any(row not in rows for row in self.acked):
            yield "P2: an acknowledged row is lost"
        newest: dict[tuple[str, str], int] = {}
        owners: dict[tuple[str, str, int], int] = {}
        for path, digest, epoch, writer, _ in self.log:
            if epoch < newest.get((path, digest), 0):
                yield "P3: a commit of an older epoch after one of a newer"
            newest[path, digest] = epoch
            if owners.setdefault((path, digest, epoch), writer) != writer:
                yield "P4: two owners under one epoch"
        if self.wronged:
            yield "P5: a lock was removed by one who does not own it"
        if any(document["sequence"] > len(document["files"]) for _, document in self.manifests()):
            yield "P6: a commit was counted twice"
        if not listed <= there:
            yield "P7: a file is listed and not there"
        yield from self._broken_state(rows)
        if self.torn:
            yield "P8: a manifest was no JSON"

    def _broken_state(self, rows: bytes) -> Iterator[str]:
        data = next((data for path, data in self.files if path.endswith("/state.json")), None)
        if data is None:
            return
        said = {b'{"id":%d}' % number for number in json.loads(data)["value"]["bookmarks"]["s"]["rows"]}
        if any(row not in rows for row in said):
            yield "P9: the state is ahead of the data"
        if not self.acked <= said:
            yield "P10: an acknowledged row has left the state"

    def without(self, me: int) -> Shared | None:
        """When one more has died: the kernel drops what he held."""
        if not self.deaths:
            return None
        holds = None if self.holds is None else frozenset(held for held in self.holds if held[1] != me)
        return self._replace(dead=self.dead | {me}, deaths=self.deaths - 1, holds=holds)

    def arrivals(self) -> Iterator[tuple[Shared, str]]:
        """Late writes may arrive at any time."""
        for place, (call, writer) in enumerate(self.late):
            rest = self._replace(late=self.late[:place] + self.late[place + 1 :])
            yield call.landed(rest, writer)[1], f"{writer}: {call} arrives at last"


def name_of(me: int) -> str:
    """The id of a writer."""
    return f"w{me}"


@functools.lru_cache(maxsize=100_000)
def manifest_of(data: bytes) -> dict[str, Any] | None:
    """A manifest as a document; None if it is no JSON object."""
    try:
        document = json.loads(data)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


@functools.lru_cache(maxsize=100_000)
def tag_of(data: bytes) -> str:
    """As an ETag: equal contents have equal tags."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()[:8]


class Call(NamedTuple):
    """One call of the store. ``tag``: what ``replace`` and ``delete`` compare."""

    name: str
    path: str
    data: bytes | None = None
    tag: str | None = None
    instant = False

    def __repr__(self) -> str:
        more = "" if self.data is None else f" {self.data[:300]!r}"
        return f"{self.name} {self.path}{more}{f' if {self.tag}' if self.tag else ''}"

    def happen(self, world: Shared, me: int) -> Iterator[tuple[Any, Shared]]:
        if self.name == "read":
            yield world.get(self.path), world
        elif self.name == "list":
            yield tuple((path, len(data)) for path, data in world.files if path.startswith(self.path + "/")), world
        elif self.name == "hold":
            free = world.holds is not None and all(path != self.path for path, _ in world.holds)
            held = world.holds | {(self.path, me)} if free and world.holds is not None else world.holds
            yield (None if world.holds is None else free), world._replace(holds=held)
        elif self.name == "let go":
            yield None, world._replace(holds=(world.holds or frozenset()) - {(self.path, me)})
        else:
            yield from self._write(world, me)

    def _write(self, world: Shared, me: int) -> Iterator[tuple[str, Shared]]:
        answer, after = self.landed(world, me)
        yield answer, after
        if not world.faults or me:  # of writers that are alike one is enough
            return
        less = world.faults - 1
        if answer == OK:
            yield UNKNOWN, after._replace(faults=less)  # the reply is lost
            yield (EXISTS if self.tag is None else CONFLICT), after._replace(faults=less)  # 412 after success
            yield UNKNOWN, world._replace(faults=less, late=(*world.late, (self, me)))  # it is still on its way
            if self.tag is not None:
                yield CONFLICT, world._replace(faults=less)  # 409, nothing done
        yield UNKNOWN, world._replace(faults=less)  # the request is lost
        yield DOWN, world._replace(faults=less)

    def landed(self, world: Shared, me: int) -> tuple[str, Shared]:
        """(the store's answer, the world after it)."""
        there = world.get(self.path)
        if self.tag is None and there is not None:
            return EXISTS, world
        if self.tag is not None and (there is None or tag_of(there) != self.tag):
            return CONFLICT, world
        return OK, world.put(self.path, self.data, me)


class Wait(NamedTuple):
    """No call: the writer sleeps. ``choices``: seconds that may be over then; the longer ones misjudge who lives."""

    choices: tuple[float, ...]
    instant = True

    def happen(self, world: Shared, _me: int) -> Iterator[tuple[float, Shared]]:
        for seconds in self.choices:
            yield seconds, world


class Note(NamedTuple):
    """No call: what the observer is told: "entered" or "left" a lock, "acked" a row."""

    what: str
    path: str
    row: bytes = b""
    instant = True

    def happen(self, world: Shared, me: int) -> Iterator[tuple[None, Shared]]:
        if self.what == "acked":
            yield None, world._replace(acked=world.acked | {self.row})
        elif self.what == "entered":
            yield None, world._replace(inside=world.inside | {(self.path, me)})
        else:
            yield None, world._replace(inside=world.inside - {(self.path, me)})
