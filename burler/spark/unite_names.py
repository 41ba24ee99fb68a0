"""The names of columns where several schema versions, and readers that ignore upper and lower case, must agree.

Most readers of tables take ``id`` and ``ID`` for one column. Two spellings that never stand in one version are one
field that was renamed; two that do are two fields, and then one of them needs another name.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from burler.spark.columns import ADDED, ORDER, ROW_NUMBER

RESERVED = frozenset({name for name, _ in ADDED.fields + ORDER.fields} | {ROW_NUMBER})
"""Names at the top of a table that are burler's own."""


@dataclass(frozen=True, slots=True)
class NamedColumn:
    """A column, and what each version calls it (None: it has no such field), in the order of versions.

    ``why`` says to the user why its name is not that of the field; empty where it is.
    """

    name: str
    sources: tuple[str | None, ...]
    why: str = ""


def name_columns(
    versions: Sequence[Sequence[str]], reserved: Set[str] = frozenset(), keys: Set[str] = frozenset()
) -> list[NamedColumn]:
    """The columns of one object.

    Args:
        versions: the field names of each version, oldest version first.
        reserved: names that no column may have, in lower case.
        keys: fields that keep their names if one of two must change; else the one that came first does.
    """
    groups: dict[str, dict[str, None]] = {}  # used as an ordered set
    for names in versions:
        for name in names:
            groups.setdefault(name.lower(), {})[name] = None
    have = [frozenset(names) for names in versions]
    taken = {*groups, *reserved}
    columns: list[NamedColumn] = []
    for folded, spellings in groups.items():
        together = any(len(names.intersection(spellings)) > 1 for names in have)
        ordered = sorted(spellings, key=lambda name: name not in keys)
        members = [(name,) for name in ordered] if together else [tuple(ordered)]
        for at, fields in enumerate(members):
            sources = tuple(next((name for name in fields if name in names), None) for names in have)
            newest = next(name for name in reversed(sources) if name is not None)
            if at == 0 and folded not in reserved:
                why = f"also spelled {_quoted(fields, newest)} in older schemas" if len(fields) > 1 else ""
                columns.append(NamedColumn(newest, sources, why))
                continue
            name = _free(newest, taken)
            taken.add(name.lower())
            reason = "export adds a column of this name" if folded in reserved else "it differs from another by case"
            columns.append(NamedColumn(name, sources, f"{reason}: held in column '{name}'"))
    return columns


def _free(name: str, taken: Set[str]) -> str:
    number = 2
    while f"{name}_{number}".lower() in taken:
        number += 1
    return f"{name}_{number}"


def _quoted(names: Sequence[str], but: str) -> str:
    return ", ".join(f"'{name}'" for name in names if name != but)
