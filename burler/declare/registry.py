"""The registry: collects what decorators say, and at ``seal()`` makes the frozen specs of it.

Parts of a stream may be declared in any order. What can be judged alone is judged when it is
declared; what needs the whole (a bookmark for a stream that nobody syncs) is judged at ``seal()``,
all gaps at once, each with file:line (style 7.2).
"""

from __future__ import annotations

import difflib
import threading
from dataclasses import fields, replace
from typing import Any

from burler.declare.spec import FULL_TABLE, INCREMENTAL, REPLICATION_METHODS, StreamSpec, UserFunction
from burler.declare.strategies import Strategy, parse_strategy
from burler.errors import DeclarationError

ORDERS = ("asc", "none")
SYNC_PARAMETERS = ("client", "config", "state", "catalog", "stream")
BOOKMARK_PARAMETERS = ("record", "state", "stream")
SCHEMA_PARAMETERS = ("client", "config")
CLIENT_PARAMETERS = ("config",)


class Registry:
    """What one tap declares. Not shared between taps; sealed once a mode begins."""

    def __init__(self) -> None:
        self._parts: dict[str, dict[str, Any]] = {}
        self._places: dict[tuple[str, str], str] = {}
        self._sealed: dict[str, StreamSpec] | None = None
        self._lock = threading.Lock()
        self.client: UserFunction | None = None

    def set_client(self, function: UserFunction) -> None:
        """The function that makes the client; one per tap."""
        self._check_open(function.place)
        if self.client is not None:
            raise DeclarationError(
                f"{function.place}: the tap has a client already ({self.client.place}). Keep one of the two."
            )
        self.client = function

    def declare(self, stream: str, part: str, value: Any, *, place: str) -> None:
        """Note one part (a field of :class:`StreamSpec`) of a stream.

        Raises:
            DeclarationError: the part was declared before, or the tap is running already.
        """
        self._check_open(place)
        check_name(stream, place)
        slot = "schema" if part == "schema_fn" else part
        earlier = self._places.get((stream, slot))
        if earlier is not None:
            what = {"sync": "sync function", "bookmark": "bookmark function"}.get(slot, slot)
            raise DeclarationError(
                f"stream '{stream}' ({place}): has a {what} already ({earlier}). Keep one of the two."
            )
        self._places[(stream, slot)] = place
        self._parts.setdefault(stream, {})[part] = value

    def declare_stream(self, stream: str, *, place: str, **options: Any) -> None:
        """Note a stream itself: who gives its rows, and its options, parsed here."""
        parts = parse_options(stream, place, **options)
        for part in ("sync", "emitted_by"):
            if parts.get(part) is not None:
                self.declare(stream, "sync", parts.pop("sync", None), place=place)
        self._parts.setdefault(stream, {}).update(parts)

    def _check_open(self, place: str) -> None:
        if self._sealed is not None:
            raise DeclarationError(f"{place}: the tap is running; declare all streams when the module is imported.")

    @property
    def names(self) -> tuple[str, ...]:
        """The streams declared so far, in order."""
        return tuple(self._parts)

    def seal(self) -> dict[str, StreamSpec]:
        """The frozen specs. Every further declaration is refused.

        Raises:
            DeclarationError: all that does not fit together, one line each.
        """
        with self._lock:
            if self._sealed is None:
                gaps: list[str] = []
                specs = {name: self._spec(name, gaps) for name in self._parts}
                for spec in specs.values():
                    _check_spec(spec, specs, gaps)
                if gaps:
                    raise DeclarationError("\n".join(gaps))
                silent = {name for name, parts in self._parts.items() if parts.get("replication_method") is None}
                self._sealed = {name: _inherit(spec, specs) if name in silent else spec for name, spec in specs.items()}
            return self._sealed

    def _spec(self, name: str, gaps: list[str]) -> StreamSpec:
        parts = self._parts[name]
        sync: UserFunction | None = parts.get("sync")
        place = parts.get("place") or next(p for (stream, _), p in self._places.items() if stream == name)
        if sync is None and parts.get("emitted_by") is None:
            have = ", ".join(sorted(part for stream, part in self._places if stream == name))
            close = difflib.get_close_matches(name, [n for n in self._parts if self._parts[n].get("sync")], n=1)
            hint = f" Did you mean '{close[0]}'?" if close else f" Decorate one: @tap.sync({name!r})"
            gaps.append(f"stream '{name}' ({place}): has {have}, but no sync function.{hint}")
        known = {field.name for field in fields(StreamSpec)}
        given = {key: value for key, value in parts.items() if key in known and value is not None}
        given["place"] = place
        if parts.get("replication_method") is None:
            rising = parts.get("replication_key") is not None or parts.get("bookmark") is not None
            given["replication_method"] = INCREMENTAL if rising else FULL_TABLE
        return StreamSpec(tap_stream_id=name, **given)


def check_name(stream: Any, place: str) -> None:
    """Refuse what is no stream's name; a function, where the decorator's parentheses were forgotten.

    Raises:
        DeclarationError: see above.
    """
    if callable(stream):
        raise DeclarationError(f"{place}: the decorator needs the stream's name first: @tap.sync('contacts').")
    if not isinstance(stream, str) or not stream:
        raise DeclarationError(f"{place}: the stream's name must be text, not {stream!r}.")


def parse_options(
    stream: str,
    place: str,
    *,
    sync: UserFunction | None = None,
    emitted_by: str | None = None,
    key_properties: Any = (),
    replication_key: str | None = None,
    replication_method: str | None = None,
    bookmark_strategy: str | Strategy = "end_of_sync",
    order: str | None = None,
    versions: bool | None = None,
) -> dict[str, Any]:
    """The options of ``@tap.sync`` and ``tap.stream`` as fields of a spec.

    Raises:
        DeclarationError: an unknown method, strategy or order, or key properties that are no names.
    """
    check_name(stream, place)
    where = f"stream '{stream}' ({place})"
    keys = (key_properties,) if isinstance(key_properties, str) else key_properties
    if (
        not isinstance(keys, list | tuple)
        or not all(isinstance(key, str) and key for key in keys)
        or len(set(keys)) != len(keys)
    ):
        raise DeclarationError(f"{where}: key_properties must be different field names, not {key_properties!r}.")
    if replication_key is not None and (not isinstance(replication_key, str) or not replication_key):
        raise DeclarationError(f"{where}: replication_key must be a field's name, not {replication_key!r}.")
    if replication_method is not None and replication_method not in REPLICATION_METHODS:
        raise DeclarationError(
            f"{where}: replication_method {replication_method!r} is unknown. Known: {', '.join(REPLICATION_METHODS)}."
        )
    if order is not None and order not in ORDERS:
        raise DeclarationError(f"{where}: order {order!r} is unknown. Known: {', '.join(ORDERS)}.")
    strategy = parse_strategy(bookmark_strategy, place=where)
    return {
        "place": place,
        "sync": sync,
        "emitted_by": emitted_by,
        "key_properties": tuple(keys),
        "replication_key": replication_key,
        "replication_method": replication_method,
        "strategy": strategy,
        "order": order or ("asc" if strategy.needs_order else "none"),
        "versions": versions,
    }


def _check_spec(spec: StreamSpec, specs: dict[str, StreamSpec], gaps: list[str]) -> None:
    where = f"stream '{spec.tap_stream_id}' ({spec.place})"
    if spec.schema is None and spec.schema_fn is None:
        gaps.append(f"{where}: has no schema. Add tap.schema({spec.tap_stream_id!r}, burler.json_file(...)).")
    if spec.replication_method == INCREMENTAL and spec.bookmark_key is None and spec.emitted_by is None:
        gaps.append(f"{where}: INCREMENTAL needs a replication_key (or a @tap.bookmark function).")
    if spec.emitted_by is not None:
        source = specs.get(spec.emitted_by)
        if source is None or source.sync is None:
            known = ", ".join(name for name, other in specs.items() if other.sync) or "none"
            gaps.append(f"{where}: emitted_by '{spec.emitted_by}' has no sync function. Streams that have: {known}.")


def _inherit(spec: StreamSpec, specs: dict[str, StreamSpec]) -> StreamSpec:
    """A stream that another one emits is replicated as that one is, unless it says otherwise: were it
    taken for a full table, each increment would drop the rows before it."""
    if spec.emitted_by is None or spec.replication_method != FULL_TABLE:
        return spec
    return replace(spec, replication_method=specs[spec.emitted_by].replication_method)
