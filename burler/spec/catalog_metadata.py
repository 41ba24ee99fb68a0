"""The metadata of a stream (C118 to C121, C127), read from whatever stands there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from burler.schema_tree import UNIONS
from burler.singer.keys import FIELD, KEYS, STREAM, wire_key
from burler.singer.metadata import AUTOMATIC, AVAILABLE, UNSUPPORTED, MetadataMap, dotted, plain_crumb
from burler.spec.catalog_walk import Spot, reference
from burler.spec.catalog_words import Reporter, cut, quoted, said, texts
from burler.suggest import did_you_mean, nearest

_TAPS_OWN = re.compile(r"tap[-_][\w-]*\..")
_INCLUSIONS = (AUTOMATIC, AVAILABLE, UNSUPPORTED)
_TRUTHS = ("selected", "selected-by-default", "is-view", "batch-enabled")
_NAMES = ("table-key-properties", "view-key-properties", "valid-replication-keys")
_TEXTS = ("replication-key", "schema-name", "database-name", "sql-datatype", "unsupported-description")
_NUMBERS = ("row-count", "new-record-polling-interval-ms", "max-full-table-age-seconds")


def read_metadata(report: Reporter, entries: Any, schema: Any, places: Iterable[Spot]) -> MetadataMap:
    """A stream's metadata as a map, with all that is wrong in its breadcrumbs reported (C119)."""
    if entries is None or (isinstance(entries, Mapping) and not entries):
        return {}
    if not isinstance(entries, list | tuple):
        report.add("C119", f"'metadata' is {said(entries)}, no list of breadcrumbs with their metadata")
        return {}
    known = list(places)
    fields = {spot.crumb for spot in known}
    names = [dotted(spot.crumb) for spot in known if spot.role == "field"]
    hidden = any(reference(spot.node) is not None for spot in known)
    compiled: MetadataMap = {}
    for position, entry in enumerate(entries):
        place = f"{report.place}.metadata[{position}]"
        values = entry.get("metadata") if isinstance(entry, Mapping) else None
        crumb = _crumb(entry.get("breadcrumb")) if isinstance(entry, Mapping) else None
        if crumb is None or not isinstance(values, Mapping):
            fact = 'an entry of \'metadata\' is not {"breadcrumb": ["properties", "..."], "metadata": {...}}'
            report.add("C119", fact, place=place)
            continue
        if isinstance(entry["breadcrumb"], str):
            report.add("C119", f"a breadcrumb is {said(entry['breadcrumb'])}, no list", path=dotted(crumb), place=place)
        if crumb in compiled:
            shown = f"'{cut(dotted(crumb))}'" if crumb else "the stream itself"
            report.add("C119", f"two entries of 'metadata' speak of {shown}", path=dotted(crumb), place=place)
        elif crumb not in fields and not hidden and not _is_in(schema, entry["breadcrumb"]):
            hint = did_you_mean(dotted(crumb), names)
            fact = f"a breadcrumb names '{cut(dotted(crumb))}', which the schema does not have{hint and f'.{hint}'}"
            report.add("C119", fact, path=dotted(crumb), place=place)
        compiled.setdefault(crumb, {}).update({key: value for key, value in values.items() if isinstance(key, str)})
    return compiled


def _crumb(given: Any) -> tuple[str, ...] | None:
    """A breadcrumb without steps into unions; None if it is none. Text is read as people mean it."""
    if isinstance(given, str):
        parts = given.split(".") if given else []
        return tuple(
            parts if parts[:1] in ([], ["properties"]) else [part for one in parts for part in ("properties", one)]
        )
    if not isinstance(given, list | tuple):
        return None
    out: list[str] = []
    for part in given:
        if isinstance(part, int) and not isinstance(part, bool) and 0 <= part < 10**9 and out and out[-1] in UNIONS:
            part = str(part)  # a branch's number
        if not isinstance(part, str):
            return None
        out.append(part)
    return plain_crumb(out)


def _is_in(schema: Any, given: Any) -> bool:
    """Whether a breadcrumb leads somewhere, key by key: into a map's values for instance."""
    node = schema
    for part in given.split(".") if isinstance(given, str) else given:
        if isinstance(node, Mapping) and part in node:
            node = node[part]
        elif isinstance(node, list | tuple) and str(part).isdecimal() and len(str(part)) < 9 and int(part) < len(node):
            node = node[int(part)]
        else:
            return False
    return isinstance(node, Mapping | bool)


def check_metadata(report: Reporter, compiled: MetadataMap, *, tap_name: str | None) -> None:
    """Report keys that nobody knows, values of a wrong kind, and unsupported fields that are selected."""
    unknown: dict[str, list[tuple[str, ...]]] = {}
    for crumb, values in compiled.items():
        for key, value in values.items():
            if _is_taps_own(key, tap_name):
                continue
            if key not in KEYS:
                unknown.setdefault(key, []).append(crumb)
                continue
            problem = _problem(key, value, FIELD if crumb else STREAM)
            if problem is not None:
                report.add("C120", f"'{key}' {problem}", path=dotted(crumb))
        if values.get("inclusion") == UNSUPPORTED and values.get("selected") in (True, "true"):
            report.add("C127", "it is 'unsupported' and selected all the same, and will not come", path=dotted(crumb))
    for path, facts in _by_first_place(unknown).items():
        report.add("C118", f"nobody knows the metadata key {'; '.join(facts)}", path=path)


def _is_taps_own(key: str, tap_name: str | None) -> bool:
    if _TAPS_OWN.match(key):
        return True
    return tap_name is not None and key.startswith((f"{tap_name}.", f"{tap_name.replace('-', '_')}."))


def _by_first_place(unknown: Mapping[str, list[tuple[str, ...]]]) -> dict[str, list[str]]:
    """One sentence for each key, by the place where it stands first: a key of a thousand fields is one finding."""
    out: dict[str, list[str]] = {}
    for key, crumbs in unknown.items():
        near = wire_key(key) if wire_key(key) in KEYS else nearest(key.replace("_", "-"), KEYS)
        hint = f" (did you mean '{near}'?)" if near else ""
        many = f" ({len(crumbs)} places)" if len(crumbs) > 1 else ""
        out.setdefault(dotted(crumbs[0]), []).append(f"'{cut(key)}'{many}{hint}")
    return out


def _problem(key: str, value: Any, here: str) -> str | None:
    """What is wrong with the value of a known key. null says nothing, and so nothing wrong."""
    if value is None:
        return None
    if here not in KEYS[key].on:
        return f"belongs to {'a field' if here == STREAM else 'the stream, breadcrumb []'}. {KEYS[key].about}"
    if key == "inclusion":
        good = isinstance(value, str) and value in _INCLUSIONS
        return None if good else f"is {said(value)}; it is one of {', '.join(_INCLUSIONS)}"
    for keys, is_good, wanted in _KINDS:
        if key in keys and not is_good(value):
            return f"is {said(value)}; it is {wanted}"
    return None


_KINDS: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (
        _TRUTHS,
        lambda value: isinstance(value, bool),
        "true or false, without quotes (any text counts as true in Python)",
    ),
    (_NAMES, lambda value: texts(value) is not None, "a list of field names"),
    (_TEXTS, lambda value: isinstance(value, str), "text"),
    (_NUMBERS, lambda value: isinstance(value, int | float) and not isinstance(value, bool), "a number"),
)


def check_inclusion(report: Reporter, schema: Any, compiled: MetadataMap) -> None:
    """Report fields of the top of which nothing says whether they may be chosen (C121)."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return
    names = [name for name in properties if isinstance(name, str)]
    missing = [name for name in names if inclusion(schema, compiled, name) is None]
    if missing:
        report.add("C121", f"{len(missing)} of {len(names)} fields have no 'inclusion': {quoted(missing)}")


def inclusion(schema: Any, compiled: MetadataMap, name: str) -> Any:
    """What metadata, or the schema as of old, says on a field's inclusion; None for nothing."""
    said_so = compiled.get(("properties", name), {}).get("inclusion")
    node = schema["properties"].get(name) if isinstance(schema, Mapping) else None
    return node.get("inclusion") if said_so is None and isinstance(node, Mapping) else said_so


def unsupported(schema: Any, compiled: MetadataMap) -> Iterator[str]:
    """The fields of the top that never come: what their schemas say matters to nobody."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    for name in properties if isinstance(properties, Mapping) else ():
        if isinstance(name, str) and inclusion(schema, compiled, name) == UNSUPPORTED:
            yield name
