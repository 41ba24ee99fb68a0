"""The metadata of a stream's catalog entry: what every stream gets, what discovery gave, and what the author writes.

Later ones win, with one rule above all: key properties and the replication key are always ``automatic``, since a row
without them can't be told from another, nor followed by a bookmark.
"""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from burler.declare.field import FieldMetadata
from burler.declare.spec import StreamSpec
from burler.engine.session import Session
from burler.errors import DeclarationError
from burler.singer import metadata as md
from burler.singer.catalog import CatalogEntry
from burler.singer.metadata import INCREMENTAL
from burler.suggest import did_you_mean
from burler.words import some

logger = logging.getLogger(__name__)

Nodes = list[tuple[tuple[str, ...], Any]]
"""Breadcrumbs and sub-schemas, parents first."""

_VALID, _FORCED = "valid-replication-keys", "forced-replication-method"


def entry(
    session: Session, spec: StreamSpec, schema: dict[str, Any], found: CatalogEntry | None
) -> tuple[StreamSpec, CatalogEntry]:
    """The catalog entry of a stream, and its spec with what the metadata adds to it (keys, method).

    Args:
        found: what the tap's discover function gave for this stream, if it did.

    Raises:
        DeclarationError: metadata of a field that the schema does not have, keys that no catalog may carry, keys
            that are not in the schema, or a metadata function that failed.
    """
    own: md.MetadataMap = {}
    for crumb, values in found.metadata.items() if found else ():
        said = {key: value for key, value in values.items() if value is not None}
        own[crumb] = _checked(session, crumb, said, f"{spec.where}, as discovered")
    nodes = list(md.fields(schema))
    known = {crumb: ".".join(md.names(crumb)) for crumb, _node in nodes}
    for crumb in own:
        if crumb and crumb not in known:
            raise _unknown(".".join(md.names(crumb)) or "/".join(crumb), known.values(), spec)
    if spec.fixed_metadata is not None:
        _lay(own, _fixed(session, spec, nodes))
    if spec.metadata is not None:
        spec = _visit(session, spec, schema, own)
    else:
        spec = _with_root(spec, own.get((), {}))
    _check_keys(spec, own.get((), {}).get(_VALID) or (), schema)
    compiled = md.standard_metadata(
        schema,
        key_properties=spec.key_properties,
        replication_method=spec.replication_method,
        replication_key=spec.replication_key,
    )
    if _VALID in own.get((), {}) and _FORCED not in own.get((), {}):
        del compiled[()][_FORCED]  # keys to choose from: the user may choose the method, too
    _lay(compiled, own)
    compiled[()]["table-key-properties"] = list(spec.key_properties)  # whatever was found: one stream, one key
    _keys_are_automatic(compiled, spec)
    name = spec.tap_stream_id
    return spec, CatalogEntry(
        tap_stream_id=name,
        stream=found.stream if found else name,
        schema=schema,
        key_properties=spec.key_properties,
        replication_key=spec.replication_key,
        replication_method=spec.replication_method,
        metadata=compiled,
    )


def _lay(below: md.MetadataMap, over: md.MetadataMap) -> None:
    for crumb, values in over.items():
        below.setdefault(crumb, {}).update(values)


def _checked(session: Session, crumb: tuple[str, ...], values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What discovery or a mapping says of a node, checked like what a function writes."""
    field = FieldMetadata(md.Breadcrumb(crumb), None, tap_name=session.app.name, where=where)
    for key, value in values.items():
        field.set(key, value)
    return field.written


def _fixed(session: Session, spec: StreamSpec, nodes: Nodes) -> md.MetadataMap:
    """``tap.metadata("contacts", {"address.street": {...}})`` as a map of breadcrumbs."""
    crumbs: dict[str, list[tuple[str, ...]]] = {}
    for crumb, _node in nodes:
        crumbs.setdefault(".".join(md.names(crumb)), []).append(crumb)
    out: md.MetadataMap = {}
    for path, values in (spec.fixed_metadata or {}).items():
        if path and path not in crumbs:
            raise _unknown(path, crumbs, spec)
        if path and len(crumbs[path]) > 1:
            two = " and ".join(msgspec.json.encode(crumb).decode() for crumb in crumbs[path])
            raise DeclarationError(
                f"{spec.where}: metadata for field '{path}', which may be {two}. Say it in a @tap.metadata "
                "function, which gets the breadcrumb."
            )
        crumb = crumbs[path][0] if path else ()
        out[crumb] = _checked(session, crumb, values, spec.where)
    return out


def _visit(session: Session, spec: StreamSpec, schema: dict[str, Any], own: md.MetadataMap) -> StreamSpec:
    """Call the metadata function for the stream first, then for every field: by then the keys are known.

    It gets a copy of the schema: what it changes there must not change what goes out."""
    function = spec.metadata
    assert function is not None
    name = spec.tap_stream_id
    handed = copy.deepcopy(schema)
    nodes = list(md.fields(handed))
    run = session.describing(name, schema=handed, key_properties=spec.key_properties)
    what = f"{spec.where}: its metadata function"

    def visit(crumb: tuple[str, ...], node: Any) -> None:
        run.field = field = FieldMetadata(md.Breadcrumb(crumb), node, tap_name=session.app.name, where=spec.where)
        given = session.given(
            breadcrumb=lambda: field.breadcrumb,
            sub_schema=lambda: node,
            field=lambda: field,
            key_properties=lambda: run.key_properties,
            stream=lambda: run,
        )
        made = session.invoke(function, given, stream=name)
        if inspect.isgenerator(made) or isinstance(made, Mapping):
            does = "yields" if inspect.isgenerator(made) else "returns a mapping"  # which does nothing, or is lost
            cure = "Write it: tap.write_metadata(key, value), or field.set(key, value)."
            raise DeclarationError(f"{what} ({function.place}) {does}. {cure}")
        if field.written:
            own.setdefault(crumb, {}).update(field.written)

    def visit_all() -> None:
        for crumb, node in nodes:
            visit(crumb, node)

    guarded = partial(session.guarded, run=run, what=what, place=function.place)
    guarded(lambda: visit((), handed))
    spec = _with_root(spec, own.get((), {}))
    run.key_properties = spec.key_properties
    run.replication_key = spec.replication_key
    guarded(visit_all)
    run.field = None
    if handed != schema:
        logger.warning(
            "%s (%s) changes the schema that it gets, which has no effect; change it in a @tap.schema function",
            what,
            function.place,
        )
    return spec


def _with_root(spec: StreamSpec, root: Mapping[str, Any]) -> StreamSpec:
    """What the stream's own metadata says of keys and method."""
    changes: dict[str, Any] = {}
    keys = tuple(root.get("table-key-properties") or root.get("view-key-properties") or ())
    if keys and spec.key_properties and set(keys) != set(spec.key_properties):
        raise DeclarationError(
            f"{spec.where}: its metadata says the key properties are {', '.join(keys)}, its declaration says "
            f"{', '.join(spec.key_properties)}. Keep one of the two."
        )
    if keys and not spec.key_properties:
        changes["key_properties"] = keys
    forced, valid = root.get(_FORCED), root.get(_VALID) or []
    if forced is not None:
        changes["replication_method"] = forced
    if spec.replication_key is None and spec.bookmark is None and len(valid) == 1 and forced == INCREMENTAL:
        changes["replication_key"] = valid[0]
    spec = replace(spec, **changes) if changes else spec
    if spec.replication_key is not None and valid and spec.replication_key not in valid:
        raise DeclarationError(
            f"{spec.where}: its replication key is '{spec.replication_key}', which its metadata leaves out of "
            f"'{_VALID}': {', '.join(valid)}. Keep one of the two."
        )
    alone = spec.emitted_by is None and spec.parent is None
    if spec.replication_method == INCREMENTAL and spec.bookmark_key is None and not valid and alone:
        raise DeclarationError(
            f"{spec.where}: it is said to be INCREMENTAL, and nothing says by which key. Write '{_VALID}' in "
            "its metadata."
        )
    return spec


def _check_keys(spec: StreamSpec, valid: Iterable[str], schema: Mapping[str, Any]) -> None:
    fields = schema["properties"]
    named = {
        **dict.fromkeys(valid, "replication key"),
        **({spec.replication_key: "replication key"} if spec.replication_key else {}),
        **dict.fromkeys(spec.key_properties, "key property"),
    }
    missing = [(role, key) for key, role in named.items() if key not in fields]
    if missing:
        raise DeclarationError(
            f"{spec.where}: {', '.join(f'{role} {key!r}' for role, key in missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not in the schema.{did_you_mean(missing[0][1], fields)} "
            f"Its fields: {', '.join(fields) or 'none'}."
        )


def _keys_are_automatic(compiled: md.MetadataMap, spec: StreamSpec) -> None:
    for key in (*spec.key_properties, spec.replication_key):
        if key is None:
            continue
        values = compiled.setdefault(("properties", key), {})
        if values.get("inclusion") == md.UNSUPPORTED:
            raise DeclarationError(
                f"{spec.where}: field '{key}' is one of its keys and can't be 'unsupported': rows could not be told "
                "apart."
            )
        values["inclusion"] = md.AUTOMATIC


def _unknown(path: str, known: Iterable[str], spec: StreamSpec) -> DeclarationError:
    names = list(known)
    return DeclarationError(
        f"{spec.where}: metadata for field '{path}', which its schema does not have.{did_you_mean(path, names)} "
        f"Its fields: {some(names, 20)}."
    )
