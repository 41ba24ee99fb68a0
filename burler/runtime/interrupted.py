"""Interrupted full tables: where a stream with ``resumable_by`` goes on, and under which versions.

The state says where, under ``full_table``, with the version of the rows that are out. Streams whose rows come in the
same run go on under their own versions, or rows of theirs that are out would be dropped with the next ACTIVATE_VERSION.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burler.runtime import entries
from burler.singer import state as st

if TYPE_CHECKING:
    from burler.runtime.line import Line
    from burler.runtime.unit import Unit


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Where it goes on, and the version of each stream of the line that sends versions."""

    value: Any
    versions: Mapping[str, int]


def interrupted(state: dict[str, Any], line: Line) -> Interrupted | None:
    """What an earlier run left unfinished; None if there is nothing, or if what is out can't be gone on with: a stream
    is wanted now that was not, or the version of the rows before is not known, or no longer the newest."""
    root = line.planned.get(line.root)
    key = root.resume_key if root is not None else None
    found = entries.value_of(state, line.root, entries.FULL)
    if key is None or not isinstance(found, dict) or found.get(key) is None:
        return None
    if not line.selected <= entries.covers_of(found, line.root):
        return None
    versions: dict[str, int] = {}
    for name, planned in line.planned.items():
        if planned.versions:
            entry = entries.value_of(state, name, entries.FULL)
            version = entry.get("version") if isinstance(entry, dict) else None
            if not isinstance(version, int) or isinstance(version, bool):
                return None
            if version <= (st.get_version(state, name) or 0):
                return None
            versions[name] = version
    return Interrupted(found[key], versions)


def forget(state: dict[str, Any], line: Line) -> bool:
    """Take away what can't be gone on with; True if there was something. A STATE without it must be out before rows
    of another version: a run that goes on from an older one would fill a version that targets have dropped."""
    stale = [name for name in line.names if entries.value_of(state, name, entries.FULL) is not None]
    for name in stale:
        entries.put(state, name, entries.FULL, None)
    return bool(stale)


def save_full_table(unit: Unit, state: dict[str, Any], safe: Any) -> None:
    """Note where the table goes on if this run does not come to its end; nothing once it has."""
    line = unit.line
    key = unit.keys[line.root]
    done = safe is None or unit.complete
    for name in line.names:
        if name not in line.planned:
            entries.put(state, name, entries.FULL, None)
            continue
        version = unit.outlets[name].versions.now if line.planned[name].versions else None
        entry: dict[str, Any] = {} if version is None else {"version": version}
        if name == line.root:
            entry[key] = safe
            if len(line.planned) > 1:
                entry[entries.COVERS] = sorted(line.selected)
        entries.put(state, name, entries.FULL, None if done else entry or None)
