"""What several writers share, in a model: small files in a store, and what an observer notes beside them.

A writer is a generator. It yields one *call* of the store at a time and is sent its answer; each call is one step that
nothing can come between. What it yields beside that (a judgement, a note to the observer) is no call, and is answered
in the same step.

A file's tag is its content, as on S3, where an object's ETag is a digest: content that comes back has its old tag.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple

from lake_search import Found, Ran, Search, Writer

OK, CONFLICT, UNKNOWN = "ok", "conflict", "unknown"
"""Answers to a write: it is done; somebody was faster; nobody knows."""


Judge = Callable[["World", int], tuple[bool, ...]]


def never(_world: World, _owner: int) -> tuple[bool, ...]:
    """Nobody is ever taken for dead."""
    return (False,)


def only_dead(world: World, owner: int) -> tuple[bool, ...]:
    """Who is dead may be taken for dead; who lives is not."""
    return (True, False) if owner in world.dead else (False,)


def misjudged(_world: World, _owner: int) -> tuple[bool, ...]:
    """Whoever is waited for may be paused for longer than the ttl: then he is taken for dead, and wakes up later."""
    return (True, False)


class World(NamedTuple):
    """Everything that is not inside a writer. ``files``: (path, content), sorted; the rest is the observer's."""

    files: tuple[tuple[str, Any], ...] = ()
    judge: Judge = misjudged  # whether a waiter may take a holder for dead
    late: tuple[Any, ...] = ()  # writes whose answer is lost and that have yet to reach the store
    faults: int = 0  # how many may still happen
    deaths: int = 0  # how many writers may still die; to be paused needs nothing: it is not to be chosen
    dead: frozenset[int] = frozenset()
    inside: frozenset[tuple[str, int]] = frozenset()  # (lock, writer) that believes it holds it
    tickets: int = 0  # how often a lock was entered
    acked: frozenset[str] = frozenset()  # data files whose STATE is out
    log: tuple[Any, ...] = ()  # commits in the order in which they happened
    wronged: bool = False  # the lock of one who lives was removed by another
    data: bool = False  # writers make data files as calls of their own

    def get(self, path: str) -> Any:
        """The content of a file, or None."""
        return next((content for name, content in self.files if name == path), None)

    def put(self, path: str, content: Any) -> World:
        """With a file of this content, or without it."""
        others = [entry for entry in self.files if entry[0] != path]
        kept = others if content is None else [*others, (path, content)]
        return self._replace(files=tuple(sorted(kept, key=lambda entry: entry[0])))

    def broken(self) -> Iterator[str]:
        """The names of properties that do not hold."""
        return _broken(self)

    def without(self, me: int) -> World | None:
        """When one more has died; None if enough have."""
        return self._replace(dead=self.dead | {me}, deaths=self.deaths - 1) if self.deaths else None

    def arrivals(self) -> Iterator[tuple[World, str]]:
        """Late writes may arrive at any time."""
        for place, (write, owner) in enumerate(self.late):
            there = self._replace(late=self.late[:place] + self.late[place + 1 :])
            yield write.landed(there, owner) or there, f"{owner}: its write to {write.path} arrives at last"


class Commit(NamedTuple):
    """A commit as the observer logs it."""

    lock: str
    epoch: int
    owner: int
    file: str


class Read(NamedTuple):
    """Answered with the content, or None."""

    path: str
    instant = False

    def happen(self, world: World, _me: int) -> Iterator[tuple[Any, World]]:
        yield world.get(self.path), world


class Listing(NamedTuple):
    """Answered with the names of all data files."""

    instant = False

    def happen(self, world: World, _me: int) -> Iterator[tuple[Any, World]]:
        yield tuple(name for name, content in world.files if content == "data"), world


class Write(NamedTuple):
    """A write or, without content, a removal.

    Args:
        tag: what must be there now: a content, None (nothing), or ``ANY``.
        commit: for the observer's log, if it happens.
    """

    path: str
    content: Any
    tag: Any
    commit: Commit | None = None
    instant = False

    def happen(self, world: World, me: int) -> Iterator[tuple[Any, World]]:
        after = self.landed(world, me)
        if after is None:
            yield CONFLICT, world
            return
        yield OK, after
        if world.faults and self.tag is not ANY:
            less = world.faults - 1
            yield UNKNOWN, world._replace(faults=less)  # it never got there
            yield UNKNOWN, after._replace(faults=less)  # the answer was lost
            yield CONFLICT, after._replace(faults=less)  # the library asked again, and met its own write
            yield UNKNOWN, world._replace(faults=less, late=(*world.late, (self, me)))  # still on its way

    def landed(self, world: World, me: int) -> World | None:
        """The world after it; None if the condition does not hold."""
        there = world.get(self.path)
        if self.tag is not ANY and there != self.tag:
            return None
        after = world.put(self.path, self.content)
        if self.commit is not None:
            after = after._replace(log=(*after.log, self.commit))
        if self.content is None and isinstance(there, Lock) and there.owner not in {me, *world.dead}:
            after = after._replace(wronged=True)
        return after


class Stale(NamedTuple):
    """No call: whether the waiter now takes the holder of a lock for dead."""

    owner: int
    instant = True

    def happen(self, world: World, _me: int) -> Iterator[tuple[Any, World]]:
        for answer in world.judge(world, self.owner):
            yield answer, world


class Enter(NamedTuple):
    """No call: it believes that it holds the lock from here on; answered with the number of its ticket."""

    lock: str
    instant = True

    def happen(self, world: World, me: int) -> Iterator[tuple[Any, World]]:
        ticket = world.tickets + 1
        yield ticket, world._replace(tickets=ticket, inside=world.inside | {(self.lock, me)})


class Leave(NamedTuple):
    """No call: it no longer does."""

    lock: str
    instant = True

    def happen(self, world: World, me: int) -> Iterator[tuple[Any, World]]:
        yield None, world._replace(inside=world.inside - {(self.lock, me)})


class Acked(NamedTuple):
    """No call: the STATE behind this data file is out."""

    file: str
    instant = True

    def happen(self, world: World, _me: int) -> Iterator[tuple[Any, World]]:
        yield None, world._replace(acked=world.acked | {self.file})


class _Any:
    def __repr__(self) -> str:
        return "ANY"


ANY = _Any()


class Lock(NamedTuple):
    """A lock file."""

    owner: int
    epoch: int = 1
    beat: int = 0


class Manifest(NamedTuple):
    """A manifest. ``claims``: (schema version, writer, epoch). ``ids``: of commits. ``removed``: what a vacuum took."""

    files: tuple[str, ...] = ()
    claims: tuple[tuple[str, int, int], ...] = ()
    ids: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def holder(self, lock: str) -> tuple[int, int]:
        """(writer, epoch) of the claim that stands; nobody is -1."""
        return next(((owner, epoch) for name, owner, epoch in self.claims if name == lock), (-1, 0))

    def claimed(self, lock: str, owner: int, epoch: int) -> Manifest:
        """With a claim."""
        others = [claim for claim in self.claims if claim[0] != lock]
        return self._replace(claims=tuple(sorted([*others, (lock, owner, epoch)])))

    def adding(self, *files: str) -> Manifest:
        """With data files; each is the id of its commit."""
        known = tuple(sorted({*self.files, *files}))
        return self._replace(files=known, ids=tuple(sorted({*self.ids, *files})))


PROPERTIES = {
    "P1": "at most one believes that it holds a lock",
    "P2": "every acknowledged commit stays in the manifest, and its file in the store",
    "P3": "no commit of an older epoch after one of a newer",
    "P4": "no two owners commit under one epoch",
    "P5": "nobody removes the lock of another who lives",
    "P6": "no commit happens twice",
    "P7": "the manifest names no file that is not there",
    "P8": "the state in the lake covers only what is committed",
    "P9": "what a run has put into the state, no other run takes out",
}


def _broken(world: World) -> Iterator[str]:
    locks = [lock for lock, writer in world.inside if writer not in world.dead]
    if len(locks) != len(set(locks)):
        yield "P1"
    manifest = world.get("manifest")
    if manifest is not None:
        there = {name for name, content in world.files if content == "data"}
        if not world.acked <= set(manifest.files) or (world.data and not world.acked <= there):
            yield "P2"
        if world.data and not set(manifest.files) <= there:
            yield "P7"
    state = world.get("state")
    if state is not None:
        if not set(state) <= set(manifest.files):
            yield "P8"
        if not world.acked <= set(state):
            yield "P9"
    newest: dict[str, int] = {}
    owners: dict[tuple[str, int], int] = {}
    for commit in world.log:
        if commit.epoch < newest.get(commit.lock, 0):
            yield "P3"
        newest[commit.lock] = max(newest.get(commit.lock, 0), commit.epoch)
        if owners.setdefault((commit.lock, commit.epoch), commit.owner) != commit.owner:
            yield "P4"
    if world.wronged:
        yield "P5"
    files = [commit.file for commit in world.log]
    if len(files) != len(set(files)):
        yield "P6"


def writer(calls: Callable[[int], Generator[Any, Any, None]], me: int) -> Writer:
    """A generator function as the search wants it.

    Two that stand at the same place with the same local variables go on alike, whatever brought them there.
    """

    def ran(history: tuple[Any, ...]) -> Ran:
        generator, asked = calls(me), None
        try:
            for answer in (None, *history):
                asked = generator.send(answer)
        except StopIteration:
            return "end", None
        return (asked, *_frames(generator)), asked

    return ran


def _frames(generator: Any) -> Iterator[Any]:
    """Where a generator stands, with those it waits for."""
    while generator is not None:
        frame = generator.gi_frame
        yield frame.f_code, frame.f_lasti, tuple(frame.f_locals.items())
        generator = generator.gi_yieldfrom


def searched(writers: Sequence[Callable[[int], Generator[Any, Any, None]]], world: World) -> Found:
    """Everything that these writers can do beside each other in a world."""
    return Search([writer(calls, me) for me, calls in enumerate(writers)], world).all()
