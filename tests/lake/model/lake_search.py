"""A search through everything that several writers can do beside each other: all interleavings of their calls.

A *writer* is any code that asks for one thing at a time and is given its answer. It can't be copied in the middle; but
run anew and given the same answers it comes to the same place. So each writer becomes a small table of its own
states, made while the search asks for it, and the search itself is over numbers.

What they share is a *world*: a frozen value. What a writer asks for says what it does to the world::

    asked.happen(world, me) -> [(answer, world after it), ...]      several: anything of it may happen
    asked.instant                                                   no call: answered in the same step

    world.broken() -> names of properties that do not hold
    world.arrivals() -> [(world, what happened), ...]               steps that are nobody's
    world.without(me) -> the world when this writer has died, or None if it may not
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Ran = tuple[Hashable, Any]
"""(what tells one state of a writer from another, what it asks for; None at its end)."""

Writer = Callable[[tuple[Any, ...]], Ran]
"""Runs from the beginning, is given these answers, and tells where it stands then."""

DEAD = -1
_DIES = ": dies"
_DEATH = 0.05
"""How likely a death is in a walk beside another step: else all would die at their beginning."""


class _Table:
    """The states of one writer, by number."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._numbers: dict[Hashable, int] = {}
        self._histories: list[tuple[Any, ...]] = []
        self._after: dict[tuple[int, Any], int] = {}
        self.asks: list[Any] = []
        self.keys: list[Hashable] = []
        self.start = self._number(())

    def after(self, state: int, answer: Any) -> int:
        """The state behind an answer."""
        key = (state, answer)
        if key not in self._after:
            self._after[key] = self._number((*self._histories[state], answer))
        return self._after[key]

    def _number(self, history: tuple[Any, ...]) -> int:
        key, asked = self._writer(history)
        number = self._numbers.setdefault(key, len(self.asks))
        if number == len(self.asks):
            self.asks.append(asked)
            self.keys.append(key)
            self._histories.append(history)
        return number


@dataclass
class Found:
    """What a search has seen.

    Attributes:
        states: how many.
        replays: how often a writer was run.
        broken: each property that does not hold, with the shortest way there, a line a step.
        stuck: ways to states in which nobody can go on though not all have ended.
        ends: (how each writer ended, the world in the end).
        cut: whether there is more than was looked at.
    """

    states: int = 0
    replays: int = 0
    broken: dict[str, list[str]] = field(default_factory=dict)
    stuck: list[list[str]] = field(default_factory=list)
    ends: set[tuple[tuple[Hashable, ...], Any]] = field(default_factory=set)
    cut: bool = False

    def shown(self) -> str:
        """The ways to what is broken, for people."""
        return "\n\n".join(f"{name}\n" + "\n".join(way) for name, way in self.broken.items())


class Search:
    """The search of one setting.

    Args:
        writers: each has its number by its place.
        world: how it begins.
        bound: how many of its steps may switch away from a writer that could go on (None: all of them). Most faults
            need few switches, so a small bound sees nearly everything of what would take too long.
    """

    def __init__(self, writers: Sequence[Writer], world: Any, *, bound: int | None = None) -> None:
        self._tables = [_Table(writer) for writer in writers]
        self._bound = bound
        self._worlds: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._broken: list[tuple[str, ...]] = []
        self._happened: dict[tuple[int, int, int], list[tuple[int, int, str]]] = {}
        self._starts = self._begin(world)

    def all(self, most: int | None = None) -> Found:
        """Every state that can be reached, the nearest first; no more than ``most``."""
        found = Found()
        parents: dict[tuple[int, ...], tuple[tuple[int, ...] | None, str]] = {}
        waiting: deque[tuple[int, ...]] = deque()
        for start in self._starts:
            parents[start] = (None, "")
            waiting.append(start)
        while waiting:
            if most is not None and found.states >= most:
                found.cut = True
                break
            state = waiting.popleft()
            found.states += 1
            for name in self._broken[state[-1]]:
                found.broken.setdefault(name, _way(parents, state))
            moved = False
            for after, told in self._moves(state):
                moved = moved or after != state
                if after not in parents:
                    parents[after] = (state, told)
                    waiting.append(after)
            if not moved:
                self._end(state, found, lambda state=state: _way(parents, state))
        found.replays = sum(len(table.asks) for table in self._tables)
        return found

    def walk(self, chance: random.Random, found: Found) -> None:
        """One way from the beginning to an end, at random; what it sees is added to ``found``."""
        state, way = chance.choice(self._starts), list[str]()
        while True:
            found.states += 1
            for name in self._broken[state[-1]]:
                found.broken.setdefault(name, list(way))
            moves = list(self._moves(state))
            if not moves:
                self._end(state, found, lambda: way)
                return
            weights = [_DEATH if told.endswith(_DIES) else 1.0 for _, told in moves]
            ((state, told),) = chance.choices(moves, weights)
            way.append(told)

    def _begin(self, world: Any) -> list[tuple[int, ...]]:
        """What is instant at the beginning of a writer happens before anybody's first call."""
        begun: list[tuple[tuple[int, ...], Any]] = [((), world)]
        for me, table in enumerate(self._tables):
            begun = [
                ((*locals_, local), self._worlds[after])
                for locals_, before in begun
                for local, after in self._settle(me, table.start, before)
            ]
        last = (-1, self._bound) if self._bound is not None else ()
        return [(*locals_, *last, self._number(after)) for locals_, after in begun]

    def _moves(self, state: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str]]:
        count, world = len(self._tables), state[-1]
        here = state[:count]
        for me, local in enumerate(here):
            if local == DEAD or self._tables[me].asks[local] is None:
                continue
            rest = self._rest(state, me)
            if rest is None:
                continue
            for next_local, next_world, told in self._step(me, local, world):
                yield (*here[:me], next_local, *here[me + 1 :], *rest, next_world), told
            dead = self._worlds[world].without(me)
            if dead is not None:
                yield (*here[:me], DEAD, *here[me + 1 :], *rest, self._number(dead)), f"{me}{_DIES}"
        for after, told in self._worlds[world].arrivals():
            yield (*state[:-1], self._number(after)), told

    def _rest(self, state: tuple[int, ...], me: int) -> tuple[int, ...] | None:
        """(who moved last, switches that are left), or None if this would be one too many."""
        if self._bound is None:
            return ()
        last, left = state[-3:-1]
        local = state[last] if last >= 0 else DEAD
        if last in (-1, me) or local == DEAD or self._tables[last].asks[local] is None:
            return me, left
        return (me, left - 1) if left else None

    def _step(self, me: int, local: int, world: int) -> list[tuple[int, int, str]]:
        key = (me, local, world)
        if key not in self._happened:
            asked = self._tables[me].asks[local]
            self._happened[key] = [
                (*settled, f"{me}: {asked} -> {answer}")
                for answer, after in asked.happen(self._worlds[world], me)
                for settled in self._settle(me, self._tables[me].after(local, answer), after)
            ]
        return self._happened[key]

    def _settle(self, me: int, local: int, world: Any) -> Iterator[tuple[int, int]]:
        """Answer what is instant, until there is a call."""
        asked = self._tables[me].asks[local]
        if asked is None or not asked.instant:
            yield local, self._number(world)
            return
        for answer, after in asked.happen(world, me):
            yield from self._settle(me, self._tables[me].after(local, answer), after)

    def _number(self, world: Any) -> int:
        number = self._numbers.setdefault(world, len(self._worlds))
        if number == len(self._worlds):
            self._worlds.append(world)
            self._broken.append(tuple(world.broken()))
        return number

    def _end(self, state: tuple[int, ...], found: Found, way: Callable[[], list[str]]) -> None:
        locals_ = state[: len(self._tables)]
        ended = [local == DEAD or table.asks[local] is None for local, table in zip(locals_, self._tables, strict=True)]
        if not all(ended):
            if self._bound is None:
                found.stuck.append(way())
            return
        keys = tuple(
            "dead" if local == DEAD else table.keys[local] for local, table in zip(locals_, self._tables, strict=True)
        )
        found.ends.add((keys, self._worlds[state[-1]]))


def _way(parents: dict[tuple[int, ...], tuple[tuple[int, ...] | None, str]], state: tuple[int, ...]) -> list[str]:
    way: list[str] = []
    here: tuple[int, ...] | None = state
    while here is not None:
        here, told = parents[here]
        way.append(told)
    return way[-2::-1]
