"""What a tail remembers of a family of streams from one round to the next."""

from __future__ import annotations

from burler.engine.catalog.plan import PlannedRun
from burler.engine.writer.writer import StreamWriter
from burler.pipeline.repeats import Recurring


class Memory:
    """Of one sync function, or of a stream's sync and tail functions together: what is dear to make, and the rows that
    may come again.

    Attributes:
        since: rows, pages and the moment of the last STATE that the stream's strategy has asked for.
        writers: by stream; they hold the shapers, and what went out.
        rounds: how many have begun.
    """

    def __init__(self, now: float) -> None:
        self.since = 0, 0, now
        self.writers: dict[str, StreamWriter] = {}
        self.rounds = 0

    def begin_round(self) -> None:
        """A round begins."""
        self.rounds += 1

    def forget(self) -> None:
        """All rows are wanted once more."""
        for writer in self.writers.values():
            writer.repeats.forget()


def recurring(run: PlannedRun, name: str) -> Recurring | None:
    """Which rows of a stream may come again. None: those of a full table are all wanted, and of a source that gives
    only what lies behind the bookmark none do."""
    planned, root, family = run.by_name[name], run.by_name.get(run.root), run.family
    spec = planned.spec
    if run.pushes and not planned.key_properties:
        return None  # two equal messages are two
    if planned.versions or (root is not None and root.versions):
        return None
    if not planned.key_properties and (name != family.root or spec.bookmark is not None):
        return None  # equal rows may be two: of two parents
    if name != family.root:
        return "all" if any(family.keys[one] is not None for one in family.above[name]) else None
    if planned.bookmark_key is None or (spec.resume == "exclusive" and spec.lookback is None and not spec.signpost):
        return None
    made = spec.bookmark is not None or spec.post_transform is not None
    # Where a key may come twice in one reading, newest first, or in two partitions, all of them must be known.
    anywhere = planned.key_properties and (planned.order != "asc" or spec.partitions is not None)
    return "all" if made or anywhere or spec.lookback is not None or spec.signpost else "top"
