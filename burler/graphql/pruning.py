"""Fields that nobody selected are not asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from burler.context import StreamRun, specs_of
from burler.errors import GraphQLError
from burler.graphql.adding import anchor_of
from burler.graphql.document import leaf, response_key
from burler.graphql.plan import Plan
from burler.graphql.rewriting import Rewriter
from burler.graphql.spots import TYPE_KEY, Path, Spot

Schema = Mapping[str, Any]
_BRANCHES = ("anyOf", "oneOf", "allOf")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run wants of a query.

    Attributes:
        schemas: of each stream that is wanted, what is emitted of it; an empty one says that all is. The stream that
            runs has the name None.
        keep: fields of the running stream's rows that are asked for in any case.
    """

    schemas: Mapping[str | None, Schema]
    keep: tuple[str, ...] = ()

    def key(self) -> bytes:
        """What is the same for the same wishes."""
        return msgspec.json.encode([[name, schema] for name, schema in self.schemas.items()])


def wanted_by(run: StreamRun, streams: Iterable[str], prune: bool | None, keep: Iterable[str], *, where: str) -> Wanted:
    """What the stream that runs wants of its query.

    Args:
        streams: the query's other streams. prune, keep: the query's own.

    Raises:
        GraphQLError: a stream that the tap does not declare: its rows would be lost in silence.
    """
    schemas: dict[str | None, Schema] = {}
    names = list(streams)
    looked_at = _looked_at(run, run.name)
    # Rows of a stream that nobody selected are wanted where its substreams are, and where another function of the tap
    # reads them.
    if run.selected() or looked_at or not any(run.selected(name) for name in names):
        cut = prune is True or (prune is None and not looked_at)
        schemas[None] = run.schema if run.selected() and cut else {}
    for name in names:
        if run.tap is not None and name not in specs_of(run):
            raise GraphQLError(
                f"{where}: gives rows of '{name}', which the tap does not declare. "
                f"Add tap.stream('{name}', emitted_by='{run.name}'), or leave it out of streams=."
            )
        looked_at = _looked_at(run, name)
        if run.selected(name) or looked_at:
            schemas[name] = run.schema_of(name) if prune is True or (prune is None and not looked_at) else {}
    return Wanted(schemas, tuple(keep))


def _looked_at(run: StreamRun, name: str) -> bool:
    """Whether functions of the tap see a stream's rows before the target does: substreams, bookmark functions."""
    streams = specs_of(run)
    own = streams.get(name)
    return (own is not None and own.bookmark is not None) or any(one.parent == name for one in streams.values())


def pruned(plan: Plan, wanted: Wanted) -> Plan:
    """The plan with the fields that are wanted, and with those that the pager needs."""
    made = plan.once(("pruned", wanted.key(), wanted.keep), lambda: _pruned(plan, wanted))
    return made  # type: ignore[no-any-return]


def _pruned(plan: Plan, wanted: Wanted) -> Plan:
    rewriter = _Pruning(wanted, _needed(plan, wanted))
    operation = rewriter.operation(plan.operation, plan.root, None)
    streams = [one for one in plan.streams if one.name in wanted.schemas or _holds_wanted(plan, one.path, wanted)]
    return plan.changed(operation, streams)


def _holds_wanted(plan: Plan, path: Path, wanted: Wanted) -> bool:
    return any(one.path[: len(path)] == path and one.name in wanted.schemas for one in plan.streams)


def _needed(plan: Plan, wanted: Wanted) -> set[tuple[Path, str]]:
    """Fields that must be there although nobody may want them: (place, name)."""
    needed: set[tuple[Path, str]] = set()
    for one in plan.streams:
        for source in one.add.values():
            found = source_of(plan.root, one.path, source)
            if found is not None:
                needed.add((found, source))
        if one.name is None:
            needed |= {(one.path, name) for name in wanted.keep}
    for spot in plan.root.walk():
        if spot.connection is None:
            continue
        anchor = anchor_of(plan.root, spot.path)
        if anchor is not None:
            named = plan.root.find(anchor)
            needed.add((anchor, named.id_key if named is not None else "id"))
        if spot.path in plan.follow:
            for name in plan.follow[spot.path].variables:
                holder = source_of(plan.root, spot.path, name)
                if holder is not None:
                    needed.add((holder, name))
    return needed


def source_of(root: Spot, path: Path, name: str) -> Path | None:
    """The nearest object around a place that has a field of this name."""
    for n in range(len(path) - 1, -1, -1):
        spot = root.find(path[:n])
        if spot is not None and name in spot.leaves:
            return path[:n]
    return None


class _Pruning(Rewriter):
    """The context is the names that are wanted of an object, with their schemas; None: all."""

    def __init__(self, wanted: Wanted, needed: Collection[tuple[Path, str]]) -> None:
        self._wanted = wanted
        self._needed = needed

    def leaf(self, field: Any, holder: Spot, context: Any) -> bool:
        key = response_key(field)
        return context is None or key in context or key == TYPE_KEY or (holder.path, key) in self._needed

    def enter(self, field: Any, spot: Spot, context: Any) -> tuple[Any, Any] | None:
        key = spot.path[-1]
        if spot.emitted is not None:
            schema = self._wanted.schemas.get(spot.emitted.name)
            if schema is not None:
                return field, fields_of(schema) if schema else None
            return (field, {}) if self._leads_on(spot) else None
        if context is None or (spot.path[:-1], key) in self._needed:
            return field, None
        if key in context:
            return field, fields_of(context[key])
        return (field, {}) if self._leads_on(spot) else None

    def finish(self, selections: list[Any], spot: Spot, context: Any) -> list[Any]:
        return selections or [leaf("__typename", TYPE_KEY)]

    def _leads_on(self, spot: Spot) -> bool:
        """Whether rows that are wanted, or fields that are needed, stand below."""
        for one in spot.walk():
            if one.emitted is not None and one.emitted.name in self._wanted.schemas:
                return True
            if one.path != spot.path and (one.path[:-1], one.path[-1]) in self._needed:
                return True
        return False


def fields_of(schema: Any) -> dict[str, Any] | None:
    """The fields that a schema describes, through lists and alternatives, with their schemas; None if it takes any."""
    found: dict[str, Any] = {}
    closed = False
    for one in _objects(schema):
        if isinstance(one.get("properties"), Mapping):
            closed = True
            for name, field in one["properties"].items():
                found[name] = {"anyOf": [found[name], field]} if name in found else field
        if one.get("additionalProperties") not in (None, False) or one.get("patternProperties"):
            return None
    return found if closed else None


def _objects(schema: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(schema, Mapping):
        return
    yield schema
    for word in _BRANCHES:
        for one in schema.get(word) or ():
            yield from _objects(one)
    items = schema.get("items")
    for one in items if isinstance(items, list) else [items]:
        yield from _objects(one)
