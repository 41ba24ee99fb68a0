"""What the fast path knows of a schema beside its msgspec type: where values are looked at a column at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress
from operator import is_not
from typing import Any

import msgspec

from burler.records.shape.unknown import Unknown
from burler.records.shape.values import ARRAYS, MISSING, Misfit, Path, check_name, types_of

Template = tuple[str | None, ...]
"""A path for any row: names, and None for the items of an array."""

Fix = Callable[[list[Any]], list[Any] | None]
"""A column's values as they go out: the same list if they are right as they stand, None if each must be looked at."""


@dataclass(slots=True)
class Leaf:
    """A field whose values msgspec lets through, and burler looks at."""

    attribute: str
    path: Template
    schema: Any
    fix: Fix | None
    quick: frozenset[type] = frozenset()
    moments: list[Any] | None = None
    """Of date-times: the column as datetimes, None where there is none, if the last ``fix`` made them."""
    keeps: bool = False
    """Whether the values are asked for as they came: those of the replication key."""
    given: list[Any] | None = None
    """The column as it came, if it is kept and goes out otherwise."""
    required: bool = False
    place: Path = ()
    """The path, with 0 for any item of an array: which one it is, the exact path of the row says."""

    def __post_init__(self) -> None:
        self.place = tuple(0 if part is None else part for part in self.path)

    @property
    def is_scalar(self) -> bool:
        """Whether its values are surely neither lists nor objects."""
        wanted = set(types_of(self.schema)) if isinstance(self.schema, Mapping) else set()
        return bool(wanted) and wanted <= {"string", "number", "integer", "boolean", "null"}


@functools.cache
def column(attribute: str) -> Callable[[list[Any]], list[Any]]:
    """Gives the values of one attribute, ``f7``, of all structs. Written out, Python reads it twice as fast as through
    an ``attrgetter``."""
    assert attribute.isidentifier()
    made: Callable[[list[Any]], list[Any]] = eval(f"lambda structs: [struct.{attribute} for struct in structs]")
    return made


def _of_type(values: list[Any], kind: type) -> list[Any]:
    """The values that are of a type, mostly all."""
    return values if set(map(type, values)) == {kind} else [value for value in values if type(value) is kind]


@dataclass(slots=True)
class ObjectNode:
    """One object of the schema: its struct, its fields, what is below it."""

    path: Template
    struct: Any = None
    known: frozenset[str] = frozenset()
    attributes: dict[str, str] = field(default_factory=dict)
    leaves: list[Leaf] = field(default_factory=list)
    objects: dict[str, ObjectNode] = field(default_factory=dict)
    lists: dict[str, ObjectNode] = field(default_factory=dict)
    maps: dict[str, ObjectNode] = field(default_factory=dict)
    """Fields that hold objects of one kind under names of any kind."""
    map_path: Template | None = None
    """The map that the object is in, if it is in one."""
    dropped: list[str] = field(default_factory=list)
    """Attributes that hold what is known and not wanted; they are emptied."""
    counts: bool = False
    """Whether fields that the schema does not know are let through by the struct, and must be counted."""
    further: bool = False
    """Whether fields beside the struct's own may belong to the object."""
    splices: bool = False
    """Whether such fields are put behind those of the struct (of a row's own node only)."""
    looks: bool = False
    """Whether there is a leaf or something to empty here or below."""
    counts_below: bool = False
    shares: bool = False
    """Whether converted rows may hold lists and dicts of the rows they were made of."""

    def close(self) -> None:
        """Once the node is whole: note what is below it."""
        below = [*self.objects.values(), *self.lists.values(), *self.maps.values()]
        self.looks = bool(self.leaves or self.dropped) or any(node.looks for node in below)
        self.shares = any(not leaf.is_scalar for leaf in self.leaves) or any(node.shares for node in below)
        self.counts_below = self.counts or any(node.counts_below for node in below)


_FEW_NAMES = 8
Repair = Callable[[Leaf, Any], Any]


def repair(node: ObjectNode, structs: list[Any], one: Repair) -> None:
    """Look at every leaf's column. ``one`` gives a single value as it goes out, and raises ``Misfit``."""
    for leaf in node.leaves:
        values = column(leaf.attribute)(structs)
        if leaf.required and msgspec.UnsetType in set(map(type, values)):
            raise Misfit(leaf.place, MISSING, "a value")  # given as UNSET, which is to give none
        fixed = leaf.fix(values) if leaf.fix is not None else None
        if leaf.keeps:
            leaf.given = values if fixed is not values else None
        if fixed is values:
            continue
        if fixed is None:
            leaf.moments = None
            quick = leaf.quick
            fixed = [value if type(value) in quick else one(leaf, value) for value in values]
        attribute = leaf.attribute
        # The comparison in C, since mostly few of them have changed, or all.
        for at in compress(range(len(fixed)), map(is_not, fixed, values)):
            setattr(structs[at], attribute, fixed[at])
    for attribute in node.dropped:
        for struct in structs:
            setattr(struct, attribute, msgspec.UNSET)
    if node.maps:
        _repair_maps(node, structs, one)
    for name, sub in node.objects.items():
        if sub.looks:
            below = _of_type(column(node.attributes[name])(structs), sub.struct)
            if below:
                repair(sub, below, one)
    for name, sub in node.lists.items():
        if sub.looks:
            lists = _of_type(column(node.attributes[name])(structs), list)
            below = _of_type(list(chain.from_iterable(lists)), sub.struct)
            if below:
                repair(sub, below, one)


def _repair_maps(node: ObjectNode, structs: list[Any], one: Repair) -> None:
    for name, sub in node.maps.items():
        if sub.looks:
            maps = _of_type(column(node.attributes[name])(structs), dict)
            below = _of_type(list(chain.from_iterable(map(dict.values, maps))), sub.struct)
            if below:
                repair(sub, below, one)


def count_unknown(node: ObjectNode, rows: Sequence[Mapping[str, Any]], unknown: Unknown) -> None:
    """Count objects that hold a field which the schema does not know. One pass in C a node where there are none.

    Raises:
        Misfit: a field's name has no JSON form.
    """
    if node.counts:
        extra: set[Any] = set().union(*rows) - node.known
        found: dict[Any, list[Any]] = {name: [] for name in extra}
        if len(extra) > _FEW_NAMES:  # names that are data: each row has its own
            for row in rows:
                for name in row.keys() - node.known:
                    found[name].append(row[name])
        for name, values in found.items():
            check_name(name, ())
            values = values or [row[name] for row in rows if name in row]
            unknown.note((*node.path, name), len(values), values)
    for name, sub in node.objects.items():
        if sub.counts_below:
            count_unknown_below(sub, (row.get(name) for row in rows), unknown)
    for name, sub in node.lists.items():
        if sub.counts_below:
            lists = (value for value in (row.get(name) for row in rows) if isinstance(value, ARRAYS))
            count_unknown_below(sub, chain.from_iterable(lists), unknown)


def count_unknown_below(node: ObjectNode, values: Iterator[Any], unknown: Unknown) -> None:
    """The same for values of which some may be no objects."""
    below = [value for value in values if isinstance(value, Mapping)]
    if below:
        count_unknown(node, below, unknown)
