"""United columns less those that nobody wants: they are not even decoded."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from burler.records.columns.types import StructOf
from burler.spark.united import Mapped, United


def only(united: United, names: Collection[str]) -> United:
    """The same with these columns alone, in the order they have."""
    kept = set(names)
    record = StructOf(tuple(one for one in united.record.fields if one[0] in kept))
    mappings = {digest: _only(mapped, kept, record) for digest, mapped in united.mappings.items()}
    own = {digest: mapped.own for digest, mapped in mappings.items()}
    return dataclasses.replace(united, record=record, own=own, mappings=mappings)


def _only(mapped: Mapped, kept: set[str], record: StructOf) -> Mapped:
    sources = {mapped.names.get((column,), column) for column, _ in record.fields}
    return Mapped(
        own=StructOf(tuple(one for one in mapped.own.fields if one[0] in sources)),
        names={path: name for path, name in mapped.names.items() if path[0] in kept},
        wide=frozenset(path for path in mapped.wide if path[0] in kept),
    )
