"""Where in a row the value of an element goes: into a field, a list, or a round of a group that repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Read = Callable[[Any], Any]
"""Makes a value of an element."""

Step = tuple[str, int, int]
"""A group that repeats, on the way to a value: its field, the branch of its choice, the place in its sequence."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Where the value of an element goes; ``position`` is its place among the fields of the row."""

    name: str
    read: Read
    many: bool
    position: int
    groups: tuple[Step, ...] = ()


def free(slots: list[Slot], row: Mapping[str, Any], at: int) -> Slot:
    """Of several places of one name ("a", "b", "a") the first that is still empty and not before the last one taken."""
    left = [slot for slot in slots if slot.many or slot.groups or row[slot.name] is None]
    return next((slot for slot in left if slot.position >= at), left[0] if left else slots[-1])


def into_groups(row: dict[str, Any], slot: Slot, value: Any, rounds: dict[tuple[str, ...], Step]) -> None:
    """Put a value into the last round of its group, or begin a round with it: where the name is there already, another
    branch of the choice begins, or it stands before what came last in the sequence."""
    holder = row
    names: tuple[str, ...] = ()
    for step in slot.groups:
        name, branch, at = step
        names = (*names, name)
        listed = holder.get(name) or []
        holder[name] = listed
        last = rounds.get(names)
        again = listed and step == slot.groups[-1] and slot.name in listed[-1] and not slot.many
        if not listed or last is None or again or branch != last[1] or at < last[2]:
            listed.append({})
        rounds[names] = step
        holder = listed[-1]
    if slot.many:
        holder.setdefault(slot.name, []).append(value)
    else:
        holder[slot.name] = value
