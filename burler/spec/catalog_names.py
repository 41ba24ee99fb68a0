"""Names of streams and fields that can't stand in paths, tables or columns (C102 to C106, C126)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from burler.spec.catalog_walk import Spot
from burler.spec.catalog_words import Reporter, cut, quoted

MOST_STREAM_BYTES = 200
"""File systems end names at 255 bytes, and a target puts a time and an ending behind a stream's name."""
MOST_COLUMN_BYTES = 63
"""Where PostgreSQL cuts names."""

_UNSAFE = re.compile(r'[/\\:*?"<>|\x00-\x1f\x7f-\x9f]')


def check_stream_name(report: Reporter, name: str) -> None:
    """Report a name that can't be part of a path or a table."""
    if not name:
        report.add("C104", "the stream's name is empty")
        return
    wrong = sorted(set(_UNSAFE.findall(name)))
    if wrong:
        report.add("C104", f"the name '{cut(name)}' holds {' '.join(map(ascii, wrong[:5]))}")
    elif name[0] in ". " or name[-1] in ". ":
        report.add("C104", f"the name '{cut(name)}' begins or ends with a dot or a space")
    elif _size(name) > MOST_STREAM_BYTES:
        report.add("C104", f"the name '{cut(name)}' has {_size(name)} bytes, more than {MOST_STREAM_BYTES}")


def _size(name: str) -> int:
    return len(name.encode("utf-8", "surrogatepass"))


def check_streams_differ(named: Sequence[tuple[Reporter, str, str, tuple[str, ...]]]) -> None:
    """Report streams that are the same, or would be where case does not count.

    Args:
        named: of each stream: its reporter, id, emitted name, and what the database says of where its table lies
            (taps put that before the name, so that streams that differ there are not of one name).
    """
    ids: set[str] = set()
    names: dict[tuple[str, ...], tuple[str, str]] = {}
    cases: dict[tuple[str, ...], str] = {}
    for report, id_, name, lies in named:
        if id_ in ids:
            report.add("C102", f"the tap_stream_id '{cut(id_)}' is there a second time")
            continue
        ids.add(id_)
        first = names.setdefault((name, *lies), (id_, name))
        if first[0] != id_:
            fact = f"the streams '{cut(first[0])}' and '{cut(id_)}' both go out under the name '{cut(name)}'"
            report.add("C103", fact)
            continue
        twin = cases.setdefault((name.lower(), *(one.lower() for one in lies)), name)
        if twin != name:
            report.add("C105", f"the streams '{cut(twin)}' and '{cut(name)}' differ in the case of letters alone")


def check_field_names(report: Reporter, spot: Spot) -> None:
    """Report fields of one object that differ in case alone, and columns whose names are too long."""
    properties = spot.node.get("properties") if isinstance(spot.node, Mapping) else None
    if not isinstance(properties, Mapping) or spot.role == "other":
        return
    names = [name for name in properties if isinstance(name, str)]
    before = f"{spot.path}." if spot.path else ""
    for twins in _alike(names, str.lower):
        fact = f"the fields {quoted(twins)} differ in the case of letters alone"
        report.add("C106", fact, path=before + twins[0])
    if spot.role != "top":
        return
    long = [name for name in names if _size(name) >= MOST_COLUMN_BYTES]
    told: set[str] = set()
    for alike in _alike(long, _beginning):
        told.update(alike)
        fact = f"the fields {quoted(alike)} are one in their first {MOST_COLUMN_BYTES} bytes"
        report.add("C126", fact, path=alike[0])
    for name in long:
        if _size(name) > MOST_COLUMN_BYTES and name not in told:
            fact = f"the name '{cut(name)}' has {_size(name)} bytes; PostgreSQL cuts it after {MOST_COLUMN_BYTES}"
            report.add("C126", fact, path=name)


def _beginning(name: str) -> str:
    return name.encode("utf-8", "surrogatepass")[:MOST_COLUMN_BYTES].decode("utf-8", "replace")


def _alike(names: Iterable[str], key: Callable[[str], str]) -> list[list[str]]:
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(key(name), []).append(name)
    return [group for group in groups.values() if len(group) > 1]
