"""A line: the streams that are synced in one run (a root, its substreams, what they emit), and what they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from burler.declare.checks import line_of
from burler.declare.spec import StreamSpec
from burler.declare.strategies import Manual
from burler.engine.catalog.plan import PlannedRun, key_format
from burler.engine.family import Family
from burler.engine.state.ledger import FamilyState, Ledger
from burler.engine.state.ordered import PartitionOrder
from burler.pipeline.shape import Shaper
from burler.singer.catalog import Catalog


class Line:
    """What every call of the root's function has in common.

    ``called`` are the streams whose functions run, ``closed`` the substreams that have ended in this run (a row did not
    fit, too many calls failed), so that their functions are called no more. ``dropped``: those of which rows that are
    still on the way don't go out either. ``pushes``, ``first``: see ``PlannedRun``.
    """

    def __init__(self, planned: PlannedRun, catalog: Catalog) -> None:
        self.root = planned.spec.tap_stream_id
        self.pushes, self.first = planned.pushes, planned.first
        self.specs = planned.specs
        self.planned = {stream.tap_stream_id: stream for stream in planned.streams}
        self.names = tuple(planned.specs)
        self.selected = frozenset(self.planned)
        self.schemas = {name: planned.schema for name, planned in self.planned.items()}
        self.unseen = self._unseen_key(catalog)
        self.closed: set[str] = set()
        self.dropped: set[str] = set()
        self.family = self._family()
        self._above = self.family.above
        wanted = {name for selected in self.planned for name in self._above[selected]}
        called = {name for name in {*wanted, self.root} if self.specs[name].sync is not None}
        self.called = [name for name in self.names if name in called]
        self.emits = {name: frozenset(one for one in self.names if self.giver(one) == name) for name in self.called}
        self.paths = {name: {one: self.specs[one].records_path for one in self.emits[name]} for name in self.called}
        self.has_children = any(self.specs[name].parent for name in self.called)
        asking = (name for name, one in self.planned.items() if one.spec.bookmark is not None)
        self.asks_children = {name for name in asking if "children" in self.specs[name].bookmark.names}  # type: ignore[union-attr]

    def _family(self) -> Family:
        above = {name: tuple(one.tap_stream_id for one in line_of(self.specs[name], self.specs)) for name in self.names}
        root, planned = self.planned.get(self.root), self.planned
        keys = {name: (planned.get(name) or self.specs[name]).bookmark_key for name in self.names}
        formats = {name: self._key_format(name) for name in {*planned, self.root}}
        return Family(
            root=self.root,
            names=self.names,
            selected=self.selected,
            above=above,
            substreams=frozenset(name for name in self.names if any(self.specs[one].parent for one in above[name])),
            has_substreams=any(self.specs[name].parent for name in self.names),
            keys=keys,
            key_formats=formats,
            resume_key=root.resume_key if root is not None else None,
            tables=frozenset(name for name, one in planned.items() if one.versions),
            lookbacks={name: back for name in self.names if (back := self.specs[name].lookback) is not None},
            rollups=frozenset(name for name, one in planned.items() if one.spec.rollup),
        )

    def saved_in(self, ledger: Ledger, *, start_date: str | None, is_part: bool = False) -> FamilyState:
        """What a state says of it.

        Args:
            is_part: of one partition alone, in a run that is a part of another one: that lets partitions collapse.
        """
        spec, planned = self.specs[self.root], self.planned
        exclusive = spec.resume == "exclusive"
        order = PartitionOrder(
            is_exclusive=exclusive,
            is_vouched=exclusive and isinstance(spec.strategy, Manual),
            ends_unsorted=spec.on_unsorted == "end_of_sync",
        )
        return ledger.family(
            self.family,
            first={
                name: planned[name].first_bookmark(start_date) if name in planned else start_date for name in self.names
            },
            is_partitioned=spec.partitions is not None,
            order=order if spec.partition_order == "asc" and not is_part else None,
        )

    def _unseen_key(self, catalog: Catalog) -> UnseenKey | None:
        """Of a root that runs for its substreams alone."""
        spec, entry = self.specs[self.root], catalog.entries.get(self.root)
        if self.root in self.planned or spec.replication_key is None or entry is None:
            return None
        return UnseenKey(self.root, spec.replication_key, entry.schema)

    def asks_for(self, parameter: str) -> bool:
        """Whether a function of the line asks for a parameter of that name."""
        specs = [self.specs[name] for name in self.names]
        functions = [(spec.sync, spec.tail, spec.bookmark, spec.post_transform, spec.partitions) for spec in specs]
        setups = [spec.retry.setup for spec in specs if spec.retry is not None]
        every = [*(one for some in functions for one in some), *setups]
        return any(parameter in function.names for function in every if function is not None)

    def textual(self, name: str) -> str | None:
        """What the schema says of a bookmark that is text (``PlannedStream.key_format``)."""
        return self.family.key_formats.get(name)

    def _key_format(self, name: str) -> str | None:
        planned = self.planned.get(name)
        if planned is None and name == self.root and self.unseen is not None:
            return self.unseen.textual
        key = (planned.resume_key or planned.bookmark_key) if planned is not None else None
        return planned.key_format(key) if planned is not None and key is not None else None

    def spec(self, name: str) -> StreamSpec:
        """The spec of a stream of the line."""
        return self.specs[name]

    def giver(self, name: str) -> str:
        """The stream whose function yields a stream's rows: itself, or the one that emits it."""
        return self.specs[name].emitted_by or name

    def rank(self, name: str) -> int:
        """Where rows of a stream stand in a page: a function's own rows first, parents before children, since those
        may refer to them."""
        above = self._above.get(name)
        return len(above) if above is not None else len(self.specs)

    def is_substream(self, name: str) -> bool:
        """Whether a stream's rows come from a function that is called for rows of a parent."""
        return name in self.family.substreams

    def above(self, name: str) -> tuple[str, ...]:
        """The streams that one hangs on, itself first."""
        return self._above[name]

    def below(self, name: str) -> set[str]:
        """A stream and all that hang on it."""
        return self.family.below(name)


class UnseenKey:
    """The replication key of a parent that runs unseen, for its substreams alone: in the form that it would go out in.
    Takes the key of rows that are not shaped.

    Args:
        schema: of the whole row, from the catalog.
    """

    def __init__(self, stream: str, key: str, schema: Mapping[str, Any]) -> None:
        node = (schema.get("properties") or {}).get(key)
        self._key = key
        self.textual = key_format(schema, key)
        self._shaper: Shaper | None = None
        if isinstance(node, dict):
            alone = {"type": "object", "properties": {key: node}}
            self._shaper = Shaper(stream, alone, key=key, keys_required=False)

    def of(self, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The values of some rows; as they are, where they fit no schema."""
        values = [row.get(self._key) for row in rows]
        if self._shaper is None:
            return values
        fitted = self._shaper.fit([{self._key: value} for value in values])
        return fitted.keys if len(fitted.keys) == len(values) else values
