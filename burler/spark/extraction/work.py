"""What there is to extract, and what has become of it: the side of the tap. ``driving`` runs and commits it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from burler.appref import AppRef
from burler.engine.remote import Merge, Part, PartEnd, Planning
from burler.lake.writer import LakeDriver
from burler.singer.messages import Message, Schema
from burler.spark.extraction.tasks import PartTask, Target, Task
from burler.words import counted

Named = tuple[Any, Callable[[], Task]]
"""A task's name, for whoever hears of its end, and what makes it."""


class Work(Protocol):
    """The streams of one run.

    Attributes:
        streams: in the order of a local run.
        seen, unseen: see ``StateKeeper.runs``.
        merge: what was committed, the state that covers it, and what failed.
    """

    streams: tuple[str, ...]
    seen: Collection[str]
    unseen: Collection[str]
    merge: Merge

    def find(self, stream: str) -> list[Named]:
        """The tasks of a stream; called in a thread of its own.

        Raises:
            BurlerError: they can't be found; the other streams go on.
        """

    def prepare(self, stream: str, lake: LakeDriver) -> None:
        """Tasks of a stream are to write files: the lake hears which schemas these will have."""

    def begin(self, stream: str) -> bool:
        """The tasks of a stream follow. True if the state has changed by that, and must be said."""

    def add(self, name: Any, end: Any) -> str:
        """What a task gave is committed; one line about it."""

    def lost(self, name: Any, reason: str) -> None:
        """A task has come to nothing."""

    def finish(self, stream: str) -> tuple[list[Schema], list[Message]]:
        """All tasks of a stream have ended: messages that must be committed before ``state`` is said, and the schemas
        that they need."""


class AppWork:
    """The parts of a burler app."""

    def __init__(
        self, ref: AppRef, planning: Planning, target: Target, *, config: Any, catalog: Any, select: Any
    ) -> None:
        self._ref, self._planning, self._target = ref, planning, target
        self._given = {"config": config, "catalog": catalog, "select": select}
        self._parts: dict[str, list[Part]] = {}
        self.merge = Merge(planning.state)
        self.streams = planning.streams
        self.seen: Collection[str] = planning.plan.seen
        self.unseen: Collection[str] = planning.plan.unseen

    def find(self, stream: str) -> list[Named]:
        """See ``Work.find``."""
        parts = self._parts[stream] = self._planning.parts(stream)
        begun = self._planning.state

        def task(part: Part) -> Callable[[], Task]:
            return lambda: PartTask(self._ref, part, self._target, state=part.state_for(begun), **self._given)

        return [(part, task(part)) for part in parts]

    def prepare(self, stream: str, lake: LakeDriver) -> None:
        """See ``Work.prepare``."""
        for schema in self._planning.schemas(stream):
            lake.begin(schema)

    def begin(self, stream: str) -> bool:
        """See ``Work.begin``."""
        parts = self._parts[stream]
        return bool(parts) and self.merge.begin(parts[0].shared.family, self._planning.state)

    def add(self, name: Part, end: PartEnd) -> str:
        """See ``Work.add``."""
        self.merge.add(end)
        how = "failed" if end.errors else "done"
        rows = rows_told(name.stream, end.rows)
        return f"stream '{name.stream}': {name.where or 'all of it'}: {how}, {rows}, {end.seconds:.1f} s"

    def lost(self, name: Part, reason: str) -> None:
        """See ``Work.lost``."""
        self.merge.lost(name, reason)

    def finish(self, stream: str) -> tuple[list[Schema], list[Message]]:
        """See ``Work.finish``."""
        messages = self.merge.finish(stream)
        wanted = {message.stream for message in messages}
        return [one for one in self._planning.schemas(stream) if one.stream in wanted], list(messages)


def rows_told(stream: str, rows: Mapping[str, int]) -> str:
    """How many rows a task of ``stream`` brought, and of which other streams (children come with their parent)."""
    others = [f"{count} of '{name}'" for name, count in rows.items() if name != stream]
    return ", ".join([counted(rows.get(stream, 0), "row"), *others])
