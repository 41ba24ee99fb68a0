"""Any Singer tap's command as one that Spark reads: what it is given, and its catalog with one stream selected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from burler.engine.command.catalogs import only
from burler.engine.command.tap_command import TapCommand
from burler.engine.command.tap_process import CATALOG, CONFIG, PROPERTIES, STATE, TapProcess, discover, flags_of
from burler.errors import CatalogError, DeclarationError
from burler.schema.refs import resolve_refs
from burler.singer import metadata as md
from burler.singer.catalog import CatalogEntry, catalog_from_wire
from burler.singer.select import SelectRule, apply_select
from burler.singer.selection import fields_selected, prune
from burler.spark.source.declared import Declared
from burler.suggest import did_you_mean
from burler.words import some


@dataclass(frozen=True, slots=True)
class ForeignTap:
    """A tap's command; travels to the executors.

    Attributes:
        flags: how it wants its catalog: by those that its ``--help`` names. Both where both are there: some taps list
            ``--catalog``, since their library does, and read ``--properties``.
    """

    command: TapCommand
    config: Mapping[str, Any] | None = field(default=None, repr=False)
    flags: tuple[str, ...] = (CATALOG,)

    @property
    def source(self) -> str:
        """Whose catalog it is, for errors."""
        return f"command '{self.command.name}'"

    def sync(self, catalog: Mapping[str, Any], state: Mapping[str, Any] | None) -> TapProcess:
        """A run with that catalog."""
        files = {CONFIG: self.config, **dict.fromkeys(self.flags, catalog), STATE: state}
        return TapProcess(self.command, files=files)


def look(
    text: str, config: Mapping[str, Any] | None, catalog: Mapping[str, Any] | None, *, option: str
) -> tuple[ForeignTap, Mapping[str, Any]]:
    """The tap of a command and its catalog, discovered unless given: two starts of the tap, side by side.

    Raises:
        UsageError: there is no such command. CatalogError: discovery failed.
    """
    command = TapCommand.of_command(text, option=option, strict=False).hiding(config)
    with ThreadPoolExecutor(1) as beside:
        flags = beside.submit(flags_of, command)
        found = discover(command, config) if catalog is None else catalog
        known = flags.result()
    return ForeignTap(command, config, tuple(flag for flag in (CATALOG, PROPERTIES) if flag in known)), found


def select(
    wire: Mapping[str, Any], stream: str, patterns: Sequence[str], *, chosen: bool, source: str
) -> tuple[dict[str, Any], Declared]:
    """The catalog with that one stream selected, and the stream's columns.

    Args:
        patterns: of the fields that are wanted, as in ``--select`` behind the stream's name; none: all.
        chosen: the catalog is the user's: the fields that it selects are those that are wanted.
        source: whose catalog it is, for errors.

    Raises:
        CatalogError: no catalog, no such stream or field, or a schema that can't be read.
    """
    source = "option 'catalog'" if chosen else source
    entries = catalog_from_wire(wire, source=source).entries
    entry = _entry(entries, stream, source)
    name = entry.tap_stream_id
    wanted = _wanted(entry, patterns)
    try:
        schema = resolve_refs(entry.schema, source=f"{source}, stream '{name}'")
    except DeclarationError as error:
        raise CatalogError(str(error)) from None
    selection = {crumb: {"selected": on} for crumb, on in wanted.items()}
    pruned = prune(schema, selection, stream=name)
    known = frozenset(".".join(md.names(crumb)) for crumb, _ in md.fields(schema))
    names = frozenset({name, entry.stream, entry.emitted_name})
    return only(wire, name, wanted), Declared(name, names, pruned, entry.key_properties, _replication_key(entry), known)


def _entry(entries: Mapping[str, CatalogEntry], stream: str, source: str) -> CatalogEntry:
    """The stream of that id; else the one of that name; without a name, the only one there is."""
    if stream in entries:
        return entries[stream]
    named = [entry for entry in entries.values() if not stream or stream in (entry.stream, entry.emitted_name)]
    if len(named) == 1:
        return named[0]
    if not entries:
        raise CatalogError(f"{source}: its catalog lists no stream. Does its config name what it should read?")
    if not stream:
        raise CatalogError(
            f"{source}: has {len(entries)} streams; say which by option 'stream'. Streams: {some(list(entries))}."
        )
    raise CatalogError(
        f"{source}: {'several streams are' if named else 'no stream is'} called '{stream}'."
        f"{did_you_mean(stream, entries)} Streams: {some(list(entries))}."
    )


def _replication_key(entry: CatalogEntry) -> str | None:
    """The field that the stream's bookmark follows, where it is replicated by one."""
    root = entry.metadata.get((), {})
    method = root.get("forced-replication-method") or entry.replication_method
    valid = list(root.get("valid-replication-keys") or ())
    key = entry.replication_key or (valid[0] if len(valid) == 1 else None)
    return key if method in (None, "INCREMENTAL") else None


def _wanted(entry: CatalogEntry, patterns: Sequence[str]) -> dict[tuple[str, ...], bool]:
    """Whether each field comes; what is automatic or a key always does."""
    name = entry.tap_stream_id
    metadata: md.MetadataMap = {crumb: dict(values) for crumb, values in entry.metadata.items()}
    for key in (*entry.key_properties, entry.replication_key):
        held: dict[str, Any] = metadata.setdefault(("properties", key), {}) if key is not None else {}
        if held.get("inclusion") != md.UNSUPPORTED:
            held["inclusion"] = md.AUTOMATIC
    if patterns:
        rules = tuple(SelectRule(f"{name}.{part.removeprefix('!')}", not part.startswith("!")) for part in patterns)
        try:
            metadata = apply_select(rules, {name: entry.schema}, {name: metadata})[name]
        except CatalogError as error:
            text = str(error).removeprefix("--select: ")
            raise CatalogError(f"option 'fields': {text}") from None
    crumbs = [crumb for crumb, _ in md.fields(entry.schema)]
    return fields_selected(crumbs, metadata, stream=name)
