"""Discovery: declared streams, and those that the tap's own function finds, as one catalog."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from burler.config.loading import Loaded
from burler.declare.app import App
from burler.declare.checks import line_of
from burler.declare.spec import FIRST_KEY, StreamSpec, UserFunction
from burler.engine.catalog import metadata as written
from burler.engine.session import Session, open_session
from burler.errors import CatalogError, DeclarationError
from burler.schema.checks import check_schema
from burler.schema.refs import resolve_refs
from burler.schema.sources import as_source
from burler.schema_tree import types_of
from burler.singer.catalog import Catalog, CatalogEntry, catalog_from_wire
from burler.singer.metadata import FULL_TABLE, INCREMENTAL, METHODS
from burler.singer.select import like
from burler.surrogates import is_unicode
from burler.words import some

_MOST_GAPS = 50


@dataclass(frozen=True, slots=True)
class Discovery:
    """The streams there are, those that were found among them, and the catalog of them as the tap says it."""

    specs: Mapping[str, StreamSpec]
    catalog: Catalog


@dataclass(frozen=True, slots=True)
class _Found:
    """A stream as it is known before its metadata is written: spec, raw schema, and the entry discovery gave."""

    spec: StreamSpec
    schema: Any
    entry: CatalogEntry | None = None


def discover_app(app: App, config: Mapping[str, Any] | Loaded) -> Discovery:
    """All streams of an app with a config, in a session of their own.

    Raises:
        ConfigError: the config is wrong. DeclarationError: see :func:`discover`.
    """
    session, _settings = open_session(app, config)
    try:
        return discover(session)
    finally:
        session.close()


def discover(session: Session) -> Discovery:
    """All streams there are: schemas without references, metadata written.

    Raises:
        DeclarationError: a schema that is missing, unreadable, or no JSON Schema of an object; metadata
            that no catalog may carry; a discovered stream that nobody syncs.
    """
    gaps: list[str] = []
    streams = _streams(session, gaps)
    specs = {found.spec.tap_stream_id: found.spec for found in streams}
    entries: dict[str, CatalogEntry] = {}
    # Those that stand above others first: what their metadata says of the method holds of the others, too.
    for found in sorted(streams, key=lambda found: len(line_of(found.spec, specs))):
        with _gathered(gaps, spec := found.spec):
            schema = _finished(found, session)
            line = line_of(spec, specs)
            if line[-1].tap_stream_id != spec.root or any(one.tap_stream_id not in entries for one in line[1:]):
                continue  # what it hangs on has a gap of its own
            name, in_increments = spec.tap_stream_id, _comes_in_increments(line, session.app.streams)
            if in_increments and spec.replication_method == FULL_TABLE:
                spec = replace(spec, replication_method=INCREMENTAL)
            specs[name], entry = written.entry(session, spec, schema, found.entry)
            if in_increments and specs[name].replication_method == FULL_TABLE:
                raise DeclarationError(
                    f"{spec.where}: its metadata says {FULL_TABLE}, but it is synced in the run "
                    f"of '{spec.root}', of which only new rows come: each run would drop the rows before them. "
                    "Leave out 'forced-replication-method'."
                )
            entries[name] = entry
    if gaps:
        gaps = list(dict.fromkeys(gaps))
        more = [f"and {len(gaps) - _MOST_GAPS} more like these"] if len(gaps) > _MOST_GAPS else []
        raise DeclarationError("\n".join([*gaps[:_MOST_GAPS], *more]))
    return Discovery(specs, Catalog({name: entries[name] for name in specs}))


@contextlib.contextmanager
def _gathered(gaps: list[str], spec: StreamSpec) -> Iterator[None]:
    """A broken stream is noted and the next one looked at, so that all are told at once. What is not the stream's own
    fault, as a client that can't be made, comes through."""
    try:
        yield
    except DeclarationError as error:
        gaps.append(str(error))
    except RecursionError:
        gaps.append(f"{spec.where}: its schema is nested too deep, or holds itself.")


def _comes_in_increments(line: list[StreamSpec], declared: Mapping[str, StreamSpec]) -> bool:
    """Whether a stream hangs on one of which only new rows come: then it is no full table, since each run would drop
    its rows before them.

    A stream that a function emits may be one all the same, where its author says so: the function may yield all of
    it in each run.

    Args:
        line: the stream, and those it hangs on.
    """
    emitter = declared.get(line[0].emitted_by or "")
    if emitter is not None and len(line) == 2 and emitter.replication_method != FULL_TABLE:
        return False
    return any(one.replication_method != FULL_TABLE for one in line[1:])


def _streams(session: Session, gaps: list[str]) -> list[_Found]:
    """Declared streams first, then those that are found and only a pattern declares; what is wrong goes to ``gaps``."""
    discovered = _discovered(session)
    generated: dict[Any, Any] = {}
    found: list[_Found] = []
    for name, spec in session.app.streams.items():
        if spec.is_pattern:
            continue
        entry = discovered.pop(name, None)
        with _gathered(gaps, spec):
            if entry is not None:
                spec = _with_entry(spec, entry)
            found.append(_Found(spec, _raw_schema(session, spec, generated, entry), entry))
    patterns = [spec for spec in session.app.streams.values() if spec.is_pattern]
    given: dict[str, Mapping[str, Any]] = {}
    for pattern in patterns:
        with _gathered(gaps, pattern):
            given[pattern.tap_stream_id] = _mapping_of(session, pattern, generated)
        for name in given.get(pattern.tap_stream_id, ()):
            if name not in session.app.streams and like(name, pattern.tap_stream_id):
                discovered.setdefault(name, CatalogEntry(name, name, {}))
    nobodys: list[str] = []
    for name, entry in discovered.items():
        chosen = next((one for one in patterns if like(name, one.tap_stream_id)), None)
        if chosen is None:
            nobodys.append(name)
        elif chosen.tap_stream_id in given:
            spec = replace(chosen, tap_stream_id=name, root=name, schema_fn=None, found=True)
            with _gathered(gaps, spec):
                schema = given[chosen.tap_stream_id].get(name, chosen.schema)
                found.append(_Found(_with_entry(spec, entry), entry.schema if schema is None else schema, entry))
    if nobodys:
        function = session.app.discover
        what = f"stream '{nobodys[0]}'" if len(nobodys) == 1 else f"streams {some(nobodys, 10)}"
        gaps.append(
            f"{session.app.name}: discovery ({function.place if function else ''}) finds {what}, which "
            f"nothing syncs. Declare @tap.sync({nobodys[0]!r}), or @tap.sync('*') for all that are found."
        )
    return found


def _discovered(session: Session) -> dict[str, CatalogEntry]:
    function = session.app.discover
    if function is None:
        return {}
    what = f"{session.app.name}: the discover function"
    made = session.ask(function, "discover", what=what)
    where = f"{what} ({function.place})"
    if isinstance(made, Catalog):
        return dict(made.entries)
    if callable(getattr(made, "to_dict", None)):
        made = made.to_dict()  # the Catalog of singer-python
    if not isinstance(made, Mapping):
        raise DeclarationError(
            f"{where} gave {type(made).__name__}; it gives a catalog {{'streams': [...]}} or a mapping of stream names "
            "to schemas."
        )
    if isinstance(made.get("streams"), list):
        try:
            return dict(catalog_from_wire(made, source=where).entries)
        except CatalogError as error:
            raise DeclarationError(str(error)) from None
    _check_names(made, where)
    return {name: CatalogEntry(name, name, schema) for name, schema in made.items()}


def _check_names(made: Mapping[Any, Any], where: str) -> None:
    strange = [name for name in made if not isinstance(name, str) or not name]
    if strange:
        raise DeclarationError(f"{where} gave a stream the name {strange[0]!r:.60}; a stream's name is text.")


def _with_entry(spec: StreamSpec, entry: CatalogEntry) -> StreamSpec:
    """What discovery says of a stream, where its declaration says nothing."""
    root = entry.metadata.get((), {})
    changes: dict[str, Any] = {}
    if not spec.key_properties and entry.key_properties:
        changes["key_properties"] = entry.key_properties
    method = root.get("forced-replication-method") or entry.replication_method
    if method is not None and method not in METHODS:
        raise DeclarationError(
            f"{spec.where}: discovery gives it the replication method {method!r:.60}. Known, in capitals: "
            f"{', '.join(METHODS)}."
        )
    if spec.replication_key is None and spec.bookmark is None:
        if entry.replication_key is not None:
            changes["replication_key"] = entry.replication_key
        if method is not None or entry.replication_key is not None:
            changes["replication_method"] = method or INCREMENTAL
    elif method == FULL_TABLE:
        changes["replication_method"] = FULL_TABLE
    if spec.method_said:
        changes.pop("replication_method", None)
    if spec.resumable_by == FIRST_KEY:
        changes["resumable_by"] = _first_key(changes.get("key_properties") or spec.key_properties, entry)
    return replace(spec, **changes)


def _first_key(keys: tuple[str, ...], entry: CatalogEntry) -> str | None:
    """The first field of a key, if rows can rise by it: numbers and text have an order."""
    types = set(types_of((entry.schema.get("properties") or {}).get(keys[0]))) if keys else set()
    return keys[0] if types and types <= {"integer", "number", "string", "null"} else None


def _raw_schema(session: Session, spec: StreamSpec, generated: dict[Any, Any], entry: CatalogEntry | None) -> Any:
    if spec.schema_fn is not None:
        made = _generate(session, spec, spec.schema_fn, generated)
        if isinstance(made, Mapping) and "properties" not in made and spec.tap_stream_id in made:
            return made[spec.tap_stream_id]
        return made
    if spec.schema is not None:
        return spec.schema
    if entry is not None:
        return entry.schema
    raise DeclarationError(
        f"{spec.where}: has no schema, and discovery does not find it. Add tap.schema({spec.tap_stream_id!r}, "
        "burler.json_file(...)), or let the discover function give it."
    )


def _generate(session: Session, spec: StreamSpec, function: UserFunction, generated: dict[Any, Any]) -> Any:
    """What a schema function gives; one that serves several streams is called once."""
    key = (function.fn, spec.tap_stream_id if function.owner else None)
    if key not in generated:
        what = f"{spec.where}: its schema function"
        generated[key] = session.ask(function, spec.tap_stream_id, what=what, key_properties=spec.key_properties)
    return generated[key]


def _mapping_of(session: Session, pattern: StreamSpec, generated: dict[Any, Any]) -> Mapping[str, Any]:
    """Streams that a pattern's own schema function names."""
    if pattern.schema_fn is None:
        return {}
    made = _generate(session, pattern, pattern.schema_fn, generated)
    if isinstance(made, Mapping) and all(isinstance(schema, Mapping) for schema in made.values()):
        _check_names(made, f"stream '{pattern.tap_stream_id}': its schema function ({pattern.schema_fn.place})")
        return made
    raise DeclarationError(
        f"{pattern.where}: its schema function ({pattern.schema_fn.place}) gives a mapping of stream names to schemas, "
        f"not {type(made).__name__}."
    )


def _finished(found: _Found, session: Session) -> dict[str, Any]:
    """The schema as it goes out: read, its references resolved, an object with properties."""
    spec = found.spec
    if not is_unicode(spec.tap_stream_id):
        raise DeclarationError(
            f"stream {spec.tap_stream_id!a:.60} ({spec.place}): its name holds half a character; no message carries it."
        )
    where = spec.where
    raw = as_source(found.schema, where=where)
    if isinstance(raw, Mapping):
        # Files beside the module are for schemas that stand in it; one that came from elsewhere reads none.
        schema = resolve_refs(raw, source=where, base=spec.module_file if raw is spec.schema else None)
    else:
        schema = session.guarded(
            lambda: raw.load(where=where, config=session.config),
            run=session.describing(spec.tap_stream_id, key_properties=spec.key_properties),
            what=f"{where}: its schema",
            place=type(raw).__name__,
        )
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        raise DeclarationError(f"{where}: its schema must be a JSON object with 'properties'.")
    check_schema(schema, where=where)
    return schema
